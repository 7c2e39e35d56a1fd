# SPDX-License-Identifier: Apache-2.0
"""Which engine draws must not matter; shapes, types and memory are as promised."""

import copy
import pickle
import threading
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from sfumato.errors import InvalidNumber
from sfumato.noise import (
    SYSTEM,
    DiscreteGaussian,
    DiscreteLaplace,
    Entropy,
    Geometric,
    Law,
    plain,
    sampler,
)
from sfumato.noise.curves import Exponential, Parabola
from sfumato.noise.rejection_sampler import Cells
from sfumato.noise.sampler import WIDEST, Sampler
from sfumato.testing import Replay
from tests.noise import tallies

LAPLACE = Exponential(Fraction(30), two_sided=True)
CASES = [
    pytest.param(LAPLACE, tallies.laplace, 30.0, id="laplace"),
    pytest.param(
        Exponential(Fraction(7, 3), two_sided=False), tallies.geometric, 7 / 3, id="geometric"
    ),
    pytest.param(Parabola(Fraction(300**2)), tallies.gaussian, 300.0, id="gaussian"),
    pytest.param(Parabola(Fraction(2**80)), tallies.gaussian, 2.0**40, id="wide"),
]
LAWS = [DiscreteLaplace, DiscreteGaussian, Geometric]


def one_by_one(drawing: Sampler) -> tallies.Draw:
    """Single draws."""
    return lambda count: np.array([drawing.one(SYSTEM) for _ in range(count)])


