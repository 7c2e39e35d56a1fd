# SPDX-License-Identifier: Apache-2.0
"""Sums by unit before a join are those after it, and only where each side of it is read by
itself.
"""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.engines import emit, grouped_rows, preaggregation
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.preaggregation import taken_apart
from sfumato.engines.reference import Reference
from sfumato.metadata.column import Column, Integer
from sfumato.plan.aggregate import CountRows, CountUnits, CountValues, Mean, Sum
from sfumato.plan.relation import Computed, Filter, PerUnit, Summary, UnitJoin, first
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Compare,
    Comparison,
    Constant,
    Field,
    IsNull,
    Not,
    Operation,
    Or,
)
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Norm
from tests.contracts import world
from tests.contracts.effort import examples
from tests.contracts.verbatim import Verbatim
from tests.contracts.world import FINE, by, content, declared, plan, read, scan

PEOPLE, STAYS = scan("people", "people."), scan("stays", "stays.")
N, X = read(PEOPLE, "people.n"), read(STAYS, "stays.n")
LETTER = read(PEOPLE, "people.c")
OWN = Compare(Comparison.GT, X.expression, Constant(0))
THERE = Compare(Comparison.GE, N.expression, Constant(1))
ABSENT = IsNull(LETTER.expression)
BOTH = Or((OWN, THERE))
ONE = first(PEOPLE, (), tuple(Field(column) for column in PEOPLE.columns), "rank")
SOME = first(Filter(PEOPLE, THERE), (), tuple(Field(column) for column in PEOPLE.columns), "rank")
HELD = PerUnit(PEOPLE, (), (Computed(Column("held", Integer(0, 3)), Summary.COUNT, None),))
KEYS = ((by(PEOPLE, "people.c", missing=True),), (by(PEOPLE, "people.c"),))
COUNTED = (GroupKey(read(HELD, "held"), (0, 1, 2, 3), True),)
MANY = (CountRows(), CountUnits(), CountValues(X), Sum(X), Mean(X))
JOINS = {
    "inner": UnitJoin(STAYS, ONE),
    "of some": UnitJoin(STAYS, SOME),
    "outer": UnitJoin(STAYS, SOME, outer=True),
    "tested": Filter(UnitJoin(STAYS, ONE), And((OWN, THERE))),
    "outer and tested": Filter(Filter(UnitJoin(STAYS, SOME, outer=True), OWN), Not(THERE)),
    "outer, of those without": Filter(UnitJoin(STAYS, SOME, outer=True), And((ABSENT, OWN))),
    "of itself": UnitJoin(Filter(UnitJoin(STAYS, ONE), THERE), HELD),
}


def plans():
    for limits in ((None, None, None), (2, None, None), (2, 1, 3)):
        for norm in Norm:
            for name, relation in JOINS.items():
                for each in ((), COUNTED) if name == "of itself" else ((), *KEYS):
                    yield plan(relation, *MANY, keys=each, limits=limits, norm=norm, fine=FINE)


PLANS = list(plans())


def agrees(rows, asked=PLANS):
    tables = declared(rows)
    oracle, engine = (
        Reference({name: table.source.to_pylist() for name, table in tables.items()}),
        DuckDB(tables),
    )
    try:
        return all(engine.run(each, "key") == oracle.run(each, "key") for each in asked)
    finally:
        engine.close()


ROWS = content(
    people=[
        *(
            {"who": "p", "c": letter, "n": number}
            for letter, number in (("b", "2"), ("a", "1"), ("a", "0"))
        ),
        *(
            {"who": who, "c": letter, "n": "4"}
            for who, letter in (("q", None), ("r", "空"), ("s", "b"), (None, "a"), ("t", "空"))
        ),
        {"who": "u", "c": "a", "n": "0"},
    ],
    stays=[
        {"patient": who, "id": str(number), "n": str(number % 6 - 2)}
        for who, times in (("p", 5), ("q", 2), ("s", 1), ("u", 4), ("nobody", 3), (None, 2))
        for number in range(times)
    ],
)


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.long)])
def test_sums_before_a_join_are_those_after_it(step):
    assert agrees(ROWS, PLANS[::step])


@settings(deadline=None, max_examples=examples(0.4), suppress_health_check=list(HealthCheck))
@given(world.data(), st.lists(st.sampled_from(PLANS), min_size=6, max_size=12))
def test_they_are_so_over_any_rows(rows, asked):
    assert agrees(rows, asked)


def test_what_is_read_decides():
    raw = plan(JOINS["tested"], *MANY, keys=KEYS[0]).tracked.raw
    found = taken_apart(raw, [X])
    assert found is not None
    assert (found.source, found.other, found.outer, found.tests) == (
        Filter(STAYS, OWN),
        ONE,
        False,
        (THERE,),
    )
    both = Value("both", Integer(-9, 9), Arithmetic(Operation.ADD, X.expression, N.expression))
    refused = [
        (raw, [N]),
        (raw, [X, both]),
        (replace(raw, keys=(by(STAYS, "stays.c"),)), [X]),
        (replace(raw, relation=Filter(raw.relation, BOTH)), [X]),
        (replace(raw, relation=STAYS), [X]),
    ]
    assert [taken_apart(*each) for each in refused] == [None] * len(refused)


_honest = emit.summed_before_join
MUTANTS = {
    "an outer join as an inner one": (emit, "taken_apart", lambda *each: _but(each, outer=False)),
    "an inner join as an outer one": (emit, "taken_apart", lambda *each: _but(each, outer=True)),
    "a test forgotten": (emit, "taken_apart", lambda *each: _but(each, tests=())),
    "tests of the rows forgotten": (emit, "taken_apart", lambda *each: _but(each, source=STAYS)),
    "a unit without its group": (grouped_rows, "_in_groups", lambda plan, source: source),
    "whatever is read": (preaggregation, "_names", lambda expressions: set()),
    "rows of all units": (
        emit,
        "summed_before_join",
        lambda *each: Verbatim(printed(_honest(*each)).replace(" ON l.unit = r.unit", " ON TRUE")),
    ),
}


def _but(asked, **changed):
    found = taken_apart(*asked)
    return None if found is None else replace(found, **changed)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_join_taken_apart_wrongly_is_noticed(monkeypatch, mutant):
    monkeypatch.setattr(*MUTANTS[mutant])
    try:
        found = agrees(ROWS)
    except Exception:
        found = False
    assert not found
