# SPDX-License-Identifier: Apache-2.0
"""Points close to the curve: no verdict is wrong, and where doubt is forced the law stays what it
is.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.noise import SYSTEM, Entropy, Integers, rejection_sampler, sampler
from sfumato.noise.curves import Exponential, Parabola
from sfumato.noise.lazy_uniform import Bounds
from sfumato.noise.rejection_sampler import Cells
from sfumato.testing import Replay, assert_at_most
from tests.noise import tallies
from tests.noise.columns import LAWS, Curve, F, verdict_fault

# ---------------------------------------------------------------- verdicts

# (bits, fineness, height_bits): as shipped for one draw and for many, the sharpest there is, and a
# coarse one
SHAPES = [(10, 8, 18), (18, 150, 18), (19, 8, 18), (11, 9, 3)]
KEYS = [
    (law, shape)
    for law in range(12, len(LAWS))
    for shape in SHAPES
    if law < 30 or shape[:2] != (19, 8)
]


@cache
def table_of(law: int, shape: tuple[int, int, int]) -> Cells:
    """A table of one of the laws."""
    bits, fineness, height_bits = shape
    return Cells(LAWS[law][0], bits=bits, fineness=fineness, height_bits=height_bits)


def wrong_verdicts(table: Cells, f: F, seed: int, points: int = 40) -> list[str]:
    """Wrong verdicts on random points close to the curve: most within a few hundred units of
    2^-31.
    """
    random = np.random.default_rng(seed)
    found = []
    for _ in range(points):
        number = int(random.integers(table.first, table.blocks))
        offset = int(random.integers(0, 1 << table.shift))
        with ctx.workprec(200):
            steps = (
                f(number << table.shift | offset)
                * arb(2) ** (44 + table.height_bits)
                / table.height
            )
        unit = max((1 << 13 + table.height_bits) // table.height, 1)
        for away in (0, 1, 10, 300):
            spread = int(random.integers(-away * unit - 2, away * unit + 3))
            height = max(int(steps.mid().floor().fmpq()) + spread, 0)
            found.append(verdict_fault(table, f, number, offset, height))
    return [each for each in found if each is not None]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_verdict_is_wrong(shape: tuple[int, int, int]) -> None:
    for law in (law for law, other in KEYS if other == shape):
        assert wrong_verdicts(table_of(law, shape), LAWS[law][1], seed=1) == []


@given(st.sampled_from(KEYS), st.integers(0, 2**32))
@settings(deadline=None)
def test_no_verdict_is_wrong_anywhere(key: tuple[int, tuple[int, int, int]], seed: int) -> None:
    assert wrong_verdicts(table_of(*key), LAWS[key[0]][1], seed, points=10) == []


@pytest.mark.parametrize("off", [100, -100])
@pytest.mark.parametrize("law", [23, 24, 26])
def test_verdicts_notice_a_rise_that_is_wrong(
    law: int, off: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, f = table_of(law, (19, 8, 18)), LAWS[law][1]
    honest = table._rise
    assert wrong_verdicts(table, f, 2) == []
    monkeypatch.setattr(table, "_rise", lambda distance, nearest: honest(distance, nearest) + off)
    assert wrong_verdicts(table, f, 2) != []


def test_verdicts_notice_that_no_error_is_allowed_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejection_sampler, "ERROR", 0)
    monkeypatch.setattr(rejection_sampler, "_SLACK", 0)
    assert wrong_verdicts(table_of(23, (19, 8, 18)), LAWS[23][1], seed=3, points=1000) != []


def share_is_bounded(table: Cells, f: F, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the part of a cell under the curve lies between its bounds, at every precision asked
    for.
    """
    asked: list[Bounds] = []
    monkeypatch.setattr(
        rejection_sampler, "is_below", lambda real, entropy, *, prefix, known: asked.append(real)
    )
    random = np.random.default_rng(1)
    for x in random.integers(table.first << table.shift, table.blocks << table.shift, 100).tolist():
        level = int(random.integers(0, 50))
        table._is_under(x, level, 0, SYSTEM)
        with ctx.workprec(400):
            part = f(x) * arb(2) ** 44 / table.height - level
            for precision in (0, 1, 2, 18, 82):
                lower, upper = asked[-1](precision)
                scaled = part * arb(2) ** precision
                if not (arb(lower) <= scaled and scaled <= arb(upper) and upper - lower <= 2):
                    return False
    return True


