# SPDX-License-Identifier: Apache-2.0
"""A rounding of more than a tenth of the noise is a line of bias, and one of less is none."""

from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.metadata.column import Column, Integer, Real
from sfumato.noise import DiscreteLaplace
from sfumato.plan.aggregate import CountRows, Mean, Sum, Variance
from sfumato.plan.scalar import Estimate, Field
from sfumato.plan.statistic import Statistic
from sfumato.plan.value import Value
from sfumato.query import rounding
from sfumato.query.rounding import Move, is_beyond, move_of
from tests.contracts.people import FRAME
from tests.contracts.released import means, numbers, variances

# the steps of 0 to 64 are 2^-14: 2^20 of them
HOURS = Real(0, 64)
HALF = Fraction(1, 2**15)
LINE = "{}: rounding moves each value by up to 0.000031, which may change the result by more than a tenth of its noise."


def lines(folder: Path, what: str, epsilon: object, hours: Real = HOURS) -> list[str]:
    """What is said of rounding beside an answer about 40 people."""
    tables = {"people": sf.Table(FRAME, columns={"hours": hours, "age": sf.Integer(0, 99)})}
    with sf.connect(
        tables, dataset="d", budget=sf.Budget(10**6), ledger=folder / f"{epsilon}.db"
    ) as session:
        answer = session.query(f"SELECT {what} FROM people", epsilon=epsilon)
    return [line for line in answer.bias if "rounding" in line]


@pytest.mark.parametrize("what", ["AVG(hours)", "SUM(hours)"])
def test_a_rounding_beyond_a_tenth_of_the_noise_is_a_line_of_bias(
    tmp_path: Path, what: str
) -> None:
    assert lines(tmp_path, what, 900_000) == [LINE.format(what)]
    assert lines(tmp_path, what, 50) == []


def test_declared_steps_and_counts_have_no_such_line(tmp_path: Path) -> None:
    declared = Real(0, 64, step=Fraction(1, 4))
    assert lines(tmp_path, "AVG(hours), SUM(age), COUNT(*)", 900_000, declared) == []
    assert lines(tmp_path, "COUNT(hours), MEDIAN(hours)", 800_000) == []


def test_a_line_is_missed_where_no_value_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounding, "_nearest", lambda value: Fraction(0))
    assert lines(tmp_path, "AVG(hours)", 900_000) == []


def test_the_limit_is_a_tenth_of_half_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    part = numbers([0], DiscreteLaplace(10**6))
    half = part.noise.half_width(Fraction(95, 100))
    near, far = (Move(Fraction(half) / 10 + off, Fraction(1)) for off in (0, Fraction(1, 10**6)))
    assert not is_beyond(near, part, 0, Estimate(0), int(half))
    assert is_beyond(far, part, 0, Estimate(0), int(half))
    monkeypatch.setattr(rounding, "_PART", 1)
    assert not is_beyond(far, part, 0, Estimate(0), int(half))


def test_how_far_a_value_is_moved_is_what_nobody_declared() -> None:
    assert move_of(Mean(Value.of(Column("hours", HOURS)))) == Move(HALF, Fraction(64))
    assert move_of(Variance(Value.of(Column("hours", HOURS)))) == Move(HALF, Fraction(64))
    assert move_of(CountRows()) is None
    assert move_of(Sum(Value.of(Column("age", Integer(-9, 5))))) is None
    column = Column("age", Integer(-9, 5))
    assert move_of(Sum(Value("x", column.type, Field(column), Fraction(1, 8)))) == Move(
        Fraction(1, 8), Fraction(9)
    )


def test_a_sum_moves_once_for_each_row() -> None:
    move = Move(Fraction(1, 2), Fraction(5))
    # 100 is the sum of 20 rows at least; a mean of 3 with 10 rows says how many there are
    assert is_beyond(move, numbers([100], DiscreteLaplace(1)), 0, Estimate(0), 99)
    assert not is_beyond(move, numbers([100], DiscreteLaplace(1)), 0, Estimate(0), 100)
    shared = means([(30, 20)], DiscreteLaplace(1))
    count = shared.point(0, Statistic.COUNT)
    assert is_beyond(move, shared, 0, Estimate(0, Statistic.SUM), float(count * 5) - 0.5)
    assert not is_beyond(move, shared, 0, Estimate(0, Statistic.SUM), float(count * 5) + 0.5)
    assert not is_beyond(move, shared, 0, Estimate(0, Statistic.COUNT), 0)
    assert not is_beyond(move, shared, 0, Estimate(0, Statistic.MEAN), None)


def test_a_deviation_moves_by_as_much_as_its_values_and_a_variance_by_twice_the_deviation_as_much() -> (
    None
):
    # half of the rows at 0 and half at 8: a deviation of 4
    move, part = (
        Move(Fraction(1, 2), Fraction(8)),
        variances([(50, 0, 50)], DiscreteLaplace(1), span=8),
    )
    spread, square = Estimate(0, Statistic.DEVIATION), Estimate(0, Statistic.VARIANCE)
    assert is_beyond(move, part, 0, spread, 4.99) and not is_beyond(move, part, 0, spread, 5.01)
    # 4.5^2 - 4^2 = 4.25
    assert is_beyond(move, part, 0, square, 42.49) and not is_beyond(move, part, 0, square, 42.51)
