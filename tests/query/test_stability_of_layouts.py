# SPDX-License-Identifier: Apache-2.0
"""The claimed distance holds for plans of prepared layouts, is attained, and every broken sample
violates it.
"""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import reference
from sfumato.engines.layout import whole
from sfumato.engines.reference import Reference, Sample
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import (
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Sum,
    Variance,
)
from sfumato.plan.relation import Filter, Semi, UnitJoin
from sfumato.plan.scalar import Constant, Member
from sfumato.plan.stages import Bounded, Raw, Tracked
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Unit
from sfumato.query import stability
from sfumato.query.passes import Context
from sfumato.query.passes.bound import bound
from sfumato.query.passes.limit import limit
from sfumato.query.passes.prune import prune
from sfumato.query.passes.track import track
from tests.contracts import layouts, world
from tests.contracts.effort import examples
from tests.contracts.leaves import dense
from tests.query.test_stability import (
    ALL,
    CLOSED,
    EVEN,
    GROUPS,
    MEDIAN,
    OPEN,
    POSITIVE,
    ROWS,
    SIGNED,
    TOTAL,
    Pair,
    added,
    asked,
    heaviest,
    limited,
    pair_of,
    person,
    question,
    swapped,
)
from tests.query.test_stability_of_rows import alone, owner

ADD, REPLACE = sf.AddRemove, sf.ReplaceOne


def of_layout(raw, dataset, norm, kept) -> Bounded:
    """The plan that reads a layout, whether or not that is the better choice."""
    context = Context(dataset, norm)
    tracked = limit(track(prune(raw, context), context), context)
    return bound(replace(tracked, kept=kept), context)


def moves(plan, dataset, pair, key="key"):
    """For each part, how far its integers are apart by group."""
    samples = {
        name: Sample(whole(dataset, name), key)
        for name, table in dataset.tables.items()
        if table.unit is not None
    }
    one, other = (Reference(content, samples).run(plan, "") for content in (pair.one, pair.other))
    for part, left, right in zip(plan.parts, one, other, strict=True):
        apart = []
        for group in {*left, *right}:
            both = [dense(part.aggregate, each.get(group, ())) for each in (left, right)]
            apart.append([a - b for a, b in zip(*both, strict=True)])
        yield part, apart


def norm_of(part, groups):
    cells = [each for group in groups for each in group]
    return {
        Norm.L1: sum(map(abs, cells)),
        Norm.L2: sum(each * each for each in cells),
        Norm.LINF: max(map(heaviest, groups), default=0),
    }[part.distance.norm]


def exceeds(plan, dataset, pair, key="key") -> bool:
    """Whether neighbours differ by more than is claimed of any part."""
    for part, groups in moves(plan, dataset, pair, key):
        if norm_of(part, groups) > part.distance.value:
            return True
        if part.distance.norm is Norm.LINF:
            weights = [heaviest(group) for group in groups]
            most = part.groups * (1 if part.distance.relation is ADD else 2)
            if (
                sum(weights) > part.distance.value * most
                or sum(each**2 for each in weights) > part.distance.value**2 * most
            ):
                return True
    return False


@settings(deadline=None, max_examples=examples(4))
@given(asked(), st.integers(1, 6), st.text(max_size=2))
def test_neighbours_of_a_layout_differ_by_at_most_the_distance(case, kept, key):
    (raw, dataset), pair = case
    if dataset.tables["people"].unit is None:
        return
    for norm in (Norm.L1, Norm.L2):
        assert not exceeds(of_layout(raw, dataset, norm, kept), dataset, pair, key)


@st.composite
def asked_of_layouts(draw):
    """A question of the small world that layouts can answer, and neighbours."""
    raw = draw(layouts.questions()).tracked.raw
    content, relation = draw(world.data(5)), draw(st.sampled_from((ADD, REPLACE)))
    names = {owner(table, row, content) for table in layouts.OWNED for row in content[table]} - {
        None
    }
    gone, instead = (draw(st.sampled_from(sorted(names) or ["p"])) for _ in range(2))
    pair = neighbours(content, gone, None if relation is ADD else instead)
    return raw, limited(draw, relation), pair


def neighbours(content, gone, instead):
    """All rows of one unit are gone; on the other side those of another one, or of none."""
    less = alone(content, lambda each: each != gone)
    return Pair(content if instead is None else alone(content, lambda each: each != instead), less)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(asked_of_layouts(), st.integers(1, 6), st.text(max_size=2))
