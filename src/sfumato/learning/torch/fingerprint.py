# SPDX-License-Identifier: Apache-2.0
"""The hash of a module's code, settings and first weights: a part of what a training is.

Code of the user is followed into the functions, classes and values that it names. What is installed
(torch, other packages) counts by its name alone.
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
    """A walk through values: what was met before, by its id, and the names that lead to what is met
    now.
    """

    # its number, and itself, so that no id is used twice
    seen: dict[int, tuple[int, Any]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        """The names, one after the other."""
        return ".".join(name for name in self.names if name not in _UNNAMED)


def fingerprint(
    module: nn.Module,
    *others: object,
) -> str:
    """The hash of a module and of what else a training is made of, as hexadecimal digits.

    >>> one, other = nn.Linear(2, 1), nn.Linear(2, 1)
    >>> fingerprint(one) == fingerprint(one), fingerprint(one) == fingerprint(other)
    (True, False)
    """
    found = hashlib.sha256()
    for part in _framed(_all((torch.__version__, module, *others), _Walk())):
        found.update(part.encode())
    return found.hexdigest()


def parts_by_name(**values: object) -> Parts:
    """What the hash of values is made of, by the names that lead to it.

    >>> list(parts_by_name(loss=[1, 2]).items())
    [('loss', ["'loss'", 'list 2', '1', '2'])]
    """
    walk, found = _Walk(), Parts()
    for name, value in values.items():
        for part in _named(name, value, walk):
            found.setdefault(walk.path, []).append(part)
    return found


def _framed(parts: Iterable[str]) -> Iterator[str]:
    """The parts with their lengths, so that none runs into the next one."""
    for part in parts:
        yield f"{len(part)}:{part}"


def _all(
    values: Iterable[Any],
    walk: _Walk,
) -> Iterator[str]:
    """The parts of several values."""
    for value in values:
        yield from _parts(value, walk)


def _named(
    name: str,
    value: Any,
    walk: _Walk,
) -> Iterator[str]:
    """The name and the parts of a value."""
    yield from _below(name, _all((name, value), walk), walk)


def _below(
    name: str,
    parts: Iterator[str],
    walk: _Walk,
) -> Iterator[str]:
    """Parts to which a name leads."""
    walk.names.append(name)
    yield from parts
    walk.names.pop()


def _parts(
    value: Any,
    walk: _Walk,
) -> Iterator[str]:
    """The texts that say what a value is; of one that was met before, its number."""
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
    """The numbers of a tensor, whether they are trained, and where they are not on the CPU."""
    flat = value.detach().cpu().to_dense().contiguous().flatten()
    digest = hashlib.sha256(flat.view(torch.uint8).numpy().tobytes()).hexdigest()
    place = "" if value.device.type == "cpu" else f" {value.device.type}"
    return f"{value.dtype} {tuple(value.shape)} {value.requires_grad} {digest}{place}"


def _code_or_object(
    value: Any,
    walk: _Walk,
) -> Iterator[str]:
    """The parts of a function, a class, or an object of one."""
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
        yield from _all(_held(value), walk)
    else:
        yield from _object(value, walk)


def _function(
    function: FunctionType,
    walk: _Walk,
) -> Iterator[str]:
    """The code of a function, what it holds, its attributes, and what it names."""
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
    """The name of a class, and what it and those above it define."""
    yield f"{kind.__module__}.{kind.__qualname__}"
    for owner in kind.__mro__:
        if not _is_installed(owner.__module__):
            yield from _below(owner.__name__, _members(owner, walk), walk)


def _members(
    owner: type,
    walk: _Walk,
) -> Iterator[str]:
    """What a class itself defines."""
    for name, member in sorted(vars(owner).items()):
        is_code = isinstance(member, FunctionType | staticmethod | classmethod | property)
        if is_code or not name.startswith("__"):
            yield from _named(name, member, walk)


def _object(
    value: Any,
    walk: _Walk,
) -> Iterator[str]:
    """The class of an object and its attributes; its text, if it has none."""
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
    """The attributes of an object that has no dictionary of them."""
    names: set[str] = set()
    for owner in type(value).__mro__:
        slots = vars(owner).get("__slots__", ())
        names.update([slots] if isinstance(slots, str) else slots)
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _held(cell: CellType) -> list[Any]:
    """What a closure holds; nothing, before it is set."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def _is_installed(module: str | None) -> bool:
    """Whether a module is torch's, sfumato's, Python's own, or of an installed package."""
    top = (module or "").split(".")[0]
    if top in ("torch", "sfumato") or top in sys.stdlib_module_names - {"__main__"}:
        return True
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


def _names(code: CodeType) -> set[str]:
    """The names in a function and in those inside it."""
    found = set(code.co_names)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found |= _names(each)
    return found


def _code(code: CodeType) -> str:
    """What a function does, without where it stands."""
    constants = [_constant(each) for each in code.co_consts]
    return f"{code.co_code.hex()}{constants}{code.co_names}{code.co_varnames}"


def _constant(value: object) -> str:
    """The text of a constant of a function; a set in a test is one."""
    if isinstance(value, CodeType):
        return _code(value)
    if isinstance(value, frozenset):
        return f"frozenset {sorted(map(repr, value))}"
    return repr(value)
