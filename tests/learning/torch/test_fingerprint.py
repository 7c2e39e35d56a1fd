# SPDX-License-Identifier: Apache-2.0
"""Modules that differ in code, settings or weights have different hashes."""

from typing import Any

import torch
from torch import nn

from sfumato.learning.torch.fingerprint import fingerprint


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


def test_losses_and_settings_count() -> None:
    module = nn.ReLU()
    others: list[Any] = [nn.MSELoss(), nn.MSELoss(reduction="none"), 1, 2, "1"]
    others += [lambda x, y: x - y, lambda x, y: x + y]
    assert len({fingerprint(module, other) for other in others}) == len(others)
    assert fingerprint(module, 1, 2) != fingerprint(module, 2, 1)
