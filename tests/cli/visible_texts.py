# SPDX-License-Identifier: Apache-2.0
"""The texts of the sources that people read, by syntax tree: refusals, notes, printed lines."""

import ast
import builtins
from collections.abc import Iterator
from functools import cache

from sfumato import errors
from tests.architecture.structure import FILES, SOURCE, nodes

# what is filled in, where a sentence is compared
BLANK = "X9"
ERRORS = frozenset(
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.SfumatoError)
)
# Errors of Python are met by developers alone: the shell names their class and nothing else.
OF_PYTHON = frozenset(vars(builtins))
NOTES = frozenset(("note", "notes", "bias"))


def template(node: ast.AST) -> str:
    """A text as a sentence with ``BLANK`` for what is filled in; empty if it is no text."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            parts = [each.value if isinstance(each, ast.Constant) else BLANK for each in values]
            return "".join(map(str, parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = template(left), template(right)
            return (first or BLANK) + (second or BLANK) if first or second else ""
    return ""


@cache
def sentences() -> frozenset[str]:
    """All texts of the sources, and their lines and paragraphs, blanks as one."""
    texts: set[str] = set()
    for path in FILES:
        for node in nodes(path):
            text = template(node)
            texts |= {" ".join(part.split()) for part in (*text.split("\n"), *text.split("\n\n"))}
    return frozenset(texts)


def _callee(node: ast.Call) -> str:
    """The last name of what is called."""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _texts(node: ast.AST) -> Iterator[str]:
    """The texts that an argument may be: choices and members of tuples, too."""
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            yield from _texts(body)
            yield from _texts(orelse)
        case ast.Tuple(elts=members) | ast.List(elts=members) | ast.BoolOp(values=members):
            for member in members:
                yield from _texts(member)
        case ast.Starred(value=value):
            yield from _texts(value)
        case _:
            yield template(node)


def _shown(tree: tuple[ast.AST, ...]) -> Iterator[ast.AST]:
    """The expressions of a file that are shown: what errors, notes and ``say`` are given."""
    for node in tree:
        match node:
            case ast.Raise(exc=ast.Call() as call) if _callee(call) not in OF_PYTHON:
                yield from (*call.args, *(each.value for each in call.keywords))
            case ast.Call() if _callee(node) in ERRORS | {"say"}:
                yield from (*node.args[:1], *(each.value for each in node.keywords))
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append")):
                if name in NOTES:
                    yield from node.args
            case ast.Call(func=ast.Attribute(attr="note")):
                yield from node.args
            case ast.keyword(arg=str(name), value=value) if name in NOTES:
                yield value
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in NOTES:
                yield value
            case ast.AugAssign(target=ast.Name(id=name), value=value) if name in NOTES:
                yield value


def shown_texts(tree: tuple[ast.AST, ...]) -> set[str]:
    """The lines of more than one word that a file shows."""
    lines = {
        " ".join(line.split())
        for node in _shown(tree)
        for text in _texts(node)
        for line in text.split("\n")
    }
    return {line for line in lines if len(line.split()) > 1}


@cache
def shown_by_room() -> dict[str, frozenset[str]]:
    """What the files of each room show."""
    lines: dict[str, set[str]] = {}
    for path in FILES:
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        lines.setdefault(room, set()).update(shown_texts(nodes(path)))
    return {room: frozenset(texts) for room, texts in lines.items() if texts}
