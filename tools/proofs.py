# SPDX-License-Identifier: Apache-2.0
"""Keeps proof notes and the functions that they prove together.

A note ``name.proof.md`` begins with lines ``- `function`: `hash``` (or ``Class.method``) for
the functions of ``name.py`` beside it; a function of another file has its path below src/sfumato
before it, ``- `room/file.py:function`: `hash```. ``check`` fails where a function changed after its
hash was recorded; ``update`` records the hashes, to be run after reading the note again.
The hash is of the syntax tree without docstrings, so comments and layout do not count.
"""

import ast
import hashlib
import re
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE = re.compile(r"^- `(?P<name>(?:[\w/]+\.py:)?[\w.]+)`: `(?P<hash>[^`]*)`$", re.MULTILINE)


def notes() -> list[Path]:
    """Every proof note."""
    return sorted((ROOT / "src").rglob("*.proof.md"))


def hash_of(source: Path, name: str) -> str:
    """The hash of a function, method or class of a file; empty where there is none."""
    node: ast.AST = _without_docstrings(source.read_text(encoding="utf-8"))
    for part in name.split("."):
        named = [
            child for child in ast.iter_child_nodes(node) if getattr(child, "name", None) == part
        ]
        if not named:
            return ""
        node = named[0]
    return hashlib.sha256(repr(_shape(node)).encode()).hexdigest()[:16]


@cache
def _without_docstrings(text: str) -> ast.Module:
    """The syntax tree of a file, without the docstrings of its functions and classes."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _shape(node: object) -> object:
    """A syntax tree as plain data, alike in every version of Python."""
    if isinstance(node, list):
        return [_shape(each) for each in node]
    if not isinstance(node, ast.AST):
        return node
    fields = [
        (name, _shape(value))
        for name, value in ast.iter_fields(node)
        if value is not None and value != []
    ]
    return [type(node).__name__, *fields]


def stale(note: Path) -> list[str]:
    """The functions of a note whose hash is not the recorded one, and those that are gone."""
    recorded = LINE.findall(note.read_text(encoding="utf-8"))
    if not recorded:
        return [f"{note.name} names no function"]
    return [
        name if ":" in name else f"{note.name.replace('.proof.md', '.py')}:{name}"
        for name, seen in recorded
        if (_hash_in_note(note, name) or "gone") != seen
    ]


def _hash_in_note(note: Path, name: str) -> str:
    """The hash of a function that a note names."""
    path, _, function = name.rpartition(":")
    if path:
        return hash_of(ROOT / "src/sfumato" / path, function)
    return hash_of(note.with_name(note.name.replace(".proof.md", ".py")), function)


def update(note: Path) -> None:
    """Records the present hashes in a note."""
    text = note.read_text(encoding="utf-8")
    note.write_text(
        LINE.sub(lambda line: f"- `{line['name']}`: `{_hash_in_note(note, line['name'])}`", text),
        encoding="utf-8",
    )


def main(arguments: list[str]) -> int:
    """``check`` or ``update``."""
    if arguments == ["update"]:
        for note in notes():
            update(note)
        return 0
    problems = [problem for note in notes() for problem in stale(note)]
    for problem in problems:
        print(
            f"proof note is stale: {problem}; read the note again, then: make proofs",
            file=sys.stderr,
        )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
