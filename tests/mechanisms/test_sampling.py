# SPDX-License-Identifier: Apache-2.0
"""Samples: drawn as named, charged by the exact loss of small ones, and bounded in their error."""

from fractions import Fraction
from math import comb, exp, log

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.mechanisms import laplace, sampling
from sfumato.mechanisms.response import randomized_response
from sfumato.mechanisms.sampling import SamplingMechanism, chosen_units, sample_units
from sfumato.noise import SYSTEM
from sfumato.noise.coin import Bernoulli
from sfumato.noise.uniform import subset
from sfumato.privacy import Distance, Norm
from sfumato.privacy.event import FixedSample, PoissonSample, Sampled, WithReplacementSample
from sfumato.privacy.unit import Relation
from sfumato.testing import Replay, assert_at_most

ADD, REPLACE = (
    Distance(Norm.L1, Fraction(1), relation)
    for relation in (Relation.ADD_REMOVE, Relation.REPLACE_ONE)
)
TENTH = PoissonSample(Fraction(1, 10))
TWO_OF_FIVE = FixedSample(2, 5)
UNITS = ["ada", "blaise", "carl", "david", "emmy"]


def test_a_poisson_sample_takes_each_unit_by_a_coin_of_its_own():
    design = PoissonSample(Fraction(1, 3))
    taken = Bernoulli(Fraction(1, 3)).sample(1000, Replay(5))
    assert sample_units(design, range(1000), Replay(5)) == np.flatnonzero(taken).tolist()
    independent(design, 1 / 9)


def independent(design, both: float) -> None:
    """Fails unless two given units are in the sample together with a probability.

    Sure to notice 3%.
    """
    together = sum({0, 1} <= set(sample_units(design, range(5), SYSTEM)) for _ in range(20_000))
    assert_at_most(together, 20_000, both, notices=both + 0.05)
    assert_at_most(20_000 - together, 20_000, 1 - both, notices=1 - both + 0.05)


def test_the_pairs_notice_one_coin_for_all(monkeypatch):
    monkeypatch.setattr(
        sampling,
        "_chosen",
        lambda design, units, entropy: np.arange(units * Bernoulli(design.rate).sample_one()),
    )
    with pytest.raises(AssertionError, match="was stated"):
        independent(PoissonSample(Fraction(1, 3)), 1 / 9)


def test_a_fixed_sample_is_uniform_over_subsets_of_its_size():
    assert sample_units(TWO_OF_FIVE, range(5), Replay(3)) == subset(5, 2, Replay(3)).tolist()
    drawn = [tuple(sample_units(TWO_OF_FIVE, UNITS, SYSTEM)) for _ in range(20_000)]
    assert len(set(drawn)) == comb(5, 2) and all(list(each) == sorted(each) for each in drawn)
    for each in set(drawn):
        assert_at_most(drawn.count(each), 20_000, 1 / 10, notices=0.15)
    independent(TWO_OF_FIVE, 1 / 10)


def test_a_sample_of_all_is_all():
    assert sample_units(PoissonSample(Fraction(1)), UNITS) == UNITS
    assert sample_units(FixedSample(5, 5), UNITS) == UNITS
    assert sample_units(TENTH, []) == []


@pytest.mark.parametrize("units", [[], UNITS[:4], [*UNITS, "felix"]])
def test_another_population_is_refused_without_its_number(units):
    with pytest.raises(InvalidDeclaration, match="the 5 of the sample") as caught:
        sample_units(TWO_OF_FIVE, units)
    assert str(len(units)) not in str(caught.value)


@pytest.mark.parametrize("design", [None, 0.1, Fraction(1, 10), "poisson"])
def test_a_design_that_is_none_is_refused(design):
    with pytest.raises(InvalidDeclaration, match="A sample by"):
        sample_units(design, UNITS)
    with pytest.raises(InvalidDeclaration, match="A sample by"):
        SamplingMechanism(design, laplace(ADD, 1))


def test_the_event_names_the_design_that_is_drawn():
    inner = laplace(ADD, 1)
    mechanism = SamplingMechanism(TENTH, inner)
    assert mechanism.event(ADD) == Sampled(TENTH, inner.event(ADD))
    seen = []
    sample = sample_units(mechanism.event(ADD).design, range(300), Replay(7))
    noisy = mechanism.release(
        range(300), lambda drawn: seen.append(drawn) or [len(drawn)], Replay(7)
    )
    assert seen == [sample]
    assert len(noisy) == 1 and abs(noisy[0] - len(sample)) < 60


def is_refused(design, distance: Distance) -> bool:
    try:
        SamplingMechanism(design, laplace(distance, 1)).event(distance)
    except InvalidDeclaration as error:
        return design.relation.value in error.allowed
    return False


def test_a_sample_under_another_relation_is_refused(monkeypatch):
    assert is_refused(TENTH, REPLACE) and is_refused(TWO_OF_FIVE, ADD)
    assert not is_refused(TENTH, ADD) and not is_refused(TWO_OF_FIVE, REPLACE)
    monkeypatch.setattr(PoissonSample, "relation", Relation.REPLACE_ONE)
    assert not is_refused(TENTH, REPLACE)


