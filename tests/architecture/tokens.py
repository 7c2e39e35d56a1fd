# SPDX-License-Identifier: Apache-2.0
"""Counts the tokens of code: comments, docstrings and layout do not count."""

import io
import tokenize
from functools import cache
from pathlib import Path
from tokenize import TokenInfo

_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_DOCSTRING = (tokenize.STRING, tokenize.INDENT)


def tokens(path: Path) -> list[TokenInfo]:
    """Returns the tokens of a Python file, without comments, docstrings and layout."""
    return list(_tokens(path.read_text(encoding="utf-8")))


def lines(counted: list[TokenInfo]) -> int:
    """Returns the number of lines on which the tokens stand: the code lines of a file."""
    number = last = 0
    for token in counted:
        first, end = max(token.start[0], last + 1), token.end[0]
        number += max(0, end - first + 1)
        last = max(last, end)
    return number


@cache
def _tokens(text: str) -> tuple[TokenInfo, ...]:
    counted, before = [], tokenize.INDENT
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        # a string that begins a module or a block is its docstring
        if token.type not in _LAYOUT and (token.type, before) != _DOCSTRING:
            counted.append(token)
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type
    return tuple(counted)
