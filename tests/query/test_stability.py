# SPDX-License-Identifier: Apache-2.0
"""The claimed distance holds for neighbours, is attained, and every broken rule violates it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import reference
from sfumato.engines.reference import Reference
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import Aggregate, CountRows, CountUnits, CountValues, Mean, Sum, numeric, width
from sfumato.plan.relation import Scan
from sfumato.plan.status import Bounded, Limits, Raw, Tracked
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation, Unit
from sfumato.query import stability
from sfumato.query.passes import bound
from sfumato.query.pipeline import compile_plan
from sfumato.testing.strategies import TABLE, Data, Neighbours, datasets, neighbours, plans, tables

LETTERS = Column("letter", sf.Category("a", "b", "c", "d"))
SIGNED = Column("value", sf.Integer(-5, 3))
POSITIVE = Column("value", sf.Integer(2, 5))
EVEN = Column("value", sf.Integer(-5, 5))


def moved(plan: Bounded, pair: Neighbours) -> list[int]:
    """How far each part's integers really are apart, in the norm of the plan."""
    one, other = (Reference({TABLE: rows}).run(plan, "key") for rows in (pair.one, pair.other))
    widths = [width(part.aggregate) for part in plan.parts]
    zeros = (0,) * sum(widths)
    differences = [
        [a - b for a, b in zip(one.get(key, zeros), other.get(key, zeros), strict=True)] for key in {*one, *other}
    ]
    found, start = [], 0
    for size in widths:
        cells = [each for row in differences for each in row[start : start + size]]
        found.append(sum(map(abs, cells)) if plan.norm is Norm.L1 else sum(each * each for each in cells))
        start += size
    return found


def exceeds(plan: Bounded, pair: Neighbours) -> bool:
    return any(far > part.distance.value for far, part in zip(moved(plan, pair), plan.parts, strict=True))


@settings(deadline=None, max_examples=600)
@given(st.data())
def test_neighbours_differ_by_at_most_the_distance(data: st.DataObject) -> None:
    dataset = data.draw(datasets(tables()))
    table = dataset.tables[TABLE]
    raw, pair = data.draw(plans(table)), data.draw(neighbours(table, dataset.relation))
    for norm in (Norm.L1, Norm.L2):
        plan = compile_plan(raw, dataset, norm)
        far = moved(plan, pair)
        for each, part in zip(far, plan.parts, strict=True):
            assert each <= part.distance.value, (norm, part, each)


# --- worst cases, by hand -----------------------------------------------------------------


def case(
    aggregate: Aggregate, norm: Norm, *, unit: Unit | None, by_letter: bool, relation: Relation = sf.AddRemove
) -> Bounded:
    """One aggregate, by letter or in all."""
    columns = {"letter": LETTERS.type, "value": EVEN.type}
    if isinstance(aggregate, CountValues | Sum | Mean):
        columns["value"] = aggregate.column.type
    dataset = Dataset("data", {TABLE: sf.Table("nowhere.csv", unit=unit, columns=columns)}, relation)
    return compile_plan(Raw(Scan(TABLE), (LETTERS,) if by_letter else (), (aggregate,)), dataset, norm)


def person(letters: str, values: Sequence[int], name: str | None = "p") -> Data:
    """One row for each letter and value of one unit."""
    return tuple(
        {"person": name, "letter": letter, "value": value} for letter, value in zip(letters, values, strict=True)
    )


def added(letters: str, value: int) -> Neighbours:
    return Neighbours((), person(letters, [value] * len(letters)))


def swapped(letters: str, value: int, instead: str, other: int) -> Neighbours:
    return Neighbours(person(letters, [value] * len(letters)), person(instead, [other] * len(instead)))


