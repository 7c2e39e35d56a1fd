# SPDX-License-Identifier: Apache-2.0
"""Whose rows a cube has, how many of them count, and what has to be declared for it."""

from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.errors import MissingDeclaration, UnsupportedSql
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.cube import Cube, axis
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Filter, PublicJoin, Scan, Semi
from sfumato.plan.scalar import Compare, Comparison, Constant, Field
from sfumato.plan.value import Value
from sfumato.query.pipeline import compile_cube

AGE, SEX, NOTE = (
    Column("age", sf.Integer(0, 9)),
    Column("sex", sf.Boolean()),
    Column("note", sf.Text()),
)
COLUMNS = {each.name: each.type for each in (AGE, SEX, NOTE)}
FINE = 2**20


def dataset(unit, relation=sf.AddRemove, **others):
    return Dataset(
        "data", {"people": sf.Table("p.csv", unit=unit, columns=COLUMNS)} | others, relation
    )


def compiled(unit, relation=sf.AddRemove, of=lambda scan: scan):
    known = dataset(unit, relation)
    scan = Scan("people", columns=(AGE, SEX, NOTE), owner=owner_of(known, "people"))
    return compile_cube(Cube(of(scan), (axis(Value.of(SEX)),)), known)


@pytest.mark.parametrize(
    ("unit", "most"),
    [
        (sf.Unit("who", max_rows_total=7), 7),
        (sf.Unit("who", max_rows=3, max_groups=2), 6),
        (sf.Unit("who", max_rows=3, max_groups=2, max_rows_total=5), 5),
        (sf.Unit("who", max_rows=3, max_rows_total=50), 50),
    ],
)
def test_so_many_rows_of_a_unit_count_in_full(unit, most):
    plan = compiled(unit)
    assert (plan.unit, plan.most, plan.refinement) == ("who", most, FINE)
    assert [plan.l1.value, plan.l2.value, plan.apart.value] == [
        most * FINE,
        (most * FINE) ** 2,
        most * FINE,
    ]
    assert {plan.l1.relation, plan.l2.relation, plan.apart.relation} == {sf.AddRemove}
    replaced = compiled(unit, sf.ReplaceOne)
    assert [replaced.l1.value, replaced.l2.value] == [2 * most * FINE, 2 * (most * FINE) ** 2]
    assert {replaced.l1.relation, replaced.l2.relation, replaced.apart.relation} == {sf.ReplaceOne}


def test_where_each_row_is_a_unit_one_counts():
    plan = compiled(None)
    assert (plan.unit, plan.most, plan.refinement, plan.l1.value) == (None, 1, 1, Fraction(1))


@pytest.mark.parametrize(
    "unit", [sf.Unit("who"), sf.Unit("who", max_rows=2), sf.Unit("who", max_groups=4)]
)
def test_a_unit_without_a_limit_of_its_rows_is_refused_with_what_to_declare(unit):
    with pytest.raises(
        MissingDeclaration, match=r"'who' has no max_rows_total(.|\n)*max_rows_total=\.\.\."
    ):
        compiled(unit)


def test_a_limit_that_is_to_be_learnt_is_refused():
    with pytest.raises(MissingDeclaration, match=r"sf\.AUTO"):
        compiled(sf.Unit("who", max_rows_total=sf.AUTO))


def test_what_no_axis_reads_is_not_read():
    test = Compare(Comparison.GT, Field(AGE), Constant(3))
    plan = compiled(None, of=lambda scan: Filter(scan, test))
    assert plan.cube.relation == Filter(Scan("people", columns=(AGE, SEX)), test)


def test_rows_have_the_declared_owner_and_one_unit():
    known = dataset(
        sf.Unit("who", max_rows_total=1), days=sf.Table("d.csv", unit=sf.Unit("day"), columns={})
    )
    people, days = (Scan(name, owner=owner_of(known, name)) for name in ("people", "days"))
    sexes = (axis(Value("sex", SEX.type, Constant(None))),)
    with pytest.raises(TypeError, match="declared owner"):
        compile_cube(Cube(Scan("people"), sexes), known)
    with pytest.raises(UnsupportedSql, match="different units"):
        compile_cube(Cube(Semi(people, days), sexes), known)
    with pytest.raises(UnsupportedSql, match="public"):
        compile_cube(
            Cube(PublicJoin(people, Scan("days", columns=(SEX,)), Constant(None), SEX), sexes),
            known,
        )


def test_one_row_of_a_unit_is_one_row_in_all():
    assert compiled(sf.Unit("who", max_rows=1)).most == 1
