# SPDX-License-Identifier: Apache-2.0
"""The privacy unit (who is protected) and the neighbour relation."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from sfumato.errors import InvalidDeclaration, shown


class Relation(Enum):
    """The neighbour relation: which pairs of datasets must be hard to distinguish.

    ``ADD_REMOVE``: one dataset has one more unit than the other. ``REPLACE_ONE``: both have the
    same number of units, and one unit is replaced by another.

    >>> Relation("replace-one") is ReplaceOne
    True
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"


AddRemove = Relation.ADD_REMOVE
ReplaceOne = Relation.REPLACE_ONE


class Auto(Enum):
    """The type of ``sf.AUTO``: a limit to be learnt privately, by a separate question that is
    charged.
    """

    AUTO = "auto"

    def __repr__(self) -> str:
        return "AUTO"


AUTO = Auto.AUTO
Bound: TypeAlias = int | Auto | None


@dataclass(frozen=True, slots=True, init=False)
class Unit:
    """The privacy unit of a table: whom each row is about, and how much one unit may contribute.

    ``columns`` hold the id of the unit (several together: a person-day). With ``via``, a string
    "table.column", they refer to a row of another table and its unit: a visit that belongs to a
    patient. ``key`` is the column of that table that they match, by default of the same name.
    Two tables are about the same units if their units have the same ``name``; by default it is
    the name of the id column. With ``via`` it is None, as the other table's unit has the name.

    Ids are compared by their code points: "Bob" and "bob" are two units. A DuckDB column whose
    collation calls them equal is refused, unless ``spellings_apart`` states that each spelling of
    an id, or of ``key``, is a unit of its own.

    ``unordered``: the ids in two columns name one unit in either order, as ``Edge`` declares.

    ``max_rows`` limits the rows of a unit per group (Linf), ``max_groups`` the groups of a unit
    (L0), ``max_rows_total`` its rows per query. The limits are enforced on the data, never
    assumed. None means no limit; a question that needs one is refused; but ``max_rows`` = 1 alone
    is one row in all. ``sf.AUTO``: the limit is learnt privately when a question needs it, for a
    share of its cost.

    Raises:
        InvalidDeclaration: no column name, or an invalid limit.

    >>> Unit("person_id", max_rows=1)
    Unit('person_id', max_rows=1)
    >>> Unit("visit_id", via="visits.patient_id", max_rows=10)
    Unit('visit_id', via='visits.patient_id', max_rows=10)
    """

    columns: tuple[str, ...]
    max_rows: Bound
    max_groups: Bound
    max_rows_total: Bound
    via: str | None
    key: str | None
    name: str | None
    spellings_apart: bool
    unordered: bool

    def __init__(
        self,
        column: str | Sequence[str],
        max_rows: Bound = None,
        max_groups: Bound = None,
        max_rows_total: Bound = None,
        *,
        via: str | None = None,
        key: str | None = None,
        name: str | None = None,
        spellings_apart: bool = False,
        unordered: bool = False,
    ) -> None:
        columns = _columns(column)
        if not isinstance(unordered, bool) or (unordered and (len(columns) != 2 or via)):
            raise InvalidDeclaration(
                f"unordered={shown(unordered)} of a unit of {len(columns)} columns.",
                allowed="True or False; True with two columns, and without via=",
            )
        object.__setattr__(self, "unordered", unordered)
        if not isinstance(spellings_apart, bool):
            raise InvalidDeclaration(
                f"spellings_apart={shown(spellings_apart)} of the unit.", allowed="True or False"
            )
        object.__setattr__(self, "spellings_apart", spellings_apart)
        for limit, value in (
            ("max_rows", max_rows),
            ("max_groups", max_groups),
            ("max_rows_total", max_rows_total),
        ):
            _require_limit(limit, value)
            object.__setattr__(self, limit, value)
        if via is None:
            _require_own(key, name)
            key, name = None, name or ", ".join(columns)
        else:
            _require_path(columns, via, key, name)
            key = key or columns[0]
        for field, text in (("columns", columns), ("via", via), ("key", key), ("name", name)):
            object.__setattr__(self, field, text)

    @property
    def column(self) -> str:
        """The names of the id columns, joined by commas."""
        return ", ".join(self.columns)

    @property
    def target(self) -> tuple[str, str] | None:
        """The table and column that ``via`` refers to; None if ``via`` is not set."""
        if self.via is None:
            return None
        table, _, column = self.via.partition(".")
        return table, column

    @property
    def once(self) -> bool:
        """Whether the declared limits allow each unit only one row."""
        one_group = self.max_groups in (None, 1)
        return self.max_rows_total == 1 or (self.max_rows == 1 and one_group)

    def limited(self, *, max_rows: Bound, max_groups: Bound, max_rows_total: Bound) -> "Unit":
        """Returns the same unit with other limits."""
        limits = (max_rows, max_groups, max_rows_total)
        return Unit(
            self.columns,
            *limits,
            via=self.via,
            key=self.key,
            name=self.name,
            spellings_apart=self.spellings_apart,
            unordered=self.unordered,
        )

    def __str__(self) -> str:
        """Returns a canonical string that identifies the unit in the ledger's contract.

        Guarantees:
            units of one text are the same
        """
        column = self.columns[0]
        is_plain = self.name == self.column == column and not self.spellings_apart
        if is_plain and not column.startswith("("):
            return column
        text = ", ".join(map(_quoted, self.columns))
        if self.via is not None and self.key is not None:
            text += f" via {_quoted(self.via)} by {_quoted(self.key)}"
        if self.name is not None and self.name != self.column:
            text += f" as {_quoted(self.name)}"
        if self.spellings_apart:
            text += " spellings apart"
        if self.unordered:
            text += " unordered"
        return f"({text})"

    def __repr__(self) -> str:
        items = [repr(self.columns[0] if len(self.columns) == 1 else list(self.columns))]
        usual = {"key": self.columns[0], "name": self.column}
        for field in ("via", "key", "name", "max_rows", "max_groups", "max_rows_total"):
            value = getattr(self, field)
            if value is not None and value != usual.get(field):
                items.append(f"{field}={value!r}")
        if self.spellings_apart:
            items.append("spellings_apart=True")
        if self.unordered:
            items.append("unordered=True")
        return f"Unit({', '.join(items)})"


