# SPDX-License-Identifier: Apache-2.0
"""Counts the tokens of code: comments, docstrings and layout do not count."""

import ast
import io
import tokenize
from collections.abc import Iterator
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
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


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
    docstrings = set(_docstrings(ast.parse(text)))
    return tuple(
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in _LAYOUT
        and not (token.type == tokenize.STRING and token.start in docstrings)
    )


def _docstrings(tree: ast.AST) -> Iterator[tuple[int, int]]:
    """The position of each docstring of a tree."""
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            yield node.body[0].lineno, node.body[0].col_offset
