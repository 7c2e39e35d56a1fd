# SPDX-License-Identifier: Apache-2.0
"""Lemma 1: a relation's rows of a unit are made of that unit's own rows and of public tables.

So the rows over all the data are those over each unit's data alone, put together. Who owns a
row is worked out here by enumeration; every node has a wrong form that this notices.
"""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import reference_rows
from sfumato.engines.reference_rows import Row
from sfumato.metadata.column import Column
from sfumato.plan.relation import (
    Computed,
    Filter,
    KeyJoin,
    PerUnit,
    PublicJoin,
    Ranked,
    Semi,
    Sort,
    Summary,
    Union,
    UnitJoin,
    Windowed,
    WindowFunction,
)
from sfumato.plan.scalar import Constant, Field
from sfumato.plan.value import Value
from tests.contracts import plans as world


def owner(table, row, content):
    """The unit of a row, by search; None: nobody's."""
    if table == "people":
        return row["who"]
    if table == "days":
        texts = [row["who"], row["when"]]
        return None if None in texts else "".join(f"{len(str(text))}:{text}" for text in texts)
    via, column, key = {"stays": ("people", "patient", "who"), "notes": ("stays", "stay", "id")}[
        table
    ]
    claims = [
        owner(via, other, content)
        for other in content[via]
        if other[key] == row[column] is not None
    ]
    return min((each for each in claims if each is not None), default=None)


def alone(content, keep):
    """The rows of the units that ``keep`` accepts; public tables whole."""
    return {
        table: rows
        if table in ("drugs", "rows")
        else [row for row in rows if keep(owner(table, row, content))]
        for table, rows in content.items()
    }


def multiset(rows):
    return Counter((row.unit, repr(sorted(row.values.items()))) for row in rows)


def mixes_units(relation, content):
    """Whether a unit's rows depend on more than its own."""
    units = {
        owner(table, row, content)
        for table in ("people", "stays", "notes", "days")
        for row in content[table]
    }
    apart = Counter()
    for unit in units - {None}:
        apart += multiset(
            reference_rows.rows(relation, alone(content, lambda each, unit=unit: each == unit))
        )
    return multiset(reference_rows.rows(relation, content)) != apart


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from([world.OWNED, ("days",)]).flatmap(world.relations), world.data(4))
def test_each_units_rows_are_made_of_its_own(relation, content):
    assert not mixes_units(relation, content)


# --- mutants: each node wrong, on a hospital in which that shows -----------------------------

EMPTY = dict.fromkeys(world.KINDS)


def person(who, n):
    return {**EMPTY, "who": who, "n": n}


def stay(patient, number, n):
    return {**EMPTY, "patient": patient, "id": number, "n": n}


def note(number, n):
    return {**EMPTY, "stay": number, "n": n}


# both p and q claim stay 1; nobody has stay 9, and nobody is s
HOSPITAL = {
    "people": [person("p", "1"), person("q", "2"), person("r", "2"), person(None, "3")],
    "stays": [
        stay("p", "1", "0"),
        stay("q", "1", "0"),
        stay("q", "2", "4"),
        stay("s", "3", "1"),
        stay(None, "2", "1"),
    ],
    "notes": [
        note("1", "1"),
        note("2", "1"),
        note("2", "2"),
        note("3", "1"),
        note("9", "1"),
        note(None, "1"),
    ],
    "days": [],
    "rows": [],
    "drugs": [],
}
PEOPLE, STAYS, NOTES = (world.scan(table, f"{table}.") for table in world.OWNED)
N = Field(Column("stays.n", world.KINDS["n"]))
TOTAL = Column("total", sf.Integer(-9, 9))
SUMMED = PerUnit(STAYS, (), (Computed(TOTAL, Summary.SUM, Value("n", world.KINDS["n"], N)),))
FOUR = Filter(SUMMED, Constant(True))


def looked_up_together(relation, tables):
    """LAG over the rows of all units: a partition without the unit."""
    found = honest_rows(relation.source, tables)
    cells = reference_rows._cells(relation, reference_rows._ordered(found, relation.order, ()))
    return [
        reference_rows.Row(row.unit, {**row.values, relation.column.name: cell})
        for row, cell in zip(found, cells, strict=True)
    ]


def ranked_together(relation, tables):
    """One order for the rows of everybody."""
    found = sorted(
        reference_rows.rows(relation.source, tables),
        key=lambda row: repr(sorted(row.values.items())),
    )
    return [
        Row(row.unit, {**row.values, relation.column.name: min(number, 2)})
        for number, row in enumerate(found, 1)
    ]


def any_unit_will_do(relation, tables):
    present = bool(reference_rows.rows(relation.units, tables))
    return [
        row
        for row in reference_rows.rows(relation.source, tables)
        if present is not relation.negated
    ]


