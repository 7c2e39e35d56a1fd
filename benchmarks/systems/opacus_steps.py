# SPDX-License-Identifier: Apache-2.0
"""Steps of Opacus: its default hooks, and ghost clipping. In the environment of Opacus alone."""

from typing import Any

import torch
from opacus import GradSampleModule  # type: ignore[import-not-found]
from opacus.grad_sample import GradSampleModuleFastGradientClipping  # type: ignore[import-not-found]
from opacus.optimizers import DPOptimizer  # type: ignore[import-not-found]
from opacus.optimizers.optimizer_fast_gradient_clipping import (  # type: ignore[import-not-found]
    DPOptimizerFastGradientClipping,
)
from opacus.utils.fast_gradient_clipping_utils import (  # type: ignore[import-not-found]
    DPLossFastGradientClipping,
)

from benchmarks.systems import Call, Make
from benchmarks.systems.steps import LOSS, SHAPES, batch, made


def _hooks(name: str) -> Make:
    """Gradients of each row are written out, clipped to 1 and added up, with noise of 1."""

    def make(scale: float, rows: int) -> Call:
        torch.set_num_threads(1)
        module, (x, y) = GradSampleModule(made(name)), batch(name, rows)
        inner = torch.optim.SGD(module.parameters(), lr=0.1)
        optimizer: Any = DPOptimizer(
            inner, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=rows
        )

        def step() -> None:
            optimizer.zero_grad()
            LOSS(module(x), y).mean().backward()
            optimizer.step()

        return step

    return make


def _ghost(name: str) -> Make:
    """Lengths first, then a second backward pass with the factors."""

    def make(scale: float, rows: int) -> Call:
        torch.set_num_threads(1)
        module: Any = GradSampleModuleFastGradientClipping(
            made(name), max_grad_norm=1.0, use_ghost_clipping=True
        )
        x, y = batch(name, rows)
        inner = torch.optim.SGD(module.parameters(), lr=0.1)
        optimizer: Any = DPOptimizerFastGradientClipping(
            inner, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=rows
        )
        loss = DPLossFastGradientClipping(
            module, optimizer, torch.nn.CrossEntropyLoss(), loss_reduction="mean"
        )

        def step() -> None:
            optimizer.zero_grad()
            loss(module(x), y).backward()
            optimizer.step()

        return step

    return make


WORKS: dict[str, Make] = {
    **{f"{name}, hooks": _hooks(name) for name in SHAPES},
    **{f"{name}, ghost": _ghost(name) for name in SHAPES},
}
