# SPDX-License-Identifier: Apache-2.0
"""An output read back from its stored form is the output."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration
from sfumato.plan import stored
from sfumato.plan.output import Item, Order, Output
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Compare,
    Comparison,
    Constant,
    Estimate,
    IsNull,
    Key,
    Member,
    Not,
    Operation,
    Or,
    Scalar,
)
from sfumato.plan.show import canonical
from sfumato.plan.stored import restore_output

VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.fractions(), st.text())
EXPRESSIONS = st.recursive(
    st.one_of(st.builds(Key, st.integers(0, 5)), st.builds(Estimate, st.integers(0, 5)), VALUES.map(Constant)),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(IsNull, inner),
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Member, inner, st.lists(st.integers(), max_size=3).map(tuple)),
        st.builds(Member, inner, st.lists(st.text(), max_size=3).map(tuple)),
        st.builds(Compare, st.sampled_from(Comparison), inner, inner),
        st.builds(Arithmetic, st.sampled_from(Operation), inner, inner),
    ),
    max_leaves=6,
)
OUTPUTS = st.builds(
    Output,
    st.lists(st.builds(Item, st.text(), EXPRESSIONS), max_size=3).map(tuple),
    st.none() | EXPRESSIONS,
    st.lists(st.builds(Order, EXPRESSIONS, st.booleans(), st.booleans()), max_size=2).map(tuple),
    st.none() | st.integers(0, 99),
    st.integers(0, 99),
)


@given(OUTPUTS)
def test_an_output_survives_its_json_form(output):
    back = restore_output(json.loads(json.dumps(canonical(output))))
    assert back == output
    # 1 == True == Fraction(1) in Python; their forms differ
    assert canonical(back) == canonical(output)


def test_every_node_above_the_noise_can_be_stored():
    above = {each.__name__ for each in Scalar.__args__} - {"Field"}
    assert set(stored._NODES) == above | {"Output", "Item", "Order"}


@pytest.mark.parametrize(
    "form",
    [
        {"node": "Nonsense"},
        {"node": "Scan", "table": "people"},
        {"node": "Key", "index": 0},
        {},
        [],
        None,
        3,
        {"node": "Output", "items": [{"node": "Later"}], "having": None, "order": [], "limit": None, "offset": 0},
    ],
)
def test_a_form_that_this_version_does_not_know_is_refused(form):
    with pytest.raises(InvalidDeclaration, match="does not know"):
        restore_output(form)
