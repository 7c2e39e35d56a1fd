# SPDX-License-Identifier: Apache-2.0
"""Canonical forms: JSON, one for each plan, the same in every process."""

import json
import subprocess
import sys
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.ledger.journal import canonical_json
from sfumato.metadata.column import Column
from sfumato.plan import aggregate, owner, relation, scalar, show, stages, value
from sfumato.plan.aggregate import (
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    Variance,
)
from sfumato.plan.owner import Owner
from sfumato.plan.relation import Computed, PerUnit, Scan, Summary
from sfumato.plan.scalar import Comparison, Constant, Estimate, Key
from sfumato.plan.scalar import Part as PartOfDate
from sfumato.plan.show import canonical, form
from sfumato.plan.stages import Raw
from sfumato.plan.value import GroupKey, Value
from tests.contracts import plans as world

AGE = Value.of(Column("age", sf.Integer(0, 9)))


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(world.questions(depth=1), world.questions(depth=1))
def test_different_plans_have_different_forms(one, other):
    assert (canonical(one) == canonical(other)) == (one == other)
    assert json.loads(json.dumps(canonical(one))) == canonical(one)
    assert form(one) == canonical_json(canonical(one))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.tuples(inner),
    )
)
def test_a_form_is_written_as_canonical_json(value):
    assert form(value) == canonical_json(value)


ALIKE = [
    1,
    True,
    "1",
    Fraction(1),
    "true",
    None,
    "null",
    Key(1),
    Estimate(1),
    Constant(1),
    Constant("1"),
    (1,),
    (),
]


def collisions():
    forms = [json.dumps(show.canonical(each), sort_keys=True) for each in ALIKE]
    return len(forms) - len(set(forms))


def test_values_that_look_alike_have_different_forms(monkeypatch):
    assert collisions() == 0
    monkeypatch.setattr(show, "canonical", str)
    assert collisions() > 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (sf.Integer(0, 9), sf.Integer(0, 9, missing="N")),
        (sf.Integer(0, 9), sf.Real(0, 9, step=1)),
        (sf.Real(0, 8, step=1), sf.Real(0, 8, step=2)),
        (sf.Category("a", "b"), sf.Category("b", "a")),
        (sf.Category("a"), sf.Category({"a": "b"})),
        (sf.Text(), sf.Text(missing="")),
        (
            sf.Date("2024-01-01", "2024-12-31"),
            sf.Date("2024-01-01", "2024-12-31", format="%d/%m/%Y"),
        ),
        (
            sf.Date("2024-01-01", "2024-12-31", format="%m/%d/%Y"),
            sf.Date("2024-01-01", "2024-12-31", format="%d/%m/%Y"),
        ),
    ],
)
def test_a_declaration_is_part_of_the_form(one, other):
    forms = [canonical(CountValues(Value.of(Column("x", kind)))) for kind in (one, other)]
    assert forms[0] != forms[1]


def test_a_date_without_a_format_has_the_form_of_before():
    day = Value.of(Column("d", sf.Date("1970-01-01", "1970-01-03")))
    kind = '{"lower_code":0,"missing":null,"node":"Date","step":{"fraction":"1"},"upper_code":2}'
    column = f'{{"name":"d","node":"Column","type":{kind}}}'
    field = f'{{"column":{column},"node":"Field"}}'
    value = f'{{"expression":{field},"node":"Value","type":{kind}}}'
    assert form(CountValues(day)) == f'{{"node":"CountValues","value":{value}}}'


def named(name):
    """A plan that holds a value under a name in every place where one can stand."""
    read = Value(name, AGE.type, AGE.expression)
    summed = Computed(Column("per_unit.sum", sf.Integer(0, 90)), Summary.SUM, read)
    source = PerUnit(Scan("t", columns=(AGE.expression.column,)), (), (summed,))
    return Raw(source, (GroupKey(read, (0, 1)),), (Sum(read), Quantiles(read, (Fraction(1, 2),))))


