# SPDX-License-Identifier: Apache-2.0
"""Finds columns that look like keys by their names, and drafts the units of several tables.

``sfumato init`` uses it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_KEY = re.compile(
    r".*(_|\b)(id|key|nr|no|number|code)|[puc]?id|mrn|ssn|.*[a-z]I[dD]|.*(编号|证号|号码|ID)"
)
# What ends in a word of a key and is none.
_NO_KEY = re.compile(r".*(zip|postal|post|country|region|icd|diagnosis|currency)_?(code|no|nr)")

_PERSON = re.compile(
    "person|people|pers_|patient|member|customer|client|user|subject|resident|student|pupil|"
    "employee|worker|household|insured|citizen|^[puc]id$|mrn|ssn|患者|病人|人员|身份|户"
)
# What happens to a person, who has several: protecting one of them does not protect the person.
_EVENT = re.compile(
    "(^|_)(visit|encounter|admission|stay|case|order|transaction|purchase|invoice|claim|booking|"
    "session|event|trip|ride|call|message|prescription|sample|test|row|record)s?_?[a-z]*$|"
    "就诊|住院|订单|交易|记录"
)


@dataclass(frozen=True, slots=True)
class Keys:
    """The columns of each table that look like keys.

    ``person`` is the key column that most tables have, preferably one named after persons; "" if
    the names suggest none, or only events.

    >>> keys = Keys.of({"patients": ["patient_id", "sex"], "visits": ["visit_id", "patient_id"],
    ...                 "drugs": ["visit_id", "dose"]})
    >>> keys.person, keys.unit_of("visits"), keys.unit_of("drugs")
    ('patient_id', {'column': 'patient_id'}, {'column': 'visit_id', 'via': 'visits.patient_id'})
    """

    by_table: Mapping[str, Sequence[str]]
    person: str

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[str]]) -> "Keys":
        """Finds key columns by the column names of each table."""
        by_table = {}
        written = [name for names in columns.values() for name in names]
        shared = {name for name in written if written.count(name) > 1 and _is_id(name)}
        for table, names in columns.items():
            by_table[table] = [name for name in names if is_key(name) or name in shared]
        every = [name for names in by_table.values() for name in names]
        return cls(by_table, _person(every))

    @property
    def names(self) -> frozenset[str]:
        """The names of all columns, of any table, that look like keys."""
        return frozenset(name for names in self.by_table.values() for name in names)

    @property
    def lines(self) -> list[str]:
        """Comment lines of the draft about keys that several tables share; empty if there are none."""
        lines = []
        for name in sorted(self.names):
            having = [table for table, names in self.by_table.items() if name in names]
            if len(having) > 1:
                lines.append(f"#   {name}: {', '.join(having)}")
        if lines:
            return ["", "# Keys that several tables share, by their names:", *lines]
        return []

    def unit_of(self, table: str) -> dict[str, str]:
        """Returns a draft of a table's privacy unit, as keys of the TOML file; empty if no column
        name suggests one.
        """
        table_keys = self.by_table[table]
        if self.person in table_keys:
            return {"column": self.person}
        for other, names in self.by_table.items():
            shared = [name for name in table_keys if name in names]
            if other != table and self.person in names and shared:
                return {"column": shared[0], "via": f"{other}.{self.person}"}
        if len(table_keys) == 1 and not _EVENT.search(table_keys[0].lower()):
            return {"column": table_keys[0]}
        return {}


def _person(every: Sequence[str]) -> str:
    """The key column that identifies persons, among those of all tables; "" if none does."""
    named = [name for name in every if _PERSON.search(name.lower())]
    if named:
        return max(named, key=every.count)
    others = {name for name in every if not _EVENT.search(name.lower())}
    return others.pop() if len(others) == 1 else ""


def _is_id(name: str) -> bool:
    """Whether a name ends like an id, for example in "_id"."""
    return name.lower().endswith("id")


def is_key(name: str) -> bool:
    """Whether a name looks like that of a key.

    >>> [is_key(name) for name in ("patient_id", "visitId", "id", "age", "paid", "zip_code")]
    [True, True, True, False, False, False]
    """
    if _NO_KEY.fullmatch(name.lower()):
        return False
    return bool(_KEY.fullmatch(name) or _KEY.fullmatch(name.lower()))
