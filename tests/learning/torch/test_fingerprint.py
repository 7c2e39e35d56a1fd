# SPDX-License-Identifier: Apache-2.0
"""Modules that differ in code, settings or weights have different hashes."""

from functools import cached_property, partial
from logging import getLogger
from threading import RLock
from typing import Any

import numpy as np
import torch
from torch import nn

from sfumato.learning.torch.fingerprint import fingerprint, parts_by_name
from sfumato.learning.torch.reading import Input, Reading


def made(body: str, weight: float = 1.0, **settings: Any) -> nn.Module:
    """A module of a class of its own, with this forward method."""
    names: dict[str, Any] = {}
    exec(f"def forward(self, x):\n    return {body}", names)
    module = type("Made", (nn.Module,), {"forward": names["forward"], "__module__": "mine"})()
    module.weight = nn.Parameter(torch.full((2,), weight))
    for name, value in settings.items():
        setattr(module, name, value)
    return module


def test_what_differs_has_another_hash() -> None:
    frozen = made("x * self.weight")
    frozen.weight.requires_grad_(False)  # type: ignore[union-attr]
    modules = [
        made("x * self.weight"),
        made("x * self.weight * 2"),
        made("x * self.weight * 3"),
        made("x * self.weight", weight=1.5),
        made("x * self.weight", rate=3),
        frozen,
        nn.Linear(2, 2, bias=False),
    ]
    assert len({fingerprint(module) for module in modules}) == len(modules)
    assert fingerprint(made("x * self.weight")) == fingerprint(modules[0])


def test_what_forward_reaches_counts() -> None:
    def scaled(scale: float) -> Any:
        return lambda x, y: scale * x

    def held(**buffers: Any) -> nn.Module:
        module = nn.Identity()
        for name, value in buffers.items():
            module.register_buffer(name, value, persistent=False)
        return module

    def hooked(scale: float) -> nn.Module:
        module = nn.Identity()
        module.register_forward_hook(lambda *given: given[2] * scale)
        return module

    def weighed(weight: float) -> nn.Module:
        return nn.CrossEntropyLoss(torch.tensor([1.0, weight]), reduction="none")

    def encoder(activation: str) -> nn.Module:
        torch.manual_seed(0)
        return nn.TransformerEncoderLayer(4, 2, 6, activation=activation)

    def calling(scale: float) -> nn.Module:
        module = made("helper(x)")
        type(module).forward.__globals__["helper"] = scaled(scale)
        return module

    pairs: list[tuple[Any, Any, Any]] = [
        (encoder, "relu", "gelu"),
        (lambda act: made("self.act(x)", act=act), torch.relu, torch.tanh),
        (lambda part: made("x", part=[{"part": part}]), torch.ones(2), torch.zeros(2)),
        (lambda value: held(value=value), torch.ones(2), torch.zeros(2)),
        (hooked, 1.0, 2.0),
        (calling, 1.0, 2.0),
        (weighed, 1.0, 2.0),
        (lambda scale: partial(scaled(1), y=scale), 1.0, 2.0),
        (scaled, 1.0, 2.0),
    ]
    for make, one, other in pairs:
        hashes = [fingerprint(nn.ReLU(), make(each)) for each in (one, one, other)]
        assert hashes[0] == hashes[1] != hashes[2]


def test_what_is_cached_does_not_count() -> None:
    reading = Reading((Input(0, 0, 9, is_class=False),), Input(1, 0, 2, is_class=True))
    before = fingerprint(nn.ReLU(), reading)
    reading.tensors(np.zeros((1, 2), np.int64), 1)
    assert fingerprint(nn.ReLU(), reading) == before


def test_losses_and_settings_count() -> None:
    module = nn.ReLU()
    others: list[Any] = [nn.MSELoss(), nn.MSELoss(reduction="none"), 1, 2, "1"]
    others += [lambda x, y: x - y, lambda x, y: x + y]
    assert len({fingerprint(module, other) for other in others}) == len(others)
    assert fingerprint(module, 1, 2) != fingerprint(module, 2, 1)


def test_the_order_of_a_set_says_nothing() -> None:
    """Sets of strings have another order in each process; these ones in this process too."""
    one, other = "x if self.mode in {0, 8} else -x", "x if self.mode in {8, 0} else -x"
    assert repr(frozenset([0, 8])) != repr(frozenset([8, 0]))
    assert fingerprint(made(one, mode=1)) == fingerprint(made(other, mode=1))
    assert fingerprint(made(one, mode=1)) != fingerprint(made("x if self.mode in {0} else -x"))
    sets: list[Any] = [{(0, frozenset([0, 8]))}, {(0, frozenset([8, 0]))}, {(0, 1)}]
    hashes = [fingerprint(made("x", kinds=each)) for each in sets]
    assert hashes[0] == hashes[1] != hashes[2]


def test_every_member_of_a_class_counts() -> None:
    def of_class(value: Any) -> nn.Module:
        module = made("self.member")
        type(module).member = value
        return module

    class Settings:
        def __init__(self, rate: int) -> None:
            self.rate = rate

    class Slotted:
        __slots__ = ("rate",)

        def __init__(self, rate: int) -> None:
            self.rate = rate

    def attributed(rate: int) -> Any:
        def function() -> None: ...

        function.rate = rate  # type: ignore[attr-defined]
        return function

    pairs: list[tuple[Any, Any]] = [
        ({1}, {2}),
        (np.zeros(2), np.ones(2)),
        (torch.relu, torch.tanh),
        (nn.ReLU, nn.Tanh),
        (Settings(1), Settings(2)),
        (Slotted(1), Slotted(2)),
        (attributed(1), attributed(2)),
        (cached_property(lambda self: 1), cached_property(lambda self: 2)),
    ]
    for one, other in pairs:
        assert fingerprint(of_class(one)) == fingerprint(of_class(one))
        assert fingerprint(of_class(one)) != fingerprint(of_class(other))


def test_addresses_and_what_a_logger_remembers_do_not_count() -> None:
    assert fingerprint(made("x", lock=RLock())) == fingerprint(made("x", lock=RLock()))
    logging = made("x", log=getLogger("tests.fingerprint"))
    before = fingerprint(logging)
    getLogger("tests.fingerprint").info("asked whether it is on")
    assert fingerprint(logging) == before


def test_names_lead_to_the_parts() -> None:
    module = nn.Sequential(made("x * self.weight", kinds={"a": [1]}))
    names = [*parts_by_name(module=module)]
    wanted = ["module", "module.0.Made.forward", "module.0.weight", "module.0.kinds.a"]
    assert [name for name in names if name in wanted] == wanted
    changed = made("x * self.weight", kinds={"a": [2]})
    one, other = (parts_by_name(m=each) for each in (module[0], changed))
    assert [name for name in one if one[name] != other[name]] == ["m.kinds.a"]
