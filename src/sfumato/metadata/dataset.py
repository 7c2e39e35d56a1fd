# SPDX-License-Identifier: Apache-2.0
"""A dataset: tables about the same units, with one name, one neighbour relation and one budget."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sfumato.errors import InvalidDeclaration, UnsupportedSql, shown
from sfumato.metadata.column import Boolean
from sfumato.metadata.table import Table
from sfumato.privacy.unit import AddRemove, Node, Relation, Unit


@dataclass(frozen=True, slots=True)
class Dataset:
    """The declarations of a dataset: its name and version, its tables and its neighbour relation.

    Nothing of it is read off the data.

    >>> Dataset("acs-2019", {"people": Table("people.csv")}).version
    '1'
    """

    name: str
    tables: Mapping[str, Table]
    relation: Relation = AddRemove
    version: str = "1"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidDeclaration(
                f"dataset={shown(self.name)}.",
                allowed="a name that stays with the data, such as 'acs-2019'",
            )
        if not isinstance(self.relation, Relation):
            raise InvalidDeclaration(
                f"relation={shown(self.relation)}.", allowed="sf.AddRemove, sf.ReplaceOne"
            )
        if not isinstance(self.version, str) or not self.version:
            raise InvalidDeclaration(
                f"version={shown(self.version)}.", allowed="a text, such as '2026-11'"
            )
        # devices that report by themselves have no table, and what hides a report hides a value
        known = isinstance(self.tables, Mapping) and all(
            isinstance(name, str) for name in self.tables
        )
        if not known or (not self.tables and self.relation is Relation.ADD_REMOVE):
            raise InvalidDeclaration(
                "A dataset without a named table.",
                allowed='{"people": sf.Table(...)}, or for telemetry {} with sf.ReplaceOne',
            )
        object.__setattr__(self, "tables", dict(self.tables))
        if len({name.lower() for name in self.tables}) != len(self.tables):
            raise InvalidDeclaration(
                "Two tables whose names differ only in case.", remedy="Rename one."
            )
        for name, table in self.tables.items():
            if not isinstance(table, Table) or not name.isidentifier():
                raise InvalidDeclaration(
                    f"Table {name!r}.", allowed="a name of letters, digits and _, with an sf.Table"
                )
        for name in self.tables:
            self._require_nodes(name)
            self._require_owner(name)
            self._require_no_other(name)

    @property
    def places(self) -> tuple[str, ...]:
        """The canonical names of the files and server addresses that store the rows of private
        tables, without repeats.
        """
        places = {table.place for table in self.tables.values() if not table.public}
        return tuple(sorted(places - {""}))

    @property
    def described(self) -> "Dataset":
        """A copy of the dataset in which each table's source is replaced by its type, so that no
        path or data is in it.
        """
        return replace(self, tables={name: table.described for name, table in self.tables.items()})

    @property
    def notices(self) -> tuple[str, ...]:
        """Messages for the data owner about how values will be read, one string each, derived from
        the declarations alone.

        >>> from sfumato.metadata.column import Boolean
        >>> people = Table("people.csv", columns={"smoker": Boolean()})
        >>> print(*Dataset("survey", {"people": people}).notices)
        people.smoker: true is written true, True, TRUE or 1, ...
        """
        lines = []
        for name, table in self.tables.items():
            for column, kind in table.columns.items():
                if isinstance(kind, Boolean) and not kind.has_spellings:
                    lines.append(f"{name}.{column}: {_spelled(kind)}")
        return tuple(lines)

    def unit_name(self, table: str) -> str | None:
        """Returns the name of a table's privacy unit; None for a public table, or if each row is a
        unit.
        """
        unit = self.tables[table].unit
        if isinstance(unit, Node):
            unit = self.row_unit(unit.of)
        return None if unit is None else self._at_the_end(unit).name

    def row_unit(self, table: str) -> Unit | None:
        """Returns the declared privacy unit of a table's rows; None if each row is a unit of its
        own, or the table is public.

        Raises:
            UnsupportedSql: each row is about two units: the table is declared with ``sf.Node``.
        """
        unit = self.tables[table].unit
        if isinstance(unit, Node):
            raise UnsupportedSql(
                f"Table {table!r} is declared with {unit!r}: each row is about two units, and only "
                "statistics of the graph are known to bound what one of them changes.",
                allowed=f'sfumato.graph.ask(session, "{table}", graph.Edges(), epsilon=...), and '
                "graph.Degrees()",
                remedy="Ask the graph; or declare sf.Edge, if an edge is to be protected and not a "
                "person.",
            )
        return unit

    def node_column(self, node: Node) -> str:
        """Returns the name of the id column in the table that lists the nodes of a graph."""
        unit = self.row_unit(node.of)
        assert unit is not None, "checked when the dataset was made"
        return unit.columns[0]

    def _at_the_end(self, unit: Unit) -> Unit:
        """The unit at the end of a chain of ``via``, whose columns hold its id."""
        while unit.target is not None:
            above = self.row_unit(unit.target[0])
            assert above is not None, "checked when the dataset was made"
            unit = above
        return unit

    def _require_nodes(self, name: str) -> None:
        """Refuses a table of edges of nodes that no private table lists, or that is there twice."""
        table = self.tables[name]
        unit = table.unit
        if not isinstance(unit, Node):
            return
        listed = self.tables.get(unit.of)
        owner = None if listed is None else listed.unit
        if not isinstance(owner, Unit) or owner.via is not None or len(owner.columns) != 1:
            raise InvalidDeclaration(
                f"Table {name!r} is declared with {unit!r}, and {unit.of!r} is no private table "
                "whose unit is one column.",
                allowed="the table that lists the persons, declared with sf.Unit on their ids",
                remedy="Declare that table, without public=True; or sf.Edge, if an edge is to be "
                "protected and not a person.",
            )
        for label, other in self.tables.items():
            same = other.source is table.source if not table.place else other.place == table.place
            if label != name and same and other.unit != unit:
                raise InvalidDeclaration(
                    f"Tables {name!r} and {label!r} have the same rows, and {label!r} is declared "
                    f"with {other.unit!r}: by it, less than a person would be protected.",
                    remedy=f"Declare one of them alone, or both with {unit!r}.",
                )

    def _require_owner(self, name: str) -> None:
        """Refuses a chain of ``via`` that does not end at a unit whose columns hold its id."""
        path = [name]
        unit = self.tables[name].unit
        while isinstance(unit, Unit) and unit.target is not None:
            target, column = unit.target
            other = self.tables.get(target)
            above = None if other is None else other.unit
            if not isinstance(above, Unit) or above.column != column:
                named = [
                    f"{label}.{table.unit.column}"
                    for label, table in self.tables.items()
                    if isinstance(table.unit, Unit)
                ]
                raise InvalidDeclaration(
                    f"The unit of table {path[-1]!r} goes via {unit.via!r}, "
                    "which is no unit of a declared table.",
                    allowed=", ".join(named),
                    remedy="Declare that table with sf.Unit on the column that via= names.",
                )
            if target in path:
                raise InvalidDeclaration(
                    f"The unit of table {name!r} goes in a circle: {' -> '.join([*path, target])}.",
                    remedy="One of these tables must hold the unit itself: "
                    "declare it without via=.",
                )
            path.append(target)
            unit = above

    def _require_no_other(self, name: str) -> None:
        """Refuses a column with the name of the unit, since statements refer to the unit by that
        name.
        """
        table = self.tables[name]
        if not isinstance(table.unit, Unit):
            return
        root = self._at_the_end(table.unit)
        id_columns = [root.name] if len(root.columns) == 1 else list(root.columns)
        own = []
        if table.unit.target is None:
            own = [column.lower() for column in table.unit.columns]
        for reserved in id_columns:
            if reserved is None or reserved.lower() in own:
                continue
            column = table.column(reserved)
            if column is not None:
                raise InvalidDeclaration(
                    f"Table {name!r} declares a column {column.name!r}, "
                    "which is how questions name its unit.",
                    remedy="Leave it out of columns=, or rename it in the data.",
                )


def _spelled(kind: Boolean) -> str:
    """Describes how the values of a Boolean are written in the data, and which values are missing."""
    *trues, true = kind.true
    *falses, false = kind.false
    return (
        f"true is written {', '.join(trues)} or {true}, false is written {', '.join(falses)} or "
        f'{false}; anything else (Y, yes, t, 2) is missing. Declare other strings: true="Y", '
        'false="N".'
    )
