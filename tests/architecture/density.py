# SPDX-License-Identifier: Apache-2.0
"""Measures how dense the source is; ``density.json`` holds the limits, which only fall.

``python -m tests.architecture.density`` lowers the limits to what is measured now.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.structure import FILES, ROOT, SOURCE, functions, nodes
from tests.architecture.tokens import lines, tokens

LIMITS = Path(__file__).with_name("density.json")
TOKENS_A_FUNCTION = 300
LINE_LENGTH = 100
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_READERS = ("src", "tests", "benchmarks", "tools", "prove", "chaos", "docs")


def measured() -> dict[str, float]:
    """Returns the measures by name, each of the whole source; lower is better."""
    return {
        "tokens a code line": tokens_a_line(),
        f"functions above {TOKENS_A_FUNCTION} tokens": len(large_functions()),
        "conditional expressions a hundred lines": conditionals(),
        "nested comprehensions": len(nested_comprehensions()),
        f"lines above {LINE_LENGTH} characters": len(long_lines()),
        "public names that no other file reads": len(unread_names()),
        **{f"exported names without an example: {room}": n for room, n in undocumented().items()},
    }


def tokens_a_line() -> float:
    """Returns the mean number of tokens of a code line."""
    total = sum(len(tokens(path)) for path in FILES)
    return round(total / _code_lines(), 2)


def large_functions() -> list[str]:
    """Returns the functions that have more tokens than one reading takes."""
    large = []
    for path in FILES:
        starts = [token.start[0] for token in tokens(path)]
        for node in functions(path):
            size = sum(node.lineno <= line <= (node.end_lineno or 0) for line in starts)
            if size > TOKENS_A_FUNCTION:
                large.append(f"{_place(path, node)} {node.name}: {size}")
    return large


def conditionals() -> float:
    """Returns the number of conditional expressions in a hundred code lines."""
    found = sum(isinstance(node, ast.IfExp) for path in FILES for node in nodes(path))
    return round(100 * found / _code_lines(), 2)


def nested_comprehensions() -> list[str]:
    """Returns the comprehensions that hold another one or have more than two loops."""
    return [
        _place(path, node)
        for path in FILES
        for node in nodes(path)
        if isinstance(node, _COMPREHENSIONS) and (len(node.generators) > 2 or _holds_another(node))
    ]


def long_lines() -> list[str]:
    """Returns the lines, docstrings and comments too, that have too many characters."""
    return [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in FILES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if len(line) > LINE_LENGTH
    ]


def unread_names() -> list[str]:
    """Returns the public functions and classes whose name is in no other file.

    A decorator may hand them on: a command of click is read by its name.
    """
    files = Counter(
        word
        for folder in _READERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md")
        for word in set(re.findall(r"\w+", path.read_text("utf-8")))
    )
    return [
        f"{_place(path, node)} {node.name}"
        for path in FILES
        for node in _top_level(path)
        if not node.name.startswith("_") and not node.decorator_list and files[node.name] <= 1
    ]


def undocumented() -> dict[str, int]:
    """Returns how many exported functions and classes of each room have no example that runs."""
    return {
        path.parent.name: sum(
            ">>>" not in (ast.get_docstring(node) or "") for node in _exported(path)
        )
        for path in FILES
        if path.name == "__init__.py" and path.parent.parent == SOURCE
    }


def limits() -> dict[str, float]:
    """Returns the limits of ``density.json``."""
    return dict(json.loads(LIMITS.read_text("utf-8")))


def lower() -> None:
    """Writes the limits anew: what is measured, and no limit above the one before."""
    before = limits() if LIMITS.exists() else {}
    after = {name: min(value, before.get(name, value)) for name, value in measured().items()}
    LIMITS.write_text(json.dumps(after, indent=1) + "\n", encoding="utf-8")


def _code_lines() -> int:
    return sum(lines(tokens(path)) for path in FILES)


def _place(path: Path, node: ast.stmt | ast.expr) -> str:
    return f"{path.relative_to(SOURCE).as_posix()}:{node.lineno}"


def _holds_another(node: ast.AST) -> bool:
    return any(isinstance(inner, _COMPREHENSIONS) and inner is not node for inner in ast.walk(node))


def _top_level(path: Path) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    for node in ast.iter_child_nodes(nodes(path)[0]):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node


def _exported(init: Path) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """The functions and classes of a room that its ``__all__`` names."""
    names = {
        name
        for node in ast.iter_child_nodes(nodes(init)[0])
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        for name in ast.literal_eval(node.value)
    }
    for path in sorted(init.parent.rglob("*.py")):
        for node in _top_level(path):
            if node.name in names:
                yield node


if __name__ == "__main__":
    lower()
