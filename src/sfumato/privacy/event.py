# SPDX-License-Identifier: Apache-2.0
"""What was done to the data, as data.

An event names the very distribution drawn from. Its JSON form is for ever: a kind is never
removed, its meaning never changes, and next year's accountant re-reads last year's ledger.
An unknown kind, law or version raises.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.rational import to_fraction
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.privacy.distance import Distance, Norm

VERSION = 1
Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool | None"


@dataclass(frozen=True, slots=True)
class AdditiveNoise:
    """Independent noise added to every integer of a statistic of this sensitivity."""

    noise: Noise
    distance: Distance


@dataclass(frozen=True, slots=True)
class Composed:
    """All of these, one after the other (sequential composition)."""

    events: tuple["Event", ...]


Event: TypeAlias = AdditiveNoise | Composed


def event_to_json(event: Event) -> Json:
    """The stable form of an event.

    >>> from sfumato.noise import DiscreteLaplace
    >>> from sfumato.privacy.distance import Distance, Norm
    >>> event_to_json(AdditiveNoise(DiscreteLaplace(10), Distance(Norm.L1, Fraction(1))))["kind"]
    'additive_noise'
    """
    if isinstance(event, Composed):
        return {"kind": "composed", "version": VERSION, "events": [event_to_json(each) for each in event.events]}
    return {
        "kind": "additive_noise",
        "version": VERSION,
        "noise": _noise_to_json(event.noise),
        "norm": event.distance.norm.value,
        "sensitivity": str(event.distance.value),
    }


def event_from_json(value: Json) -> Event:
    """The event that was written; unknown means refuse.

    Guarantees:
        an event survives its json form
        an unknown event raises

    Raises:
        InvalidDeclaration: an unknown kind, law, norm or version, or a damaged form.
    """
    try:
        if not isinstance(value, dict) or type(value["version"]) is not int or value["version"] != VERSION:
            raise _unknown(value)
        return _READERS[str(value["kind"])](value)
    except (KeyError, ValueError, TypeError, InvalidNumber):
        raise _unknown(value) from None


def _read_composed(value: Mapping[str, Json]) -> Event:
    events = value["events"]
    if not isinstance(events, list):
        raise _unknown(events)
    return Composed(tuple(event_from_json(each) for each in events))


def _read_additive(value: Mapping[str, Json]) -> Event:
    distance = Distance(Norm(value["norm"]), _number(value["sensitivity"]))
    noise = value["noise"]
    if not isinstance(noise, dict):
        raise _unknown(noise)
    return AdditiveNoise(_LAWS[str(noise["law"])](noise), distance)


def _noise_to_json(noise: Noise) -> Json:
    if isinstance(noise, DiscreteLaplace):
        return {"law": "discrete_laplace", "scale": str(noise.scale)}
    return {"law": "discrete_gaussian", "sigma_squared": str(noise.sigma_squared)}


def _number(form: Json) -> Fraction:
    return to_fraction("A number of an event", str(form))


_LAWS: dict[str, Callable[[Mapping[str, Json]], Noise]] = {
    "discrete_laplace": lambda form: DiscreteLaplace(_number(form["scale"])),
    "discrete_gaussian": lambda form: DiscreteGaussian(sigma_squared=_number(form["sigma_squared"])),
}
_READERS: dict[str, Callable[[Mapping[str, Json]], Event]] = {
    "composed": _read_composed,
    "additive_noise": _read_additive,
}


def _unknown(value: object) -> InvalidDeclaration:
    kind = value.get("kind") if isinstance(value, dict) else type(value).__name__
    return InvalidDeclaration(
        f"An event that this version does not know: {kind!r}.",
        allowed=f"{', '.join(_READERS)}, version {VERSION}",
        remedy="Read this ledger with the version of sfumato that wrote it, or a newer one.",
    )
