# SPDX-License-Identifier: Apache-2.0
"""Units with a row that passes a condition are a part like all units, with a value to read."""

import sfumato as sf
from sfumato.metadata.column import Column
from sfumato.plan.aggregate import CountUnits
from sfumato.plan.show import canonical
from sfumato.plan.units_where import CountUnitsWhere
from sfumato.plan.value import Value

AGE = Value.of(Column("age", sf.Integer(0, 9)))


def test_it_is_a_count_of_units_with_a_value():
    part = CountUnitsWhere(AGE)
    assert isinstance(part, CountUnits) and part != CountUnits()
    assert (part.read, part.counts, part.width, part.largest) == (AGE, "units", 1, 1)
    assert part.never_negative and part.title == "COUNT(DISTINCT unit) of age"


def test_its_form_is_of_its_own():
    assert canonical(CountUnits()) == {"node": "CountUnits"}
    assert canonical(CountUnitsWhere(AGE))["node"] == "CountUnitsWhere"
