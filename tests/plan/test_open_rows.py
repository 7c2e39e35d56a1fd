# SPDX-License-Identifier: Apache-2.0
"""What open rows admit, and what is read of them: the same rows and bounds by any values."""

from contextlib import suppress
from dataclasses import replace

import pytest

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.errors import InvalidDeclaration, WrongUse
from sfumato.metadata.column import Column
from sfumato.plan.open_rows import OpenRows
from sfumato.plan.rows import BoundedRows
from sfumato.plan.scalar import Constant
from sfumato.plan.value import Value
from sfumato.query.claims import require_proved
from sfumato.query.statistic import Opened
from tests.synthetic.clinics import plan, tiny


class Agreeable(BoundedRows):
    """Says of itself that it equals any rows."""

    __slots__ = ()
    __hash__ = BoundedRows.__hash__

    def __eq__(self, other: object) -> bool:
        return True


def by(rows: BoundedRows, number: int) -> BoundedRows:
    """The same rows by one constant."""
    value = Value.of(Column("n", sf.Integer(0, 9)))
    value = replace(value, expression=Constant(number))
    return replace(rows, rows=replace(rows.rows, values=(value,)))


def wrong(rows: BoundedRows) -> list[BoundedRows]:
    listed = rows.rows
    fewer = replace(listed.relation, sources=listed.relation.sources[::-1])
    return [
        replace(rows, most=3),
        replace(rows, naming="x"),
        replace(rows, unit=None, most=1),
        replace(rows, rows=replace(listed, relation=fewer)),
        plan(0, sf.ReplaceOne).rows,
        Agreeable(listed, rows.unit, rows.most, rows.neighbours),
    ]


def test_only_values_of_the_same_rows_and_bounds_are_admitted() -> None:
    rows = plan(0).rows
    whole = OpenRows(rows)
    assert whole.admits(rows) and whole.admits(by(rows, 3))
    assert not any(whole.admits(each) for each in wrong(rows))


def given(opened: Opened, plans: list[BoundedRows]) -> int:
    """How many of some plans are read."""
    found = 0
    for each in plans:
        with suppress(InvalidDeclaration):
            opened.unit_rows(each)
            found += 1
    return found


def test_rows_are_read_by_one_choice_of_values_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mutant admits any rows."""
    rows = plan(0).rows
    require_proved(OpenRows(rows), tiny())
    for each in (replace(rows, unit=None, most=1), plan(0, sf.ReplaceOne).rows):
        with pytest.raises(WrongUse):
            require_proved(OpenRows(each), tiny())
    tables = {"patients": [{"id": "a", "s": 1}], "visits": []}
    opened = Opened(OpenRows(rows), listed=lambda one: Reference(tables).rows(one, "key"))
    with opened:
        assert opened.unit_rows(rows).codes[0, :2].tolist() == [0, 1]
        for number in (3, 4):
            total = opened.derived(by(rows, number), "sum", lambda read: int(read.codes.sum()))
            assert total == number
        assert given(opened, wrong(rows)) == 0
        monkeypatch.setattr(OpenRows, "admits", lambda _self, _rows: True)
        assert given(opened, wrong(rows)) > 0
    assert given(opened, [rows]) == 0
