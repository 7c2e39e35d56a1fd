# SPDX-License-Identifier: Apache-2.0
"""What was released has a form, and the charges that paid."""

from sfumato.config.released import Form, Result


def test_a_result_is_json_unless_it_says_otherwise() -> None:
    result = Result(b"{}", ("a",))
    assert result.form is Form.JSON and result.recalled is None
    assert Result(b"", ("a",), form=Form.ZIP) != result
