# SPDX-License-Identifier: Apache-2.0
"""A walk over all that is reached from an object, in search of private rows.

It follows attributes, slots, closures, containers, bound arguments, caches, and the frames of
tracebacks; it looks at reprs, pickles, arrays, tensors and tables. It does not enter modules,
classes, ``Session`` and ``Frame``, which are the owner's; an engine, which has the owner's tables,
is sighted, and not entered.
"""

import gc
import logging
import pickle
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

import sfumato as sf
from sfumato.engines.duckdb import DuckDB
from sfumato.query.dataframe import Frame

# What is of the process or of the owner, and not of an answer.
_ELSEWHERE = (
    ModuleType,
    type,
    sf.Session,
    Frame,
    logging.Logger,
    logging.Handler,
    threading.Thread,
)
_SHOWN = ("_repr_html_", "_repr_svg_", "explain", "to_json", "to_dicts")
# The form of an engine.
ENGINE = "reads the tables"
# How near a number is to one of the rows.
_NEAR = 1e-6


@dataclass(frozen=True)
class Canaries:
    """What stands in the rows and in no declaration: a text, whole numbers, and fractions.

    Any array with one of the whole numbers, or with all of the fractions, shows rows.
    """

    text: str
    whole: tuple[int, ...]
    fractions: tuple[float, ...]

    def in_text(self, text: str) -> bool:
        """Whether a canary stands in a text."""
        return self.text in text.lower() or any(str(number) in text for number in self.whole)

    def in_bytes(self, body: bytes) -> bool:
        """Whether a canary stands in bytes, in one of the usual forms."""
        forms = [self.text.encode()]
        for number in self.whole:
            forms += [str(number).encode(), struct.pack("<q", number), struct.pack("<d", number)]
        if any(form in body for form in forms):
            return True
        packed = [[struct.pack("<d", each), struct.pack("<f", each)] for each in self.fractions]
        return all(any(form in body for form in forms) for forms in packed)

    def in_numbers(self, numbers: "np.ndarray[Any, Any]") -> bool:
        """Whether canaries stand among numbers."""
        if numbers.dtype.kind not in "iuf" or not numbers.size:
            return False
        flat = numbers.ravel().astype(np.float64)
        with np.errstate(all="ignore"):
            near = [bool((np.abs(flat - each) < 0.25).any()) for each in self.whole]
            found = [bool((np.abs(flat - each) < _NEAR).any()) for each in self.fractions]
        return any(near) or all(found)


def walk(root: object, name: str) -> Iterator[tuple[str, object]]:
    """All that is reached from an object, each with the way to it."""
    seen: set[int] = set()
    waiting = [(name, root)]
    # what is gone would lend its number to another object
    kept = []
    while waiting:
        path, thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, _ELSEWHERE):
            continue
        seen.add(id(thing))
        kept.append(thing)
        yield path, thing
        if not isinstance(thing, DuckDB):
            waiting += [(f"{path}{step}", inner) for step, inner in _inside(thing)]


def _inside(thing: Any) -> Iterator[tuple[str, object]]:
    """What an object holds."""
    if isinstance(thing, FunctionType):
        yield from ((f".closure[{place}]", cell) for place, cell in enumerate(_cells(thing)))
        yield ".defaults", thing.__defaults__
        yield ".keyword defaults", thing.__kwdefaults__
        yield ".attributes", vars(thing)
        return
    if isinstance(thing, BaseException):
        yield from ((f".{name}", getattr(thing, name)) for name in _OF_ERRORS)
    if isinstance(thing, TracebackType):
        yield ".frame", thing.tb_frame
        yield ".next", thing.tb_next
        return
    if isinstance(thing, FrameType):
        # the frames of a test are the owner's
        if "/sfumato/" in thing.f_code.co_filename:
            yield from ((f".{name}", value) for name, value in thing.f_locals.items())
        return
    # what C objects hold: partials, caches, iterators, deques, proxies; what has a name comes last,
    # and is entered first
    yield from ((f"<{place}>", inner) for place, inner in enumerate(gc.get_referents(thing)))
    if isinstance(thing, dict):
        yield from ((f"[{key!r:.40}]", value) for key, value in thing.items())
    for kind in type(thing).__mro__:
        for slot in vars(kind).get("__slots__", ()):
            with suppress(AttributeError):
                yield f".{slot}", getattr(thing, slot)
    with suppress(TypeError):
        yield from ((f".{attribute}", value) for attribute, value in vars(thing).items())


_OF_ERRORS = ("args", "__traceback__", "__context__", "__cause__")


def _cells(function: FunctionType) -> Sequence[object]:
    """The contents of the closure of a function."""
    found = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):
            found.append(cell.cell_contents)
    return found


def sightings(root: object, name: str, canaries: Canaries) -> list[str]:
    """Where rows are seen in an object, or in anything that is reached from it."""
    found = [
        f"{path} ({type(each).__name__}) {form}"
        for path, each in walk(root, name)
        for form in _forms(each, canaries)
    ]
    with suppress(Exception):
        if canaries.in_bytes(pickle.dumps(root)):
            found.append(f"{name} pickled")
    return found


def _forms(thing: Any, canaries: Canaries) -> Iterator[str]:
    """The forms in which an object shows rows."""
    if isinstance(thing, str):
        if canaries.in_text(thing):
            yield "is"
    elif isinstance(thing, bytes | bytearray | memoryview):
        if canaries.in_bytes(bytes(thing)):
            yield "has bytes"
    elif isinstance(thing, bool | FrameType | TracebackType):
        return
    elif isinstance(thing, int):
        # whole numbers of a row may be counted from anywhere, but not be a part of another
        if thing in canaries.whole:
            yield "is"
    elif (numbers := _numbers(thing)) is not None:
        if canaries.in_numbers(numbers):
            yield "has numbers"
    elif isinstance(thing, pa.Table | pa.RecordBatch | pa.Array | pa.ChunkedArray | pd.DataFrame):
        if canaries.in_text(
            str(thing.to_pandas().to_dict() if hasattr(thing, "to_pandas") else thing)
        ):
            yield "has cells"
    elif isinstance(thing, DuckDB):
        yield ENGINE
    elif type(thing).__module__.startswith("sfumato"):
        yield from _shown(thing, canaries)


def _numbers(thing: Any) -> "np.ndarray[Any, Any] | None":
    """An array of the numbers of an object; None if it has none."""
    if isinstance(thing, torch.Tensor):
        # what is left of a transformation of torch has no numbers any more
        with suppress(RuntimeError):
            return np.asarray(thing.detach().cpu().numpy())
        return None
    if isinstance(thing, np.ndarray):
        return thing
    if isinstance(thing, list | tuple) and thing and all(isinstance(n, int | float) for n in thing):
        return np.array(thing, float)
    return None


def _shown(thing: Any, canaries: Canaries) -> Iterator[str]:
    """What an object of sfumato says of itself."""
    faces: list[tuple[str, Callable[[], object]]] = [("repr", lambda: repr(thing))]
    faces += [(name, getattr(thing, name)) for name in _SHOWN if hasattr(thing, name)]
    for name, face in faces:
        with suppress(TypeError):
            if canaries.in_text(str(face())):
                yield f"by {name}"
