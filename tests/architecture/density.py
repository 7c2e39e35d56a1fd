# SPDX-License-Identifier: Apache-2.0
"""Measures how dense the source is: ``python -m tests.architecture.density`` reports it.

Nothing fails: readers decide. A limit would be met by cutting logic into slices.
"""

import ast
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.architecture.structure import FILES, ROOT, SOURCE, functions, nodes
from tests.architecture.tokens import lines, tokens

TOKENS_A_FUNCTION = 300
LINE_LENGTH = 100
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_READERS = ("src", "tests", "benchmarks", "tools", "prove", "chaos", "docs")


def places() -> dict[str, Callable[[], list[str]]]:
    """Returns what there should be none of, by name, as functions that list the places."""
    rooms = [path.parent.name for path in FILES if _is_room(path)]
    return {
        f"functions above {TOKENS_A_FUNCTION} tokens": large_functions,
        "nested comprehensions": nested_comprehensions,
        f"lines above {LINE_LENGTH} characters": long_lines,
        "public names that no other file reads": unread_names,
        **{
            f"exported names without an example: {room}": partial(undocumented, room)
            for room in rooms
        },
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
            size = bisect_right(starts, node.end_lineno or 0) - bisect_left(starts, node.lineno)
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


def undocumented(room: str) -> list[str]:
    """Returns the exported functions and classes of a room that have no example that runs."""
    return [
        f"{room}: {node.name}"
        for node in _exported(SOURCE / room / "__init__.py")
        if ">>>" not in (ast.get_docstring(node) or "")
    ]


MEANS = {
    "tokens a code line": tokens_a_line,
    "conditional expressions a hundred lines": conditionals,
}


def report() -> str:
    """The measures, a line each, and the places."""
    lines = [f"{name}: {measure()}" for name, measure in MEANS.items()]
    for name, list_places in places().items():
        listed_places = list_places()
        lines += [f"{name}: {len(listed_places)}", *(f"  {place}" for place in listed_places)]
    return "\n".join(lines)


def _is_room(path: Path) -> bool:
    return path.name == "__init__.py" and path.parent.parent == SOURCE


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
    print(report())
