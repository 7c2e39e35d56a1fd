# SPDX-License-Identifier: Apache-2.0
"""Whose rows are read, how many of a unit, and what has to be declared for it."""

import pytest

import sfumato as sf
from sfumato.errors import MissingDeclaration
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Scan
from sfumato.plan.rows import RowList
from sfumato.plan.value import Value
from sfumato.query.pipeline import compile_rows
from tests.query.passes.test_cube import AGE, NOTE, SEX, dataset


def compiled(unit, relation=sf.AddRemove, owner=True):
    known = dataset(unit, relation)
    scan = Scan(
        "people", columns=(AGE, SEX, NOTE), owner=owner_of(known, "people") if owner else None
    )
    return compile_rows(RowList(scan, (Value.of(SEX), Value.of(AGE))), known)


@pytest.mark.parametrize(
    ("unit", "most"),
    [
        (sf.Unit("who", max_rows_total=7), 7),
        (sf.Unit("who", max_rows=3, max_groups=2), 6),
        (sf.Unit("who", max_rows=3, max_groups=2, max_rows_total=5), 5),
        (None, 1),
    ],
)
def test_so_many_rows_of_a_unit_are_read(unit, most):
    plan = compiled(unit, sf.ReplaceOne)
    assert (plan.unit, plan.most, plan.neighbours) == ("who" if unit else None, most, sf.ReplaceOne)


def test_a_unit_without_a_limit_of_its_rows_is_refused_with_what_to_declare():
    with pytest.raises(MissingDeclaration, match=r"max_rows_total.*dropped"):
        compiled(sf.Unit("who", max_rows=3))


def test_what_no_value_reads_is_not_read():
    assert compiled(None).rows.relation.columns == (AGE, SEX)


def test_rows_have_the_declared_owner():
    with pytest.raises(TypeError, match="owner"):
        compiled(sf.Unit("who", max_rows_total=7), owner=False)
