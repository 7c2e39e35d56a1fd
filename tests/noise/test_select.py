# SPDX-License-Identifier: Apache-2.0
"""Candidates are drawn with exactly their weights: every path of choices is followed, and its mass
is added up.
"""

import itertools
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.rounding import log_down
from sfumato.noise import lazy_uniform, select
from sfumato.noise.select import exponential, permute_and_flip
from sfumato.testing import Replay, assert_follows
from tests.contracts.labels import label
from tests.noise.truth import PRECISION, Restarted, ball, every_path

HALF = Fraction(1, 2)
DRAWS = [exponential, permute_and_flip]
BOTH = pytest.mark.parametrize("draw", DRAWS, ids=["exponential", "permute_and_flip"])
CASES = {
    "one": [7],
    "ties": [3, 3, 3],
    "ints": [0, 3, -2, 1],
    "int array": np.array([5, 5, 1, -90], np.int64),
    "extreme int array": np.array([2**63 - 1, -(2**63), 2**63 - 3], np.int64),
    "small dtype": np.array([200, 199, 0], np.uint8),
    "unsigned": np.array([2**64 - 1, 2**64 - 2, 5], np.uint64),
    "float array": np.array([0.1, -2.3, 0.30000000000000004, 0.1]),
    "float list": [0.5, 1.25, -3.0],
    "extreme floats": np.array([1.7e308, -1.7e308, 1.6999999999999998e308]),
    "subnormal": np.array([5e-324, 0.0, 1e-320]),
    "fractions": [Fraction(1, 3), Fraction(-5, 7), Fraction(4, 3)],
    "huge ints": [10**40, 10**40 - 1, 10**40 - 5],
    "mixed": [1, Fraction(5, 2), 0.25],
}
WEIGHTS = {
    "ints": [5, 1, 2**80, 3],
    "int array": np.array([1, 2**62, 3, 2**40]),
    "huge ints": [1, 7, 1000],
}


def mass(bounds) -> Fraction | arb:
    """The probability that a uniform number is below the real with these bounds."""
    lower, upper = bounds(PRECISION - 50)
    if lower == upper:
        return min(Fraction(lower, 1 << PRECISION - 50), Fraction(1))
    with ctx.workprec(PRECISION):
        middle = ball(Fraction(lower + upper, 2 << PRECISION - 50))
        return min(arb(middle, ball(Fraction(upper - lower, 1 << PRECISION - 50))), arb(1))


def coin_or_anew(bounds, script) -> bool:
    """The exponential mechanism begins anew where a candidate is not kept."""
    if not script.coin(mass(bounds)):
        raise Restarted
    return True


