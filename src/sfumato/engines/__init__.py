# SPDX-License-Identifier: Apache-2.0
"""Engines run a bounded plan over the tables and return exact integers, nothing else.

The session calls an engine through the interface in ``base``; ``duckdb`` and ``spark`` are the
engines for use, ``reference`` computes the same integers in plain Python and is what they are
tested against. An engine never sees noise, epsilon or another engine.

May import: ``plan``, ``metadata``, ``privacy``, ``exact``, ``errors``. Begin with ``base``;
``emit`` builds the SQL, ``relation`` the rows of a FROM, ``sources`` opens files and frames.
"""

from sfumato.engines.base import Codes, Engine, Exact, Marginals

__all__ = ["Codes", "Engine", "Exact", "Marginals"]
