# SPDX-License-Identifier: Apache-2.0
"""The JSON form of an oracle in a task: its kind and fields; probabilities are decimal strings.

Numbers above 2^53 are not exact in the JSON of every language.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from sfumato.errors import InvalidDeclaration
from sfumato.privacy.event import Json
from sfumato.telemetry.oracles.attributes import AttributesOracle
from sfumato.telemetry.oracles.fragments import FragmentsOracle
from sfumato.telemetry.oracles.frequency import FREQUENCY, FrequencyOracle
from sfumato.telemetry.oracles.levels import LevelsOracle
from sfumato.telemetry.oracles.mean import MeanOracle
from sfumato.telemetry.oracles.prefixes import PrefixesOracle
from sfumato.telemetry.oracles.rappor import RapporOracle
from sfumato.telemetry.oracles.sketch import SketchOracle

AnyOracle: TypeAlias = (
    FrequencyOracle
    | MeanOracle
    | LevelsOracle
    | AttributesOracle
    | RapporOracle
    | SketchOracle
    | PrefixesOracle
    | FragmentsOracle
)
_OTHERS = (
    MeanOracle,
    LevelsOracle,
    AttributesOracle,
    RapporOracle,
    SketchOracle,
    PrefixesOracle,
    FragmentsOracle,
)
KINDS: Mapping[str, type[AnyOracle]] = {kind.kind: kind for kind in (*FREQUENCY, *_OTHERS)}
_WEIGHTS = {
    "truth",
    "other_weight",
    "near",
    "far",
    "kept",
    "added",
    "share",
    "low",
    "high",
    "one",
    "zero",
}


def oracle_to_json(oracle: AnyOracle) -> dict[str, Json]:
    """Returns the JSON form of an oracle.

    >>> from sfumato.telemetry.oracles.bit import bit
    >>> oracle_to_json(bit(10, 1))
    {'kind': 'bit', 'values': 10, 'truth': '1348565050...'}
    """
    form: dict[str, Json] = {"kind": oracle.kind}
    for field in fields(oracle):
        form[field.name] = _written(field.name, getattr(oracle, field.name))
    return form


def _written(name: str, part: object) -> Json:
    """A field of an oracle: a weight as a text, the parts of another oracle as their forms."""
    if isinstance(part, tuple):
        return [oracle_to_json(each) for each in part]
    if isinstance(part, AnyOracle):
        return oracle_to_json(part)
    if name in _WEIGHTS:
        return str(part)
    if type(part) is not int:
        raise TypeError(name)
    return part


def oracle_from_json(form: Mapping[str, Json]) -> AnyOracle:
    """Returns the oracle of a JSON form.

    Raises:
        InvalidDeclaration: an oracle that this version does not know, or with invalid fields.
        KeyError, TypeError, ValueError: the form is damaged.
    """
    kind = KINDS.get(str(form["kind"]))
    if kind is None:
        raise InvalidDeclaration(
            f"An oracle that this version does not know: {form['kind']!r}.",
            allowed=", ".join(KINDS),
        )
    names = {field.name for field in fields(kind)}
    if set(form) != names | {"kind"}:
        raise KeyError("fields of an oracle")
    read: dict[str, Any] = {name: _read(name, form[name]) for name in names}
    return kind(**read)


def _read(name: str, part: Json) -> object:
    """Returns a field of an oracle; the inverse of ``_written``."""
    if isinstance(part, list):
        return tuple(oracle_from_json(each) for each in part)
    if isinstance(part, Mapping):
        return oracle_from_json(part)
    return _number(name, part)


def _number(name: str, part: Json) -> int:
    """Returns a number of an oracle: a weight from a string, others as they are."""
    if name in _WEIGHTS:
        if isinstance(part, str) and part.isdecimal() and part.isascii():
            return int(part)
    elif type(part) is int:
        return part
    raise TypeError(name)
