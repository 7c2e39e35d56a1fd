# SPDX-License-Identifier: Apache-2.0
"""A bounded plan -> exact integers, and nothing else.

May import: ``plan``, ``metadata``, ``privacy``, ``exact``, ``errors``. Begin with ``base``. An
engine never sees noise, epsilon or another engine. ``reference`` is the same in plain
Python: slow, short, obviously right; the oracle of every engine test.
"""

from sfumato.engines.base import Codes, Engine, Exact, Marginals

__all__ = ["Codes", "Engine", "Exact", "Marginals"]