ROWS = Unit("person", max_rows=2)
GROUPS = Unit("person", max_rows=2, max_groups=2)
TOTAL = Unit("person", max_rows=2, max_groups=3, max_rows_total=3)
# A question of which one pair of neighbours attains the claim, and the claim in L1 and in squared L2.
TIGHT = {
    "a row": (CountRows(), None, True, sf.AddRemove, added("a", 0), 1, 1),
    "a row replaced": (CountRows(), None, True, sf.ReplaceOne, swapped("a", 0, "b", 0), 2, 2),
    "a row replaced, one cell": (CountValues(EVEN), None, False, sf.ReplaceOne, swapped("a", 0, "a", None), 1, 1),
    "a value of a row": (Sum(SIGNED), None, False, sf.AddRemove, added("a", -9), 5, 25),
    "a value of a row replaced": (Sum(SIGNED), None, False, sf.ReplaceOne, swapped("a", -9, "a", 9), 8, 64),
    "row limit": (CountRows(), ROWS, False, sf.AddRemove, added("aaaaa", 0), 2, 4),
    "row limit of values": (CountValues(EVEN), ROWS, False, sf.AddRemove, added("aaa", 0), 2, 4),
    "the lower bound is larger": (Sum(SIGNED), ROWS, False, sf.AddRemove, added("aaa", -9), 10, 100),
    "the upper bound is larger": (Sum(POSITIVE), ROWS, False, sf.AddRemove, added("aaa", 9), 10, 100),
    "a mean moves by its range": (Mean(SIGNED), ROWS, False, sf.AddRemove, added("aaa", -5), 16, 256),
    "group limit": (CountRows(), GROUPS, True, sf.AddRemove, added("aabbccdd", 0), 4, 8),
    "group limit of sums": (Sum(SIGNED), GROUPS, True, sf.AddRemove, added("aabbccdd", -5), 20, 200),
    "group limit of means": (Mean(SIGNED), GROUPS, True, sf.AddRemove, added("aabbccdd", 3), 32, 512),
    "total": (CountRows(), TOTAL, True, sf.AddRemove, added("aabbccdd", 0), 3, 6),
    "distinct units": (CountUnits(), GROUPS, True, sf.AddRemove, added("abcd", 0), 2, 2),
    "distinct units by total": (CountUnits(), TOTAL, True, sf.AddRemove, added("abcd", 0), 3, 3),
    "one count replaced": (CountValues(EVEN), ROWS, False, sf.ReplaceOne, swapped("aa", 0, "aa", None), 2, 4),
    "one sum replaced": (Sum(SIGNED), ROWS, False, sf.ReplaceOne, swapped("aaa", -9, "aaa", 9), 16, 256),
    "one mean replaced": (Mean(SIGNED), ROWS, False, sf.ReplaceOne, swapped("aa", -5, "aa", 3), 32, 512),
    "counts replaced": (CountRows(), GROUPS, True, sf.ReplaceOne, swapped("aabb", 0, "ccdd", 0), 8, 16),
    "sums replaced": (Sum(EVEN), GROUPS, True, sf.ReplaceOne, swapped("aabb", -5, "aabb", 5), 40, 800),
    "positive sums replaced": (Sum(POSITIVE), GROUPS, True, sf.ReplaceOne, swapped("aabb", 5, "ccdd", 5), 40, 400),
}


@pytest.mark.parametrize("norm", (Norm.L1, Norm.L2))
@pytest.mark.parametrize("name", TIGHT)
def test_the_claim_is_the_one_worked_out_by_hand_and_is_attained(name, norm):
    aggregate, unit, by_letter, relation, pair, first, second = TIGHT[name]
    plan = case(aggregate, norm, unit=unit, by_letter=by_letter, relation=relation)
    fine = plan.refinement if norm is Norm.L1 else plan.refinement**2
    claimed = plan.parts[0].distance
    assert claimed == Distance(norm, Fraction((first if norm is Norm.L1 else second) * fine), relation)
    assert (1 - Fraction(1, 10**5)) * claimed.value <= moved(plan, pair)[0] <= claimed.value


def test_a_step_is_cut_only_where_a_weight_can_be_below_one():
    free, bound_ = Limits(2, None, None), Limits(2, 2, None)
    for aggregates, limits, cut in (
        ((CountRows(),), free, 1),
        ((CountRows(),), bound_, 2**20),
        ((CountUnits(),), bound_, 1),
        ((CountUnits(), CountRows()), Limits(2, None, 3), 2**20),
    ):
        assert stability.refinement(Tracked(Raw(Scan(TABLE), (), aggregates), "person", limits, 4)) == cut


@pytest.mark.parametrize("letters", ["".join(each) for each in product("abcd", repeat=4)][::7])
def test_a_unit_in_any_groups_stays_within_the_claim(letters):
    for norm in (Norm.L1, Norm.L2):
        for unit in (GROUPS, TOTAL, Unit("person", max_rows=1, max_groups=3)):
            assert not exceeds(case(CountRows(), norm, unit=unit, by_letter=True), added(letters, 1))


# --- mutants: each broken rule violates the claim in its worst case -------------------------


def unclipped(aggregate, rows, limit):
    return reference._integers(aggregate, rows)


