# SPDX-License-Identifier: Apache-2.0
"""The compiler is its passes, in order, and gives a plan that an engine may run."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.plan.aggregate import CountUnits
from sfumato.plan.status import Bounded
from sfumato.privacy.distance import Norm
from sfumato.query.passes import Context
from sfumato.query.passes.bound import bound
from sfumato.query.passes.limit import limit
from sfumato.query.passes.track import track
from sfumato.query.pipeline import PASSES, compile_plan
from sfumato.testing.strategies import TABLE, datasets, plans, tables


def test_the_passes_are_these_in_this_order():
    assert list(PASSES) == [track, limit, bound]


@settings(deadline=None)
@given(st.data(), st.sampled_from((Norm.L1, Norm.L2)))
def test_compiling_is_the_passes_one_after_the_other(data, norm):
    dataset = data.draw(datasets(tables()))
    raw = data.draw(plans(dataset.tables[TABLE]))
    plan = raw
    for each in PASSES:
        plan = each(plan, Context(dataset, norm))
    assert plan == compile_plan(raw, dataset, norm)


@settings(deadline=None)
@given(st.data(), st.sampled_from((Norm.L1, Norm.L2)))
def test_every_part_has_a_distance_in_the_norm_of_the_plan(data, norm):
    dataset = data.draw(datasets(tables()))
    raw = data.draw(plans(dataset.tables[TABLE]))
    plan = compile_plan(raw, dataset, norm)
    assert isinstance(plan, Bounded)
    assert plan.tracked.raw == raw
    assert [part.aggregate for part in plan.parts] == list(raw.aggregates)
    assert {part.distance.norm for part in plan.parts} == {plan.norm} == {norm}
    linear = any(not isinstance(each, CountUnits) for each in raw.aggregates)
    assert plan.tracked.unit is None or not linear or plan.tracked.limits.rows is not None
