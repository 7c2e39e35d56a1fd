# SPDX-License-Identifier: Apache-2.0
"""The typed query tree, and nothing that runs it.

May import: ``accounting``, ``metadata``, ``privacy``, ``noise``, ``exact``, ``errors``. Begin
with ``status``: a question is ``Raw`` (understood), ``Tracked`` (its unit is known) or
``Bounded`` (what a unit contributes is proved); only ``Bounded`` can be run and released.
``scalar`` holds the expressions, with one meaning for every engine.
"""

from sfumato.plan.aggregate import Aggregate, CountRows, CountUnits, CountValues, Mean, Sum
from sfumato.plan.relation import Filter, Relation, Scan
from sfumato.plan.status import Bounded, Limits, Part, Raw, Tracked

__all__ = [
    "Aggregate",
    "Bounded",
    "CountRows",
    "CountUnits",
    "CountValues",
    "Filter",
    "Limits",
    "Mean",
    "Part",
    "Raw",
    "Relation",
    "Scan",
    "Sum",
    "Tracked",
]