def weight_rounded_up(plan, touched, total):
    exact = min(Fraction(1), Fraction(plan.tracked.limits.groups or touched, touched))
    exact = min(exact, Fraction(plan.tracked.limits.total or total, total))
    if plan.norm is Norm.L1:
        return -(-exact * plan.refinement // 1)
    square = exact * plan.refinement**2
    root = math.isqrt(math.floor(square))
    return root if root * root == square else root + 1


def weight_without(limit):
    honest = reference._weight

    def weight(plan, touched, total):
        limits = replace(plan.tracked.limits, **{limit: None})
        return honest(replace(plan, tracked=replace(plan.tracked, limits=limits)), touched, total)

    return weight


def linear_weight_squared(plan, touched, total):
    """The weight of the other norm: L0/k for L1 where L2 noise comes, and the reverse."""
    return honest_weight(replace(plan, norm=Norm.L2 if plan.norm is Norm.L1 else Norm.L1), touched, total)


honest_weight = reference._weight
honest_kept = reference.kept_groups


def one_group_more(plan):
    kept = honest_kept(plan)
    return None if kept is None else kept + 1


def keeps_rows_of_nobody(plan, row):
    unowned = replace(plan, tracked=replace(plan.tracked, unit=None))
    return honest_keeps(unowned, row)


honest_keeps = reference._keeps


def coarse_distance(aggregate, plan, norm, relation, fine):
    return honest_distance(aggregate, plan, norm, relation, 1)


honest_distance = stability.distance


def range_of_sum(aggregate):
    """The mutant of a Sum alone."""
    codes = numeric(aggregate.column)
    return codes.upper_code - codes.lower_code


OF_NOBODY = Neighbours((), person("aa", [1, 1]) + person("aaa", [1, 1, 1], name=None))
THIRDS = Unit("person", max_rows=1, max_groups=2)
MUTANTS = {
    "row limit ignored in clipping": (reference, "_clip", unclipped, "row limit"),
    "row limit of sums ignored": (reference, "_clip", unclipped, "the upper bound is larger"),
    "groups limit ignored": (reference, "_weight", weight_without("groups"), "group limit"),
    "total ignored": (reference, "_weight", weight_without("total"), "total"),
    "refinement ignored": (bound, "distance", coarse_distance, "group limit"),
    "replace factor dropped": (stability, "_replaced", lambda _a, _p, _n, one: one, "counts replaced"),
    "replace factor of one sum dropped": (stability, "_replaced", lambda _a, _p, _n, one: one, "one sum replaced"),
    "signed sums taken as positive": (stability, "never_negative", lambda _: True, "sums replaced"),
    "the range of a sum for its size": (stability, "largest", range_of_sum, "the upper bound is larger"),
    "one group more kept": (reference, "kept_groups", one_group_more, "distinct units"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_rule_violates_the_claim(name, monkeypatch):
    module, function, broken, tight = MUTANTS[name]
    aggregate, unit, by_letter, relation, pair, *_ = TIGHT[tight]
    caught = []
    for norm in (Norm.L1, Norm.L2):
        honest = case(aggregate, norm, unit=unit, by_letter=by_letter, relation=relation)
        assert not exceeds(honest, pair)
        with monkeypatch.context() as patch:
            patch.setattr(module, function, broken)
            plan = case(aggregate, norm, unit=unit, by_letter=by_letter, relation=relation)
            caught.append(exceeds(plan, pair))
    # squared L2 of positive parts does not double for signs: that mutant shows in L2 alone
    assert caught == [name != "signed sums taken as positive", True]


@pytest.mark.parametrize("norm", (Norm.L1, Norm.L2))
def test_a_weight_rounded_up_violates_the_claim(norm, monkeypatch):
    plan, pair = case(CountRows(), norm, unit=THIRDS, by_letter=True), added("abc", 0)
    assert not exceeds(plan, pair)
    monkeypatch.setattr(reference, "_weight", weight_rounded_up)
    assert exceeds(plan, pair)


def test_the_weights_of_laplace_do_not_serve_gauss_nor_the_reverse(monkeypatch):
    pair = added("aabbccdd", 0)
    plan = case(CountRows(), Norm.L1, unit=GROUPS, by_letter=True)
    monkeypatch.setattr(reference, "_weight", linear_weight_squared)
    assert exceeds(plan, pair)


@pytest.mark.parametrize("norm", (Norm.L1, Norm.L2))
def test_rows_of_nobody_count_nowhere(norm, monkeypatch):
    plan = case(CountRows(), norm, unit=ROWS, by_letter=False)
    assert not exceeds(plan, OF_NOBODY)
    monkeypatch.setattr(reference, "_keeps", keeps_rows_of_nobody)
    assert exceeds(plan, OF_NOBODY)
