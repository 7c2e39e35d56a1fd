# SPDX-License-Identifier: Apache-2.0
"""Each setting names its number, its unit and a source; numbers that two sources state agree."""

from fractions import Fraction

from sfumato.accounting import approx_from_zcdp
from sfumato.accounting.interpret import Attacker
from sfumato.accounting.published_parameters import SETTINGS, NoiseBy
from sfumato.privacy import ApproxDP, PureDP, ZeroConcentratedDP


def setting(name: str):
    return next(each for each in SETTINGS if name in each.name)


def test_each_setting_says_where_it_is_written():
    assert len({each.name for each in SETTINGS}) == len(SETTINGS)
    for each in SETTINGS:
        assert each.unit and each.source and each.url.startswith("https://")
        assert 2006 <= each.year <= 2030 and "(" in each.source
        assert 0.5 <= Attacker(each.guarantee).accuracy("0.5") <= 1


def test_the_published_numbers():
    assert setting("Israel").guarantee == PureDP("9.98")
    assert setting("emoji").guarantee == PureDP(4) and setting("emoji").noise_by is NoiseBy.DEVICE
    assert setting("US Census").guarantee == ApproxDP("17.14", "1e-10")


def test_the_census_epsilon_is_that_of_its_rho():
    # 17.14 at delta 1e-10 is the published form of rho = 2.56 (Abowd et al. 2022, rounded to two
    # places)
    published = setting("US Census").guarantee
    least, most = (
        approx_from_zcdp(ZeroConcentratedDP(rho), published.delta).epsilon
        for rho in ("2.55", "2.565")
    )
    assert least <= published.epsilon <= most


def test_the_wikimedia_rho_is_that_of_its_noise():
    # its README states 95% intervals of 35.7 page views: 1.96 sigma, and rho = 10/(2 sigma^2) for
    # ten pages
    sigma_squared = Fraction("35.7") ** 2 / Fraction("1.96") ** 2
    rho = setting("Wikimedia, views by country").guarantee
    current = next(
        each.guarantee for each in SETTINGS if isinstance(each.guarantee, ZeroConcentratedDP)
    )
    assert rho == PureDP(1)
    assert abs(10 / (2 * sigma_squared) / current.rho - 1) < Fraction(1, 100)
