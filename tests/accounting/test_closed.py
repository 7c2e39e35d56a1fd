# SPDX-License-Identifier: Apache-2.0
"""Closed curves: Gaussians, single shifts, shuffled reports, and what costs imply.

Their lower ends.
"""

import math
from fractions import Fraction

import pytest

from sfumato.accounting import amplify, closed
from sfumato.accounting.closed import Between, Converted, FixedSize, Normal, Once, Reports, Shifts
from sfumato.accounting.own_delta import OwnDelta
from sfumato.accounting.profile import Profile
from sfumato.errors import InvalidNumber
from sfumato.exact.bracket import Bounds, Bracket
from sfumato.noise import DiscreteGaussian
from sfumato.privacy.event import PureEvent, RandomizedResponse, Shuffled
from sfumato.privacy.unit import Relation
from tests.accounting.loss import oracle


@pytest.mark.parametrize("own", ["0", "1e-7"])
def test_gaussians_beside_a_delta_of_their_own(own: str) -> None:
    lost = Fraction(own)
    found = Normal(Fraction(1, 4), OwnDelta.of(lost)).epsilon("1e-6")
    for end, sign in ((found.lower, 1), (found.upper, -1)):
        delta = lost + (1 - lost) * Fraction(
            float(oracle.gaussian_delta(Fraction(1, 4), end).mid())
        )
        assert sign * (delta - Fraction(1, 10**6)) >= -Fraction(1, 10**18)
    with pytest.raises(InvalidNumber, match="of their own"):
        Normal(Fraction(1), OwnDelta.of(Fraction(1, 10))).epsilon("1e-6")


def test_gaussians_that_nobody_suffers_have_no_lower_end() -> None:
    found = Normal(Fraction(1, 4), reached=False)
    assert found.epsilon("1e-6").lower is None and found.delta(1).lower is None
    assert found.epsilon("1e-6").upper == Normal(Fraction(1, 4)).epsilon("1e-6").upper


def test_a_shuffle_has_a_curve() -> None:
    event = Shuffled(RandomizedResponse(Fraction(1), 2), 1000)
    assert Reports(event).epsilon("1e-6") == amplify.shuffled(event, "1e-6")
    assert Reports(event).delta("0.1") == amplify.shuffled_delta(event, "0.1")
    # its pure loss is that of one report, of which a delta takes off much
    assert Reports(event).epsilon("1e-6").upper < 0.5 < Reports(event).epsilon(0).upper


def test_costs_claim_nothing_below() -> None:
    cost = Converted(Profile.pure(Fraction(1), Fraction(1, 10)))
    assert cost.epsilon("0.2").lower is None and cost.delta(1).lower is None
    assert cost.delta(1).upper == pytest.approx(0.1) and cost.epsilon("0.1").upper == 1.0
    whole = Normal(Fraction(1))
    assert FixedSize(whole, Fraction(1, 100)).epsilon("1e-6").lower is None


def test_a_fixed_sample_of_a_sum_has_both_ends() -> None:
    # all other units are like the one that replaces: a share q of the Gaussian curve, exactly
    found = FixedSize(Normal(Fraction(1)), Fraction(1, 100), reached=True)
    for at in (0.0, 0.1, 0.3):
        truth = (
            float(oracle.gaussian_delta(Fraction(1), math.log1p(math.expm1(at) * 100)).mid()) / 100
        )
        shown = found.delta(str(at))
        assert shown.lower <= truth * (1 + 1e-12) and truth <= shown.upper * (1 + 1e-12)
        assert shown.upper - shown.lower <= 1e-9 * truth
    ends = found.epsilon("1e-6")
    assert ends.lower <= ends.upper <= ends.lower * (1 + 1e-6)
    assert found.delta(ends.lower * 0.9999).lower > 1e-6 >= found.delta(ends.upper * 1.0001).upper
    assert found.epsilon("0.02") == Bounds(0.0, 0.0)


def test_between_takes_an_end_of_each() -> None:
    both = Between(above=Normal(Fraction(2)), below=Normal(Fraction(1)))
    assert both.epsilon("1e-6").lower == Normal(Fraction(1)).epsilon("1e-6").lower
    assert both.epsilon("1e-6").upper == Normal(Fraction(2)).epsilon("1e-6").upper
    assert both.delta(1).lower < both.delta(1).upper == Normal(Fraction(2)).delta(1).upper


def test_one_integer_is_worst_at_one_of_its_shifts() -> None:
    found = Shifts(DiscreteGaussian(20), 4).delta("0.5")
    truth = float(oracle.gaussian_delta(Fraction(16, 400), 0.5).mid())
    assert found.upper == pytest.approx(truth, rel=0.1) and found.lower <= found.upper


def test_a_normal_curve_with_too_small_a_mu_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        closed, "sqrt_up", lambda number: Fraction(99, 100) * Fraction(float(number) ** 0.5)
    )
    found = Normal(Fraction(1, 4)).epsilon("1e-6")
    assert float(oracle.gaussian_delta(Fraction(1, 4), found.upper).mid()) > 1e-6


def test_any_randomizer_is_bounded_from_below_by_one_that_exists() -> None:
    event = Shuffled(PureEvent(Fraction(1), Relation.REPLACE_ONE), 1000)
    assert (
        Reports(event).epsilon("1e-6").lower
        == Reports(Shuffled(RandomizedResponse(Fraction(1), 2), 1000)).epsilon("1e-6").lower
    )


@pytest.mark.parametrize("rate", ["1e-6", "1/100", "2/3"])
@pytest.mark.parametrize("epsilon", ["1e-9", "0.01", "1", "4"])
def test_one_sample_of_gaussian_noise_has_its_closed_form(rate: str, epsilon: str) -> None:
    found = Once(Normal(Fraction(1)), Fraction(rate)).delta(epsilon)
    both = [
        float(
            oracle.sampled_gaussian_delta(
                Fraction(1), Fraction(rate), float(Fraction(epsilon)), added=way
            ).mid()
        )
        for way in (False, True)
    ]
    assert (
        found.lower <= max(both) * (1 + 1e-9) + 1e-300
        and max(both) * (1 - 1e-9) <= found.upper + 1e-300
    )
    assert found.upper - found.lower <= 1e-12 * found.upper


def test_one_sample_is_read_backwards_too() -> None:
    of = Once(Normal(Fraction(1)), Fraction(1, 1000))
    found = of.epsilon("1e-6")
    assert (
        of.delta(Fraction(found.upper)).upper
        <= 1e-6
        <= of.delta(Fraction(found.lower)).upper * (1 + 1e-9)
    )
    assert of.epsilon("0.5") == Bracket(0.0, 0.0)
    with pytest.raises(InvalidNumber):
        of.epsilon(0)


def test_a_sample_of_which_only_removal_is_looked_at_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = Once._ways
    monkeypatch.setattr(Once, "_ways", lambda self, odds: right(self, odds)[1:])
    found = Once(Normal(Fraction(1)), Fraction(1, 3)).delta("0.3")
    truth = float(
        oracle.sampled_gaussian_delta(Fraction(1), Fraction(1, 3), 0.3, added=False).mid()
    )
    assert found.upper < truth
