# SPDX-License-Identifier: Apache-2.0
"""How results are shown: tables, pictures and pages. It knows no room that it shows.

May import: ``privacy``, ``noise``, ``exact``, ``errors``. Begin with ``page``: the frame and the
style sheet of every page. ``svg``, ``axes`` and ``bars`` draw, ``palette`` has the colours,
``render`` makes tables of text and HTML. What is drawn stays in the room that draws it.
"""
