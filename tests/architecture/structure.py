# SPDX-License-Identifier: Apache-2.0
"""What the architecture tests read of the source."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "sfumato"
FILES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))


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


def module_name(path: Path) -> str:
    """The dotted name of a file."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file's syntax tree, the module first."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a file, nested ones too."""
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def code_lines(path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of code of a function, without its docstring, comments and blank lines."""
    body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
    lines = path.read_text(encoding="utf-8").splitlines()[body[0].lineno - 1 : node.end_lineno]
    return sum(1 for line in lines if line.strip() and not line.strip().startswith("#"))


def imports(path: Path) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Every import of a file, and whether it stands inside a function."""
    statements = [node for node in nodes(path) if isinstance(node, ast.Import | ast.ImportFrom)]
    late = [(node.lineno, node.end_lineno or node.lineno) for node in functions(path)]
    for node in statements:
        yield node, any(first <= node.lineno <= last for first, last in late)
