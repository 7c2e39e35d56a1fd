# SPDX-License-Identifier: Apache-2.0
"""The compiler is its passes, in order, and gives a plan that an engine may run."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountDistinct, CountUnits, Quantiles
from sfumato.plan.stages import Bounded
from sfumato.privacy.distance import Norm
from sfumato.query.passes import Context
from sfumato.query.passes.bound import bound
from sfumato.query.passes.layout import layout
from sfumato.query.passes.limit import limit
from sfumato.query.passes.prune import prune
from sfumato.query.passes.track import track
from sfumato.query.pipeline import PASSES, compile_plan
from tests.contracts import plans as world


def test_the_passes_are_these_in_this_order():
    assert list(PASSES) == [prune, track, limit, layout, bound]


def limited(relation):
    """The small world, with limits that every question can be bounded with."""
    units = {
        "people": sf.Unit("who", 1, 2),
        "stays": sf.Unit("patient", 2, 2, 3, via="people.who", key="who"),
        "notes": sf.Unit("stay", max_rows_total=3, via="stays.patient", key="id"),
        "days": sf.Unit(["who", "when"], 1, 2),
    }
    tables = {
        name: sf.Table(
            "nowhere.csv", unit=units.get(name), columns=table.columns, public=table.public
        )
        for name, table in world.TABLES.items()
    }
    return Dataset("world", tables, relation)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(
    world.questions(depth=2),
    st.sampled_from((Norm.L1, Norm.L2)),
    st.sampled_from((sf.AddRemove, sf.ReplaceOne)),
)
def test_every_part_has_a_distance_in_the_norm_of_its_mechanism(raw, norm, relation):
    dataset = limited(relation)
    plan = raw
    for each in PASSES:
        plan = each(plan, Context(dataset, norm))
    assert plan == compile_plan(raw, dataset, norm)
    assert isinstance(plan, Bounded)
    assert [part.aggregate for part in plan.parts] == list(raw.aggregates)
    assert plan.norm is norm
    for part in plan.parts:
        assert part.distance.norm is (Norm.LINF if isinstance(part.aggregate, Quantiles) else norm)
        assert part.distance.relation is relation
        assert 1 <= part.groups <= (plan.tracked.groups or part.groups)
    values = any(not isinstance(each, CountUnits) for each in raw.aggregates)
    limits = plan.tracked.limits
    assert plan.tracked.unit is None or not values or limits.rows is not None
    assert plan.tracked.unit is None or not raw.is_open or limits.groups is not None
    distinct = all(isinstance(each, CountUnits | CountDistinct) for each in raw.aggregates)
    assert plan.refinement == 1 or not distinct
