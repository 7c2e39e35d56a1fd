# SPDX-License-Identifier: Apache-2.0
"""The typed query tree: what a question asks, independent of SQL and of the engine that runs it.

May import: ``accounting``, ``metadata``, ``privacy``, ``noise``, ``exact``, ``errors``. Begin with
``stages``: a question is ``Raw`` (understood), ``Tracked`` (its unit is known) or ``Bounded`` (what
a unit contributes is proved); only ``Bounded`` can be run and released. ``scalar`` holds the
expressions; ``evaluate`` is their one meaning for every engine, ``value_range`` their range.
"""

from sfumato.plan.aggregate import (
    Aggregate,
    CodeQuantiles,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    Variance,
)
from sfumato.plan.cube import BoundedCube, Cube
from sfumato.plan.relation import (
    Filter,
    KeyJoin,
    PerUnit,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    Semi,
    Union,
    UnitJoin,
)
from sfumato.plan.rows import BoundedRows, RowList
from sfumato.plan.stages import Bounded, Limits, Part, Raw, Tracked
from sfumato.plan.units_where import CountUnitsWhere
from sfumato.plan.value import GroupKey, Value

__all__ = [
    "Aggregate",
    "Bounded",
    "BoundedCube",
    "BoundedRows",
    "CodeQuantiles",
    "CountDistinct",
    "CountRows",
    "CountUnits",
    "CountUnitsWhere",
    "CountValues",
    "Cube",
    "Filter",
    "GroupKey",
    "KeyJoin",
    "Limits",
    "Mean",
    "Part",
    "PerUnit",
    "PublicJoin",
    "Quantiles",
    "Ranked",
    "Raw",
    "Relation",
    "RowList",
    "Scan",
    "Semi",
    "Sum",
    "Tracked",
    "Union",
    "UnitJoin",
    "Value",
    "Variance",
]