def Edge(  # noqa: N802  (it is written like the other units)
    first: str,
    second: str,
    *,
    name: str | None = None,
    spellings_apart: bool = False,
) -> Unit:
    """The unit of a table of edges whose every edge is protected: the unordered pair of two ids.

    Rows with the same two ids, in either order, are about one edge; one of them counts. Whoever
    has 1/epsilon edges or more is hidden no more than by chance: ``Node`` protects a person with
    all edges.

    Raises:
        InvalidDeclaration: not two different columns.

    >>> Edge("a", "b")
    Unit(['a', 'b'], max_rows_total=1, unordered=True)
    """
    return Unit(
        [first, second],
        max_rows_total=1,
        name=name,
        spellings_apart=spellings_apart,
        unordered=True,
    )


@dataclass(frozen=True, slots=True, init=False)
class Node:
    """The unit of a table of edges in which a person with all edges is protected.

    ``ends`` are the columns of the two ids of an edge. ``of`` is the private table of the persons,
    whose unit is one column with their ids, and gives this unit its name. Neighbours differ by one
    person: its rows in all tables of that unit, and every edge at it. An edge with an end that is
    not in that table is not used. Each row is about two persons, so ``sfumato.graph`` alone answers
    questions about such a table.

    Raises:
        InvalidDeclaration: not two different columns, or no table.

    >>> Node("a", "b", of="people")
    Node('a', 'b', of='people')
    """

    ends: tuple[str, str]
    of: str

    def __init__(self, first: str, second: str, *, of: str) -> None:
        ends = _columns((first, second))
        if not isinstance(of, str) or not of.isidentifier():
            raise InvalidDeclaration(
                f"of={shown(of)} of a node.", allowed='the table of the persons: of="people"'
            )
        object.__setattr__(self, "ends", ends)
        object.__setattr__(self, "of", of)

    def __str__(self) -> str:
        """A canonical string that identifies the unit in the ledger's contract."""
        first, second = map(_quoted, self.ends)
        return f"(node {first}, {second} of {_quoted(self.of)})"

    def __repr__(self) -> str:
        first, second = self.ends
        return f"Node({first!r}, {second!r}, of={self.of!r})"


def _columns(column: object) -> tuple[str, ...]:
    columns: tuple[object, ...] = (column,)
    if isinstance(column, list | tuple):
        columns = tuple(column)
    names = tuple(name for name in columns if isinstance(name, str) and name)
    if not names or len(names) < len(columns):
        raise InvalidDeclaration(
            "A unit needs the name of its column, or of several.", allowed='sf.Unit("person_id")'
        )
    if len({name.lower() for name in names}) != len(names):
        raise InvalidDeclaration(
            "A unit that names a column twice.", remedy="Name each column once."
        )
    return names


def _require_own(key: object, name: object) -> None:
    if key is not None:
        raise InvalidDeclaration(
            f"key={shown(key)} of a unit without via=.",
            allowed='sf.Unit("visit_id", via="visits.patient_id", key="id")',
        )
    if name is not None and (not isinstance(name, str) or not name):
        raise InvalidDeclaration(
            f"name={shown(name)} of the unit.", allowed='a text: name="patient"'
        )


def _require_path(columns: tuple[str, ...], via: object, key: object, name: object) -> None:
    if not isinstance(via, str) or not all(via.partition(".")):
        raise InvalidDeclaration(
            f"via={shown(via)} of the unit.", allowed='"table.column": via="visits.patient_id"'
        )
    if len(columns) > 1:
        raise InvalidDeclaration(
            "A unit with via= that has several columns.",
            allowed="one column, looked up in one key=",
        )
    if key is not None and (not isinstance(key, str) or not key):
        raise InvalidDeclaration(
            f"key={shown(key)} of the unit.", allowed='the name of a column: key="id"'
        )
    if name is not None:
        raise InvalidDeclaration(
            f"name={shown(name)} of a unit with via=: "
            "its rows are about the units of the other table.",
            remedy="Give the name to the unit of that table.",
        )


def _require_limit(name: str, value: object) -> None:
    if value is None or isinstance(value, Auto):
        return
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**31:
        raise InvalidDeclaration(
            f"{name} = {shown(value)} of the unit.", allowed="an integer from 1 to 2^31, or sf.AUTO"
        )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
