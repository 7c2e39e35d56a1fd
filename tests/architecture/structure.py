# SPDX-License-Identifier: Apache-2.0
"""What the architecture tests read of the source."""

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "sfumato"
FILES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def sections(text: str) -> dict[str, tuple[str, ...]]:
    """The modules of each section of a list like ``src/sfumato/TRUSTED``."""
    found: dict[str, tuple[str, ...]] = {}
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
            found[section] = ()
        elif line and not line.startswith("#"):
            found[section] += (line,)
    return found


TRUSTED = sections((SOURCE / "TRUSTED").read_text(encoding="utf-8"))


def tokens(path: Path) -> int:
    """The number of tokens of a file without comments, docstrings and layout."""
    text = path.read_text(encoding="utf-8")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        (node.body[0].lineno, node.body[0].col_offset)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None
    }
    return sum(
        token.type not in _LAYOUT
        and not (token.type == tokenize.STRING and token.start in docstrings)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
    )


def module_name(path: Path) -> str:
    """The dotted name of a file."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a file, nested ones too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def code_lines(path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of code of a function, without its docstring, comments and blank lines."""
    body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
    lines = path.read_text(encoding="utf-8").splitlines()[body[0].lineno - 1 : node.end_lineno]
    return sum(1 for line in lines if line.strip() and not line.strip().startswith("#"))


def imports(path: Path) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Every import of a file, and whether it stands inside a function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {id(each) for function in functions_of(tree) for each in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, id(node) in inside


def functions_of(tree: ast.AST) -> list[ast.AST]:
    """The functions of a tree."""
    return [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