def some(drawing: Sampler, each: int) -> tallies.Draw:
    """Draws ``each`` at a time by one sampler that has not yet built its large table."""

    def draw(count: int) -> tallies.Integers:
        return np.concatenate(
            [Sampler(drawing._curve).many(each, SYSTEM) for _ in range(count // each)]
        )

    return draw


@pytest.mark.parametrize(("curve", "law", "width"), CASES)
def test_a_few_draws_and_many_follow_the_same_law(
    curve: LAPLACE.__class__, law: Callable[[float], tallies.Tails], width: float
) -> None:
    drawing = Sampler(curve)
    # sure to notice a width that is 25% and 3% off
    tallies.assert_draws_follow(tallies.case(law, width, 1.25 * width), one_by_one(drawing), 20_000)
    tallies.assert_draws_follow(tallies.case(law, width, 1.25 * width), some(drawing, 100), 20_000)
    tallies.assert_draws_follow(
        tallies.case(law, width, 1.03 * width), partial(drawing.many, entropy=SYSTEM), 10**6
    )


def test_the_same_law_notices_a_small_table_of_another_width(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = sampler._small
    monkeypatch.setattr(
        sampler, "_small", lambda curve: honest(Exponential(curve.width * 5 / 4, two_sided=True))
    )
    with pytest.raises(AssertionError, match="counts are"):
        tallies.assert_draws_follow(
            tallies.case(tallies.laplace, 30, 36), some(Sampler(LAPLACE), 100), 40_000
        )


def test_the_large_table_is_built_only_where_it_is_worth_it() -> None:
    drawing = Sampler(Exponential(Fraction(31), two_sided=True))
    drawing.many(sampler._FEW, SYSTEM)
    assert drawing._large is None
    drawing.many(sampler._FEW + 1, SYSTEM)
    assert drawing._large is not None
    at_once = Sampler(Exponential(Fraction(31), two_sided=True))
    at_once.many((2, sampler._FEW), SYSTEM)
    assert at_once._large is drawing._large
    assert at_once._small is None


def test_equal_curves_share_their_tables() -> None:
    one, other = Sampler(LAPLACE), Sampler(Exponential(Fraction(60, 2), two_sided=True))
    one.one(SYSTEM)
    other.one(SYSTEM)
    assert one._small is other._small


@pytest.mark.parametrize("law", LAWS)
def test_a_wide_law_is_drawn_in_python_integers(law: Callable[[object], Law]) -> None:
    noise = law(Fraction(WIDEST) + Fraction(1, 3))
    for shape in (3, (2, 3), 0, ()):
        drawn = noise.sample(shape)
        assert drawn.dtype == object
        assert drawn.shape == ((shape,) if isinstance(shape, int) else shape)
        assert all(type(each) is int for each in drawn.ravel().tolist())
    assert max(abs(each) for each in law(10**40).sample(30).tolist()) > 2**64
    assert type(noise.sample_one()) is int


@pytest.mark.parametrize(
    ("law", "tails"), [(DiscreteLaplace, tallies.laplace), (DiscreteGaussian, tallies.gaussian)]
)
def test_a_wide_law_is_the_stated_one(
    law: Callable[[object], Law], tails: Callable[[float], tallies.Tails]
) -> None:
    wide = float(WIDEST + 2)
    tallies.assert_draws_follow(
        tallies.case(tails, wide, 1.25 * wide), law(WIDEST + 2).sample, 20_000
    )


def test_a_wide_law_without_a_plain_sampler_is_refused() -> None:
    with pytest.raises(OverflowError, match="do not fit"):
        Sampler(Exponential(Fraction(2**100), two_sided=True)).one(SYSTEM)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "scale", ["1e-3", "0.3", "1", "16", "1000", "1e6", str(2**40), str(WIDEST)]
)
def test_draws_are_64_bit_integers_of_the_shape_asked_for(
    law: Callable[[object], Law], scale: str
) -> None:
    noise = law(scale)
    for shape in (0, 1, 7, 5000, (), (3, 4), (2, 0, 3), (60, 20), 70_000):
        drawn = noise.sample(shape)
        assert drawn.dtype == np.int64
        assert drawn.shape == ((shape,) if isinstance(shape, int) else shape)
        assert drawn.flags.c_contiguous and drawn.flags.writeable
    assert type(noise.sample_one()) is int


@pytest.mark.parametrize("law", LAWS)
def test_nothing_wraps_at_the_widest(law: Callable[[object], Law]) -> None:
    drawn = law(WIDEST).sample(200_000)
    # |X| > 45 widths has a probability below 1e-19, in 200,000 draws below 1e-13
    assert int(np.abs(drawn).max()) < 45 * WIDEST
    assert int(np.abs(drawn).max()) > 3 * WIDEST
    assert len(np.unique(drawn)) > 200_000 - 10


class Silent:
    """An entropy source that must not be asked."""

    def bits(self, count: int) -> int:
        raise AssertionError("drawn")

    def fill(self, buffer: np.ndarray) -> None:
        raise AssertionError("drawn")


SHAPES = [
    -1,
    (3, -1),
    True,
    (2, True),
    2.0,
    "3",
    None,
    [3],
    (2.0,),
    2**61,
    (2**31, 2**31),
    np.float64(2),
]


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
@pytest.mark.parametrize("law", [*LAWS, lambda scale: DiscreteLaplace(2**60)])
def test_a_shape_that_cannot_be_is_refused_before_anything_is_drawn(
    law: Callable[[object], Law], shape: object
) -> None:
    with pytest.raises(InvalidNumber, match="shape"):
        law(3).sample(shape, Silent())


def test_a_shape_with_an_empty_side_draws_nothing() -> None:
    for law in LAWS:
        assert law(3).sample((2**20, 0), Silent()).shape == (2**20, 0)


def test_an_array_beyond_the_memory_fails_before_anything_is_drawn() -> None:
    for noise in (DiscreteLaplace(3), DiscreteLaplace(2**60)):
        with pytest.raises(MemoryError):
            noise.sample(2**59, Silent())


BAD = [
    0,
    -1,
    "0",
    "-2.5",
    0.0,
    -0.0,
    float("nan"),
    float("inf"),
    -float("inf"),
    True,
    "wide",
    "",
    None,
    [],
    1j,
    b"3",
]


@pytest.mark.parametrize("scale", BAD, ids=repr)
@pytest.mark.parametrize("law", [*LAWS, lambda scale: DiscreteGaussian(sigma_squared=scale)])
def test_a_scale_that_is_not_positive_is_refused(
    law: Callable[[object], Law], scale: object
) -> None:
    with pytest.raises(InvalidNumber):
        law(scale)


@pytest.mark.parametrize("scale", [5e-324, 2.2e-308, "1e-390", Fraction(1, 10**300)], ids=str)
def test_a_subnormal_scale_draws_nothing_but_zeros(scale: object) -> None:
    for noise in (DiscreteLaplace(scale), Geometric(scale), DiscreteGaussian(sigma_squared=scale)):
        assert not noise.sample(2000).any()
        assert noise.sample_one() == 0
        assert noise.half_width("0.999999999999999") == 0


@pytest.mark.parametrize("law", [*LAWS, lambda scale: DiscreteLaplace(2**60)])
def test_a_law_is_copied_and_pickled_as_its_parameters(law: Callable[[object], Law]) -> None:
    noise = law("2.5")
    noise.sample(1000)
    for twin in (copy.copy(noise), copy.deepcopy(noise), pickle.loads(pickle.dumps(noise))):
        assert twin == noise
        assert hash(twin) == hash(noise)
        assert twin.sample(10, Replay(3)).tolist() == law("2.5").sample(10, Replay(3)).tolist()
    assert len(pickle.dumps(noise)) < 1000


def peak_above_the_output(noise: Law, n: int) -> int:
    """Bytes held at once beside the array that is given back.

    Tables count if they are not yet built.
    """
    tracemalloc.start()
    try:
        drawn = noise.sample(n)
        return tracemalloc.get_traced_memory()[1] - drawn.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "noise",
    [DiscreteLaplace("16.01"), DiscreteLaplace(10**6 + 1), DiscreteGaussian("1.01")],
    ids=str,
)
def test_four_million_draws_take_eight_megabytes_beside_themselves(noise: Law) -> None:
    assert peak_above_the_output(noise, 4_000_000) <= 8 * 10**6


def test_the_memory_notices_a_sampler_that_draws_all_at_once() -> None:
    class Whole(Cells):
        def fill(self, out: np.ndarray, entropy: Entropy) -> None:
            out[:] = np.concatenate([out, out])[: len(out)]

    noise = DiscreteLaplace("16.02")
    noise._sampler._large = Whole(LAPLACE, bits=10, fineness=8)
    assert peak_above_the_output(noise, 4_000_000) > 8 * 10**6


def test_threads_draw_at_the_same_time() -> None:
    noise, drawn = DiscreteLaplace("1000.5"), []
    threads = [
        threading.Thread(target=lambda: drawn.append(noise.sample(200_000))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == 6
    assert all((one != other).mean() > 0.99 for one, other in pairwise(drawn))
    case = tallies.case(tallies.laplace, 1000.5, 1040.0)
    tallies.assert_draws_follow(case, lambda count: np.concatenate(drawn)[:count], 10**6)


def test_the_plain_sampler_is_asked_only_beyond_the_widest(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object) -> int:
        raise AssertionError("plain")

    for name in ("laplace", "gaussian", "geometric"):
        monkeypatch.setattr(plain, name, never)
    for law in LAWS:
        law(WIDEST).sample(2000)
        with pytest.raises(AssertionError, match="plain"):
            law(Fraction(WIDEST) + 1).sample_one()
