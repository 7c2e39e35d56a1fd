# SPDX-License-Identifier: Apache-2.0
"""A small world of several tables, its rows, and plans over it by hand.

``people`` name their unit, ``stays`` lead to them, ``notes`` lead to the stays; ``days`` have a
unit of two columns; in ``rows`` each row is one person; ``drugs`` is public. Values sit on the
edges of what is declared, for that is where engines differ.
"""

from collections.abc import Mapping
from fractions import Fraction

import pyarrow as pa
from hypothesis import strategies as st

import sfumato as sf
from sfumato.metadata.column import Column, Text
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import Aggregate
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Relation, Scan, scans
from sfumato.plan.scope import provided
from sfumato.plan.stages import Bounded, Limits, Part, Raw, Tracked
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Distance, Norm

Rows = list[dict[str, object]]

KINDS = {
    "n": sf.Integer(-3, 4, missing="N"),
    "x": sf.Real(-1, 2, step="0.25"),
    "d": sf.Date("1969-12-25", "1970-03-10"),
    "c": sf.Category("a", "b", "空", missing=""),
    "b": sf.Boolean(),
    "t": sf.Text(),
    "Big": sf.Integer(-(2**52), 2**52),
}
TABLES = {
    "people": sf.Table("people.csv", unit=sf.Unit("who"), columns=KINDS),
    "stays": sf.Table(
        "stays.csv", unit=sf.Unit("patient", via="people.who", key="who"), columns=KINDS
    ),
    "notes": sf.Table(
        "notes.csv", unit=sf.Unit("stay", via="stays.patient", key="id"), columns=KINDS
    ),
    "days": sf.Table("days.csv", unit=sf.Unit(["who", "when"]), columns=KINDS),
    "rows": sf.Table("rows.csv", columns=KINDS),
    "drugs": sf.Table("drugs.csv", columns=KINDS, public=True),
}
DATASET = Dataset("world", TABLES)
OWNED = ("people", "stays", "notes")
# What leads from a row to its unit, and the texts that it meets; some units and keys are nobody's.
_WHO = st.sampled_from(["p", "p", "p", "q", "q", "Ü", None])
_IDS = st.sampled_from(["1", "1", "2", "2", "3", None])
_LINKS: Mapping[str, Mapping[str, st.SearchStrategy[object]]] = {
    "people": {"who": _WHO},
    "stays": {"patient": _WHO, "id": _IDS},
    "notes": {"stay": _IDS},
    "days": {"who": _WHO, "when": st.sampled_from([1, 11, None])},
    "rows": {},
    "drugs": {},
}
_CELLS: Mapping[str, tuple[pa.DataType, list[object]]] = {
    "n": (
        pa.string(),
        ["-9", "-3", "-1", "0", "1", "2.5", "4", "N", "nan", "x", "1e400", "", None],
    ),
    "x": (
        pa.float64(),
        [-1.0, -0.125, 0.0, 0.375, 2.0, 7.5, float("nan"), float("inf"), float("-inf"), None],
    ),
    "d": (
        pa.string(),
        ["1969-12-25", "1969-12-31", "1970-01-01", "1970-02-29", "1970-03-31", None],
    ),
    "c": (pa.string(), ["a", "b", "空", "?", "", None]),
    "b": (pa.bool_(), [True, False, None]),
    "t": (pa.string(), ["", "N", "a", "ab", "a\\b", "空b", "a|b", "A%", None]),
    "Big": (pa.int64(), [-(2**63), -(2**52), -1, 0, 3, 2**52 - 1, 2**63 - 1, None]),
}


# --- rows ----------------------------------------------------------------------------------


@st.composite
def data(draw: st.DrawFn, most: int = 9) -> dict[str, Rows]:
    """Rows of every table, now and then none."""
    least = draw(st.sampled_from([0, 4, 4]))
    return {table: draw(st.lists(rows(table), min_size=least, max_size=most)) for table in TABLES}


def rows(table: str) -> st.SearchStrategy[dict[str, object]]:
    """A row of a table."""
    cells = {name: st.sampled_from(values) for name, (_, values) in _CELLS.items()}
    return st.fixed_dictionaries({**_LINKS[table], **cells})


def edges() -> dict[str, Rows]:
    """People with every value of every column, of several units and of nobody."""
    return content(
        people=[
            {"who": ["p", "q", "Ü", None][place % 4]}
            | {name: values[place % len(values)] for name, (_, values) in _CELLS.items()}
            for place in range(5 * max(len(values) for _, values in _CELLS.values()))
        ]
    )


def arrow(table: str, rows: Rows) -> pa.Table:
    """The rows as an engine reads them."""
    types = {name: kind for name, (kind, _) in _CELLS.items()}
    names = [*_LINKS[table], *types]
    return pa.table(
        {
            name: pa.array([row[name] for row in rows], types.get(name) or _link(name, rows))
            for name in names
        }
    )


def _link(name: str, rows: Rows) -> pa.DataType:
    """Units and keys are numbers where a row says so, else texts."""
    whole = name == "when" or any(isinstance(row[name], int) for row in rows)
    return pa.int64() if whole else pa.string()


def declared(content: Mapping[str, Rows]) -> dict[str, sf.Table]:
    """The tables of the world over these rows."""
    return {
        name: sf.Table(
            arrow(name, content[name]), unit=each.unit, columns=each.columns, public=each.public
        )
        for name, each in TABLES.items()
    }


def scan(table: str, prefix: str = "") -> Scan:
    """All declared columns of a table."""
    columns = tuple(Column(prefix + name, kind) for name, kind in TABLES[table].columns.items())
    return Scan(table, prefix, columns, owner_of(DATASET, table))


# --- plans by hand -------------------------------------------------------------------------

FINE = 2**20
UNLIMITED = (None, None, None)


def plan(
    relation: Relation,
    *aggregates: Aggregate,
    keys: tuple[GroupKey, ...] = (),
    limits: tuple[int | None, int | None, int | None] = UNLIMITED,
    norm: Norm = Norm.L1,
    fine: int = 1,
) -> Bounded:
    """A bounded plan under (rows, groups, total); its distances are not what is tested."""
    owned = all(each.owner is not None for each in scans(relation))
    parts = tuple(Part(each, Distance(norm, Fraction(1)), 1) for each in aggregates)
    raw = Raw(relation, keys, tuple(aggregates))
    return Bounded(Tracked(raw, "who" if owned else None, Limits(*limits), None), norm, fine, parts)


def read(relation: Relation, name: str) -> Value:
    """A column that a relation provides."""
    return Value.of(next(column for column in provided(relation) if column.name == name))


def by(relation: Relation, name: str, *, missing: bool = False) -> GroupKey:
    """A key of every declared code of a column; of a text, one that is open."""
    value = read(relation, name)
    kind = value.type
    codes = None if isinstance(kind, Text) else tuple(range(kind.lower_code, kind.upper_code + 1))
    return GroupKey(value, codes, missing)


def content(**tables: Rows) -> dict[str, Rows]:
    """Rows of some tables of the world; cells that are not given are NULL."""
    empty = {name: dict.fromkeys([*_LINKS[name], *_CELLS]) for name in TABLES}
    return {name: [{**empty[name], **row} for row in tables.get(name, [])] for name in TABLES}
