# SPDX-License-Identifier: Apache-2.0
"""Plan -> proof -> noisy release; the session that users touch.

May import every room below it. Begin with ``pipeline`` (down: a question becomes a bounded
plan) and ``release`` (up: exact integers become a stored answer). ``stability`` is the
sensitivity argument, whole in one file; ``session`` is the front door.
"""
