# SPDX-License-Identifier: Apache-2.0
"""SQL trees for the rows of a plan with their units and groups.

``emit`` aggregates these rows. Proof: grouped_rows.proof.md.
"""

from collections.abc import Mapping, Sequence

from sfumato.engines import sql_tree as sql
from sfumato.engines.expression import narrow, truth, typed
from sfumato.engines.preaggregation import Apart
from sfumato.engines.relation import UNIT, Tables, rows, same_unit
from sfumato.metadata.column import Text
from sfumato.plan.stages import Bounded
from sfumato.plan.value import GroupKey

ROW_COUNT = sql.aggregate("count").named("n")


def key_names(plan: Bounded) -> list[sql.Column]:
    """Returns references to the columns k0, k1, ... that contain the group keys of a plan."""
    return [sql.Column(f"k{index}") for index in range(len(plan.tracked.raw.keys))]


def is_plain(plan: Bounded) -> bool:
    """Whether rows are aggregated by group alone, and not by unit first: each row is a unit, or
    rows are read from a prepared layout.
    """
    return plan.tracked.unit is None or plan.tracked.kept is not None


def unit_and_keys(plan: Bounded) -> list[sql.Column]:
    """Returns the GROUP BY columns of the first aggregation: unit and group keys, or the keys alone
    if ``is_plain``.
    """
    keys = key_names(plan)
    if is_plain(plan):
        return keys
    return [UNIT, *keys]


def select(
    items: Sequence[sql.Expression],
    source: sql.Query,
    group: Sequence[sql.Expression] = (),
) -> sql.Select:
    """Returns a SELECT from a query, with GROUP BY if ``group`` is not empty."""
    return sql.Select(
        tuple(items),
        sql.Item(source),
        group=tuple(group),
        breaks=sql.TALL,
    )


def rows_in_groups(
    plan: Bounded,
    tables: Tables,
    read: Mapping[str, sql.Expression],
) -> sql.Query:
    """Returns the query that selects, for each row in a group of the plan, its unit if needed, its
    group keys and its values.

    ``read`` are the values: SQL expressions by the names of their columns.
    """
    raw = plan.tracked.raw
    source = rows(raw.relation, tables)
    plain = is_plain(plan)
    items: list[sql.Expression] = [] if plain else [UNIT]
    written = typed if plain or tables.windows else narrow
    for key, column in zip(raw.keys, key_names(plan), strict=True):
        items.append(written(key.value).named(column))
    items += as_columns(read)
    if items == [UNIT]:
        return source
    selected = tuple(items) or (sql.Constant(1),)
    return _in_groups(plan, sql.Select(selected, sql.Item(source)))


def as_columns(read: Mapping[str, sql.Expression]) -> list[sql.As]:
    """Returns a SELECT item ``expression AS name`` for each expression."""
    return [expression.named(name) for name, expression in read.items()]


def summed_before_join(
    plan: Bounded,
    tables: Tables,
    apart: Apart,
    added: tuple[Mapping[str, sql.Expression], Sequence[sql.Expression]],
) -> sql.Query:
    """Returns the query that first sums one side of a join by unit, and then joins the group keys
    from the other side.

    ``added`` is a pair: the values that are read of each row, by name, and the sums over them. Each
    unit is in one group.
    """
    read, summed = added
    source = select([UNIT, *as_columns(read)], rows(apart.source, tables))
    units = select([UNIT, ROW_COUNT, *summed], source, [UNIT])
    shown: list[sql.Expression] = [sql.Star("l")]
    for key, column in zip(plan.tracked.raw.keys, key_names(plan), strict=True):
        shown.append(typed(key.value).named(column))
    word = "LEFT JOIN" if apart.outer else "JOIN"
    joined = sql.Select(
        tuple(shown),
        sql.Item(units, "l"),
        (same_unit(word, rows(apart.other, tables)),),
        where=sql.conjunction(map(truth, apart.tests)),
    )
    return _in_groups(plan, joined)


def _in_groups(plan: Bounded, source: sql.Query) -> sql.Query:
    """Selects the rows whose keys are those of a group."""
    conditions = map(_in_group, plan.tracked.raw.keys, key_names(plan))
    tests = [condition for condition in conditions if condition is not None]
    if tests:
        return sql.Select((sql.Star(),), sql.Item(source), where=sql.conjunction(tests))
    return source


def _in_group(key: GroupKey, column: sql.Column) -> sql.Expression | None:
    """Tests whether a key of a row is that of a group; None if it always is."""
    kind = key.value.type
    codes = key.codes
    if codes is None or (not isinstance(kind, Text) and len(codes) == kind.size):
        # every code is within the type of its value
        if key.missing:
            return None
        return column.is_present
    if not codes:
        return column.is_null
    declared: sql.Expression
    if codes[-1] - codes[0] == len(codes) - 1:
        declared = sql.Between(column, sql.Constant(codes[0]), sql.Constant(codes[-1]))
    else:
        declared = sql.In(column, tuple(map(sql.Constant, codes)))
    if key.missing:
        return sql.Paren(sql.Logic("OR", (column.is_null, declared)))
    return declared
