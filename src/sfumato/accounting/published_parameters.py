# SPDX-License-Identifier: Apache-2.0
"""Published privacy parameters of deployments, each with its source.

They are for comparison and no recommendation. Only settings are listed whose public source states
the number and the unit. They cannot be ranked by epsilon alone: the unit, the period and who adds
the noise differ.
"""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from sfumato.privacy.guarantee import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP


class NoiseBy(Enum):
    """Who adds the noise, and so whom the unit must trust with its data."""

    CURATOR = "curator"
    DEVICE = "device"


@dataclass(frozen=True, slots=True)
class Setting:
    """One deployment: its guarantee, its unit, and the source.

    >>> SETTINGS[0].name, SETTINGS[0].guarantee
    ('Apple, Health types', PureDP(epsilon=Fraction(2, 1)))
    """

    name: str
    guarantee: Guarantee
    unit: str
    noise_by: NoiseBy
    year: int
    source: str
    url: str


_APPLE = "Apple, Differential Privacy Overview (2017)"
_APPLE_URL = "https://www.apple.com/privacy/docs/Differential_Privacy_Overview.pdf"
_WIKIMEDIA = (
    "Adeleye et al., Publishing Wikipedia usage data with strong privacy guarantees (2023), and "
    "the data's README"
)
_WIKIMEDIA_URL = "https://analytics.wikimedia.org/published/datasets/"

SETTINGS = (
    Setting(
        "Apple, Health types",
        PureDP(2),
        "a donation, one a day",
        NoiseBy.DEVICE,
        2017,
        _APPLE,
        _APPLE_URL,
    ),
    Setting(
        "Apple, emoji", PureDP(4), "a donation, one a day", NoiseBy.DEVICE, 2017, _APPLE, _APPLE_URL
    ),
    Setting(
        "Apple, QuickType words",
        PureDP(8),
        "a donation, two a day",
        NoiseBy.DEVICE,
        2017,
        _APPLE,
        _APPLE_URL,
    ),
    Setting(
        "Wikimedia, views by country to 2023",
        PureDP(1),
        "30 views of a day",
        NoiseBy.CURATOR,
        2023,
        _WIKIMEDIA,
        f"{_WIKIMEDIA_URL}country_project_page_historical/00_README.html",
    ),
    Setting(
        "Wikimedia, views by country",
        ZeroConcentratedDP(Fraction("0.01505")),
        "10 pages of a day",
        NoiseBy.CURATOR,
        2023,
        _WIKIMEDIA,
        f"{_WIKIMEDIA_URL}country_project_page/00_README.html",
    ),
    Setting(
        "Israel, births of 2014",
        PureDP("9.98"),
        "a birth",
        NoiseBy.CURATOR,
        2024,
        "Hod and Canetti, Differentially Private Release of Israel's National Registry of Live "
        "Births (2024)",
        "https://arxiv.org/abs/2405.00267",
    ),
    Setting(
        "US Census, redistricting",
        ApproxDP("17.14", "1e-10"),
        "a person",
        NoiseBy.CURATOR,
        2021,
        "US Census Bureau, Census Bureau Sets Key Parameters to Protect Privacy in 2020 Census "
        "Results (9 June 2021;"
        " 19.61 with the housing units); delta:"
        " Abowd et al., The 2020 Census Disclosure Avoidance System TopDown Algorithm (2022)",
        "https://doi.org/10.1162/99608f92.529e3cb9",
    ),
)
