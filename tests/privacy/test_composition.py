# SPDX-License-Identifier: Apache-2.0
"""An event that is made of others cannot be built wrong."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting.account import account
from sfumato.errors import InvalidDeclaration
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import (
    AdditiveNoise,
    ApproxEvent,
    BestOf,
    Block,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Distance,
    Group,
    NoisyMax,
    Nonadaptive,
    Norm,
    Parallel,
    PoissonSample,
    PureEvent,
    RandomizedResponse,
    Relation,
    Repeated,
    Sampled,
    Shuffled,
    SparseVector,
    Stream,
    Thresholded,
)

NOISE = DiscreteLaplace(2)
SCORES = Distance(Norm.LINF, Fraction(1))
LAPLACE = AdditiveNoise(NOISE, Distance(Norm.L1, Fraction(1)))
SQUARE = Distance(Norm.L2, Fraction(6))
GAUSSIAN = AdditiveNoise(DiscreteGaussian(10), SQUARE)
REAL = ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction(11, 10), SQUARE)


def test_a_threshold_is_on_noisy_counts():
    with pytest.raises(InvalidDeclaration) as caught:
        Thresholded(Composed((LAPLACE,)), 10, 1)
    assert caught.value.allowed == "AdditiveNoise"


@pytest.mark.parametrize(
    "event",
    [
        PureEvent(Fraction(1)),
        ApproxEvent(Fraction(1), Fraction(1, 100), Relation.REPLACE_ONE),
        LAPLACE,
        Shuffled(RandomizedResponse(Fraction(1), 2), 10),
        None,
    ],
    ids=lambda event: type(event).__name__,
)
def test_reports_are_shuffled_whose_neighbours_are_two_values(event):
    with pytest.raises(InvalidDeclaration) as caught:
        Shuffled(event, 10)
    assert "REPLACE_ONE" in caught.value.allowed
    assert Shuffled(PureEvent(Fraction(1), Relation.REPLACE_ONE), 10).reports == 10


@pytest.mark.parametrize(
    "noise",
    [
        AdditiveNoise(DiscreteLaplace(1), SQUARE),
        ContinuousNoise(ContinuousLaw.LAPLACE, Fraction(1), LAPLACE.distance),
        AdditiveNoise(DiscreteGaussian(10), Distance(Norm.L1, Fraction(6))),
        AdditiveNoise(DiscreteGaussian(10), SCORES, 8),
        RandomizedResponse(Fraction(1), 2),
        None,
    ],
    ids=repr,
)
def test_a_stream_has_gaussian_noise_and_a_distance_of_its_own(noise):
    with pytest.raises(InvalidDeclaration):
        Stream(noise, 8, Fraction(1))


def test_a_stream_may_have_laplace_noise_and_an_l1_distance():
    one = Fraction(1)
    three = AdditiveNoise(DiscreteLaplace(6), Distance(Norm.L1, Fraction(3)))
    stream = Stream(three, 8, one, participations=3)
    # in L1 columns add up, in L2 their roots do
    assert stream.most == 3 and Stream(GAUSSIAN, 8, one, participations=3).most == 9
    assert account(stream).epsilon == Fraction(1, 2) == account(three).epsilon
    with pytest.raises(InvalidDeclaration, match="L1 distance"):
        Stream(three, 8, Fraction(4))


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 30))
@settings(deadline=None)
def test_a_unit_is_in_no_more_steps_than_there_are(steps, participations, separation):
    possible = len(range(0, steps, separation)) >= participations
    if possible:
        stream = Stream(REAL, steps, Fraction(3), participations, separation)
        assert stream.most == 3 * participations**2
    else:
        with pytest.raises(InvalidDeclaration):
            Stream(REAL, steps, Fraction(3), participations, separation)


def test_all_participations_move_a_stream_at_least_as_far_as_one():
    assert Stream(GAUSSIAN, 8, Fraction(6)).noise.distance.value == 6
    with pytest.raises(InvalidDeclaration, match="distance 6"):
        Stream(GAUSSIAN, 8, Fraction(601, 100))


def test_the_columns_of_a_tree_and_what_they_add_up_to():
    """Two leaves of a binary tree over 8: 1 + log2(8) nodes each, of which they share some."""
    nodes = [{(level, leaf >> level) for level in range(4)} for leaf in range(8)]
    column = max(len(each) for each in nodes)
    both = max(
        sum(((n in one) + (n in other)) ** 2 for n in one | other)
        for one in nodes
        for other in nodes
        if one != other
    )
    noise = AdditiveNoise(DiscreteGaussian(10), Distance(Norm.L2, Fraction(both)))
    assert column == 4 < both <= Stream(noise, 8, Fraction(column), participations=2).most == 16


@pytest.mark.parametrize(
    "build",
    [
        lambda: Composed(("dp-sgd",)),
        lambda: Composed(3),
        lambda: Parallel((LAPLACE, None)),
        lambda: Repeated(object(), 3),
        lambda: Nonadaptive(object()),
        lambda: BestOf((object(),), Fraction(0), Fraction(1, 2)),
        lambda: BestOf((), Fraction(0), Fraction(1, 2)),
        lambda: BestOf((Block(LAPLACE, Fraction(1), Fraction(1, 9)),), Fraction(0), Fraction(1, 2)),
        lambda: Group(NOISE, 3),
        lambda: Sampled(PoissonSample(Fraction(1, 2)), "x"),
        lambda: Sampled(0.5, LAPLACE),
        lambda: AdditiveNoise("laplace", SCORES),
        lambda: NoisyMax(None, SCORES),
        lambda: SparseVector(NOISE, 3, SCORES, 1),
    ],
)
def test_a_part_of_an_unknown_kind_is_refused(build):
    with pytest.raises(InvalidDeclaration):
        build()
