# SPDX-License-Identifier: Apache-2.0
"""What stands in FROM: rows of units under names."""

from dataclasses import dataclass, replace

from sqlglot import exp

from sfumato.errors import UnknownName, UnsupportedSql, unknown
from sfumato.metadata.column import Column, Text
from sfumato.metadata.table import Table
from sfumato.plan.owner import Owner, owner_of
from sfumato.plan.relation import (
    Filter,
    PerUnit,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    Semi,
    Union,
    UnitJoin,
    below,
    first,
    is_single,
)
from sfumato.plan.scalar import Field
from sfumato.sql.names import Context, Scope, Source
from sfumato.sql.reject import reject, require_only
from sfumato.sql.typed import Person, Typed, Words, read

# What reads a tree of rows recurses a few calls a step; this leaves the caller room.
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class From:
    """Rows of units, and the names under which their columns are known.

    ``table``: the private table on the far left. ``unit``: the name of the units, None where each
    row is its own; ``width``: how many columns name one. ``limit``: how many rows a unit has at
    most, by its declaration. ``once``: it is declared to have one.
    """

    relation: Relation
    sources: tuple[Source, ...]
    table: str
    unit: str | None
    width: int
    limit: int | None
    once: bool
    public: bool

    def __post_init__(self) -> None:
        level, depth = [self.relation], 0
        while level:
            level, depth = [each for relation in level for each in below(relation)], depth + 1
            if depth > _DEEPEST:
                raise UnsupportedSql(
                    f"Joins, windows and sub-queries of more than {_DEEPEST} steps, one after the other.",
                    remedy="Ask less at once.",
                )

    def scope(self, context: Context) -> Scope:
        """The names that its expressions can use."""
        return Scope(context, self.sources, self.width)

    def over(self, relation: Relation) -> "From":
        """Other rows under the same names."""
        return replace(self, relation=relation)

    def single(self, context: Context) -> Relation | None:
        """At most one row of each unit; None where neither the plan nor a declaration says so."""
        if is_single(self.relation):
            return self.relation
        if not self.once or self.width == 0:
            return None
        return first(self.relation, (), fields(self.relation), context.name(f"{self.table}.first"))


def declared(context: Context, node: exp.Table) -> From:
    """A declared table."""
    dataset = context.dataset
    if not isinstance(node.this, exp.Identifier):
        if isinstance(node.this, exp.Func):
            raise UnknownName(
                "FROM a function.",
                allowed=", ".join(dataset.tables),
                remedy="Ask a declared table.",
            )
        raise reject(node)
    require_only(node, "this", "alias")
    require_plain(node.args.get("alias"))
    name = next((each for each in dataset.tables if each.lower() == node.name.lower()), None)
    if name is None:
        raise UnknownName(f"No table {node.name!r}.", allowed=", ".join(dataset.tables))
    table, owner, unit = dataset.tables[name], owner_of(dataset, name), dataset.unit_name(name)
    parts, width = _parts(owner, unit)
    prefix = context.prefix(name, [*table.columns, *parts])
    columns = tuple(Column(prefix + each, kind) for each, kind in table.columns.items())
    named: dict[str, Typed] = {
        each.lower(): read(column) for each, column in zip(table.columns, columns, strict=True)
    }
    if owner is not None and width == 1:
        person = _person(prefix, owner, named)
        named |= {each.lower(): replace(person, name=each) for each in parts}
    source = Source(
        node.alias or name,
        named,
        tuple(table.columns),
        {each.lower(): at for each, at in parts.items()},
        f"Table {name!r}",
    )
    total, once = _limits(table)
    return From(
        Scan(name, prefix, columns, owner), (source,), name, unit, width, total, once, table.public
    )


def fields(relation: Relation) -> tuple[Field, ...]:
    """What tells the rows of one unit apart, as far as a question can see."""
    match relation:
        case Scan(_, _, columns, _) | Union(_, _, columns):
            return tuple(Field(each) for each in columns)
        case Filter() | PublicJoin() | UnitJoin() | Semi():
            return fields(relation.source)
        case Ranked(source, _, _, column):
            return (*fields(source), Field(column))
        case PerUnit():
            columns = (
                *(column for column, _ in relation.keys),
                *(each.column for each in relation.columns),
            )
            return tuple(Field(each) for each in columns)
        case _:
            raise unknown(relation)


def with_columns(relation: Relation, columns: dict[str, Column]) -> Relation:
    """The relation whose scans also read their unit's column, where a test names it."""
    match relation:
        case Scan(_, prefix, declared_columns, owner):
            names = [] if owner is None else [prefix + each for each in owner.columns]
            added = tuple(columns[each] for each in names if each in columns)
            return replace(relation, columns=(*declared_columns, *added)) if added else relation
        case UnitJoin():
            return replace(
                relation,
                source=with_columns(relation.source, columns),
                other=with_columns(relation.other, columns),
            )
        case Semi():
            return replace(
                relation,
                source=with_columns(relation.source, columns),
                units=with_columns(relation.units, columns),
            )
        case Union():
            return replace(
                relation, sources=tuple(with_columns(each, columns) for each in relation.sources)
            )
        case Filter() | PublicJoin() | PerUnit() | Ranked():
            return replace(relation, source=with_columns(relation.source, columns))
        case _:
            raise unknown(relation)


def require_plain(alias: exp.Expr | None) -> None:
    """Refuses an alias that also renames columns."""
    if alias is not None and alias.args.get("columns"):
        raise UnsupportedSql(
            "An alias with a list of columns.", remedy="Rename them inside: SELECT a AS x, b AS y."
        )


def require_private(found: From) -> From:
    """Refuses what is about nobody."""
    if found.public:
        raise UnsupportedSql(
            "A question about public tables alone.",
            remedy="They are no secret: read them directly, without noise and without cost.",
        )
    return found


def _parts(owner: Owner | None, unit: str | None) -> tuple[dict[str, int], int]:
    """The names of the unit in questions, each with its place among those that name it together, and how many do.

    A unit of one column goes by its own name too, everywhere; where a way leads to it, by that alone.
    """
    if owner is None or unit is None:
        return {}, 0
    root = owner
    while root.owner is not None:
        root = root.owner
    if len(root.columns) > 1:
        return {name: place for place, name in enumerate(root.columns)}, len(root.columns)
    return dict.fromkeys([*(owner.columns if owner.via is None else ()), unit], 0), 1


def _person(prefix: str, owner: Owner, named: dict[str, Typed]) -> Person:
    """The column that names the unit: its text, unless it is declared otherwise; where a way leads to it, nothing to read."""
    column = owner.columns[0]
    if owner.via is not None:
        return Person(column, None)
    return Person(column, named.get(column.lower(), Words(Field(Column(prefix + column, Text())))))


def _limits(table: Table) -> tuple[int | None, bool]:
    """How many rows a unit has at most, if integers are declared, and whether that is one."""
    unit = table.unit
    if unit is None:
        return None, False
    if isinstance(unit.max_rows_total, int):
        return unit.max_rows_total, unit.once
    if isinstance(unit.max_rows, int) and isinstance(unit.max_groups, int):
        return unit.max_rows * unit.max_groups, unit.once
    return (1, True) if unit.once else (None, False)
