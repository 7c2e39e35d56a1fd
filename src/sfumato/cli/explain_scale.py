# SPDX-License-Identifier: Apache-2.0
"""``sfumato explain-epsilon --per``: what privacy at a scale means between places."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from sfumato.accounting.interpret import Attacker
from sfumato.exact.rational import decimal_text
from sfumato.privacy.event import Json
from sfumato.privacy.guarantee import PureDP
from sfumato.privacy.relaxations import MetricDP, length_text
from sfumato.show.render import text_table

# Which places are told apart, and how far they are from each other, in metres.
_PLACES = (
    ("two houses side by side", Fraction(20)),
    ("two ends of a street", Fraction(300)),
    ("two ends of a town", Fraction(5000)),
)
_WARNINGS = (
    "Places far apart are not hidden from each other: it is no differential privacy of the place.",
    "k reports cost k times as much; the mean of many reports comes near the place.",
    "A report that is repeated shows that nothing changed.",
)


@dataclass(frozen=True, slots=True)
class Between:
    """How hard two places are to tell apart."""

    places: str
    distance: Fraction
    promise: PureDP

    @property
    def accuracy(self) -> Fraction:
        """How often the best guess between the two is right, at even odds; at most."""
        return Fraction(Attacker(self.promise).accuracy("0.5"))


def between(promise: MetricDP) -> Iterator[Between]:
    """Yields what a promise means between houses, the ends of a street and of a town."""
    for places, distance in _PLACES:
        yield Between(places, distance, promise.at(distance))


def scale_text(promise: MetricDP) -> str:
    """Returns a readable table for a metric privacy guarantee: how well an attacker can tell two
    places apart, at several distances.
    """
    body = []
    for each in between(promise):
        share = f"{float(each.accuracy):.4%}"
        epsilon = f"{float(each.promise.epsilon):.4g}"
        body.append([each.places, length_text(each.distance), epsilon, share])
    title = f"epsilon = {decimal_text(promise.epsilon)} per {length_text(promise.per)}"
    header = ["to tell apart", "distance", "epsilon", "right at most, at even odds"]
    reach = length_text(Fraction(round(4.744 * float(promise.per / promise.epsilon))))
    lines = [title, "", text_table(header, body), ""]
    lines.append(f"A report of Blur is within {reach} of the place in 95% of all reports.")
    return "\n".join([*lines, *_WARNINGS])


def scale_json(promise: MetricDP) -> dict[str, Json]:
    """Returns the table of ``scale_text`` as a JSON object."""
    return {
        "epsilon": decimal_text(promise.epsilon),
        "per_metres": decimal_text(promise.per),
        "between": [
            {
                "places": each.places,
                "metres": decimal_text(each.distance),
                "epsilon": float(each.promise.epsilon),
                "accuracy": float(each.accuracy),
            }
            for each in between(promise)
        ],
        "warnings": list[Json](_WARNINGS),
    }