def test_the_name_of_a_value_is_no_part_of_the_form(monkeypatch):
    assert canonical(named("age")) == canonical(named("e.age"))
    assert [each.title for each in named("e.age").aggregates] == [
        "SUM(e.age)",
        "QUANTILE(e.age, 0.5)",
    ]
    # all else is
    other = replace(
        named("age"), aggregates=(Sum(Value("age", sf.Integer(0, 10), AGE.expression)),)
    )
    assert canonical(other) != canonical(replace(other, aggregates=(Sum(AGE),)))
    members = show._members
    monkeypatch.setattr(
        show,
        "_members",
        lambda kind: (
            members(kind) and tuple(each for each in members(kind) if each[1] != "expression")
        ),
    )
    assert canonical(Sum(AGE)) == canonical(Sum(Value("age", AGE.type, Constant(3))))


def test_what_is_left_out_of_the_form_is_left_out_of_comparisons_alone():
    kinds = [
        each
        for room in (aggregate, owner, relation, scalar, stages, value)
        for each in vars(room).values()
        if is_dataclass(each)
    ]
    left_out = {
        (each.__name__, field.name) for each in kinds for field in fields(each) if not field.compare
    }
    assert left_out == {("Value", "name"), ("Value", "rounding"), ("Union", "exclusive")}


def test_the_form_is_the_same_in_another_process():
    code = (
        "import json, sfumato as sf; from sfumato.plan.show import canonical;"
        "from sfumato.plan import Sum, Value; from sfumato.metadata import Column;"
        "print(json.dumps(canonical(Sum(Value.of(Column('x', sf.Category('a', 'b')))))))"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(other.stdout) == canonical(Sum(Value.of(Column("x", sf.Category("a", "b")))))


def test_exact_numbers_and_enums_have_a_form():
    assert canonical(Fraction(1, 3)) == {"fraction": "1/3"}
    assert canonical(Comparison.LE) == {"enum": "Comparison", "value": "<="}
    assert canonical(PartOfDate.WEEKDAY) == {"enum": "Part", "value": "isodow"}


@given(st.one_of(st.floats(), st.binary(), st.sets(st.integers()), st.just(CountRows)))
def test_what_is_not_exact_has_no_form(value):
    with pytest.raises(TypeError, match="no canonical form"):
        canonical(value)


def test_titles_are_what_one_writes():
    quantiles = Quantiles(AGE, (Fraction(1, 4), Fraction(1, 2)))
    single = (CountRows(), CountUnits(), quantiles)
    of_age = [make(AGE) for make in (CountValues, CountDistinct, Sum, Mean, Variance)]
    assert [each.title for each in (*single, *of_age)] == [
        "COUNT(*)",
        "COUNT(DISTINCT unit)",
        "QUANTILE(age, 0.25, 0.5)",
        "COUNT(age)",
        "COUNT(DISTINCT age)",
        "SUM(age)",
        "AVG(age)",
        "VARIANCE(age)",
    ]


def test_a_form_that_is_known_is_put_in_its_place():
    value = Value.of(Column("age", sf.Integer(0, 120)))
    node = Sum(value)
    assert (
        form(node, {id(value): "known"}) == form(node).replace(form(value), "known") != form(node)
    )


def test_quantiles_of_many_codes_have_another_form_than_those_on_the_grid_of_before():
    """Answers with a wrong rank error were stored under the form of ``Quantiles``."""
    levels = (Fraction(1, 2),)
    few, many = (Value.of(Column("x", sf.Integer(0, most))) for most in (1023, 1024))
    assert form(aggregate.quantiles(few, levels)) == (
        f'{{"levels":[{{"fraction":"1/2"}}],"node":"Quantiles","value":{form(few)}}}'
    )
    assert form(aggregate.quantiles(many, levels)) == (
        '{"ends":false,"leaf":1,"levels":[{"fraction":"1/2"}],'
        f'"node":"CodeQuantiles","value":{form(many)}}}'
    )


def test_an_owner_has_the_form_of_before_unless_its_columns_have_no_order():
    before = '{"columns":["a","b"],"keys":[],"node":"Owner","owner":null,"via":null}'
    assert form(Owner(("a", "b"))) == before
    assert (
        form(Owner(("a", "b"), unordered=True))
        == before[:-1].replace('"via"', '"unordered":true,"via"') + "}"
    )
