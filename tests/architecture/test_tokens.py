# SPDX-License-Identifier: Apache-2.0
"""The counter of tokens."""

from tests.architecture.tokens import lines, tokens


def test_comments_docstrings_and_layout_are_not_counted(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        '"""A module."""\n\n# a comment\ndef f(x):\n    """Adds."""\n    return x + 1  # one\n'
        'y = f(\n    "text"\n)\n'
    )
    counted = tokens(path)
    words = ["def", "f", "(", "x", ")", ":", "return", "x", "+", "1"]
    assert [token.string for token in counted] == [*words, "y", "=", "f", "(", '"text"', ")"]
    assert lines(counted) == 5
