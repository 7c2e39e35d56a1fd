# SPDX-License-Identifier: Apache-2.0
"""Lowers the tables of FROM: their columns' names, and their declared units."""

from dataclasses import dataclass, replace

from sqlglot import exp

from sfumato.errors import UnknownName, UnsupportedSql, unknown
from sfumato.metadata.column import Column, Text
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.plan.owner import Owner, owner_of
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
    Windowed,
    below,
    first,
    is_single,
)
from sfumato.plan.scalar import Field
from sfumato.privacy.unit import Unit
from sfumato.sql.names import Context, Link, Scope, Source
from sfumato.sql.reject import reject, require_only
from sfumato.sql.typed import Person, Typed, Words, read

# Functions of a relation recurse a few calls a step; this leaves stack for the caller.
_DEEPEST = 100
# Schemas in which databases describe themselves.
_CATALOGS = ("information_schema", "pg_catalog")


@dataclass(frozen=True, slots=True)
class From:
    """A translated FROM clause: its relation in the plan, and the tables that name its columns.

    ``table`` is the leftmost private table. ``unit`` is the declared unit, None if each row is a
    unit; ``width`` is the number of columns that identify a unit. ``limit`` is the declared largest
    number of rows of a unit; ``once``: a declaration says that it is one. ``public``: it has no
    units.

    Raises:
        UnsupportedSql: a relation of more than 100 steps.
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
        level = [self.relation]
        depth = 0
        while level:
            level = [source for relation in level for source in below(relation)]
            depth += 1
            if depth > _DEEPEST:
                raise UnsupportedSql(
                    f"Joins, windows and sub-queries of more than {_DEEPEST} steps, "
                    "one after the other.",
                    remedy="Ask less at once.",
                )

    def scope(self, context: Context) -> Scope:
        """Returns the column names that SQL expressions over these rows can use."""
        return Scope(context, self.sources, self.width)

    def over(self, relation: Relation) -> "From":
        """Returns a copy with the same column names over another relation."""
        return replace(self, relation=relation)

    def single(self, context: Context) -> Relation | None:
        """Returns the relation if it has at most one row per unit, else None.

        This must follow from the plan or from a declaration.
        """
        if is_single(self.relation):
            return self.relation
        if not self.once or self.width == 0:
            return None
        name = context.name(f"{self.table}.first")
        return first(self.relation, (), fields(self.relation), name)


def declared(context: Context, node: exp.Table) -> From:
    """Returns the translated FROM clause of a single declared table.

    Raises:
        UnknownName: no table of this name is declared.
    """
    dataset = context.dataset
    name = _table_name(dataset, node)
    table = dataset.tables[name]
    unit = dataset.unit_name(name)
    owner = owner_of(dataset, name)
    parts, width = _unit_parts(owner, unit)
    prefix = context.prefix(name, [*table.columns, *parts])
    columns: list[Column] = []
    named: dict[str, Typed] = {}
    for column_name, kind in table.columns.items():
        column = Column(prefix + column_name, kind)
        columns.append(column)
        named[column_name.lower()] = read(column)
    if owner is not None and width == 1:
        person = _unit_value(prefix, owner, named)
        named |= {part.lower(): replace(person, name=part) for part in parts}
    source = Source(
        node.alias or name,
        named,
        tuple(table.columns),
        {part.lower(): place for part, place in parts.items()},
        f"Table {name!r}",
        name,
        _unit_link(prefix, owner, named),
    )
    limit, once = _row_limit(table)
    scan = Scan(name, prefix, tuple(columns), owner)
    return From(scan, (source,), name, unit, width, limit, once, table.public)


def _table_name(dataset: Dataset, node: exp.Table) -> str:
    """Returns the declared name of a table of FROM; case does not matter."""
    if isinstance(node.this, exp.Func):
        raise UnknownName(
            "FROM a function.", allowed=", ".join(dataset.tables), remedy="Ask a declared table."
        )
    if not isinstance(node.this, exp.Identifier):
        raise reject(node)
    if node.db.lower() in _CATALOGS:
        require_only(node, "this", "alias")
    # any other schema is left out: a table is declared by its name alone
    require_only(node, "this", "alias", "db", "catalog")
    require_plain(node.args.get("alias"))
    for name in dataset.tables:
        if name.lower() == node.name.lower():
            return name
    raise UnknownName(f"No table {node.name!r}.", allowed=", ".join(dataset.tables))


def name_as_declared(node: exp.Table, dataset: Dataset) -> bool:
    """Replaces the name of a public table in FROM by its declared spelling, in place.

    Returns whether the table is declared as public.

    >>> from sqlglot import parse_one
    >>> from sfumato.metadata.table import Table
    >>> query = parse_one("SELECT beds FROM main.WARDS")
    >>> name_as_declared(query.find(exp.Table), Dataset("d", {"wards": Table("w.csv", public=True)}))
    True
    >>> query.sql()
    'SELECT beds FROM "wards" AS WARDS'
    """
    declared = {name.lower(): name for name, table in dataset.tables.items() if table.public}
    name = declared.get(node.name.lower())
    if name is None or node.db.lower() in _CATALOGS:
        return False
    if node.args.get("alias") is None:
        node.set("alias", exp.TableAlias(this=node.this.copy()))
    node.set("this", exp.to_identifier(name, quoted=True))
    for part in ("db", "catalog"):
        node.set(part, None)
    return True


def fields(relation: Relation) -> tuple[Field, ...]:
    """Returns the columns of a relation of the plan, by which its rows can be ordered."""
    match relation:
        case Scan(_, _, columns, _) | Union(_, _, columns):
            return tuple(Field(column) for column in columns)
        case Filter() | PublicJoin() | KeyJoin() | UnitJoin() | Semi():
            return fields(relation.source)
        case Ranked(source) | Windowed(source):
            return (*fields(source), Field(relation.column))
        case PerUnit():
            keys = (Field(column) for column, _ in relation.keys)
            summaries = (Field(computed.column) for computed in relation.columns)
            return (*keys, *summaries)
        case _:
            raise unknown(relation)


def with_columns(relation: Relation, columns: dict[str, Column]) -> Relation:
    """Returns a relation whose table scans also read the given unit columns, for tests of them."""
    match relation:
        case Scan():
            return _with_unit(relation, columns)
        case UnitJoin():
            return replace(
                relation,
                source=with_columns(relation.source, columns),
                other=with_columns(relation.other, columns),
            )
        case KeyJoin():
            return replace(
                relation,
                source=with_columns(relation.source, columns),
                table=_with_unit(relation.table, columns),
            )
        case Semi():
            return replace(
                relation,
                source=with_columns(relation.source, columns),
                units=with_columns(relation.units, columns),
            )
        case Union():
            sources = tuple(with_columns(source, columns) for source in relation.sources)
            return replace(relation, sources=sources)
        case Filter() | PublicJoin() | PerUnit() | Ranked() | Windowed():
            return replace(relation, source=with_columns(relation.source, columns))
        case _:
            raise unknown(relation)


def _with_unit(scan: Scan, columns: dict[str, Column]) -> Scan:
    """Returns the scan with those of its unit's columns that are among ``columns``."""
    if scan.owner is None:
        return scan
    names = [scan.prefix + name for name in scan.owner.columns]
    added = [columns[name] for name in names if name in columns]
    if not added:
        return scan
    return replace(scan, columns=(*scan.columns, *added))


