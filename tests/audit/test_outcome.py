# SPDX-License-Identifier: Apache-2.0
"""Outputs are one outcome exactly if nobody can tell them apart."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.outcome import Raised, key_of
from sfumato.errors import InvalidDeclaration
from sfumato.mechanisms import Winner

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.fractions()
)
OUTPUTS = st.recursive(
    SCALARS,
    lambda parts: st.lists(parts) | st.tuples(parts, parts) | st.dictionaries(st.text(), parts),
    max_leaves=8,
)


class Opaque:
    """Equal only to itself."""


class Unhashable:
    def __eq__(self, other):
        return True

    __hash__ = None


@dataclass(frozen=True)
class Frozen:
    part: object


@given(OUTPUTS, OUTPUTS)
def test_outputs_are_one_outcome_exactly_if_they_print_alike(one, other):
    # the text of these types shows type, order, sign of zero and NaN, and nothing else
    assert (key_of(one) == key_of(other)) == (repr(one) == repr(other))
    assert hash(key_of(one)) == hash(key_of(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ([1], (1,)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.int64(1), 1),
        (np.array([1]), np.array([1.0])),
        (np.array([[1, 2]]), np.array([1, 2])),
        (Winner(0, 1), Winner(0, 2)),
        (Raised("ValueError"), Raised("KeyError")),
        ("1", b"1"),
    ],
)
def test_what_an_attacker_sees_is_told_apart(one, other):
    assert key_of(one) != key_of(other)


def test_equal_outputs_are_one_outcome():
    assert key_of(float("nan")) == key_of(float("nan"))
    assert key_of(np.array([np.nan, 1])) == key_of(np.array([np.nan, 1]))
    assert key_of({1, 2}) == key_of({2, 1}) and key_of(range(3)) == key_of(range(3))
    assert key_of(Winner(0, 1)) == key_of(Winner(0, 1)) and key_of(Fraction(1, 2)) == key_of(
        Fraction(1, 2)
    )


@pytest.mark.parametrize(
    "output", [Opaque(), Unhashable(), [Opaque()], {"a": Unhashable()}, Frozen([1])]
)
def test_what_cannot_be_counted_is_refused(output):
    with pytest.raises(InvalidDeclaration, match="cannot be counted") as error:
        key_of(output)
    assert "0x" not in str(error.value)