def law_of(draw, scores, rate, weights=None) -> list[arb]:
    """The exact law of a draw, with tables so small that every path can be followed."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"_BLOCK": 2, "_TOP": 3, "_FLIPS": 2}.items():
            patch.setattr(select, name, value)
        patch.setattr(
            select,
            "below",
            lambda n, script: script.choose([(x, Fraction(1, n)) for x in range(n)]),
        )
        patch.setattr(
            select,
            "_halvings",
            lambda counts, script: np.array([script.coin(HALF**c) for c in counts.tolist()]),
        )
        if draw is exponential:
            patch.setattr(select, "is_below", coin_or_anew)
            law, rest = every_path(
                lambda script: exponential(scores, rate, script, weights=weights), 0.0
            )
        else:
            patch.setattr(select, "is_below", lambda bounds, script: script.coin(mass(bounds)))
            law, rest = every_path(lambda script: permute_and_flip(scores, rate, script), 0.0)
    assert rest == 0
    with ctx.workprec(PRECISION):
        total = sum((ball(law.get(i, 0)) for i in range(len(scores))), arb(0))
        return [ball(law.get(i, 0)) / total for i in range(len(scores))]


def exact(scores) -> list[Fraction]:
    return [
        Fraction(score) for score in (scores.tolist() if isinstance(scores, np.ndarray) else scores)
    ]


def exponential_truth(scores, rate, weights=None) -> list[arb]:
    """w_i e^(rate u_i) over their sum."""
    values = exact(scores)
    with ctx.workprec(PRECISION):
        each = [
            ball(int(weight)) * ball(rate * (value - max(values))).exp()
            for value, weight in zip(
                values, [1] * len(values) if weights is None else weights, strict=True
            )
        ]
        return [one / sum(each, arb(0)) for one in each]


def permute_and_flip_truth(scores, rate) -> list[arb]:
    """Every order of the candidates; the first whose coin is heads."""
    values = exact(scores)
    with ctx.workprec(PRECISION):
        bias = [ball(rate * (value - max(values))).exp() for value in values]
        law = [arb(0)] * len(values)
        for order in itertools.permutations(range(len(values))):
            tails = arb(1)
            for candidate in order:
                law[candidate] += tails * bias[candidate]
                tails *= 1 - bias[candidate]
        return [each / math.factorial(len(values)) for each in law]


def follows(law: list[arb], truth: list[arb]) -> bool:
    """Whether two laws agree to 1e-60."""
    return all(bool(abs(one - other) < arb("1e-60")) for one, other in zip(law, truth, strict=True))


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(2, 7)])
@pytest.mark.parametrize("case", CASES)
def test_candidates_are_drawn_in_proportion_to_their_exponential_weights(case, rate):
    assert follows(law_of(exponential, CASES[case], rate), exponential_truth(CASES[case], rate))


@pytest.mark.parametrize("case", WEIGHTS)
def test_integer_weights_multiply(case):
    for scores in (CASES[case], [0] * len(WEIGHTS[case])):
        law = law_of(exponential, scores, HALF, WEIGHTS[case])
        assert follows(law, exponential_truth(scores, HALF, WEIGHTS[case]))


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(2, 7)])
@pytest.mark.parametrize("case", CASES)
def test_candidates_are_drawn_as_by_permuting_and_flipping(case, rate):
    assert follows(
        law_of(permute_and_flip, CASES[case], rate), permute_and_flip_truth(CASES[case], rate)
    )


@pytest.mark.parametrize("rate", [Fraction(10) ** 400, Fraction(1, 10**400)])
@pytest.mark.parametrize("case", ["ints", "extreme floats", "subnormal"])
def test_the_laws_hold_at_extreme_rates(case, rate):
    assert follows(law_of(exponential, CASES[case], rate), exponential_truth(CASES[case], rate))
    assert follows(
        law_of(permute_and_flip, CASES[case], rate), permute_and_flip_truth(CASES[case], rate)
    )


# ---------------------------------------------------------------- mutants: each breaks the law, and


def test_the_law_notices_a_power_below_the_weight(monkeypatch):
    honest = select._Array.bits
    monkeypatch.setattr(
        select._Array,
        "bits",
        lambda gaps, block, most: np.minimum(honest(gaps, block, most) + 1, most),
    )
    scores = np.array([0.0, -0.1, -1.5])
    assert not follows(law_of(exponential, scores, HALF), exponential_truth(scores, HALF))


def test_the_law_notices_powers_taken_as_weights(monkeypatch):
    monkeypatch.setattr(
        select._Majorant, "ratio", lambda *_: lambda precision: (1 << precision, 1 << precision)
    )
    assert not follows(
        law_of(exponential, CASES["ints"], HALF), exponential_truth(CASES["ints"], HALF)
    )


def test_the_law_notices_the_first_head_taken_for_a_random_one(monkeypatch):
    monkeypatch.setattr(
        select, "_locate", lambda ends, point: (next(at for at, end in enumerate(ends) if end), 0)
    )
    assert not follows(
        law_of(permute_and_flip, CASES["ints"], HALF), permute_and_flip_truth(CASES["ints"], HALF)
    )


def test_the_law_notices_coins_that_are_flipped_twice(monkeypatch):
    honest = select._bounds
    monkeypatch.setattr(
        select, "_bounds", lambda weight, gap, shift, precision: honest(weight, gap, 0, precision)
    )
    assert not follows(
        law_of(permute_and_flip, CASES["ints"], HALF), permute_and_flip_truth(CASES["ints"], HALF)
    )


def test_the_two_laws_are_not_confused():
    assert not follows(
        exponential_truth(CASES["ints"], HALF), permute_and_flip_truth(CASES["ints"], HALF)
    )


# ---------------------------------------------------------------- floats err on the right side only


def bits_of_nats(gap: Fraction) -> arb:
    with ctx.workprec(1000):
        return arb(gap.numerator) / gap.denominator / arb(2).log()


def never_too_many(gaps) -> bool:
    """Whether 0 <= j <= g / ln 2 for every candidate, and not far below."""
    for index, j in enumerate(gaps.bits(slice(0, gaps.count), select._FAR).tolist()):
        truth = bits_of_nats(gaps.exact(index))
        if j < 0 or not truth >= j or not (j == select._FAR or truth < j + (j >> 40) + 2):
            return False
    return True


RATES = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9), RATES)
@settings(deadline=None)
def test_bits_of_integers_are_never_too_many(scores, rate):
    gaps = select._gaps(np.array(scores, np.int64), rate)
    assert type(gaps) is select._Array
    assert [gaps.exact(i) for i in range(len(scores))] == [
        rate * (max(scores) - score) for score in scores
    ]
    assert never_too_many(gaps)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=9), RATES)
@settings(deadline=None)
def test_bits_of_floats_are_never_too_many(scores, rate):
    gaps = select._gaps(np.array(scores), rate)
    assert [gaps.exact(i) for i in range(len(scores))] == [
        rate * (max(exact(scores)) - s) for s in exact(scores)
    ]
    assert never_too_many(gaps)


def just_below_whole_bits() -> list[select._Gaps]:
    """Gaps of m ln 2 less 1e-49 of it: the nearest float of their bits is m, one too many."""
    scores = np.array([0.0, *(-float(m) for m in range(1, 2000))])
    return [
        select._gaps(scores, log_down(Fraction(2)) * part)
        for part in (Fraction(1), Fraction(1, 3), Fraction(7, 5))
    ]


def test_bits_are_never_too_many_where_a_float_is_rounded_up(monkeypatch):
    assert all(never_too_many(gaps) for gaps in just_below_whole_bits())
    monkeypatch.setattr(select, "_SLACK", Fraction(1))
    assert not all(never_too_many(gaps) for gaps in just_below_whole_bits())


@given(st.integers(0, 10**30), st.fractions(0, 100), st.integers(-200, 100), st.integers(0, 200))
@settings(deadline=None)
def test_the_bounds_of_a_ratio_hold_it_and_close_in(weight, gap, shift, precision):
    lower, upper = select._bounds(weight + 1, gap, shift, precision)
    with ctx.workprec(1000):
        truth = (
            arb(weight + 1)
            * (-arb(gap.numerator) / gap.denominator).exp()
            * arb(2) ** (shift + precision)
        )
    assert bool(truth >= lower) and bool(truth <= upper)
    assert upper - lower <= 4


def keeps_at_most_all(scores, rate, weights) -> bool:
    """Whether every power is between 1 and the largest, and at least its weight."""
    majorant = select._Majorant.over(select._gaps(scores, rate), weights)
    powers = majorant.powers(slice(0, len(scores))).tolist()
    ratios = [mass_of(majorant.ratio(index, power)) for index, power in enumerate(powers)]
    likely = [ratio for ratio, power in zip(ratios, powers, strict=True) if power > 1]
    return (
        max(powers) == 1 << select._TOP
        and all(power.bit_count() == 1 for power in powers)
        and all(ratio <= 1 for ratio in ratios)
        and all(ratio > Fraction(1, 5) for ratio in likely)
    )


def mass_of(bounds) -> Fraction:
    """The lower bound of a real, in 300 bits."""
    return Fraction(bounds(300)[0], 1 << 300)


WEIGHTED = st.lists(
    st.tuples(
        st.integers(-1000, 1000),
        st.integers(1, 2**63 - 1) | st.integers(0, 62).map(lambda b: (1 << b) + (b > 52)),
    ),
    min_size=1,
    max_size=9,
)


@given(WEIGHTED, st.fractions(Fraction(1, 100), 100), st.booleans())
@settings(deadline=None)
def test_a_power_is_at_least_its_weight(candidates, rate, listed):
    weights = [weight << 70 if listed else weight for _, weight in candidates]
    assert keeps_at_most_all([score for score, _ in candidates], rate, weights)


def test_the_powers_notice_a_weight_measured_one_bit_short(monkeypatch):
    scores, weights = [0, 0, 0], [7, 2**53 + 1, 1]
    assert keeps_at_most_all(scores, HALF, weights)
    monkeypatch.setattr(
        select.np, "frexp", lambda part: (part, np.array([int(w).bit_length() - 1 for w in part]))
    )
    assert not keeps_at_most_all(scores, HALF, weights)


class Counting:
    """Every sixteen-bit word once."""

    def fill(self, buffer):
        buffer[:] = np.arange(1 << 16, dtype="<u2").view(np.uint8)


@pytest.mark.parametrize("count", range(17))
def test_a_coin_of_halvings_has_exactly_its_bias(count):
    tosses = select._halvings(np.full(1 << 16, count, np.int64), Counting())
    assert int(tosses.sum()) == 1 << 16 - count


@given(st.lists(st.integers(0, 5), min_size=1, max_size=9).filter(any), st.integers(0, 44))
def test_a_point_is_located_in_the_part_that_holds_it(sizes, point):
    point %= sum(sizes)
    at, rest = select._locate(list(itertools.accumulate(sizes)), point)
    assert (at, rest) == [(i, j) for i, size in enumerate(sizes) for j in range(size)][point]


# ---------------------------------------------------------------- the whole, unpatched


def levels(probabilities):
    """The cdf of 0, 1, ... with these probabilities."""
    return lambda x: sum(probabilities[: max(x + 1, 0)])


@BOTH
@pytest.mark.parametrize("step", [64, 1], ids=["word", "forced"])
def test_draws_of_the_whole_follow_the_law(draw, step, monkeypatch):
    monkeypatch.setattr(lazy_uniform, "_STEP", step)
    scores = np.array([0.0, 1.5, 3.0, 2.5])
    truth = exponential_truth if draw is exponential else permute_and_flip_truth
    law, wrong = ([float(each) for each in truth(scores, rate)] for rate in (HALF, HALF / 2))
    entropy = Replay(31)
    draws = [draw(scores, HALF, entropy) for _ in range(6000)]
    assert_follows(draws, levels(law), notices=levels(wrong))


@BOTH
def test_draws_over_many_blocks_follow_the_law(draw):
    # a third each at gaps 0, 1, 2: per candidate the weights are 1, e^-1, e^-2
    scores = np.repeat([0, -1, -2], select._BLOCK + 5)
    weights = [math.exp(-level) for level in range(3)]
    law = [each / sum(weights) for each in weights]
    draws = [draw(scores, Fraction(1)) // (select._BLOCK + 5) for _ in range(1500)]
    assert_follows(draws, levels(law), notices=levels([1 / 3] * 3))


@BOTH
def test_replayed_entropy_gives_the_same_draws(draw):
    scores = np.linspace(0, 9, 50_000)
    one, other = Replay(5), Replay(5)
    assert [draw(scores, HALF, one) for _ in range(9)] == [
        draw(scores, HALF, other) for _ in range(9)
    ]
    assert len({draw(scores, HALF) for _ in range(9)}) > 1


@BOTH
@pytest.mark.parametrize("kind", [np.float64, np.int64])
def test_ten_million_candidates_take_little_memory(draw, kind):
    scores = np.zeros(10**7, kind)
    tracemalloc.start()
    try:
        draw(scores, HALF)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # permute-and-flip holds a bit a candidate; one temporary of all would be 80 MB
    assert peak < 4 * 10**6


@BOTH
def test_lists_of_machine_integers_are_converted_once(draw):
    scores = list(range(10**5))
    assert type(select._gaps(scores, HALF)) is select._Array
    assert draw(scores, Fraction(100)) == 10**5 - 1
    assert draw(range(10**5), Fraction(100)) == 10**5 - 1


# ---------------------------------------------------------------- what is refused


@BOTH
@pytest.mark.parametrize(
    "scores",
    [
        [],
        np.array([]),
        np.zeros((2, 2)),
        np.array(3.0),
        np.array(["1"]),
        np.array([1], np.complex128),
        np.array([1, None], object),
        np.array([1], "datetime64[s]"),
        np.array([1, 2], np.longdouble),
        np.ma.array([1, 2], mask=[0, 1]),
        ["1", "2"],
        [1, None],
        [[1], [2]],
        "12",
        b"12"[:0],
        iter([1, 2]),
        3,
        None,
        range(2**40 + 1),
    ],
    ids=label,
)
def test_what_is_no_list_of_candidates_is_refused(draw, scores):
    with pytest.raises(InvalidDeclaration, match="candidates"):
        draw(scores, HALF)


@BOTH
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_refused_and_not_shown(draw, bad):
    for scores in (
        np.array([0.0, bad, 12345.5]),
        [0.0, bad],
        [Fraction(1, 3), bad],
        np.array([bad], np.float32),
    ):
        with pytest.raises(InvalidNumber, match="NaN or infinite") as caught:
            draw(scores, HALF)
        assert "12345" not in str(caught.value)


@BOTH
@pytest.mark.parametrize("rate", [0, -1, math.nan, math.inf, None, True])
def test_a_rate_that_is_not_positive_is_refused(draw, rate):
    with pytest.raises(InvalidNumber, match="rate"):
        draw([1, 2], rate)


@pytest.mark.parametrize(
    "weights", [[1], [1, 2, 3], [], None.__class__, np.ones((2, 1), np.int64)], ids=repr
)
def test_another_number_of_weights_is_refused(weights):
    with pytest.raises(InvalidDeclaration, match="candidates"):
        exponential([1, 2], HALF, weights=weights)


@pytest.mark.parametrize(
    "weights",
    [
        [1, 0],
        [1, -1],
        [1.0, 2.0],
        [Fraction(1), 2],
        [0, 2**70],
        np.array([1, 0]),
        np.array([1.0, 2.0]),
    ],
    ids=label,
)
def test_a_weight_that_is_not_a_positive_integer_is_refused(weights):
    with pytest.raises(InvalidNumber, match="weight"):
        exponential([1, 2], HALF, weights=weights)


def test_bad_input_is_refused_before_anything_is_drawn():
    class Silent:
        def bits(self, count):
            raise AssertionError

        fill = bits

    for draw in DRAWS:
        with pytest.raises(InvalidNumber):
            draw([1.0, math.nan], HALF, Silent())
