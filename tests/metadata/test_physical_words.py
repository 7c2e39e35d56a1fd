# SPDX-License-Identifier: Apache-2.0
"""A physical type that can hold no declared word is known by types alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.metadata.physical_words import can_hold

FAMILIES = ("text", "whole", "float", "decimal", "date", "boolean", "uuid", "null", "other")


@pytest.mark.parametrize(
    ("kind", "refused"),
    [
        (sf.Category("no", "yes"), {"whole", "boolean"}),
        (sf.Category("no", "0"), {"boolean"}),
        (sf.Category("true", "maybe"), {"whole"}),
        (sf.Category({"1": "no", "2": "yes"}), {"boolean"}),
        (sf.Category("01", "1.0", "+1", "-0", "1 "), {"whole", "boolean"}),
        (sf.Category("True", "False"), {"whole", "boolean"}),
        # what means missing is no value
        (sf.Category("no", "yes", missing="0"), {"whole", "boolean"}),
        (sf.Boolean(), set()),
        (sf.Boolean(true="yes", false="no"), {"whole", "boolean"}),
        (sf.Boolean(true="1", false="2"), {"boolean"}),
        (sf.Integer(0, 9), set()),
        (sf.Real(0, 1), set()),
        (sf.Text(), set()),
    ],
)
def test_only_types_that_hold_none_of_the_words_are_refused(kind: Any, refused: set[str]) -> None:
    assert {family for family in FAMILIES if not can_hold(kind, family)} == refused


@given(st.integers())
def test_every_whole_number_is_held_by_its_own_text(number: int) -> None:
    assert can_hold(sf.Category(number, "other"), "whole")
