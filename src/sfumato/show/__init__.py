# SPDX-License-Identifier: Apache-2.0
"""Shows results: text tables, charts and pages, without knowledge of what they show.

May import: ``privacy``, ``noise``, ``exact``, ``errors``. Begin with ``page``, the frame and the
style sheet of every page. ``svg``, ``axes`` and ``bars`` draw charts, ``palette`` has the colours,
``render`` makes tables of text and HTML. Each other room decides itself which numbers it draws.
"""
