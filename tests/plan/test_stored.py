# SPDX-License-Identifier: Apache-2.0
"""An output read back from its stored form is the output."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration
from sfumato.plan import stored
from sfumato.plan.output import Item, Order, Output
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    ChangeCase,
    Coalesce,
    Compare,
    Comparison,
    Constant,
    DatePart,
    DateTrunc,
    Estimate,
    Extreme,
    FloorDivide,
    IsNull,
    Key,
    Like,
    Lookup,
    Member,
    Not,
    Operation,
    Or,
    Part,
    Quotient,
    Scalar,
    Substring,
)
from sfumato.plan.show import canonical
from sfumato.plan.statistic import Statistic
from sfumato.plan.stored import restore_output

VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.fractions(), st.text())
LEAVES = st.one_of(
    st.builds(Key, st.integers(0, 5)),
    st.builds(Estimate, st.integers(0, 5), st.sampled_from(Statistic), st.integers(0, 2)),
    VALUES.map(Constant),
)


def every_node(inner):
    some = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Not, inner),
        st.builds(IsNull, inner),
        st.builds(And, some),
        st.builds(Or, some),
        st.builds(Coalesce, some),
        st.builds(Extreme, st.booleans(), some),
        st.builds(Member, inner, st.lists(st.integers(), max_size=3).map(tuple)),
        st.builds(Member, inner, st.lists(st.text(), max_size=3).map(tuple)),
        st.builds(Like, inner, st.text(max_size=3)),
        st.builds(ChangeCase, inner, st.booleans()),
        st.builds(Substring, inner, st.integers(1, 9), st.integers(0, 9)),
        st.builds(Compare, st.sampled_from(Comparison), inner, inner),
        st.builds(Arithmetic, st.sampled_from(Operation), inner, inner),
        st.builds(Quotient, inner, inner),
        st.builds(FloorDivide, inner, st.integers(1, 9)),
        st.builds(Case, st.lists(st.tuples(inner, inner), max_size=2).map(tuple), inner),
        st.builds(
            Lookup, inner, st.integers(), st.lists(st.none() | st.integers(), max_size=3).map(tuple)
        ),
        st.builds(DatePart, st.sampled_from(Part), inner),
        st.builds(DateTrunc, st.sampled_from(Part), inner),
    )


EXPRESSIONS = st.recursive(LEAVES, every_node, max_leaves=6)
OUTPUTS = st.builds(
    Output,
    st.lists(st.builds(Item, st.text(), EXPRESSIONS), max_size=3).map(tuple),
    st.none() | EXPRESSIONS,
    st.lists(st.builds(Order, EXPRESSIONS, st.booleans(), st.booleans()), max_size=2).map(tuple),
    st.none() | st.integers(0, 99),
    st.integers(0, 99),
    st.lists(st.lists(st.integers(0, 3), max_size=3).map(tuple), max_size=3).map(tuple),
)


@settings(deadline=None)
@given(OUTPUTS)
def test_an_output_survives_its_json_form(output):
    back = restore_output(json.loads(json.dumps(canonical(output))))
    assert back == output
    # 1 == True == Fraction(1) in Python; their forms differ
    assert canonical(back) == canonical(output)


@pytest.mark.parametrize(
    "expression",
    [
        Member(Key(0), (1, 2)),
        Case(((IsNull(Key(0)), Constant("x")),), Constant(None)),
        Lookup(Key(0), -1, (3, None)),
        Quotient(Key(0), Constant(10)),
        DatePart(Part.WEEKDAY, Key(0)),
        Estimate(2, Statistic.DEVIATION_OF_SAMPLE, 1),
    ],
)
def test_each_kind_of_node_comes_back(expression):
    output = Output((Item("a", expression),), sets=((0, 1), ()))
    assert restore_output(json.loads(json.dumps(canonical(output)))) == output


def test_every_node_above_the_noise_can_be_stored():
    above = {each.__name__ for each in Scalar.__args__} - {"Field"}
    assert set(stored._NODES) == above | {"Output", "Item", "Order"}


def test_a_field_that_an_earlier_version_did_not_have_takes_its_default():
    form = canonical(Output((Item("n", Estimate(3)),), limit=2))
    del form["sets"], form["items"][0]["expression"]["place"]
    assert restore_output(form) == Output((Item("n", Estimate(3)),), limit=2)


@pytest.mark.parametrize(
    "form",
    [
        {"node": "Nonsense"},
        {"node": "Scan", "table": "people"},
        {"node": "Key", "index": 0},
        {"node": "Output"},
        {},
        [],
        None,
        3,
        {
            "node": "Output",
            "items": [{"node": "Later"}],
            "having": None,
            "order": [],
            "limit": None,
            "offset": 0,
        },
        {"node": "Output", "items": [{"enum": "Later", "value": "x"}]},
        {"node": "Output", "items": [{"enum": "Part", "value": "century"}]},
    ],
)
def test_a_form_that_this_version_does_not_know_is_refused(form):
    with pytest.raises(InvalidDeclaration, match="does not know"):
        restore_output(form)