def noisy(law: np.ndarray, scale: float, reach: int) -> np.ndarray:
    """The law of a count plus discrete Laplace noise, on -reach .. reach, by the closed form."""
    g = exp(-1 / scale)
    masses = np.array(
        [[g ** abs(y - x) for x in range(len(law))] for y in range(-reach, reach + 1)]
    )
    return masses @ law * (1 - g) / (1 + g)


def loss(one: np.ndarray, two: np.ndarray) -> float:
    """The largest log ratio of the noisy counts of two samples."""
    return float(np.abs(np.log(noisy(one, 1.0, 30) / noisy(two, 1.0, 30))).max())


@pytest.mark.parametrize("rate", ["1/100", "1/10", "1/2"])
def test_the_charge_of_a_poisson_sample_is_the_exact_loss_of_a_count(rate):
    charged = float(
        account(
            SamplingMechanism(PoissonSample(Fraction(rate)), laplace(ADD, 1)).event(ADD)
        ).epsilon
    )
    found = [
        loss(
            binom.pmf(np.arange(count + 1), count, float(Fraction(rate))),
            binom.pmf(np.arange(count + 2), count + 1, float(Fraction(rate))),
        )
        for count in range(4)
    ]
    assert max(found) <= charged + 1e-9
    assert found[0] == pytest.approx(charged)
    # a linear reading of the amplification would promise too much
    assert max(found) > 1.001 * float(Fraction(rate))


def test_the_charge_of_a_fixed_sample_is_the_exact_loss_of_a_count():
    charged = float(
        account(SamplingMechanism(TWO_OF_FIVE, laplace(REPLACE, 1)).event(REPLACE)).epsilon
    )
    found = [
        loss(*(hypergeom.pmf(np.arange(3), 5, marked + extra, 2) for extra in (0, 1)))
        for marked in range(5)
    ]
    assert max(found) == pytest.approx(charged)
    assert charged == pytest.approx(log(1 + 0.4 * (exp(1) - 1)))


def test_a_poisson_sample_of_reports_has_no_proof():
    with pytest.raises(InvalidDeclaration):
        SamplingMechanism(TENTH, randomized_response(1)).event(ADD)


def covers(design, confidence: str, units: int, half_width: float) -> bool:
    """Whether the scaled count of a sample is within ``half_width`` often enough, for every true
    count.
    """
    rate = float(design.rate)
    for marked in range(units + 1):
        sizes = np.arange(marked + 1)
        law = (
            binom.pmf(sizes, marked, rate)
            if isinstance(design, PoissonSample)
            else hypergeom.pmf(sizes, design.population, marked, design.size)
        )
        if (
            law[np.abs(sizes / rate - marked) <= half_width + 1e-9].sum()
            < float(confidence) - 1e-12
        ):
            return False
    return True


@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.9999"])
@pytest.mark.parametrize(
    "design",
    [TENTH, PoissonSample(Fraction(9, 10)), FixedSample(3, 200), FixedSample(190, 200)],
    ids=repr,
)
def test_the_sampling_error_covers_as_often_as_stated(design, confidence):
    mechanism = SamplingMechanism(design, laplace(ADD, 1))
    for units in (1, 10, 200):
        assert covers(design, confidence, units, mechanism.error(confidence, units))


def test_the_coverage_notices_half_the_error():
    assert not covers(
        TENTH, "0.95", 200, SamplingMechanism(TENTH, laplace(ADD, 1)).error("0.95", 200) / 2
    )


def test_a_sample_of_all_has_no_error():
    assert SamplingMechanism(PoissonSample(Fraction(1)), laplace(ADD, 1)).error("0.95", 10) == 0


@pytest.mark.parametrize(
    ("confidence", "units"), [(0, 1), (1, 1), ("0.9", 0), ("0.9", 1.5), ("0.9", True)]
)
def test_an_error_that_cannot_be_is_refused(confidence, units):
    with pytest.raises(InvalidNumber):
        SamplingMechanism(TENTH, laplace(ADD, 1)).error(confidence, units)


def test_a_fixed_sample_is_one_of_the_places_of_its_population():
    for units in (0, 2, 5, 9):
        drawn = [tuple(chosen_units(TWO_OF_FIVE, units).tolist()) for _ in range(4000)]
        there = min(units, 5)
        sizes = [comb(there, size) * comb(5 - there, 2 - size) / comb(5, 2) for size in range(3)]
        for size, share in enumerate(sizes):
            found = sum(len(each) == size for each in drawn)
            assert_at_most(found, 4000, share, notices=share + 0.15)
            assert_at_most(4000 - found, 4000, 1 - share, notices=1 - share + 0.15)
        assert all(place < there for each in drawn for place in each)


def test_a_poisson_sample_of_units_is_the_same_as_of_their_names():
    assert chosen_units(TENTH, 50, Replay(4)).tolist() == sample_units(TENTH, range(50), Replay(4))


def test_a_design_that_repeats_units_is_refused():
    with pytest.raises(InvalidDeclaration):
        chosen_units(WithReplacementSample(2, 5), 5)
