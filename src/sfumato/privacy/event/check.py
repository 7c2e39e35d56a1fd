# SPDX-License-Identifier: Apache-2.0
"""What the fields of every event must be: positive numbers, counts, bounded scores."""

from fractions import Fraction

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.privacy.distance import Distance, Norm


def check_positive(name: str, value: Fraction) -> None:
    """Refuses a number that is not greater than 0."""
    if value <= 0:
        raise InvalidNumber(f"{name} = {value}.", allowed="greater than 0")


def check_count(name: str, value: int) -> None:
    """Refuses what is not a whole number from 1 on."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidNumber(f"{name} = {value!r}.", allowed="an integer >= 1")


def check_scores(distance: Distance) -> None:
    """Refuses scores that are not bounded each."""
    if distance.norm is not Norm.LINF:
        raise InvalidDeclaration(
            f"Scores bounded in {distance.norm.value}.", allowed="the change of each score: Distance(Norm.LINF, ...)"
        )