def test_questions_over_several_layouts_keep_to_the_distance(case, kept, key):
    raw, dataset, pair = case
    for norm in (Norm.L1, Norm.L2):
        assert not exceeds(of_layout(raw, dataset, norm, kept), dataset, pair, key)


# Four people with a home each, of which one moves away; a visit counts in the group of the home.
HOMES = world.content(
    people=[{"who": who, "n": "0", "c": "a"} for who in "pqrs"],
    stays=[{"patient": who, "n": "1", "c": "a" if who == "p" else "b"} for who in "pppppqrs"],
)
STAYS, PEOPLE = world.scan("stays", "S."), world.scan("people", "P.")
OF_A = Filter(PEOPLE, Member(world.read(PEOPLE, "P.c").expression, (0,)))
AT_HOME = UnitJoin(STAYS, layouts.any_row(PEOPLE, "P.rank"))
# the home of each is of a; that of nobody is of b
LOOKED_UP = (Semi(STAYS, OF_A), Semi(STAYS, Filter(OF_A, Constant(False)), negated=True))


def of_homes(kept, relation, key):
    """Visits of whom a row in another table says where they count, or whether: at most two of a
    unit do.
    """
    raw = Raw(relation, (world.by(relation, key),), (CountRows(),))
    unit = {
        "people": Unit("who", 1, 1),
        "stays": Unit("patient", 2, 1, via="people.who", key="who"),
    }
    tables = {
        name: sf.Table(
            "nowhere.csv", unit=unit.get(name, each.unit), columns=each.columns, public=each.public
        )
        for name, each in world.TABLES.items()
    }
    dataset = Dataset("world", tables)
    return of_layout(raw, dataset, Norm.L1, kept), dataset, neighbours(HOMES, "p", None)


WITH_HOMES = ((AT_HOME, "P.c"), *((each, "S.c") for each in LOOKED_UP))


@pytest.mark.parametrize(("relation", "key"), WITH_HOMES)
def test_what_the_one_row_of_the_unit_decides_is_bounded_and_attains_it(relation, key):
    plan, dataset, pair = of_homes(9, relation, key)
    ((part, groups),) = moves(plan, dataset, pair)
    assert part.distance == Distance(Norm.L1, Fraction(2)) and norm_of(part, groups) == 2


# A question of which one pair of neighbours attains the claim: in L1, and in squared L2. Up to 9
# rows are stored.
TIGHT = {
    "as many rows as the limits allow": (
        CountRows(),
        GROUPS,
        CLOSED,
        ADD,
        added("aaaaaa", 0),
        4,
        16,
    ),
    "one group": (CountRows(), ROWS, ALL, ADD, added("aaaaaa", 0), 2, 4),
    "a total": (CountValues(EVEN), TOTAL, CLOSED, ADD, added("bbbbbb", 0), 3, 9),
    "open keys": (CountRows(), GROUPS, OPEN, ADD, added("cccccc", 0), 4, 16),
    "no more than are stored": (
        CountRows(),
        Unit("person", 9, 9),
        OPEN,
        ADD,
        added("a" * 12, 0),
        9,
        81,
    ),
    "sums": (Sum(SIGNED), GROUPS, CLOSED, ADD, added("aaaaa", -9), 20, 400),
    "means": (Mean(SIGNED), GROUPS, CLOSED, ADD, added("aaaaa", -9), 32, 1024),
    "variances": (Variance(SIGNED), GROUPS, CLOSED, ADD, added("aaaaa", -9), 256, 256**2),
    "distinct values": (
        CountDistinct(EVEN),
        GROUPS,
        CLOSED,
        ADD,
        added("aaaa", -1, 0, 1, 2),
        4,
        16,
    ),
    "units by group": (CountUnits(), GROUPS, CLOSED, ADD, added("abcd", 0), 2, 2),
    "units by open key": (CountUnits(), GROUPS, OPEN, ADD, added("abcd", 0), 2, 2),
    "units by total": (CountUnits(), TOTAL, CLOSED, ADD, added("abcd", 0), 3, 3),
    "units": (CountUnits(), GROUPS, ALL, ADD, added("abcd", 0), 1, 1),
    "rows replaced": (CountRows(), GROUPS, CLOSED, REPLACE, swapped("aaaa", 0, "bbbb", 0), 8, 32),
    "one sum replaced": (Sum(SIGNED), ROWS, ALL, REPLACE, swapped("aaa", -9, "aaa", 9), 16, 256),
    "sums replaced": (Sum(EVEN), GROUPS, CLOSED, REPLACE, swapped("aaaa", -5, "aaaa", 5), 40, 1600),
    "positive sums replaced": (
        Sum(POSITIVE),
        GROUPS,
        CLOSED,
        REPLACE,
        swapped("aaaa", 5, "bbbb", 5),
        40,
        800,
    ),
    "units replaced": (CountUnits(), GROUPS, CLOSED, REPLACE, swapped("ab", 0, "cd", 0), 4, 4),
}


