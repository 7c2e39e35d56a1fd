# SPDX-License-Identifier: Apache-2.0
"""The JSON form of events. It is stable: later versions must read every ledger ever written.

The form of an event has its ``kind`` and its fields, by their names; the type of a field says how
it is written (``_field``). A kind is never removed and never changes its meaning. A field is left
out while it has its default; that of a new field is the old meaning. An unknown kind, distribution,
field or version raises.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias, get_args, get_type_hints

from sfumato.errors import InvalidDeclaration, SfumatoError
from sfumato.exact.rational import to_fraction
from sfumato.noise import (
    Binomial,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
    Geometric,
    Noise,
    RoundedGaussian,
    Skellam,
    Truncated,
)
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event.composition import Event
from sfumato.privacy.event.sampling_designs import (
    Design,
    FixedSample,
    PoissonSample,
    WithReplacementSample,
)
from sfumato.privacy.unit import Relation

__all__ = ["VERSION", "Json", "event_from_json", "event_to_json"]

VERSION = 1
Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool | None"


@dataclass(frozen=True, slots=True)
class _Field:
    """The functions that write and read a field; a field with the value ``absent`` is omitted."""

    name: str
    write: Callable[[Any], Json]
    read: Callable[[Any], object]
    absent: object = ...


def event_to_json(event: Event) -> Json:
    """Returns the stable JSON form of an event.

    >>> from sfumato.privacy import AdditiveNoise
    >>> one = Distance(Norm.L1, Fraction(1))
    >>> event_to_json(AdditiveNoise(DiscreteLaplace(10), one))["kind"]
    'additive_noise'
    """
    kind = _NAMES.get(type(event))
    if kind is None:
        raise _unknown(event)
    return {"kind": kind, "version": VERSION, **_written(event, _KINDS[kind][1])}


def event_from_json(value: Json) -> Event:
    """Returns the event of a JSON form.

    Guarantees:
        an event survives its json form
        an unknown event raises

    Raises:
        InvalidDeclaration: the form has an unknown kind, distribution, field or version, or is
            damaged.
    """
    try:
        if not isinstance(value, dict):
            raise _unknown(value)
        version = value["version"]
        if type(version) is not int or version != VERSION:
            raise _unknown(value)
        make, fields = _KINDS[value["kind"]]
        event: Event = make(**_read(_without(value, "kind", "version"), fields))
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError, SfumatoError):
        raise _unknown(value) from None
    return event


def _written(value: object, fields: Sequence[_Field]) -> dict[str, Json]:
    """The entries of the fields of a value; a distance has three: norm, sensitivity, relation."""
    form: dict[str, Json] = {}
    for field in fields:
        part = getattr(value, field.name)
        if field.name == "distance":
            form |= _written(part, _DISTANCE) | {"sensitivity": str(part.value)}
        elif part != field.absent:
            form[field.name] = field.write(part)
    return form


def _without(form: Mapping[str, Json], *names: str) -> dict[str, Json]:
    return {name: part for name, part in form.items() if name not in names}


def _read(form: Mapping[str, Json], fields: Sequence[_Field]) -> dict[str, object]:
    """The fields of a value; the inverse of ``_written``."""
    field_names = {field.name for field in fields}
    if _DISTANCE_FIELD in fields:
        field_names = field_names - {"distance"} | {"norm", "sensitivity", "relation"}
    if set(form) - field_names:
        raise KeyError(str(set(form) - field_names))
    values: dict[str, object] = {}
    for field in fields:
        if field is _DISTANCE_FIELD:
            values["distance"] = _distance(form)
        elif field.name in form:
            values[field.name] = field.read(form[field.name])
        elif field.absent is ...:
            raise KeyError(field.name)
    return values


def _distance(form: Mapping[str, Json]) -> Distance:
    relation = form.get("relation", Relation.ADD_REMOVE.value)
    return Distance(Norm(form["norm"]), _number(form["sensitivity"]), Relation(relation))


def _noise_to_json(noise: Noise) -> Json:
    name = _LAW_NAMES.get(type(noise))
    if name is None:
        raise _unknown(noise)
    return {"law": name, **_written(noise, _LAWS[name][1])}


def _noise_from_json(form: Mapping[str, Json]) -> Noise:
    make, fields = _LAWS[str(form["law"])]
    noise: Noise = make(**_read(_without(form, "law"), fields))
    return noise


def _design_to_json(design: Design) -> Json:
    name = _DESIGN_NAMES.get(type(design))
    if name is None:
        raise _unknown(design)
    return {"design": name, **_written(design, _DESIGNS[name][1])}


def _design_from_json(form: Mapping[str, Json]) -> Design:
    make, fields = _DESIGNS[str(form["design"])]
    design: Design = make(**_read(_without(form, "design"), fields))
    return design


def _number(form: Json) -> Fraction:
    if not isinstance(form, str):
        raise TypeError(form)
    return to_fraction("A number of an event", form)


def _whole(form: Json) -> int:
    if type(form) is not int:
        raise TypeError(form)
    return form


def _text(form: Json) -> str:
    if type(form) is not str:
        raise TypeError(form)
    return form


def _truth(form: Json) -> bool:
    if type(form) is not bool:
        raise TypeError(form)
    return form


def _events(form: Json) -> tuple[Event, ...]:
    if not isinstance(form, list):
        raise TypeError(form)
    return tuple(map(event_from_json, form))


def _fraction(name: str) -> _Field:
    return _Field(name, str, _number)


def _integer(name: str) -> _Field:
    return _Field(name, int, _whole)


def _choice(name: str, kind: type[Enum], absent: object = ...) -> _Field:
    return _Field(name, lambda member: str(member.value), kind, absent)


def _noise(name: str) -> _Field:
    return _Field(name, _noise_to_json, _noise_from_json)


_RELATION = _choice("relation", Relation, absent=Relation.ADD_REMOVE)
_DISTANCE = (_choice("norm", Norm), _RELATION)
_DISTANCE_FIELD = _Field("distance", str, str)

_LAWS: dict[str, tuple[Callable[..., Any], tuple[_Field, ...]]] = {
    "discrete_laplace": (DiscreteLaplace, (_fraction("scale"),)),
    "discrete_gaussian": (DiscreteGaussian, (_fraction("sigma_squared"),)),
    "discrete_staircase": (
        DiscreteStaircase,
        (_fraction("epsilon"), _integer("sensitivity"), _integer("step")),
    ),
    "binomial": (Binomial, (_integer("trials"), _fraction("probability"))),
    "skellam": (Skellam, (_fraction("rate"),)),
    "rounded_gaussian": (RoundedGaussian, (_fraction("sigma"),)),
    "geometric": (Geometric, (_fraction("scale"),)),
    "truncated": (Truncated, (_noise("whole"), _integer("lower"), _integer("upper"))),
}
_LAW_NAMES = {make: name for name, (make, _) in _LAWS.items()}


def _fields(kind: type[Event | Design]) -> tuple[_Field, ...]:
    """Returns how each field of a kind of event or sample is written and read, in their order."""
    types = get_type_hints(kind)
    return tuple(_field(field, types[field.name]) for field in fields(kind))


def _field(field: Field[Any], annotation: Any) -> _Field:
    """Returns how a field is written and read, by its type; its default is omitted."""
    if annotation is Distance:
        return _DISTANCE_FIELD
    absent = ... if field.default is MISSING else field.default
    kinds = get_args(annotation) or (annotation,)
    if set(kinds) <= set(get_args(Event)):
        return _Field(field.name, event_to_json, event_from_json, absent)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _choice(field.name, annotation, absent)
    write, read = _FORMS[annotation]
    return _Field(field.name, write, read, absent)


_FORMS: dict[Any, tuple[Callable[[Any], Json], Callable[[Any], object]]] = {
    Fraction: (str, _number),
    int: (int, _whole),
    int | None: (int, _whole),
    bool: (bool, _truth),
    str: (str, _text),
    Noise: (_noise_to_json, _noise_from_json),
    DiscreteGaussian: (_noise_to_json, _noise_from_json),
    Design: (_design_to_json, _design_from_json),
    tuple[int, ...]: (list, lambda form: tuple(map(_whole, form))),
    tuple[Event, ...]: (lambda events: [event_to_json(event) for event in events], _events),
}
_DESIGNS: dict[str, tuple[Callable[..., Any], tuple[_Field, ...]]] = {
    "poisson": (PoissonSample, _fields(PoissonSample)),
    "fixed": (FixedSample, _fields(FixedSample)),
    "with_replacement": (WithReplacementSample, _fields(WithReplacementSample)),
}
_KINDS: dict[str, tuple[Callable[..., Any], tuple[_Field, ...]]] = {
    kind.kind: (kind, _fields(kind)) for kind in get_args(Event)
}
_DESIGN_NAMES = {make: name for name, (make, _) in _DESIGNS.items()}
_NAMES = {make: name for name, (make, _) in _KINDS.items()}


def _unknown(value: object) -> InvalidDeclaration:
    kind = value.get("kind") if isinstance(value, dict) else type(value).__name__
    return InvalidDeclaration(
        f"An event that this version does not know: {kind!r}.",
        allowed=f"{', '.join(_KINDS)}, version {VERSION}",
        remedy="Read this ledger with the version of sfumato that wrote it, or a newer one.",
    )
