# SPDX-License-Identifier: Apache-2.0
"""Plan -> proof -> noisy release; the session that users touch.

May import every room below it. Begin with ``pipeline`` (down: a question becomes a bounded
plan) and ``charge`` (up: a task of any kind becomes a stored answer), then ``curator``, which
alone holds exact integers. ``stability`` is the sensitivity argument, whole in one file;
``release`` (SQL) and ``marginals`` are kinds of question; ``session`` is what users touch.
"""
