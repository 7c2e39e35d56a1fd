# SPDX-License-Identifier: Apache-2.0
"""The hash of a module's code, settings and first weights: a part of what a training is.

Functions of other modules that a forward method calls are not in it: a changed one needs another
name or setting.
"""

import hashlib
from collections.abc import Iterator
from types import CodeType
from typing import Any

import torch
from torch import nn

_PLAIN = (bool, int, float, str, bytes, type(None))


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
    for part in (torch.__version__, *_module(module), *map(_value, others)):
        found.update(f"{len(part)}:{part}".encode())
    for name, value in module.state_dict().items():
        found.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        found.update(value.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


def _module(module: nn.Module) -> Iterator[str]:
    """The code and the plain settings of each module inside."""
    for name, inner in module.named_modules():
        yield f"{name} {_class(type(inner))} {inner.extra_repr()}"
        for key, value in sorted(vars(inner).items()):
            if isinstance(value, (*_PLAIN, tuple)):
                yield f"{key}={value!r}"
        for key, value in inner.named_parameters(recurse=False):
            yield f"{key} {value.requires_grad}"


def _value(value: object) -> str:
    """A loss or a setting."""
    if isinstance(value, nn.Module):
        return "".join(_module(value))
    code = getattr(value, "__code__", None)
    if isinstance(code, CodeType):
        return f"{_code(code)}{getattr(value, '__defaults__', None)!r}"
    if isinstance(value, _PLAIN):
        return repr(value)
    return f"{_class(type(value))} {value!r}"


def _class(kind: type) -> str:
    """The name of a class, and the code of its methods where they are not torch's own."""
    if kind.__module__.split(".")[0] in ("torch", "builtins"):
        return f"{kind.__module__}.{kind.__qualname__}"
    parts = [f"{kind.__module__}.{kind.__qualname__}"]
    for owner in kind.__mro__:
        if owner.__module__.split(".")[0] in ("torch", "builtins"):
            continue
        for name, member in sorted(vars(owner).items()):
            code: Any = getattr(member, "__code__", None)
            if isinstance(code, CodeType):
                parts.append(f"{name}:{_code(code)}")
    return "".join(parts)


def _code(code: CodeType) -> str:
    """What a function does, without where it stands."""
    constants = [
        _code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts
    ]
    return f"{code.co_code.hex()}{constants}{code.co_names}{code.co_varnames}"
