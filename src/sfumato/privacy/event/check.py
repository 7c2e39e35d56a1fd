# SPDX-License-Identifier: Apache-2.0
"""Checks of the fields of events: exact numbers, counts, noise, score sensitivities."""

from fractions import Fraction

from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.exact.rational import Number, to_fraction
from sfumato.noise import Noise
from sfumato.privacy.distance import Distance, Norm


def exact(name: str, value: Number) -> Fraction:
    """Returns a field's value as an exact number; a Fraction may have any length."""
    if type(value) is Fraction:
        return value
    return to_fraction(name, value)


def exact_positive(name: str, value: Number) -> Fraction:
    """Returns a field's value as an exact number greater than 0; else raises InvalidNumber."""
    number = exact(name, value)
    if number <= 0:
        raise InvalidNumber(f"{name} = {value}.", allowed="greater than 0")
    return number


def check_count(name: str, value: int) -> None:
    """Raises an error for a field's value that is not an integer >= 1."""
    if type(value) is not int or value < 1:
        raise InvalidNumber(f"{name} = {shown(value)}.", allowed="an integer >= 1")


def check_noise(noise: object) -> None:
    """Raises an error for a noise distribution that sfumato cannot sample."""
    if not isinstance(noise, Noise):
        raise InvalidDeclaration(
            f"Noise of {type(noise).__name__}.", allowed="the laws of sfumato.noise"
        )


def check_scores(distance: Distance) -> None:
    """Raises an error unless a sensitivity bounds the change of each score (norm Linf)."""
    if distance.norm is not Norm.LINF:
        raise InvalidDeclaration(
            f"Scores bounded in {distance.norm.value}.",
            allowed="the change of each score: Distance(Norm.LINF, ...)",
        )