def joined_to_anybody(relation, tables):
    partners = reference_rows.rows(relation.other, tables)
    return [
        Row(row.unit, {**row.values, **partners[0].values})
        for row in reference_rows.rows(relation.source, tables)
        if partners
    ]


def summed_together(relation, tables):
    """One row for everybody, of the first unit."""
    found = reference_rows.rows(relation.source, tables)
    return [Row(min(row.unit for row in found), {"total": len(found)})] if found else []


def without_repeats(relation, tables):
    """UNION for UNION ALL."""
    seen = {}
    for row in honest_rows(relation, tables):
        seen.setdefault(repr(sorted(row.values.items())), row)
    return list(seen.values())


def best_of_all(relation, tables):
    """Rows above the mean of everybody's."""
    found = reference_rows.rows(relation.source, tables)
    numbers = [row.values["total"] for row in found]
    return [row for row in found if row.values["total"] * len(numbers) >= sum(numbers)]


def joined_to_any_owner_of_the_key(relation, tables):
    """The key alone decides, as if the table were public."""
    public = PublicJoin(relation.source, relation.table, relation.left, relation.right)
    return reference_rows._public_join(public, tables)


def public_row_once(relation, tables):
    """A public row is given to the first that asks for it."""
    found = reference_rows.rows(relation.source, tables)
    return found[:1]


honest_rows, honest_owners = reference_rows.rows, reference_rows._owners


def broken(node, wrong):
    """The rows of every node, wrong at one kind."""

    def rows(relation, tables):
        return (
            wrong(relation, tables) if isinstance(relation, node) else honest_rows(relation, tables)
        )

    return "rows", rows


def of_nobody_where_two_claim(owner, tables):
    honest = honest_owners(owner, tables)
    if owner.via is None:
        return honest

    def find(raw):
        above = honest_owners(owner.owner, tables)
        claims = [
            each
            for other in tables[owner.via]
            if (each := above(other)) and other[owner.keys[0]] == raw[owner.columns[0]]
        ]
        return claims[0] if len(set(claims)) == 1 else None

    return find


def of_the_key_where_nobody_has_it(owner, tables):
    honest = honest_owners(owner, tables)
    return lambda raw: honest(raw) or raw[owner.columns[0]]


MUTANTS = {
    "rank across units": (
        broken(Ranked, ranked_together),
        Ranked(STAYS, (Sort(N),), (), Column("k", sf.Integer(1, 2))),
    ),
    "looked up in rows of others": (
        broken(Windowed, looked_up_together),
        Windowed(
            STAYS,
            WindowFunction.LAG,
            (),
            (Sort(N),),
            (),
            Column("k", N.column.type),
            Value("n", N.column.type, N),
        ),
    ),
    "semi-join by rows of others": (broken(Semi, any_unit_will_do), Semi(PEOPLE, STAYS)),
    "anti-join by rows of others": (
        broken(Semi, any_unit_will_do),
        Semi(PEOPLE, STAYS, negated=True),
    ),
    "join to another unit": (broken(UnitJoin, joined_to_anybody), UnitJoin(PEOPLE, SUMMED)),
    "a key of another unit": (
        broken(KeyJoin, joined_to_any_owner_of_the_key),
        KeyJoin(PEOPLE, STAYS, Constant(0), Column("stays.n", world.KINDS["n"])),
    ),
    "one summary for all": (broken(PerUnit, summed_together), SUMMED),
    "repeats dropped across units": (
        broken(Union, without_repeats),
        Union((STAYS,), ((Constant(1),),), (TOTAL,)),
    ),
    "compared with everybody": (broken(Filter, best_of_all), FOUR),
    "public rows used up": (
        broken(PublicJoin, public_row_once),
        PublicJoin(
            STAYS,
            world.scan("drugs", "d."),
            Constant(1),
            Column("d.n", world.KINDS["n"]),
            outer=True,
        ),
    ),
    "a key that two claim is nobody's": (("_owners", of_nobody_where_two_claim), NOTES),
    "a key that nobody has is a unit": (("_owners", of_the_key_where_nobody_has_it), NOTES),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_node_that_mixes_units_is_caught(name, monkeypatch):
    (function, wrong), relation = MUTANTS[name]
    assert not mixes_units(relation, HOSPITAL)
    monkeypatch.setattr(reference_rows, function, wrong)
    assert mixes_units(relation, HOSPITAL)


def test_a_row_of_nobody_is_not_used():
    # one has no key, the stay of one is of nobody, and of one there is no stay
    assert [owner("notes", row, HOSPITAL) for row in HOSPITAL["notes"]] == [
        "p",
        "q",
        "q",
        None,
        None,
        None,
    ]
    assert [row.unit for row in reference_rows.rows(NOTES, HOSPITAL)] == ["p", "q", "q"]
