# SPDX-License-Identifier: Apache-2.0
"""Canonical forms: JSON, one for each plan, the same in every process."""

import json
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.metadata.column import Column
from sfumato.plan import show
from sfumato.plan.aggregate import CountRows, CountUnits, CountValues, Mean, Sum
from sfumato.plan.scalar import Comparison, Constant, Estimate, Key
from sfumato.plan.show import canonical, title
from sfumato.testing.strategies import plans, tables

AGE = Column("age", sf.Integer(0, 9))


@settings(deadline=None)
@given(st.data())
def test_different_plans_have_different_forms(data):
    one, other = (data.draw(tables().flatmap(plans)) for _ in range(2))
    assert (canonical(one) == canonical(other)) == (one == other)
    assert json.loads(json.dumps(canonical(one))) == canonical(one)


ALIKE = [1, True, "1", Fraction(1), "true", None, "null", Key(1), Estimate(1), Constant(1), Constant("1"), (1,), ()]


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
    ],
)
def test_a_declaration_is_part_of_the_form(one, other):
    assert canonical(CountValues(Column("x", one))) != canonical(CountValues(Column("x", other)))


def test_the_form_is_the_same_in_another_process():
    code = (
        "import json, sfumato as sf; from sfumato.plan.show import canonical;"
        "from sfumato.plan import Sum; from sfumato.metadata import Column;"
        "print(json.dumps(canonical(Sum(Column('x', sf.Category('a', 'b'))))))"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(other.stdout) == canonical(Sum(Column("x", sf.Category("a", "b"))))


def test_exact_numbers_and_enums_have_a_form():
    assert canonical(Fraction(1, 3)) == {"fraction": "1/3"}
    assert canonical(Comparison.LE) == {"enum": "Comparison", "value": "<="}


@pytest.mark.parametrize("value", [0.5, {1}, object(), CountRows])
def test_what_is_not_exact_has_no_form(value):
    with pytest.raises(TypeError, match="no canonical form"):
        canonical(value)


def test_titles_are_what_one_writes():
    found = [title(each) for each in (CountRows(), CountUnits(), CountValues(AGE), Sum(AGE), Mean(AGE))]
    assert found == ["COUNT(*)", "COUNT(DISTINCT unit)", "COUNT(age)", "SUM(age)", "AVG(age)"]
