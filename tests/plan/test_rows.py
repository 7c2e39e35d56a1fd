# SPDX-License-Identifier: Apache-2.0
"""Rows of units as plans: what cannot be built wrong, and whose rows they are."""

import pytest

import sfumato as sf
from sfumato.errors import MissingDeclaration, WrongUse
from sfumato.metadata.column import Column
from sfumato.plan.relation import Scan
from sfumato.plan.rows import MISSING, BoundedRows, RowList
from sfumato.plan.value import Value
from sfumato.privacy.unit import Relation

AGE, NOTE = Column("age", sf.Integer(0, 9)), Column("note", sf.Text())
SCAN = Scan("people", columns=(AGE, NOTE))


def test_a_missing_value_has_a_code_of_its_own() -> None:
    # below any code: those of every type lie within 2^53
    assert MISSING < -(2**53)


def test_rows_without_values_are_refused() -> None:
    with pytest.raises(WrongUse):
        RowList(SCAN, ())


def test_a_text_is_refused_with_what_to_declare_where_codes_are_read() -> None:
    with pytest.raises(MissingDeclaration, match=r"(?s)note.*Category"):
        RowList(SCAN, (Value.of(AGE), Value.of(NOTE))).require_codes()
    RowList(SCAN, (Value.of(AGE),)).require_codes()


def test_a_text_has_one_code() -> None:
    assert RowList(SCAN, (Value.of(NOTE), Value.of(AGE))).widths == (1, 1)


@pytest.mark.parametrize(("unit", "most"), [("who", 0), (None, 2)])
def test_a_limit_that_is_none_is_refused(unit: str | None, most: int) -> None:
    with pytest.raises(ValueError, match="at most"):
        BoundedRows(RowList(SCAN, (Value.of(AGE),)), unit, most, Relation.ADD_REMOVE)
