# SPDX-License-Identifier: Apache-2.0
"""Engines: run a bounded plan over the tables and return exact integers, nothing else.

May import: ``plan``, ``metadata``, ``privacy``, ``exact``, ``errors``. Begin with ``base``. An
engine never sees noise, epsilon or another engine. ``reference`` computes the same integers in
plain Python; every engine is tested against it.
"""

from sfumato.engines.base import Codes, Engine, Exact, Marginals

__all__ = ["Codes", "Engine", "Exact", "Marginals"]
