# SPDX-License-Identifier: Apache-2.0
"""Releases that are paid together cost what was asked, and no more."""

from fractions import Fraction

import pytest

from sfumato.accounting.account import account
from sfumato.learning.recipe import Asked
from sfumato.learning.releases import Releases, norm_of
from sfumato.noise import DiscreteLaplace, RoundedGaussian
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Block


def test_laplace_noise_divides_a_pure_epsilon() -> None:
    found = Releases.of(Asked(epsilon="0.9"), Distance(Norm.L1, Fraction(5)), 3, ())
    assert found.mechanism.noise == DiscreteLaplace(Fraction(50, 3))
    assert account(found.event).epsilon == Fraction(9, 10)
    assert found.deviation == pytest.approx(2**0.5 * 50 / 3, rel=0.01)


def test_gaussian_noise_costs_its_rho() -> None:
    found = Releases.of(Asked(rho="0.03"), Distance(Norm.L2, Fraction(10**8)), 3, ())
    rho = account(found.event).rho
    assert Fraction("0.0299") < rho <= Fraction("0.03")


def test_an_epsilon_with_a_delta_buys_a_block() -> None:
    asked = Asked(epsilon=1, delta="1e-6")
    found = Releases.of(asked, Distance(Norm.L2, Fraction(10**8)), 3, ())
    assert isinstance(found.event, Block) and isinstance(found.mechanism.noise, RoundedGaussian)


@pytest.mark.parametrize(
    ("asked", "norm"),
    [
        (Asked(epsilon=1), Norm.L1),
        (Asked(rho=1), Norm.L2),
        (Asked(epsilon=1, delta="1e-6"), Norm.L2),
        (Asked(), Norm.L2),
    ],
)
def test_only_a_pure_epsilon_buys_laplace_noise(asked: Asked, norm: Norm) -> None:
    assert norm_of(asked) is norm
