# SPDX-License-Identifier: Apache-2.0
"""Who is protected, and when two datasets are neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from sfumato.errors import InvalidDeclaration


class Relation(Enum):
    """When two datasets are neighbours.

    ``ADD_REMOVE``: one has a unit more than the other. ``REPLACE_ONE``: the same number of
    units, one of them replaced by another; at most two add/remove steps.
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"


AddRemove = Relation.ADD_REMOVE
ReplaceOne = Relation.REPLACE_ONE


class Auto(Enum):
    """A limit that is to be learnt privately, by a charged step of its own."""

    AUTO = "auto"

    def __repr__(self) -> str:
        return "AUTO"


AUTO = Auto.AUTO
Bound: TypeAlias = int | Auto | None


@dataclass(frozen=True, slots=True, init=False)
class Unit:
    """The privacy unit of a table: what names whom a row is about.

    ``columns`` name the unit themselves (several together: a person-day). With ``via``, a
    text "table.column", they name a row of another table, whose unit it is: a visit that
    belongs to a patient. ``key`` is the column of that table that they are looked up in, by
    default of the same name. Two tables are about the same units if the ``name`` of their
    unit is the same; by default that is the column that names it.

    ``max_rows`` bounds the rows of a unit per group (Linf), ``max_groups`` the groups that
    a unit is in (L0), ``max_rows_total`` its rows per query. They are enforced on the data,
    never assumed of it. A limit left out is no limit; a question that needs one refuses.
    ``sf.AUTO``: it is learnt privately when a question needs it, for a share of its cost.

    Raises:
        InvalidDeclaration: what names no column, or a limit that is none.

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
    name: str

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
    ) -> None:
        columns = (column,) if isinstance(column, str) else tuple(column) if isinstance(column, list | tuple) else ()
        if not columns or not all(isinstance(each, str) and each for each in columns):
            raise InvalidDeclaration("A unit needs the name of its column.", allowed='sf.Unit("person_id")')
        for limit, value in (("max_rows", max_rows), ("max_groups", max_groups), ("max_rows_total", max_rows_total)):
            _require_limit(limit, value)
            object.__setattr__(self, limit, value)
        if via is not None and (not isinstance(via, str) or not all(via.partition("."))):
            raise InvalidDeclaration(f"via={via!r} of the unit.", allowed='"table.column": via="visits.patient_id"')
        if (key is not None and via is None) or (via is not None and len(columns) > 1):
            raise InvalidDeclaration(
                "key= goes with via=, and via= with one column.", allowed='via="visits.patient_id"'
            )
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "via", via)
        object.__setattr__(self, "key", (key or columns[0]) if via is not None else None)
        object.__setattr__(self, "name", name or (via.partition(".")[2] if via else ", ".join(columns)))

    @property
    def column(self) -> str:
        """The columns of the table that name its units, as one text."""
        return ", ".join(self.columns)

    def __str__(self) -> str:
        """What binds the unit in a contract."""
        by = "" if self.via is None else f" via {self.via} by {self.key}"
        named = self.via.partition(".")[2] if self.via else self.column
        return f"{self.column}{by}" + ("" if self.name == named else f" as {self.name}")

    def __repr__(self) -> str:
        shown = [repr(self.columns[0] if len(self.columns) == 1 else list(self.columns))]
        shown += [] if self.via is None else [f"via={self.via!r}"]
        shown += [] if self.key in (None, self.columns[0]) else [f"key={self.key!r}"]
        limits = ("max_rows", "max_groups", "max_rows_total")
        shown += [f"{name}={value!r}" for name in limits if (value := getattr(self, name)) is not None]
        return f"Unit({', '.join(shown)})"


def _require_limit(name: str, value: object) -> None:
    if value is None or isinstance(value, Auto):
        return
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**31:
        raise InvalidDeclaration(f"{name} = {value!r} of the unit.", allowed="an integer from 1 to 2^31, or sf.AUTO")
