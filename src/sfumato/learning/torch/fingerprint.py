# SPDX-License-Identifier: Apache-2.0
"""A hash of a module's code, settings and initial weights: part of the key of a training.

The user's code is followed into the functions, classes and values that it names. Installed code
(torch, other packages) counts by its name only.
"""

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from logging import Logger
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias
from weakref import ReferenceType

import numpy as np
import torch
from torch import nn

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
# Where an object is in memory, as its text states it.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
# Parts of a module that are named by what they hold.
_UNNAMED = ("_modules", "_parameters", "_buffers")
Parts: TypeAlias = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class _Walk:
    """The state of a traversal: the values visited so far by id, and the path of names to the
    present one.
    """

    # its number, and itself, so that no id is used twice
    seen: dict[int, tuple[int, Any]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        """The path of names, joined by dots."""
        return ".".join(name for name in self.names if name not in _UNNAMED)


def fingerprint(
    module: nn.Module,
    *others: object,
) -> str:
    """Returns the SHA-256 hash of a module and of other settings of its training, in hexadecimal.

    >>> one, other = nn.Linear(2, 1), nn.Linear(2, 1)
    >>> fingerprint(one) == fingerprint(one), fingerprint(one) == fingerprint(other)
    (True, False)
    """
    found = hashlib.sha256()
    for part in _framed(_all((torch.__version__, module, *others), _Walk())):
        found.update(part.encode())
    return found.hexdigest()


def parts_by_name(**values: object) -> Parts:
    """Returns the texts from which ``fingerprint`` would compute the hash of these values, by the
    path of attribute names that leads to them.

    >>> list(parts_by_name(loss=[1, 2]).items())
    [('loss', ["'loss'", 'list 2', '1', '2'])]
    """
    walk, found = _Walk(), Parts()
    for name, value in values.items():
        for part in _named(name, value, walk):
            found.setdefault(walk.path, []).append(part)
    return found


def _framed(parts: Iterable[str]) -> Iterator[str]:
    """Prefixes each part with its length, so that different parts never give the same text."""
    for part in parts:
        yield f"{len(part)}:{part}"


def _all(
    values: Iterable[Any],
    walk: _Walk,
) -> Iterator[str]:
    """Yields the parts of several values."""
    for value in values:
        yield from _parts(value, walk)


def _named(
    name: str,
    value: Any,
    walk: _Walk,
) -> Iterator[str]:
    """Yields the name and the parts of a value."""
    yield from _below(name, _all((name, value), walk), walk)


def _below(
    name: str,
    parts: Iterator[str],
    walk: _Walk,
) -> Iterator[str]:
    """Yields parts with a name appended to the path."""
    walk.names.append(name)
    yield from parts
    walk.names.pop()


def _parts(
    value: Any,
    walk: _Walk,
) -> Iterator[str]:
    """Yields the texts that identify a value; for a value visited before, its number."""
    if type(value) in _PLAIN:
        yield repr(value)
        return
    if isinstance(value, tuple):
        # equal ones may be one object or not, as Python likes
        yield f"{type(value).__qualname__} {len(value)}"
        yield from _all(value, walk)
        return
    if id(value) in walk.seen:
        yield f"again {walk.seen[id(value)][0]}"
        return
    walk.seen[id(value)] = len(walk.seen), value
    if isinstance(value, torch.Tensor):
        yield _tensor(value)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {value.tolist()!r}"
    elif isinstance(value, list):
        yield f"{type(value).__qualname__} {len(value)}"
        yield from _all(value, walk)
    elif isinstance(value, dict):
        yield f"{type(value).__qualname__} {len(value)}"
        yield from _all(value.keys(), walk)
        for key, each in value.items():
            yield from _below(str(key) if type(key) in _PLAIN else "", _parts(each, walk), walk)
    elif isinstance(value, set | frozenset):
        # in whatever order: that of strings is another one in each process
        said = ["".join(_framed(_parts(each, _Walk(dict(walk.seen))))) for each in value]
        yield f"{type(value).__qualname__} {sorted(said)}"
    else:
        yield from _code_or_object(value, walk)


def _tensor(value: torch.Tensor) -> str:
    """Returns the type, shape and hash of a tensor, whether it is trained, and its device unless
    CPU.
    """
    flat = value.detach().cpu().to_dense().contiguous().flatten()
    digest = hashlib.sha256(flat.view(torch.uint8).numpy().tobytes()).hexdigest()
    place = "" if value.device.type == "cpu" else f" {value.device.type}"
    return f"{value.dtype} {tuple(value.shape)} {value.requires_grad} {digest}{place}"


def _code_or_object(
    value: Any,
    walk: _Walk,
) -> Iterator[str]:
    """Yields the parts of a function, a class or an object."""
    if isinstance(value, FunctionType):
        yield from _function(value, walk)
    elif isinstance(value, MethodType):
        yield from _all((value.__func__, value.__self__), walk)
    elif isinstance(value, partial):
        yield from _all(("partial", value.func, value.args, value.keywords), walk)
    elif isinstance(value, staticmethod | classmethod):
        yield from _all((type(value).__name__, value.__func__), walk)
    elif isinstance(value, property):
        yield from _all(("property", value.fget), walk)
    elif isinstance(value, type):
        yield from _class(value, walk)
    elif isinstance(value, ModuleType):
        yield f"module {value.__name__}"
    elif isinstance(value, Logger):
        # what it remembers changes when it is used
        yield f"logger {value.name}"
    elif isinstance(value, CellType):
        yield from _all(_closure_values(value), walk)
    else:
        yield from _object(value, walk)


def _function(
    function: FunctionType,
    walk: _Walk,
) -> Iterator[str]:
    """Yields the code of a function, its closure and attributes, and the values that it names."""
    yield f"{function.__module__}.{function.__qualname__}"
    if _is_installed(function.__module__):
        return
    yield _code(function.__code__)
    yield from _all((function.__defaults__, function.__kwdefaults__), walk)
    cells = function.__closure__ or ()
    yield f"tuple {len(cells)}" if cells else repr(None)
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        yield from _below(name, _parts(cell, walk), walk)
    for name, value in sorted(vars(function).items()):
        yield from _named(name, value, walk)
    names = sorted(_names(function.__code__))
    for name in names:
        if name not in function.__globals__:
            continue
        value = function.__globals__[name]
        yield from _named(name, value, walk)
        if isinstance(value, ModuleType) and not _is_installed(value.__name__):
            found = vars(value)
            for each in names:
                if each in found:
                    yield from _below(f"{name}.{each}", _parts(found[each], walk), walk)


def _class(
    kind: type,
    walk: _Walk,
) -> Iterator[str]:
    """Yields the name of a class, and what it and its base classes define."""
    yield f"{kind.__module__}.{kind.__qualname__}"
    for owner in kind.__mro__:
        if not _is_installed(owner.__module__):
            yield from _below(owner.__name__, _members(owner, walk), walk)


def _members(
    owner: type,
    walk: _Walk,
) -> Iterator[str]:
    """Yields what a class itself defines."""
    for name, member in sorted(vars(owner).items()):
        is_code = isinstance(member, FunctionType | staticmethod | classmethod | property)
        if is_code or not name.startswith("__"):
            yield from _named(name, member, walk)


def _object(
    value: Any,
    walk: _Walk,
) -> Iterator[str]:
    """Yields the class and attributes of an object; its repr if it has no attributes."""
    kind: Any = type(value)
    yield from _parts(kind, walk)
    if isinstance(value, nn.Module):
        yield value.extra_repr()
    state = getattr(value, "__dict__", None)
    if is_dataclass(value):
        # not what it has cached
        state = {each.name: getattr(value, each.name) for each in fields(value)}
    name = getattr(value, "__qualname__", None)
    if state is None and kind.__repr__ is object.__repr__:
        state = _slots(value) or None
    if state is None:
        # of a function in C its name; a text with an address would never be the same again
        is_silent = kind.__repr__ is object.__repr__ or isinstance(value, ReferenceType)
        yield name or ("" if is_silent else _ADDRESS.sub("", repr(value)))
        return
    if not state:
        yield name or ""
    for key, each in sorted(state.items()):
        # handles of hooks are numbered anew in each process
        is_hooks = "_hooks" in key and isinstance(each, dict)
        yield from _named(key, list(each.values()) if is_hooks else each, walk)


def _slots(value: object) -> dict[str, Any]:
    """Returns the attributes of an object that uses ``__slots__``."""
    names: set[str] = set()
    for owner in type(value).__mro__:
        slots = vars(owner).get("__slots__", ())
        names.update([slots] if isinstance(slots, str) else slots)
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _closure_values(cell: CellType) -> list[Any]:
    """Returns the value of a closure cell as a list; empty before it is set."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def _is_installed(module: str | None) -> bool:
    """Whether a module belongs to torch, sfumato, Python itself or an installed package."""
    top = (module or "").split(".")[0]
    if top in ("torch", "sfumato") or top in sys.stdlib_module_names - {"__main__"}:
        return True
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


def _names(code: CodeType) -> set[str]:
    """Returns the names used in a function and in its inner functions."""
    found = set(code.co_names)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found |= _names(each)
    return found


def _code(code: CodeType) -> str:
    """Returns the instructions of a function, without file names and line numbers."""
    constants = [_constant(each) for each in code.co_consts]
    return f"{code.co_code.hex()}{constants}{code.co_names}{code.co_varnames}"


def _constant(value: object) -> str:
    """Returns the text of a constant of a function, which may be a set."""
    if isinstance(value, CodeType):
        return _code(value)
    if isinstance(value, frozenset):
        return f"frozenset {sorted(map(repr, value))}"
    return repr(value)
