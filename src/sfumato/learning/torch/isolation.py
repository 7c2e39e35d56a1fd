# SPDX-License-Identifier: Apache-2.0
"""Checks that a network treats each row by itself, bit for bit, with made-up inputs.

The proof of ``gradients`` needs it: what a unit adds must be a function of its rows alone.
Proof: gradients.proof.md.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

from sfumato.errors import WrongUse
from sfumato.learning.torch.device import repeatable
from sfumato.learning.torch.gradients import GradientSums
from sfumato.learning.torch.reading import GOLDEN, Reading
from sfumato.learning.torch.recorded import Recorded

# The range of what is added to weights to try other ones.
_FAR = 0.2
_REMEDY = "Layers that treat each example by itself: nn.GroupNorm in place of nn.BatchNorm."
# What each module was given and returned: name, input and output with the rows in the first axis.
Passed: TypeAlias = list[tuple[str, torch.Tensor, torch.Tensor]]


def require_isolated(sums: GradientSums) -> None:
    """Refuses a network in which one row moves a bit of another row's activations or gradient.

    Guarantees:
        a network that mixes rows is refused

    Raises:
        WrongUse: as ``require_rows_apart``, or the loss or a gradient mixes rows.
    """
    sums.load()
    require_rows_apart(sums.network, sums.reading, sums.rows)
    x, y = sums.reading.drawn(sums.rows, 1, sums.network.device)
    before = _arrays(sums, x, y)
    for kept, other in _variants(sums.reading, x, y):
        after = _arrays(sums, *other)
        if not all(_same(one[kept], two[kept]) for one, two in zip(before, after, strict=True)):
            raise _mixed("the loss or a gradient")
    order = _moved(sums.rows)
    after = _arrays(sums, x[order], y[order])
    if not all(_same(one[order], two) for one, two in zip(before, after, strict=True)):
        raise _mixed("the gradient of a row, which depends on its place in a batch")


def require_isolated_elsewhere(sums: GradientSums) -> None:
    """``require_isolated`` at other weights: weights of 0 at the start hide what mixes rows.

    Raises:
        WrongUse: as ``require_isolated``.
    """
    start = sums.network.start
    places = np.arange(len(start)) * GOLDEN
    require_isolated(sums.at(start + _FAR * (places % 1 - 0.5)))
    sums.network.load(start)


def require_rows_apart(
    network: Recorded,
    reading: Reading,
    rows: int,
) -> None:
    """Refuses a module that mixes rows in its forward pass.

    Raises:
        WrongUse: it names the layer; or a loss that is not one number for each row, random
            numbers, buffers that change, half precision.
    """
    _require_losses(network, *reading.drawn(rows, 1, network.device))
    _require_forward(network, reading, rows)


def require_outputs_apart(
    network: Recorded,
    reading: Reading,
    rows: int,
) -> None:
    """Refuses a module in which one row moves a bit of another row's outputs.

    Guarantees:
        outputs that mix rows are refused

    Raises:
        WrongUse: it mixes rows, draws random numbers, or changes its buffers.
    """
    _require_forward(network, reading, rows)
    x, _ = reading.drawn(rows, 1, network.device)
    order = _moved(rows)
    with torch.no_grad(), repeatable(network.device):
        if not _same(network.module(x)[order], network.module(x[order])):
            raise _mixed("the output of a row, which depends on its place in a batch")


def _require_forward(
    network: Recorded,
    reading: Reading,
    rows: int,
) -> None:
    """Refuses a module that mixes rows in its forward pass."""
    x, y = reading.drawn(rows, 1, network.device)
    buffers = [value.clone() for value in network.module.buffers()]
    _require_steady(network, x)
    for kept, other in _variants(reading, x, y):
        _require_layers(network, (x, other[0]), kept)
    _require_buffers(network, buffers)


def _variants(
    reading: Reading,
    x: torch.Tensor,
    y: torch.Tensor,
) -> Iterator[tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]]:
    """Rows that stay, and inputs and labels in which the others are replaced."""
    rows = len(x)
    fresh, labels = reading.drawn(rows, 2, x.device)
    place = torch.arange(rows, device=x.device)
    zeros, most = torch.zeros_like(x), x[-1:].expand_as(x)
    some = (place != rows // 2, place % 2 == 0, place == rows - 1)
    tried = [(stays, values) for stays in some for values in (fresh, zeros, most)]
    # of rows that end early alone, a batch that is cut to its longest row is shorter
    tried += [(place % 4 == 1, zeros), (place % 4 == 2, zeros), (place % 4 == 3, most)]
    for stays, values in tried:
        changed = torch.where(stays.unsqueeze(1), x, values)
        yield stays, (changed, torch.where(stays, y, labels))


def _moved(rows: int) -> torch.Tensor:
    """An order of rows in which every row has another place."""
    # a prime stride; chunks are multiples of 16
    return (97 * torch.arange(rows) + 5) % rows


def _require_losses(
    network: Recorded,
    x: torch.Tensor,
    y: torch.Tensor,
) -> None:
    """Refuses a loss that is not one number for each row, and half precision."""
    kinds = {value.dtype for value in network.module.parameters()}
    if not kinds <= {torch.float32, torch.float64} or not network.named:
        raise WrongUse(
            "A module with no parameter to train, or in half precision.",
            allowed="parameters in float32 or float64",
            remedy="module.float()",
        )
    with repeatable(network.device):
        losses = network.loss(network.module(x), y)
    if losses.shape != (len(x),):
        raise WrongUse(
            f"A loss of shape {tuple(losses.shape)} for {len(x)} rows.",
            allowed="one number for each row",
            remedy='nn.CrossEntropyLoss(reduction="none")',
        )


def _require_steady(
    network: Recorded,
    x: torch.Tensor,
) -> None:
    """Refuses a network that draws random numbers."""
    once, again = _passed(network, x), _passed(network, x)
    for (name, _, output), (_, _, second) in zip(once, again, strict=True):
        if not _same(output, second):
            raise WrongUse(
                f"{name} returns another output for the same input.",
                allowed="a module without randomness",
                remedy="Leave dropout out (p=0): the noise regularises.",
            )


def _require_buffers(
    network: Recorded,
    buffers: Sequence[torch.Tensor],
) -> None:
    """Refuses a network whose buffers are not what they were."""
    for (name, now), before in zip(network.module.named_buffers(), buffers, strict=True):
        if not _same(before, now):
            raise _mixed(f"the buffer {name}, which a forward pass changes")


def _require_layers(
    network: Recorded,
    inputs: tuple[torch.Tensor, torch.Tensor],
    kept: torch.Tensor,
) -> None:
    """Refuses, by its name, the first layer in which other rows move rows that stay."""
    first, second = (_passed(network, x) for x in inputs)
    for (name, given, output), (_, given_too, output_too) in zip(first, second, strict=True):
        if len(given) != len(kept) or len(output) != len(kept):
            continue
        same = _same(given[kept], given_too[kept])
        if same and not _same(output[kept], output_too[kept]):
            raise _mixed(name)


def _passed(
    network: Recorded,
    x: torch.Tensor,
) -> Passed:
    """What each module is given and returns in one forward pass, in the order in which they end."""
    seen: Passed = []
    hooks = [
        layer.register_forward_hook(
            _noted(f"{name or 'the module'} ({type(layer).__name__})", seen)
        )
        for name, layer in network.module.named_modules()
    ]
    try:
        with torch.no_grad(), repeatable(network.device):
            network.module(x)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def _noted(
    name: str,
    seen: Passed,
) -> Callable[..., None]:
    """A hook that notes what a module is given and returns, where both are tensors; of a tuple,
    as recurrent layers return, the first.
    """

    def hook(
        layer: nn.Module,
        inputs: Any,
        output: Any,
    ) -> None:
        if isinstance(output, tuple) and output:
            output = output[0]
        if inputs and isinstance(inputs[0], torch.Tensor) and isinstance(output, torch.Tensor):
            seen.append((name, inputs[0].clone(), output.clone()))

    return hook


def _arrays(
    sums: GradientSums,
    x: torch.Tensor,
    y: torch.Tensor,
) -> Sequence[torch.Tensor]:
    """The integers that each row adds as a unit of its own."""
    known = np.ones(len(x), np.bool)
    if sums.whole:
        vectors = torch.cat(list(sums.network.vectors(x, y)), 1).double()
        found = sums.integers(sums.blocks(vectors.cpu().numpy()), known)
        return [vectors, *(array for arrays in found for array in arrays)]
    found = sums.integers(sums.parts(sums.network.begun(x), y), known)
    return [array for arrays in found for array in arrays]


def _same(
    one: torch.Tensor,
    two: torch.Tensor,
) -> bool:
    """Whether two tensors have the same shape and values; NaN is the same as NaN."""
    if one.shape != two.shape:
        return False
    return bool(torch.allclose(one, two, rtol=0.0, atol=0.0, equal_nan=True))


def _mixed(name: str) -> WrongUse:
    return WrongUse(
        f"Rows are mixed by {name}: one example moves another.",
        allowed="modules that treat each row by itself",
        remedy=_REMEDY,
    )
