# SPDX-License-Identifier: Apache-2.0
"""The shape of an answer, read back from its canonical JSON.

Stored answers outlive the process, and their intervals can be asked at any confidence.
"""

from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidDeclaration
from sfumato.plan import output, scalar
from sfumato.plan.statistic import Statistic
from sfumato.privacy.event import Json

_NODES: dict[str, type] = {
    each.__name__: each
    for each in (
        output.Output,
        output.Item,
        output.Order,
        scalar.Key,
        scalar.Estimate,
        scalar.Constant,
        scalar.Compare,
        scalar.Member,
        scalar.Like,
        scalar.IsNull,
        scalar.Not,
        scalar.And,
        scalar.Or,
        scalar.Arithmetic,
        scalar.Case,
        scalar.Extreme,
        scalar.Coalesce,
        scalar.FloorDivide,
        scalar.Quotient,
        scalar.Lookup,
        scalar.DatePart,
        scalar.DateTrunc,
    )
}
_ENUMS: dict[str, type[Enum]] = {
    each.__name__: each for each in (scalar.Comparison, scalar.Operation, scalar.Part, Statistic)
}


def restore_output(form: Json) -> output.Output:
    """The output whose ``canonical`` form this is.

    Guarantees:
        an output survives its json form

    Raises:
        InvalidDeclaration: a node that this version does not know.
    """
    restored = _restore(form)
    if not isinstance(restored, output.Output):
        raise _unknown(type(restored).__name__)
    return restored


def _restore(form: Json) -> Any:
    if isinstance(form, list):
        return tuple(_restore(each) for each in form)
    if not isinstance(form, dict):
        return form
    if "fraction" in form:
        return Fraction(str(form["fraction"]))
    if "enum" in form:
        return _restore_enum(str(form["enum"]), form["value"])
    node = _NODES.get(str(form.get("node")))
    if node is None or not is_dataclass(node):
        raise _unknown(str(form.get("node")))
    # a field that an earlier version did not have takes its default
    known = {field.name: _restore(form[field.name]) for field in fields(node) if field.name in form}
    if any(each.name not in known and each.default is MISSING for each in fields(node)):
        raise _unknown(f"{node.__name__} without all that it needs")
    return node(**known)


def _restore_enum(name: str, value: Json) -> Enum:
    for each in _ENUMS.get(name, ()):
        if each.value == value:
            return each
    raise _unknown(f"{name} {value}")


def _unknown(name: str) -> InvalidDeclaration:
    return InvalidDeclaration(
        f"A stored answer holds a node that this version does not know: {name}."
    )