def claimed(name, norm):
    aggregate, unit, keys, relation, pair, first, second = TIGHT[name]
    raw, dataset = question((aggregate,), unit, keys, relation)
    value = Fraction(first if norm is Norm.L1 else second)
    return of_layout(raw, dataset, norm, 9), dataset, pair, Distance(norm, value, relation)


@pytest.mark.parametrize("norm", (Norm.L1, Norm.L2))
@pytest.mark.parametrize("name", TIGHT)
def test_the_claim_of_a_layout_is_the_one_worked_out_by_hand_and_is_attained(name, norm):
    plan, dataset, pair, distance = claimed(name, norm)
    ((part, groups),) = moves(plan, dataset, pair)
    assert part.distance == distance
    assert norm_of(part, groups) == distance.value
    assert plan.refinement == 1


def test_quantiles_of_a_layout_count_every_row_in_one_group():
    raw, dataset = question((MEDIAN,), GROUPS, CLOSED, ADD)
    plan = of_layout(raw, dataset, Norm.L2, 9)
    (part,) = plan.parts
    assert (part.distance, part.groups) == (Distance(Norm.LINF, Fraction(4)), 1)
    ((_, groups),) = moves(plan, dataset, added("aaaaa", 1))
    assert max(map(heaviest, groups)) == 4


# --- mutants --------------------------------------------------------------------------------------

HONEST = {"first": reference._first_rows, "limits": stability._limits, "counted": Tracked.counted}


def every_row(sample, tables, most):
    return HONEST["first"](sample, tables, 10**9)


def one_row_more(sample, tables, most):
    return HONEST["first"](sample, tables, most + 1)


def one_row_of_all(sample, tables, most):
    kept = HONEST["first"](sample, tables, most)
    return kept[:1] if most == 1 else kept


def rows_of_everybody(sample, tables, most):
    """The first rows of all units together."""
    alike = [{**row, "person": "p"} for row in tables["people"] if row["person"] is not None]
    kept = HONEST["first"](
        sample, {"people": [{**row, "who": index} for index, row in enumerate(alike)]}, most
    )
    return [tables["people"][row["who"]] for row in kept]


def limits_of_units(aggregate, plan):
    return HONEST["limits"](CountUnits(), plan)


MUTANTS = {
    "places forgotten": (reference, "_first_rows", every_row),
    "one row too many": (reference, "_first_rows", one_row_more),
    "one row for everybody": (reference, "_first_rows", one_row_of_all),
    "units mixed": (reference, "_first_rows", rows_of_everybody),
    "whole tables": (reference, "_renamed", lambda relation, name: relation),
    "rows claimed as units": (stability, "_limits", limits_of_units),
}


def violated() -> bool:
    """Whether a worst case, under any of some keys, is apart by more than is claimed."""
    crowd = pair_of(
        person("aaaa", [0] * 4, "q"), [*person("aaaa", [0] * 4, "q"), *person("bbbb", [0] * 4)]
    )
    raw, dataset = question((CountRows(),), GROUPS, CLOSED, ADD)
    plan = of_layout(raw, dataset, Norm.L1, 9)
    if any(exceeds(plan, dataset, crowd, str(key)) for key in range(200)):
        return True
    homes = any(exceeds(*of_homes(9, *each)) for each in WITH_HOMES)
    return homes or any(
        exceeds(*claimed(name, norm)[:3]) for name in TIGHT for norm in (Norm.L1, Norm.L2)
    )


def test_worst_cases_stay_within_the_claim():
    assert not violated()


def test_units_that_are_looked_up_in_rows_of_others_violate_the_claim(monkeypatch):
    monkeypatch.setattr(reference, "_first_rows", one_row_of_all)
    assert exceeds(*of_homes(9, LOOKED_UP[0], "S.c"))


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_sample_violates_the_claim(monkeypatch, mutant):
    monkeypatch.setattr(*MUTANTS[mutant])
    assert violated()
