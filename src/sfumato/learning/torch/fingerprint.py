# SPDX-License-Identifier: Apache-2.0
"""The hash of a module's code, settings and first weights: a part of what a training is.

Code of the user is followed into the functions, classes and values that it names. What is installed
(torch, other packages) counts by its name alone.
"""

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
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
# What was met before, by its id: its number, and itself, so that no id is used twice.
_Seen: TypeAlias = dict[int, tuple[int, Any]]


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
    for part in _framed(_all((torch.__version__, module, *others), {})):
        found.update(part.encode())
    return found.hexdigest()


def _framed(parts: Iterable[str]) -> Iterator[str]:
    """The parts with their lengths, so that none runs into the next one."""
    for part in parts:
        yield f"{len(part)}:{part}"


def _all(
    values: Iterable[Any],
    seen: _Seen,
) -> Iterator[str]:
    """The parts of several values."""
    for value in values:
        yield from _parts(value, seen)


def _parts(
    value: Any,
    seen: _Seen,
) -> Iterator[str]:
    """The texts that say what a value is; of one that was met before, its number."""
    if type(value) in _PLAIN:
        yield repr(value)
        return
    if isinstance(value, tuple):
        # equal ones may be one object or not, as Python likes
        yield f"{type(value).__qualname__} {len(value)}"
        yield from _all(value, seen)
        return
    if id(value) in seen:
        yield f"again {seen[id(value)][0]}"
        return
    seen[id(value)] = len(seen), value
    if isinstance(value, torch.Tensor):
        yield _tensor(value)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {value.tolist()!r}"
    elif isinstance(value, list):
        yield f"{type(value).__qualname__} {len(value)}"
        yield from _all(value, seen)
    elif isinstance(value, dict):
        yield f"{type(value).__qualname__} {len(value)}"
        yield from _all(value.keys(), seen)
        yield from _all(value.values(), seen)
    elif isinstance(value, set | frozenset):
        # in whatever order: that of strings is another one in each process
        said = ["".join(_framed(_parts(each, dict(seen)))) for each in value]
        yield f"{type(value).__qualname__} {sorted(said)}"
    else:
        yield from _code_or_object(value, seen)


def _tensor(value: torch.Tensor) -> str:
    """The numbers of a tensor, whether they are trained, and where they are not on the CPU."""
    flat = value.detach().cpu().to_dense().contiguous().flatten()
    digest = hashlib.sha256(flat.view(torch.uint8).numpy().tobytes()).hexdigest()
    place = "" if value.device.type == "cpu" else f" {value.device.type}"
    return f"{value.dtype} {tuple(value.shape)} {value.requires_grad} {digest}{place}"


def _code_or_object(
    value: Any,
    seen: _Seen,
) -> Iterator[str]:
    """The parts of a function, a class, or an object of one."""
    if isinstance(value, FunctionType):
        yield from _function(value, seen)
    elif isinstance(value, MethodType):
        yield from _all((value.__func__, value.__self__), seen)
    elif isinstance(value, partial):
        yield from _all(("partial", value.func, value.args, value.keywords), seen)
    elif isinstance(value, staticmethod | classmethod):
        yield from _all((type(value).__name__, value.__func__), seen)
    elif isinstance(value, property):
        yield from _all(("property", value.fget), seen)
    elif isinstance(value, type):
        yield from _class(value, seen)
    elif isinstance(value, ModuleType):
        yield f"module {value.__name__}"
    elif isinstance(value, Logger):
        # what it remembers changes when it is used
        yield f"logger {value.name}"
    elif isinstance(value, CellType):
        yield from _all(_held(value), seen)
    else:
        yield from _object(value, seen)


def _function(
    function: FunctionType,
    seen: _Seen,
) -> Iterator[str]:
    """The code of a function, what it holds, and what it names."""
    yield f"{function.__module__}.{function.__qualname__}"
    if _is_installed(function.__module__):
        return
    yield _code(function.__code__)
    held = (function.__defaults__, function.__kwdefaults__, function.__closure__)
    yield from _all(held, seen)
    names = sorted(_names(function.__code__))
    for name in names:
        if name not in function.__globals__:
            continue
        value = function.__globals__[name]
        yield from _all((name, value), seen)
        if isinstance(value, ModuleType) and not _is_installed(value.__name__):
            found = vars(value)
            yield from _all((found[each] for each in names if each in found), seen)


def _class(
    kind: type,
    seen: _Seen,
) -> Iterator[str]:
    """The name of a class, and what it and those above it define."""
    yield f"{kind.__module__}.{kind.__qualname__}"
    for owner in kind.__mro__:
        if _is_installed(owner.__module__):
            continue
        for name, member in sorted(vars(owner).items()):
            is_code = isinstance(member, FunctionType | staticmethod | classmethod | property)
            if is_code or not name.startswith("__"):
                yield from _all((name, member), seen)


def _object(
    value: Any,
    seen: _Seen,
) -> Iterator[str]:
    """The class of an object and its attributes; its text, if it has none."""
    kind: Any = type(value)
    yield from _parts(kind, seen)
    if isinstance(value, nn.Module):
        yield value.extra_repr()
    state = getattr(value, "__dict__", None)
    if is_dataclass(value):
        # not what it has cached
        state = {field.name: getattr(value, field.name) for field in fields(value)}
    name = getattr(value, "__qualname__", None)
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
        yield from _all((key, list(each.values()) if is_hooks else each), seen)


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
