# SPDX-License-Identifier: Apache-2.0
"""The columns that look like keys by their names, and a draft of the units of several tables."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_KEY = re.compile(r".*(_|\b)(id|key|nr|no|number|code)|id|.*[a-z]I[dD]|.*(编号|证号|号码|ID)")
# What ends in a word of a key and is none.
_NO_KEY = re.compile(r".*(zip|postal|post|country|region|icd|diagnosis|currency)_?(code|no|nr)")

_PERSON = re.compile(
    "person|people|pers_|patient|member|customer|client|user|subject|resident|student|pupil|"
    "employee|worker|household|insured|citizen|患者|病人|人员|身份|户"
)


@dataclass(frozen=True, slots=True)
class Keys:
    """Key-like columns of each table. ``person`` is the one that most tables
    have, of those named after persons if there are any.

    >>> keys = Keys.of({"patients": ["patient_id", "sex"], "visits": ["visit_id", "patient_id"],
    ...                 "drugs": ["visit_id", "dose"]})
    >>> keys.person, keys.unit_of("visits"), keys.unit_of("drugs")
    ('patient_id', {'column': 'patient_id'}, {'column': 'visit_id', 'via': 'visits.patient_id'})
    """

    by_table: Mapping[str, Sequence[str]]
    person: str

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[str]]) -> "Keys":
        """Finds keys by the names of the columns of each table."""
        by_table = {}
        for table, names in columns.items():
            by_table[table] = [name for name in names if is_key(name)]
        every = [name for names in by_table.values() for name in names]
        named = [name for name in every if _PERSON.search(name.lower())]
        person = max(named or every, key=every.count, default="")
        return cls(by_table, person)

    @property
    def names(self) -> frozenset[str]:
        """Every column that looks like a key."""
        return frozenset(name for names in self.by_table.values() for name in names)

    @property
    def lines(self) -> list[str]:
        """A comment on the keys that several tables share; empty if none is shared."""
        lines = []
        for name in sorted(self.names):
            having = [table for table, names in self.by_table.items() if name in names]
            if len(having) > 1:
                lines.append(f"#   {name}: {', '.join(having)}")
        if lines:
            return ["", "# Keys that several tables share, by their names:", *lines]
        return []

    def unit_of(self, table: str) -> dict[str, str]:
        """A draft of the unit of a table; empty if no name suggests one."""
        own = self.by_table[table]
        if self.person in own:
            return {"column": self.person}
        for other, names in self.by_table.items():
            shared = [name for name in own if name in names]
            if other != table and self.person in names and shared:
                return {"column": shared[0], "via": f"{other}.{self.person}"}
        return {"column": own[0]} if own else {}


def is_key(name: str) -> bool:
    """Returns whether a name is one that keys have.

    >>> [is_key(name) for name in ("patient_id", "visitId", "id", "age", "paid", "zip_code")]
    [True, True, True, False, False, False]
    """
    if _NO_KEY.fullmatch(name.lower()):
        return False
    return bool(_KEY.fullmatch(name) or _KEY.fullmatch(name.lower()))
