# SPDX-License-Identifier: Apache-2.0
"""Raw -> Tracked: whose rows these are, and how many groups there can be."""

import math

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Column, Text
from sfumato.plan.relation import scanned
from sfumato.plan.status import Limits, Raw, Tracked
from sfumato.query.passes import Context

MAX_GROUPS = 100_000


def track(plan: Raw, context: Context) -> Tracked:
    """Attaches the unit of the scanned table and its declared limits.

    Raises:
        UnsupportedSql: the declared keys make more than 100,000 groups.
    """
    groups = math.prod(declared(key) for key in plan.keys)
    if groups > MAX_GROUPS:
        names = ", ".join(f"{key.name} ({declared(key):,})" for key in plan.keys)
        raise UnsupportedSql(
            f"GROUP BY {names} declares {groups:,} groups, each of which would be answered.",
            allowed=f"at most {MAX_GROUPS:,}",
            remedy="Group by fewer columns, or by ones with fewer declared values.",
        )
    unit = context.dataset.tables[scanned(plan.relation).table].unit
    if unit is None:
        return Tracked(plan, None, Limits(None, None, None), groups)
    return Tracked(plan, unit.column, Limits(unit.max_rows, unit.max_groups, unit.max_rows_total), groups)


def declared(key: Column) -> int:
    """How many groups a key makes: its declared values, and missing where that is declared."""
    assert not isinstance(key.type, Text), "lowering admits no Text key"
    return key.type.size + (key.type.missing is not None)
