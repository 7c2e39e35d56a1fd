# SPDX-License-Identifier: Apache-2.0
"""Bodies: exact decimals, and nothing that is no JSON."""

from decimal import Decimal

import pytest

from sfumato.errors import WrongUse
from sfumato.web.bodies import read_form


def test_a_number_counts_by_its_digits() -> None:
    form = read_form(b'{"a": 0.1000000000000000055511151231257827, "b": 1e-7, "c": 3}', "abc")
    assert form == {
        "a": Decimal("0.1000000000000000055511151231257827"),
        "b": Decimal("1e-7"),
        "c": 3,
    }
    assert read_form(b"", "a") == {}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"a": NaN}', "not JSON"),
        (b'{"a": -Infinity}', "not JSON"),
        (b'{"a": 1, "a": 2}', "stands twice"),
        (b'{"a": {"x": 1, "x": 2}}', "stands twice"),
        (b'{"d": 1}', "Unknown key 'd'"),
        (b"[1]", "no object"),
        (b'{"a": 1}}', "not JSON"),
        (b'{"a": "\xff"}', "not JSON"),
        (b'{"a": ' + b"[" * 30_000 + b"]" * 30_000 + b"}", "not JSON"),
        (b'{"a": ' + b"9" * 60_000 + b"}", "not JSON"),
    ],
)
def test_what_is_no_form_is_refused(body: bytes, text: str) -> None:
    with pytest.raises(WrongUse) as refusal:
        read_form(body, "abc")
    assert text in str(refusal.value)
