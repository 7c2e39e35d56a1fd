# SPDX-License-Identifier: Apache-2.0
"""DuckDB SQL for the rows of a plan that are in a group. Proof: grouped_rows.proof.md."""

from collections.abc import Mapping, Sequence

from sfumato.engines.expression import narrow, truth, typed
from sfumato.engines.preaggregation import Apart
from sfumato.engines.relation import Tables, rows
from sfumato.metadata.column import Text
from sfumato.plan.stages import Bounded
from sfumato.plan.value import GroupKey


def key_names(plan: Bounded) -> list[str]:
    """Returns the column names of the keys."""
    return [f"k{index}" for index in range(len(plan.tracked.raw.keys))]


def is_plain(plan: Bounded) -> bool:
    """Whether each row counts by itself."""
    return plan.tracked.unit is None or plan.tracked.kept is not None


def unit_and_keys(plan: Bounded) -> list[str]:
    """Returns the columns that a (unit, group) row is grouped by."""
    keys = key_names(plan)
    if is_plain(plan):
        return keys
    return ["unit", *keys]


def select(
    items: Sequence[str],
    source: str,
    group: Sequence[str] = (),
) -> str:
    """Returns a SELECT from a sub-query, with GROUP BY if ``group`` is not empty."""
    by = f"\nGROUP BY {', '.join(group)}" if group else ""
    return f"SELECT {', '.join(items)}\nFROM ({source}){by}"


def rows_in_groups(
    plan: Bounded,
    tables: Tables,
    read: Mapping[str, str],
) -> str:
    """Selects the rows that are in a group: the unit (where it matters), the keys and ``read``.

    ``read`` maps a column name to its expression.
    """
    raw = plan.tracked.raw
    source = rows(raw.relation, tables)
    plain = is_plain(plan)
    items = [] if plain else ["unit"]
    written = typed if plain or tables.windows else narrow
    for key, name in zip(raw.keys, key_names(plan), strict=True):
        items.append(f"{written(key.value)} AS {name}")
    items += [f"{expression} AS {name}" for name, expression in read.items()]
    if items == ["unit"]:
        return source
    return _in_groups(plan, f"SELECT {', '.join(items) or '1'} FROM ({source})")


def summed_before_join(
    plan: Bounded, tables: Tables, apart: Apart, added: tuple[Mapping[str, str], Sequence[str]]
) -> str:
    """Aggregates by unit, then joins the columns that the keys read; each unit is in one group.

    ``added`` is what is read of each row, by name, and the sums over it.
    """
    read, summed = added
    items = ["unit", *(f"{expression} AS {name}" for name, expression in read.items())]
    source = select(items, rows(apart.source, tables))
    units = select(["unit", "count(*) AS n", *summed], source, ["unit"])
    shown = ["l.*"]
    for key, name in zip(plan.tracked.raw.keys, key_names(plan), strict=True):
        shown.append(f"{typed(key.value)} AS {name}")
    join = "LEFT JOIN" if apart.outer else "JOIN"
    joined = (
        f"SELECT {', '.join(shown)} FROM ({units}) AS l "
        f"{join} ({rows(apart.other, tables)}) AS r ON l.unit = r.unit"
    )
    tests = " AND ".join(truth(test) for test in apart.tests)
    return _in_groups(plan, f"{joined} WHERE {tests}" if tests else joined)


def _in_groups(plan: Bounded, source: str) -> str:
    """Selects the rows whose keys are those of a group."""
    conditions = map(_in_group, plan.tracked.raw.keys, key_names(plan))
    tests = " AND ".join(filter(None, conditions))
    if tests:
        return f"SELECT * FROM ({source}) WHERE {tests}"
    return source


def _in_group(key: GroupKey, name: str) -> str:
    """Tests whether the key ``name`` of a row is that of a group; empty if it always is."""
    kind = key.value.type
    codes = key.codes
    if codes is None or (not isinstance(kind, Text) and len(codes) == kind.size):
        # every code is within the type of its value
        if key.missing:
            return ""
        return f"{name} IS NOT NULL"
    if not codes:
        return f"{name} IS NULL"
    if codes[-1] - codes[0] == len(codes) - 1:
        declared = f"{name} BETWEEN {codes[0]} AND {codes[-1]}"
    else:
        declared = f"{name} IN ({', '.join(map(str, codes))})"
    if key.missing:
        return f"({name} IS NULL OR {declared})"
    return declared
