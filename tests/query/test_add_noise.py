# SPDX-License-Identifier: Apache-2.0
"""Exact integers through their mechanisms: shapes are public, thresholds decide, mutants."""

from fractions import Fraction

import pyarrow as pa
import pytest

from sfumato.engines.base import Codes, Exact
from sfumato.engines.result_rows import columns
from sfumato.errors import EngineFailed
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.grid import GridQuantiles
from sfumato.mechanisms.threshold import ThresholdMechanism
from sfumato.metadata.column import Boolean, Category, Column, Integer, Text
from sfumato.noise import DiscreteLaplace
from sfumato.plan.aggregate import Aggregate, CountRows, CountUnits, Mean, Quantiles
from sfumato.plan.output import Output
from sfumato.plan.question import Question
from sfumato.plan.relation import Scan
from sfumato.plan.stages import Bounded, Limits, Part, Raw, Tracked
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.add_noise import cells_of, every_group, noisy
from sfumato.query.choose import Mechanism, Planned
from sfumato.query.curator import Curator
from sfumato.query.estimate import Kind, Released
from sfumato.query.reserved import Drawn, Reserved, drawn
from sfumato.query.statistic import Opened

AGE = Value.of(Column("age", Integer(0, 9)))
SEX = GroupKey(Value.of(Column("sex", Category("F", "M"))), (0, 1))
SMOKER = GroupKey(Value.of(Column("smoker", Boolean(missing="N"))), (0, 1), missing=True)
JOB = GroupKey(Value.of(Column("job", Text())), None)
# so little noise that it is zero: P(X != 0) < 2 exp(-1000)
SILENT = AdditiveMechanism(DiscreteLaplace(Fraction(1, 1000)))


def planned(
    keys: tuple[GroupKey, ...], parts: list[tuple[Aggregate, Mechanism]], fine: int = 1
) -> Planned:
    """A plan by hand; only what is released matters here."""
    raw = Raw(Scan("people"), keys, tuple(each for each, _ in parts))
    limits = Limits(1, 1, None)
    tracked = Tracked(raw, "person", limits, None if raw.is_open else len(every_group(keys)))
    norms = [Norm.LINF if isinstance(each, Quantiles) else Norm.L1 for each, _ in parts]
    distances = [Distance(norm, Fraction(1)) for norm in norms]
    aggregates = [each for each, _ in parts]
    bounded = Bounded(
        tracked,
        Norm.L1,
        fine,
        tuple(Part(*each, 1) for each in zip(aggregates, distances, strict=True)),
    )
    question = Question("SELECT", "people", raw, Output(()), ())
    return Planned(question, bounded, tuple(each for _, each in parts))


def asked(plan: Planned, exact: Exact) -> tuple[list[Codes], list[Released]]:
    """What a curator who holds these integers releases of a plan."""
    return noisy(plan, curator(plan, exact, drawn(plan.event, cells_of(plan))))


def curator(plan: Planned, exact: Exact, noise: Drawn) -> Curator:
    """Who holds the integers of a plan, and its noise."""
    return Curator("charge", Reserved(plan.event, noise), Opened(plan.bounded, lambda: exact))


def test_every_declared_combination_is_a_group() -> None:
    assert every_group(()) == [()]
    assert every_group((SEX, SMOKER)) == [(0, 0), (0, 1), (0, None), (1, 0), (1, 1), (1, None)]


def test_additive_noise_of_declared_groups_is_drawn_before_the_read() -> None:
    plan = planned(
        (SEX,),
        [(CountRows(), SILENT), (Mean(AGE), SILENT), (Quantiles(AGE, (Fraction(1, 2),)), _grid())],
    )
    assert [len(each) for each in drawn(plan.event, cells_of(plan))] == [2, 4]
    assert (
        cells_of(planned((JOB,), [(CountUnits(), ThresholdMechanism(DiscreteLaplace(1), 9, 1))]))
        == ()
    )


