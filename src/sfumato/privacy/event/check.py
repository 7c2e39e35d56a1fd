# SPDX-License-Identifier: Apache-2.0
"""What the fields of every event must be: exact numbers, counts, bounded scores."""

from fractions import Fraction

from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.exact.rational import Number, to_fraction
from sfumato.noise import Noise
from sfumato.privacy.distance import Distance, Norm


def exact(name: str, value: Number) -> Fraction:
    """The exact number that ``value`` writes; a Fraction is taken as it is, of any length."""
    return value if isinstance(value, Fraction) else to_fraction(name, value)


def exact_positive(name: str, value: Number) -> Fraction:
    """As ``exact``; refuses what is not greater than 0."""
    number = exact(name, value)
    if number <= 0:
        raise InvalidNumber(f"{name} = {value}.", allowed="greater than 0")
    return number


def check_count(name: str, value: int) -> None:
    """Refuses what is not a whole number from 1 on."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidNumber(f"{name} = {shown(value)}.", allowed="an integer >= 1")


def check_noise(noise: object) -> None:
    """Refuses what is no law that sfumato draws from."""
    if not isinstance(noise, Noise):
        raise InvalidDeclaration(
            f"Noise of {type(noise).__name__}.", allowed="the laws of sfumato.noise"
        )


def check_scores(distance: Distance) -> None:
    """Refuses scores that are not bounded each."""
    if distance.norm is not Norm.LINF:
        raise InvalidDeclaration(
            f"Scores bounded in {distance.norm.value}.",
            allowed="the change of each score: Distance(Norm.LINF, ...)",
        )
