# SPDX-License-Identifier: Apache-2.0
"""The colours of all charts, of medium brightness, which fit both light and dark pages."""

BLUE, ORANGE, GREEN, VIOLET = "#3b6ea5", "#c8794a", "#5b9a68", "#8d6ab0"
OLIVE, GREY, ROSE, TEAL = "#b5a642", "#7a8288", "#b65d78", "#4aa3a3"
# The colours of series, in order.
PALETTE = (BLUE, ORANGE, GREEN, VIOLET, OLIVE, GREY, ROSE, TEAL)
# The area of an interval: blue that the page shines through.
LIGHT = "rgba(59,110,165,.18)"
DASHES = f'stroke="{GREY}" stroke-dasharray="5 4"'