def require_plain(alias: exp.Expr | None) -> None:
    """Refuses an alias with a list of column names."""
    if alias is not None and alias.args.get("columns"):
        raise UnsupportedSql(
            "An alias with a list of columns.", remedy="Rename them inside: SELECT a AS x, b AS y."
        )


def require_private(rows: From) -> From:
    """Returns the rows of FROM, after checking that not all of its tables are public."""
    if rows.public:
        raise UnsupportedSql(
            "A question about public tables alone.",
            remedy="They are no secret: read them directly, without noise and without cost.",
        )
    return rows


def _unit_parts(owner: Owner | None, unit: str | None) -> tuple[dict[str, int], int]:
    """Returns the columns that identify a unit, each with its position, and how many are needed.

    A unit of one column can also be called by the unit's own name. A table that reaches its unit
    through another table has that name alone.
    """
    if owner is None or unit is None:
        return {}, 0
    root = owner
    while root.owner is not None:
        root = root.owner
    if root.unordered:
        # no equality of columns says that two unordered pairs are the same
        return {}, len(root.columns)
    if len(root.columns) > 1:
        places = {name: place for place, name in enumerate(root.columns)}
        return places, len(places)
    names = [unit] if owner.via is not None else [*owner.columns, unit]
    return dict.fromkeys(names, 0), 1


def _unit_link(prefix: str, owner: Owner | None, named: dict[str, Typed]) -> Link | None:
    """Returns how the rows of a table reach the table that tells their units, if they do."""
    if owner is None or owner.via is None:
        return None
    name = owner.columns[0]
    as_text = Words(Field(Column(prefix + name, Text())))
    return Link(name, owner.via, owner.keys[0], named.get(name.lower(), as_text))


def _unit_value(prefix: str, owner: Owner, named: dict[str, Typed]) -> Person:
    """Returns the value of the column that identifies the unit.

    Tests read it as declared, or as a string if it is not declared. A table that reaches its unit
    through another table has nothing to read.
    """
    column = owner.columns[0]
    if owner.via is not None:
        return Person(column, None)
    as_text = Words(Field(Column(prefix + column, Text())))
    return Person(column, named.get(column.lower(), as_text))


def _row_limit(table: Table) -> tuple[int | None, bool]:
    """Returns the declared largest number of rows of a unit, if any, and whether it is one."""
    unit = table.unit
    if not isinstance(unit, Unit):
        return None, False
    if isinstance(unit.max_rows_total, int):
        return unit.max_rows_total, unit.once
    if isinstance(unit.max_rows, int) and isinstance(unit.max_groups, int):
        return unit.max_rows * unit.max_groups, unit.once
    if unit.once:
        return 1, True
    return None, False


def unit_columns(dataset: Dataset) -> set[str]:
    """Returns the names of all columns that identify units, in lower case."""
    units = [table.unit for table in dataset.tables.values()]
    return {column.lower() for unit in units if isinstance(unit, Unit) for column in unit.columns}
