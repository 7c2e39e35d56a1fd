# SPDX-License-Identifier: Apache-2.0
"""A bounded plan carries its norm and, for each part, the distance of the stability argument."""

from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountRows, CountUnits, Quantiles, Sum
from sfumato.plan.relation import Scan
from sfumato.plan.stages import Limits, Part, Raw, Tracked
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.passes import Context
from sfumato.query.passes.bound import bound

AGE = Column("age", sf.Integer(-5, 3))
SUM, MEDIAN = Sum(Value.of(AGE)), Quantiles(Value.of(AGE), (Fraction(1, 2),))
LINEAR = (CountRows(), SUM)


def bounded(norm, relation, *, groups=None, aggregates=LINEAR):
    table = sf.Table("nowhere.csv", columns={"age": AGE.type})
    key = GroupKey(Value.of(AGE), tuple(range(-5, 4)))
    raw = Raw(Scan("people", columns=(AGE,)), (key,), aggregates)
    plan = Tracked(raw, "person", Limits(2, groups, None), 9)
    return plan, bound(plan, Context(Dataset("data", {"people": table}, relation), norm))


@pytest.mark.parametrize("norm", (Norm.L1, Norm.L2))
def test_the_plan_keeps_its_norm_and_its_parts_in_order(norm):
    plan, made = bounded(norm, sf.AddRemove)
    assert (made.tracked, made.norm) == (plan, norm)
    assert [part.aggregate for part in made.parts] == list(LINEAR)
    assert all(part.distance.norm is norm for part in made.parts)


def test_without_weights_a_step_stays_whole():
    # 9 groups of 2 rows: 18 rows, each a 1 and at most 5
    _, made = bounded(Norm.L1, sf.AddRemove)
    assert made.refinement == 1
    assert made.parts == (
        Part(CountRows(), Distance(Norm.L1, Fraction(18)), 9),
        Part(SUM, Distance(Norm.L1, Fraction(90)), 9),
    )


def test_distances_are_in_pieces_of_a_step():
    # 3 groups of 2 rows: squares 3 * 2^2 * 1 and 3 * 2^2 * 5^2, in squared pieces
    _, made = bounded(Norm.L2, sf.AddRemove, groups=3)
    assert made.refinement == 2**20
    assert [part.distance.value for part in made.parts] == [12 * 2**40, 300 * 2**40]


@pytest.mark.parametrize("norm", (Norm.L1, Norm.L2))
def test_quantiles_have_a_distance_in_each_group_and_a_number_of_groups(norm):
    _, made = bounded(norm, sf.AddRemove, groups=3, aggregates=(MEDIAN, CountUnits()))
    assert made.parts[0] == Part(MEDIAN, Distance(Norm.LINF, Fraction(2 * 2**20)), 3)
    assert (made.parts[1].distance.norm, made.parts[1].groups) == (norm, 3)


def test_the_neighbour_relation_is_that_of_the_dataset():
    # replaced: twice the L1 norm; squared L2 doubles for counts, and is four times for signed sums
    assert [part.distance.value for part in bounded(Norm.L1, sf.ReplaceOne)[1].parts] == [36, 180]
    _, made = bounded(Norm.L2, sf.ReplaceOne)
    assert [part.distance.value for part in made.parts] == [2 * 36, 4 * 900]
    assert {part.distance.relation for part in made.parts} == {sf.ReplaceOne}
