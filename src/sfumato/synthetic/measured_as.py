# SPDX-License-Identifier: Apache-2.0
"""Hashes of the declarations under which a fit was measured; stored with its answer.

A stored answer is counts in the order of the declared values, with noise for the declared limits.
Read with other declarations, the counts would mean something else, so ``load`` compares the hashes.
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
    """Returns a hash of each column's declaration and, under the empty string, of the limits of a
    unit for which the noise was calibrated.

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
    """Raises an error if a column or a limit is declared differently now than when the stored fit
    was measured.

    ``digests`` is the stored result of ``measured_as``; None for fits of versions that did not
    store it.

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
    """Returns a short hash of a string."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:_DIGITS]