def _grid() -> GridQuantiles:
    return GridQuantiles((Fraction(1, 2),), Fraction(1000))


def test_a_group_without_rows_is_zeros() -> None:
    plan = planned((SEX,), [(CountRows(), SILENT), (Mean(AGE), SILENT)])
    groups, (count, mean) = asked(plan, ({(1,): (5,)}, {(1,): (30, 15)}))
    assert groups == [(0,), (1,)]
    assert count.values == ((0,), (5,))
    assert mean.values == ((0, 0), (30, 15))
    assert mean.reading.kind is Kind.MEAN
    assert mean.point(1) == 6


def test_what_the_engine_has_beyond_the_declared_groups_is_not_shown() -> None:
    plan = planned((SEX,), [(CountRows(), SILENT)])
    groups, (count,) = asked(plan, ({(7,): (100,), (None,): (100,), (0,): (3,)},))
    assert (groups, count.values) == ([(0,), (1,)], ((3,), (0,)))


def test_the_drawn_noise_is_the_added_noise() -> None:
    plan = planned((SEX,), [(CountRows(), AdditiveMechanism(DiscreteLaplace(1000)))])
    (noise,) = drawn(plan.event, cells_of(plan))
    _, (count,) = noisy(plan, curator(plan, ({(0,): (50,)},), [noise]))
    assert count.values == ((50 + noise[0],), (noise[1],))


def open_plan(threshold: int, fine: int = 1) -> Planned:
    """Units and rows by job."""
    shows = ThresholdMechanism(DiscreteLaplace(Fraction(1, 1000)), threshold, 1)
    return planned((JOB,), [(CountRows(), SILENT), (CountUnits(), shows)], fine)


def test_only_groups_that_pass_the_threshold_are_shown() -> None:
    plan = open_plan(10, fine=4)
    rows = {("cook",): (40 * 4,), ("judge",): (9 * 4,), ("nurse",): (80 * 4,)}
    units = {("cook",): (10 * 4,), ("judge",): (9 * 4,), ("nurse",): (30 * 4,)}
    groups, (count, shown) = asked(plan, (rows, units))
    assert groups == [("cook",), ("nurse",)]
    assert shown.values == ((10,), (30,))
    assert [count.point(row) for row in (0, 1)] == [40, 80]


def test_columns_of_an_engine_are_released_like_its_mappings() -> None:
    plan = open_plan(10, fine=4)
    found = pa.table(
        {"job": ["nurse", None, "judge"], "rows": [320, 44, 36], "units": [120, 40, 36]}
    )
    exact = columns(plan.bounded, (0, 1), found)
    groups, (count, shown) = asked(plan, (exact[0], exact[1]))
    assert groups == [("nurse",), (None,)]
    assert (shown.values, count.values) == (((30,), (10,)), ((320,), (44,)))
    assert asked(plan, tuple(map(dict, exact.values()))) == (groups, [count, shown])


def test_groups_shown_without_the_threshold_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ThresholdMechanism, "release", lambda self, counts: dict(counts))
    plan = open_plan(10)
    groups, _ = asked(plan, ({("judge",): (1,)}, {("judge",): (1,)}))
    with pytest.raises(AssertionError):
        assert groups == []


def test_quantiles_are_selected_group_by_group() -> None:
    plan = planned((SEX,), [(Quantiles(AGE, (Fraction(1, 2),)), _grid())])
    leaves = {(0,): (3, 9), (1,): (8, 5)}
    assert plan.bounded.parts[0].aggregate.width == 10
    _, (middle,) = asked(plan, (leaves,))
    assert middle.values == ((3,), (8,))
    assert (middle.noise, middle.leaves, middle.rates) == (None, 10, (1000 * 2,))


def test_floats_of_an_engine_are_refused() -> None:
    plan = planned((), [(CountRows(), SILENT)])
    with pytest.raises(EngineFailed):
        asked(plan, ({(): (2.0,)},))
