# SPDX-License-Identifier: Apache-2.0
"""Applies a table of renames: ``python -m tools.rename TABLE``.

A line of the table is ``file function old new``: a parameter or a local of a function, by its
qualified name. With ``.`` for the function, a private function, class or constant of the file; what
other files import of it, and the strings with which tests replace it, follow. So do the keywords
with which a renamed parameter is passed. Nothing is written unless ``tools.same_names`` proves it.
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tools import same_names

FOLDERS = ("src", "tests", "tools", "benchmarks", "prove", "chaos")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Row(NamedTuple):
    """One rename."""

    path: str
    function: str
    old: str
    new: str


class Refused(Exception):
    """The table cannot be applied."""


def read_table(text: str) -> list[Row]:
    """The rows of a table; ``#`` begins a comment."""
    lines = [line.split("#")[0].split() for line in text.splitlines()]
    return [Row(*words) for words in lines if words]


def apply(rows: list[Row], files: Mapping[str, str], frozen: same_names.Frozen) -> dict[str, str]:
    """The files that change, with their new text; raises ``Refused``."""
    for ends in (Counter(row[:3] for row in rows), Counter((*row[:2], row.new) for row in rows)):
        if twice := [" ".join(end) for end, number in ends.items() if number > 1]:
            raise Refused(f"renamed twice, or two names become one: {twice}")
    texts = dict(files)
    for row in rows:
        _apply_row(row, texts)
    changed = {path: text for path, text in texts.items() if text != files[path]}
    pairs = {path: (files[path], text) for path, text in changed.items()}
    if found := same_names.problems(pairs, frozen):
        raise Refused("\n".join(found))
    return changed


def _apply_row(row: Row, texts: dict[str, str]) -> None:
    """Applies a rename to all texts."""
    if row.path not in texts:
        raise Refused(f"no such file: {row.path}")
    module = row.path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    # what another file has that means the row
    sign, called = f"{row.old}=", row.function.rpartition(".")[2]
    if row.function == ".":
        sign, called = row.old, module.rpartition(".")[2]
    for path, text in texts.items():
        if path != row.path and not (sign in text and called in text):
            continue
        tree = ast.parse(text)
        if row.function != ".":
            places = set(_keywords(tree, called, row.old))
            own = _function(tree, row) if path == row.path else None
            places |= set(_names(own, row.old)) if own else set()
        elif path == row.path:
            own, places = tree, set(_names(tree, row.old, attributes=True))
        else:
            own = None
            places = set(_imported(tree, module, row.old))
        lines = [line.encode() for line in text.splitlines(keepends=True)]
        for line, column in sorted(places, reverse=True):
            content = lines[line - 1]
            start = content.index(row.old.encode(), column)
            lines[line - 1] = (
                content[:start] + row.new.encode() + content[start + len(row.old.encode()) :]
            )
        if isinstance(own, _DEFINITIONS):
            # what its docstring quotes
            quoted, new = f"``{row.old}``".encode(), f"``{row.new}``".encode()
            inside = slice(own.lineno - 1, own.end_lineno)
            lines[inside] = [line.replace(quoted, new) for line in lines[inside]]
        elif own is not None and row.old.startswith("_"):
            lines = [re.sub(rf"\b{row.old}\b", row.new, b"".join(lines).decode()).encode()]
        texts[path] = b"".join(lines).decode()
        if path == row.path and texts[path] == text:
            raise Refused(f"{row.path}: no name {row.old} in {row.function}")


def _function(tree: ast.AST, row: Row) -> ast.AST:
    """The function of a row."""
    node = tree
    for name in row.function.split("."):
        named = [
            each
            for each in ast.iter_child_nodes(node)
            if isinstance(each, _DEFINITIONS) and each.name == name
        ]
        if len(named) != 1:
            raise Refused(f"{row.path}: {len(named)} functions named {row.function}")
        node = named[0]
    return node


def _names(tree: ast.AST, name: str, *, attributes: bool = False) -> Iterator[tuple[int, int]]:
    """Where a name stands as a variable; with ``attributes``, in any other way."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=own) | ast.arg(arg=own) | ast.ExceptHandler(name=own) if own == name:
                yield (
                    node.lineno,
                    node.col_offset + (7 if isinstance(node, ast.ExceptHandler) else 0),
                )
            case ast.MatchAs(name=own) if own == name:
                yield _before_end(node, name)
            case ast.Attribute(attr=own) if attributes and own == name:
                yield _before_end(node, name)
            case ast.FunctionDef(name=own) | ast.ClassDef(name=own) if attributes and own == name:
                yield node.lineno, node.col_offset + len("def")


def _keywords(tree: ast.AST, function: str, name: str) -> Iterator[tuple[int, int]]:
    """Where a call of a function passes a parameter by its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = {ast.unparse(part).rpartition(".")[2] for part in (node.func, *node.args[:1])}
            for keyword in node.keywords:
                if function in called and keyword.arg == name:
                    yield keyword.lineno, keyword.col_offset


def _imported(tree: ast.AST, module: str, name: str) -> Iterator[tuple[int, int]]:
    """Where another file means a name of a module: imports, attributes, replaced names."""
    package, _, last = module.rpartition(".")
    owners: set[str] = {module}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if node.module == module or (node.module == package and alias.name == last):
                    owners.add(alias.asname or alias.name)
                if node.module == module and alias.name == name:
                    yield alias.lineno, alias.col_offset
                    yield from () if alias.asname else _names(tree, name)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=owner, attr=own) if own == name:
                if ast.unparse(owner) in owners:
                    yield _before_end(node, name)
            case ast.Call(args=[target, ast.Constant(value=own) as text, *_]) if own == name:
                if ast.unparse(target) in owners:
                    yield text.lineno, text.col_offset
            case ast.Constant(value=str(own)) if own == f"{module}.{name}":
                yield _before_end(node, f"{name}'")


def _before_end(node: ast.expr | ast.pattern, name: str) -> tuple[int, int]:
    """Where a name stands that ends a node."""
    return node.end_lineno or 0, (node.end_col_offset or 0) - len(name.encode())


def main(arguments: list[str]) -> int:
    """Applies a table and lays the files out; prints why it is refused."""
    paths = [path for folder in FOLDERS for path in Path(folder).rglob("*.py")]
    files = {str(path): path.read_text(encoding="utf-8") for path in paths}
    try:
        rows = read_table(Path(arguments[0]).read_text(encoding="utf-8"))
        changed = apply(rows, files, same_names.frozen_names())
    except Refused as problem:
        print(problem, file=sys.stderr)
        return 1
    for path, text in changed.items():
        Path(path).write_text(text, encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run([*ruff, "check", "-q", "--select", "I", "--fix", *changed], check=True)
    subprocess.run([*ruff, "format", "-q", *changed], check=True)
    print(f"{len(rows)} renames in {len(changed)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
