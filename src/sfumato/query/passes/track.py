# SPDX-License-Identifier: Apache-2.0
"""Raw -> Tracked: determines the unit of the rows, its limits, and the number of groups."""

import math
from collections.abc import Callable, Sequence

from sfumato.errors import MissingDeclaration, UnsupportedSql
from sfumato.metadata.dataset import Dataset
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Filter, PublicJoin, Relation, Scan, Union, is_single
from sfumato.plan.scope import nodes
from sfumato.plan.stages import Limits, Raw, Tracked
from sfumato.privacy.unit import Auto, Bound
from sfumato.query.passes import Context

MAX_GROUPS = 100_000


def track(plan: Raw, context: Context) -> Tracked:
    """Returns the plan with the privacy unit that all its private tables share, and the unit's
    declared limits.

    Guarantees:
        every private row has the declared owner
        tables of different units are never mixed

    Raises:
        UnsupportedSql: there are too many groups; the tables have different units, or are public;
            or the question needs a named unit.
        MissingDeclaration: a limit is still ``sf.AUTO``.
    """
    groups = _groups(plan)
    unit, limits = whose(plan.relation, context.dataset)
    return Tracked(plan, unit, limits, groups)


def whose(relation: Relation, dataset: Dataset) -> tuple[str | None, Limits]:
    """Returns the privacy unit that all private tables of a relation share, with its declared
    limits.

    The unit is None if each row is a unit.
    """
    for node in nodes(relation):
        _require_owner(node, dataset)
    unit = _unit(relation, dataset)
    if unit is None:
        return None, Limits(None, None, None)
    return unit, _limits(relation, dataset)


def rows_in_all(unit: str | None, limits: Limits, beyond: str) -> int:
    """Returns the largest number of rows of a unit that are read; ``beyond`` ends the refusal if no
    limit is declared.

    Raises:
        MissingDeclaration: no limit bounds the rows of a unit.
    """
    most = 1 if unit is None else limits.in_all
    if most is None:
        raise MissingDeclaration(
            f"The unit {unit!r} has no max_rows_total: "
            "nothing says how many rows one of them can have in all.",
            allowed=f"sf.Unit({unit!r}, max_rows_total=...), or max_rows=... with max_groups=...",
            remedy=f"Declare max_rows_total for the unit; {beyond}",
        )
    return most


def _groups(plan: Raw) -> int | None:
    """The number of groups; None if they are not public."""
    sizes = [key.size for key in plan.keys if key.size is not None]
    if len(sizes) < len(plan.keys):
        return None
    groups = math.prod(sizes)
    if groups > MAX_GROUPS:
        names = ", ".join(f"{key.value.name} ({key.size:,})" for key in plan.keys)
        raise UnsupportedSql(
            f"GROUP BY {names} declares {groups:,} groups, each of which would be answered.",
            allowed=f"at most {MAX_GROUPS:,}",
            remedy="Group by fewer columns, or by ones with fewer declared values.",
        )
    return groups


def _require_owner(node: Relation, dataset: Dataset) -> None:
    """Raises unless a scan is of a private table with its declared owner, or joined as public."""
    if isinstance(node, PublicJoin):
        _require_public(node.table, dataset)
    if not isinstance(node, Scan):
        return
    if dataset.tables[node.table].public:
        raise UnsupportedSql(
            f"The table {node.table!r} is asked by itself. It is public: read it directly.",
            allowed="public tables joined to a private one",
        )
    if node.owner != owner_of(dataset, node.table):
        raise TypeError(f"the rows of {node.table} are not read with their declared owner")


def _require_public(table: Scan, dataset: Dataset) -> None:
    """Raises UnsupportedSql unless a table that is joined on a key is public."""
    if table.owner is not None or not dataset.tables[table.table].public:
        raise UnsupportedSql(
            f"A join to the private table {table.table!r} on something else than its unit.",
            allowed="a join on the unit, or to a table declared with public=True",
            remedy="Join on the column that names the unit; or declare the table public, if it is "
            "about nobody.",
        )


def _unit(relation: Relation, dataset: Dataset) -> str | None:
    """The name of the unit that all scanned tables share; None if each row is its own."""
    every = list(nodes(relation))
    scanned = [node.table for node in every if isinstance(node, Scan)]
    units = {table: dataset.unit_name(table) for table in scanned}
    names = set(units.values())
    if len(names) > 1:
        shown = ", ".join(
            f"{table} ({unit or 'each row is its own'})" for table, unit in units.items()
        )
        raise UnsupportedSql(
            f"Tables of different units in one question: {shown}.",
            allowed="tables of one unit, and public ones",
            remedy="Ask them apart; or declare one unit for both: sf.Unit(column, name=...), or "
            "via= the other table.",
        )
    unit = names.pop()
    if unit is None and not all(isinstance(each, Scan | Filter | PublicJoin) for each in every):
        raise UnsupportedSql(
            "A question about the several rows of a unit, of a table without one: "
            f"{', '.join(units)}.",
            allowed="WHERE, GROUP BY, and joins to public tables, where each row is its own unit",
            remedy="Declare whom the rows are about: unit=sf.Unit(column, max_rows=...).",
        )
    return unit


def _limits(relation: Relation, dataset: Dataset) -> Limits:
    """The declared limits of a unit in a relation; they are enforced later, never assumed."""
    if is_single(relation):
        return Limits(1, 1, 1)
    if isinstance(relation, Union):
        parts = [_implied(_limits(source, dataset)) for source in relation.sources]
        combine = max if relation.exclusive else sum
        return Limits(
            _combined([part.rows for part in parts], combine),
            _combined([part.groups for part in parts], combine),
            _combined([part.total for part in parts], combine),
        )
    if not isinstance(relation, Scan):
        return _limits(relation.source, dataset)
    unit = dataset.row_unit(relation.table)
    assert unit is not None, "a private table of a named unit declares it"
    total = _known(relation.table, "max_rows_total", unit.max_rows_total)
    return Limits(
        _known(relation.table, "max_rows", unit.max_rows),
        _known(relation.table, "max_groups", unit.max_groups),
        # max_rows=1 alone is one row in all
        1 if unit.max_rows == 1 and unit.max_groups is None and total is None else total,
    )


def _implied(limits: Limits) -> Limits:
    """The limits with what the total implies: at most T rows in a group, in at most T groups."""
    rows = limits.total if limits.rows is None else limits.rows
    groups = limits.total if limits.groups is None else limits.groups
    return Limits(rows, groups, limits.total)


def _combined(limits: Sequence[int | None], combine: Callable[[Sequence[int]], int]) -> int | None:
    """The sum, or the largest, of several limits; None if one of them is None."""
    known = [limit for limit in limits if limit is not None]
    if len(known) == len(limits):
        return combine(known)
    return None


def _known(table: str, name: str, limit: Bound) -> int | None:
    """A declared limit (MissingDeclaration if it is still ``sf.AUTO``)."""
    if isinstance(limit, Auto):
        raise MissingDeclaration(
            f"{name} of table {table!r} is sf.AUTO, which session.query resolves by a charged "
            "step.",
            remedy=f"Ask by session.query, or declare a number: {name}=...",
        )
    return limit
