# SPDX-License-Identifier: Apache-2.0
"""Who is protected, and when two datasets are neighbours."""

from dataclasses import dataclass
from enum import Enum

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


@dataclass(frozen=True, slots=True)
class Unit:
    """The privacy unit of a table: the column that names whom a row is about.

    ``max_rows`` bounds the rows of a unit per group (Linf), ``max_groups`` the groups that
    a unit is in (L0), ``max_rows_total`` its rows per query. They are enforced on the data,
    never assumed of it. A limit left out is no limit; a question that needs one refuses.

    >>> Unit("person_id", max_rows=1)
    Unit(column='person_id', max_rows=1, max_groups=None, max_rows_total=None)
    """

    column: str
    max_rows: int | None = None
    max_groups: int | None = None
    max_rows_total: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise InvalidDeclaration("A unit needs the name of its column.", allowed='sf.Unit("person_id")')
        for name in ("max_rows", "max_groups", "max_rows_total"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**31):
                raise InvalidDeclaration(f"{name} = {value!r} of the unit.", allowed="an integer from 1 to 2^31")
