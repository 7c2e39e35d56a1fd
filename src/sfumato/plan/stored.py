# SPDX-License-Identifier: Apache-2.0
"""Reads the ``Output`` of a stored answer back from its canonical JSON.

It is needed to compute intervals of a stored answer at another confidence.
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
    node.__name__: node
    for node in (
        output.Output,
        output.Item,
        output.Order,
        scalar.Key,
        scalar.Estimate,
        scalar.Grouping,
        scalar.Constant,
        scalar.Compare,
        scalar.Member,
        scalar.Like,
        scalar.ChangeCase,
        scalar.Substring,
        scalar.Trim,
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
    kind.__name__: kind for kind in (scalar.Comparison, scalar.Operation, scalar.Part, Statistic)
}


def restore_output(form: Json) -> output.Output:
    """Returns an ``Output`` (the post-processing of a statement) from the canonical JSON in a
    stored answer.

    Guarantees:
        an output survives its json form

    Raises:
        InvalidDeclaration: the form has a node type that this version does not know.
    """
    restored = _restore(form)
    if not isinstance(restored, output.Output):
        raise _unknown(type(restored).__name__)
    return restored


def _restore(form: Json) -> Any:
    if isinstance(form, list):
        return tuple(map(_restore, form))
    if not isinstance(form, dict):
        return form
    if "fraction" in form:
        return Fraction(str(form["fraction"]))
    if "enum" in form:
        return _restore_enum(str(form["enum"]), form["value"])
    node = _NODES.get(str(form.get("node")))
    if node is None or not is_dataclass(node):
        raise _unknown(str(form.get("node")))
    values = {}
    for field in fields(node):
        if field.name in form:
            values[field.name] = _restore(form[field.name])
        # a field that an earlier version did not have takes its default
        elif field.default is MISSING:
            raise _unknown(f"{node.__name__} without all that it needs")
    return node(**values)


def _restore_enum(name: str, value: Json) -> Enum:
    for member in _ENUMS.get(name, ()):
        if member.value == value:
            return member
    raise _unknown(f"{name} {value}")


def _unknown(name: str) -> InvalidDeclaration:
    return InvalidDeclaration(
        f"A stored answer holds a node that this version does not know: {name}."
    )
