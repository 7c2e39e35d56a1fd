# SPDX-License-Identifier: Apache-2.0
"""What the columns of a fit were declared as when they were measured.

A stored answer is counts in the order of the declared values, with noise for the declared limits:
read by other declarations, they would be other counts. So an answer states its declarations.
"""

import hashlib
from collections.abc import Mapping

from sfumato.errors import WrongUse, shown
from sfumato.synthetic.schema import Schema

# Digits of a hash.
_DIGITS = 16
# What stands for the limits of the unit: no column has this name.
_LIMITS = ""


def measured_as(schema: Schema) -> dict[str, str]:
    """A hash of the declaration of each column, and of the limits that the noise is for.

    A stored fit states them, so that it is not read by other declarations than it was measured by.

    >>> import sfumato as sf
    >>> from sfumato.metadata import Dataset
    >>> from sfumato.synthetic.schema import schema_of
    >>> people = sf.Table("people.csv", columns={"age": sf.Integer(0, 99)})
    >>> sorted(measured_as(schema_of(Dataset("survey", {"people": people}), "people")))
    ['', 'age']
    """
    plan = schema.plan
    limits = (plan.refinement, str(plan.l1.value), str(plan.l2.value), plan.l1.relation.value)
    found = {_LIMITS: _short_hash(limits)}
    for one in schema.axes:
        found[one.name] = _short_hash(one.read.type)
    return found


def require_same(
    schema: Schema,
    digests: Mapping[str, str] | None,
) -> None:
    """Refuses a stored fit of columns that are declared otherwise now.

    ``digests`` is what ``measured_as`` gave; None for a fit from before it was stated.

    Raises:
        WrongUse: another declaration of a column, or other limits.
    """
    now = measured_as(schema)
    for name, digest in now.items():
        if digests is None or digests.get(name) == digest:
            continue
        what = f"The declaration of {shown(name)} in"
        if name == _LIMITS:
            what = "The limits or the relation of"
        raise WrongUse(
            f"{what} {shown(schema.table)}: other than at the measurement.",
            remedy="Open a session with the declarations of that time, or fit anew.",
        )


def _short_hash(value: object) -> str:
    """A short hash of the text of a value."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:_DIGITS]