@pytest.mark.parametrize("index", [9, 14, 21, 26, 36])
def test_the_share_of_a_cell_lies_between_its_bounds(
    index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    curve, f = LAWS[index]
    assert share_is_bounded(Cells(curve, bits=12, fineness=8), f, monkeypatch)


def test_the_bounds_of_a_share_notice_the_curve_of_a_neighbour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    curve, f = LAWS[21]
    table, honest = Cells(curve, bits=12, fineness=8), Exponential.bounds
    monkeypatch.setattr(
        Exponential, "bounds", lambda curve, x, precision: honest(curve, x + 1, precision)
    )
    assert not share_is_bounded(table, f, monkeypatch)


# ---------------------------------------------------------------- (2), (3) forced doubt

FORCED = [
    (Exponential(Fraction(7, 10), True, reach=1), 4, tallies.laplace, 0.7),
    (Exponential(Fraction(5), False, reach=2), 5, tallies.geometric, 5.0),
    (Exponential(Fraction(30), True, reach=1), 7, tallies.laplace, 30.0),
    (Exponential(Fraction(2**40), True, reach=2), 7, tallies.laplace, 2.0**40),
    (Parabola(Fraction(7, 10), reach=1), 4, tallies.gaussian, 0.7**0.5),
    (Parabola(Fraction(300**2), reach=1), 7, tallies.gaussian, 300.0),
    (Parabola(Fraction(2**80), reach=2), 7, tallies.gaussian, 2.0**40),
]


@pytest.fixture
def exact_steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A note of each exact comparison and of each draw of the tail."""
    steps: list[str] = []

    def spied(name: str) -> None:
        honest = getattr(Cells, name)

        def call(*args: object) -> object:
            steps.append(name)
            return honest(*args)

        monkeypatch.setattr(Cells, name, call)

    spied("_is_under")
    spied("_tail")
    return steps


def many(table: Cells, entropy: Entropy) -> tallies.Draw:
    """Draws all at once."""

    def draw(count: int) -> Integers:
        out = np.empty(count, np.int64)
        table.fill(out, entropy)
        return out

    return draw


def one_by_one(table: Cells, entropy: Entropy) -> tallies.Draw:
    """Draws one by one."""
    return lambda count: np.array([table.one(entropy) for _ in range(count)])


def a_few_at_a_time(table: Cells, entropy: Entropy) -> tallies.Draw:
    """Draws twenty at a time: few enough hard cells to settle one by one."""
    together = many(table, entropy)
    return lambda count: np.concatenate(
        [together(min(20, count - start)) for start in range(0, count, 20)]
    )


@pytest.mark.parametrize(
    ("curve", "bits", "law", "width", "way"),
    [(*each, way) for each in FORCED for way in (many, one_by_one)]
    + [(*FORCED[2], a_few_at_a_time)],
    ids=lambda each: each.__name__ if callable(each) else str(each),
)
def test_forced_doubt_does_not_change_the_law(
    curve: Curve,
    bits: int,
    law: Callable[[float], tallies.Tails],
    width: float,
    way: Callable[[Cells, Entropy], tallies.Draw],
    exact_steps: list[str],
) -> None:
    table = Cells(curve, bits=bits, fineness=8, height_bits=1)
    draws = 12_000
    # sure to notice a width that is 40% off; make prove draws a million
    tallies.assert_draws_follow(tallies.case(law, width, 1.4 * width), way(table, SYSTEM), draws)
    # the rare path is common: a twelfth or more are compared exactly (half of it: 16 sigma), more
    # than a hundredth in the tail
    assert exact_steps.count("_is_under") > draws // 24
    assert exact_steps.count("_tail") > draws // 100


def test_the_law_notices_doubt_that_is_settled_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    case = tallies.case(tallies.laplace, 0.7, 1.15 * 0.7)
    table = Cells(FORCED[0][0], bits=4, fineness=8, height_bits=1)
    monkeypatch.setattr(table, "_is_under", lambda *args: True)
    with pytest.raises(AssertionError, match="counts are"):
        tallies.assert_draws_follow(case, many(table, SYSTEM), 100_000)


def test_shipped_tables_leave_little_to_the_exact_comparison(exact_steps: list[str]) -> None:
    out = np.empty(2_000_000, np.int64)
    sampler._large(Parabola(Fraction(10**12))).fill(out, Replay(1))
    # one in two million is compared or from the tail; one in 100,000 would be noticed
    assert_at_most(len(exact_steps), len(out), 1e-5, notices=0.01)
