# SPDX-License-Identifier: Apache-2.0
"""The number of units with a row that passes a condition."""

from dataclasses import dataclass

from sfumato.plan.aggregate import CountUnits
from sfumato.plan.value import Value


@dataclass(frozen=True, slots=True)
class CountUnitsWhere(CountUnits):
    """COUNT(DISTINCT unit) of a condition: one integer; each unit with a row in the group whose
    value is not NULL adds 1.

    >>> from sfumato.metadata.column import Column, Integer
    >>> CountUnitsWhere(Value.of(Column("age", Integer(0, 120)))).title
    'COUNT(DISTINCT unit) of age'
    """

    value: Value

    @property
    def read(self) -> Value:
        return self.value

    @property
    def title(self) -> str:
        return f"COUNT(DISTINCT unit) of {self.value.name}"
