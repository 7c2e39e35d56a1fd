# SPDX-License-Identifier: Apache-2.0
"""Canaries in the data, and everything in which one could be seen."""

import html
import io
import logging
import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any

# It stands in cells, names of columns, files and folders, paths and addresses; and in no
# declaration.
CANARY = "canary4711"
_DEEPEST = 6
_PLAIN = (str, bool, int, float, complex, bytes, type, type(None))


class Bird:
    """What shows a canary whoever prints it: a frame does."""

    def __repr__(self) -> str:
        return CANARY

    def _repr_html_(self) -> str:
        return CANARY


def faces(thing: object) -> Iterator[tuple[str, str]]:
    """Every form in which an object shows itself, by name."""
    yield "repr", repr(thing)
    yield "str", str(thing)
    yield "format", f"{thing}"
    for name in ("_repr_html_", "_repr_svg_", "_repr_markdown_", "_repr_json_", "__rich_repr__"):
        if hasattr(thing, name) and not isinstance(thing, type):
            yield name, html.unescape(str(getattr(thing, name)()))
    with suppress(Exception):
        yield "pickle", pickle.dumps(thing).decode("latin-1")


def reached(root: object, name: str) -> Iterator[tuple[str, object]]:
    """An object and all that is reached from it by public attributes and items, each with the way
    to it.
    """
    seen: set[int] = set()
    kept = []
    waiting = [(name, root, 0)]
    while waiting:
        path, thing, depth = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        # an object that is gone would lend its number to another one
        kept.append(thing)
        yield path, thing
        if depth < _DEEPEST:
            waiting += [(f"{path}{step}", inner, depth + 1) for step, inner in _inside(thing)]


def _inside(thing: object) -> Iterable[tuple[str, object]]:
    if isinstance(thing, _PLAIN):
        return
    if isinstance(thing, Mapping):
        yield from ((f"[{key!r}]", value) for key, value in thing.items())
        yield from ((f" key {key!r}", key) for key in thing)
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from ((f"[{place}]", value) for place, value in enumerate(thing))
    elif type(thing).__module__.startswith(
        ("sfumato", "builtins", "pandas", "polars", "pyarrow", "duckdb")
    ):
        for name in dir(thing):
            if not name.startswith("_"):
                found = _read(thing, name)
                if not callable(found):
                    yield f".{name}", found


def _read(thing: object, name: str) -> object:
    try:
        return getattr(thing, name)
    except Exception as refused:
        return refused


def sightings(thing: object, name: str) -> list[str]:
    """Where a canary is seen in an object, or in anything that is reached from it."""
    return [
        f"{path} by {form}"
        for path, each in reached(thing, name)
        for form, text in faces(each)
        if CANARY in text.lower()
    ]


def errors_of(error: BaseException) -> Iterator[BaseException]:
    """An error, what caused it and what was being handled, shown or not."""
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None:
            yield each
            waiting += [each.__cause__, each.__context__]


def told(error: BaseException) -> list[str]:
    """Where a canary is seen in an error and its chain."""
    found = [line for each in errors_of(error) for line in sightings(each, type(each).__name__)]
    found += [
        f"{type(each).__name__} holds {name}"
        for each in errors_of(error)
        for name, value in [
            *vars(each).items(),
            ("args", each.args),
            ("object", getattr(each, "object", "")),
        ]
        if CANARY in repr(value).lower()
    ]
    lines = "".join(traceback.format_exception(error))
    return found + (["traceback"] if CANARY in lines else [])


class _Log(logging.Handler):
    """All that is logged, but to the owner."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != "sfumato.owner":
            self.lines.append(f"{record.name}: {record.getMessage()} {record.exc_text or ''}")


@contextmanager
def watched() -> Iterator[Callable[[], list[str]]]:
    """What is printed or logged inside, but to the owner, with a canary in it."""
    handler, root, printed = _Log(), logging.getLogger(), io.StringIO()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            yield lambda: [
                each for each in [*handler.lines, printed.getvalue()] if CANARY in each.lower()
            ]
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def attempt(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a call returns, and where a canary is seen: in its error, on a stream or in a log."""
    result, found = None, []
    with watched() as seen:
        try:
            result = call()
        except Exception as error:
            found = told(error)
        found += seen()
    return result, found
