# SPDX-License-Identifier: Apache-2.0
"""Checks that a network treats each row independently, bit for bit, on made-up inputs.

The privacy proof of ``gradients`` requires it: what a unit adds must be a function of its rows
only. ``network`` runs the checks before the charge, each piece again at its weights. Proof:
gradients.proof.md.

Proof: gradients.proof.md.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

from sfumato.errors import WrongUse
from sfumato.learning.torch.device import repeatable
from sfumato.learning.torch.gradients import GradientSums
from sfumato.learning.torch.reading import GOLDEN, Reading
from sfumato.learning.torch.recorded import Recorded
from sfumato.query.silence import SILENCE

# The range of what is added to weights to try other ones.
_FAR = 0.2
_REMEDY = (
    "Layers that treat each example by itself: nn.GroupNorm in place of nn.BatchNorm; or freeze "
    "the part, with its statistics: part.requires_grad_(False).eval()."
)
# A row's loss may differ by these shares of itself and of the row's largest output, if it is alone.
_ROUNDED, _ROUNDED_OUTPUT = 1e-3, 1e-5
# So many rows are alone.
_ALONE = 16
# Batches in which each row stands at two places.
_BATCHES = 8
_PLACE = "of a row, which depends on its place in a batch"
# What each module was given and returned: name, input and output with the rows in the first axis.
Passed: TypeAlias = list[tuple[str, torch.Tensor, torch.Tensor]]


def require_isolated(sums: GradientSums) -> None:
    """Raises WrongUse for a network in which a row can change any bit of another row's activations
    or gradient.

    Guarantees:
        a network that mixes rows is refused

    Raises:
        WrongUse: as ``require_rows_apart``, or the loss or a gradient mixes rows.
    """
    # what is refused here hangs on released weights alone, not on rows of an earlier piece
    sums.network.renew()
    sums.load()
    # as silent as the run: an anomaly of torch is no fault of the module there
    with SILENCE, _unmoved(sums.network), repeatable(sums.network.device):
        _require_isolated(sums)


def _require_isolated(sums: GradientSums) -> None:
    """Refuses a network in which rows affect one another at its present weights."""
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
        raise _mixed(f"the gradient {_PLACE}")
    for pair, batch in _twins(sums.reading, sums.rows, sums.network.device):
        if not all(_same(array[pair[0]], array[pair[1]]) for array in _arrays(sums, *batch)):
            raise _mixed(f"the gradient {_PLACE}")


def require_isolated_elsewhere(sums: GradientSums) -> None:
    """Runs ``require_isolated`` at other than the initial weights: where these are 0, they can hide
    that rows affect one another.

    Raises:
        WrongUse: as ``require_isolated``, or the loss compares rows.
    """
    start = sums.network.start
    places = np.arange(len(start)) * GOLDEN
    elsewhere = sums.at(start + _FAR * (places % 1 - 0.5))
    elsewhere.load()
    _require_losses_alone(sums.network, sums.reading, sums.rows)
    require_isolated(elsewhere)
    sums.network.load(start)


def require_forgetful(
    network: Recorded,
    reading: Reading,
    rows: int,
) -> None:
    """Raises WrongUse for a network whose outputs or losses depend on rows of earlier batches.

    The network must have seen rows; afterwards it is renewed.

    Raises:
        WrongUse: it names the layer.
    """
    x, y = reading.drawn(rows, 1, network.device)
    fresh, labels = reading.drawn(rows, 2, network.device)
    # one row alone, all of whose numbers may be small
    small = x[1:2].expand_as(x).clone()
    batches = ((x, y), (torch.zeros_like(x), y), (fresh, labels), (small, y))
    used = [_passed(network, *batch) for batch in batches]
    for batch, seen in zip(batches, used, strict=True):
        network.renew()
        for (name, _, output), (_, _, before) in zip(_passed(network, *batch), seen, strict=True):
            if not _same(output, before):
                raise WrongUse(
                    f"{name} returns another output once it has seen other rows.",
                    allowed="a module and a loss without memory",
                    remedy="What they keep may not be read again.",
                )


def require_rows_apart(
    network: Recorded,
    reading: Reading,
    rows: int,
) -> None:
    """Raises WrongUse for a module in whose forward pass the rows of a batch affect one another.

    Raises:
        WrongUse: it names the layer; or a loss that is not one number for each row, random
            numbers, parameters or buffers that change, half precision.
    """
    with _unmoved(network):
        _require_losses(network, *reading.drawn(rows, 1, network.device))
        _require_forward(network, reading, rows)


def require_outputs_apart(
    network: Recorded,
    reading: Reading,
    rows: int,
) -> None:
    """Raises WrongUse for a module in which a row can change any bit of another row's outputs.

    Guarantees:
        outputs that mix rows are refused

    Raises:
        WrongUse: it mixes rows, draws random numbers, changes its parameters or buffers, or
            remembers rows.
    """
    x, y = reading.drawn(rows, 1, network.device)
    order = _moved(rows)
    with _unmoved(network), torch.no_grad(), repeatable(network.device):
        _require_forward(network, reading, rows)
        # layers may take other kernels where nothing is noted
        outputs = network.module(x)
        for kept, (other, _) in _variants(reading, x, y):
            if not _same(outputs[kept], network.module(other)[kept]):
                raise _mixed("the output of a row, which depends on other rows")
        if not _same(outputs[order], network.module(x[order])):
            raise _mixed(f"the output {_PLACE}")
        for pair, (twins, _) in _twins(reading, rows, network.device):
            outputs = network.module(twins)
            if not _same(outputs[pair[0]], outputs[pair[1]]):
                raise _mixed(f"the output {_PLACE}")
    require_forgetful(network, reading, rows)


def _require_forward(
    network: Recorded,
    reading: Reading,
    rows: int,
) -> None:
    """Refuses a module in which rows affect one another in the forward pass."""
    x, y = reading.drawn(rows, 1, network.device)
    _require_steady(network, x)
    for kept, other in _variants(reading, x, y):
        _require_layers(network, (x, other[0]), kept)


def _variants(
    reading: Reading,
    x: torch.Tensor,
    y: torch.Tensor,
) -> Iterator[tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]]:
    """Yields pairs: which rows stay, and a batch in which all other rows are replaced."""
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
    """Returns a permutation of rows in which every row changes its position."""
    # a prime stride; chunks are multiples of 64
    return (97 * torch.arange(rows) + 5) % rows


def _twins(
    reading: Reading,
    rows: int,
    device: torch.device,
) -> Iterator[tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]]:
    """Yields pairs of positions, and batches in which both positions of a pair have the same
    row.
    """
    for seed in range(3, 3 + _BATCHES):
        x, y = reading.drawn(rows, seed, device)
        # an odd stride, and an even number of rows: every place is in one pair
        places = (37 * (2 * seed + 1) * torch.arange(rows) + seed) % rows
        pair = places.reshape(-1, 2).T
        x[pair[1]], y[pair[1]] = x[pair[0]], y[pair[0]]
        yield pair, (x, y)


def _require_losses(
    network: Recorded,
    x: torch.Tensor,
    y: torch.Tensor,
) -> None:
    """Refuses a loss that is not one number per row, and half precision."""
    kinds = {value.dtype for value in network.module.parameters()}
    if not network.named:
        raise WrongUse(
            "A module with no parameter to train.",
            remedy="module.requires_grad_(), or of the parts to train: part.requires_grad_().",
        )
    if not kinds <= {torch.float32, torch.float64}:
        raise WrongUse(
            "A module in half precision.",
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
                allowed="a module without randomness and without memory",
                remedy="Leave dropout out (p=0): the noise regularises; weight_norm instead of "
                "spectral_norm. A part that is frozen may keep both: "
                "part.requires_grad_(False).eval().",
            )


@contextmanager
def _unmoved(network: Recorded) -> Iterator[None]:
    """A context that refuses a network whose parameters or buffers change in it."""
    before = {name: value.clone() for name, value in _state(network)}
    yield
    after = dict(_state(network))
    for name in {**before, **after}:
        if name not in before or name not in after or not _same(before[name], after[name]):
            raise WrongUse(
                f"A pass changes {name}, so that the next rows depend on these.",
                allowed="modules whose parameters and buffers stay as they are",
                remedy="Leave out max_norm of an embedding, and statistics of batches; weight_norm "
                "instead of spectral_norm; or freeze the part: "
                "part.requires_grad_(False).eval().",
            )


def _state(network: Recorded) -> Iterator[tuple[str, torch.Tensor]]:
    """Yields the parameters and buffers with their names."""
    for name, value in network.module.named_parameters():
        yield f"the parameter {name}", value.detach()
    for name, value in network.module.named_buffers():
        yield f"the buffer {name}", value.detach()


def _require_losses_alone(
    network: Recorded,
    reading: Reading,
    rows: int,
) -> None:
    """Refuses a loss that compares rows: the loss of a row must be the same if the row is alone."""
    x, y = reading.drawn(rows, 1, network.device)
    # a loss may take gradients itself
    with repeatable(network.device):
        together = network.loss(network.module(x), y)
        outputs = network.module(x)
        for row in range(0, rows, rows // _ALONE):
            part, most = slice(row, row + 1), 1.0
            if isinstance(outputs, torch.Tensor):
                # a loss may write into what it is given
                given = outputs[part].clone()
                most += float(given.detach().abs().nan_to_num().max())
            else:
                given = network.module(x[part])
            alone = network.loss(given, y[part])
            near = {"rtol": _ROUNDED, "atol": _ROUNDED_OUTPUT * most, "equal_nan": True}
            if alone.shape != (1,) or not torch.allclose(alone, together[part], **near):
                raise WrongUse(
                    "A loss that compares rows: that of a row is another number if it is alone.",
                    allowed="a loss that is a function of each row, and not of how many there are",
                    remedy="To rank pairs, give each row of the SELECT both of a pair.",
                )


def _require_layers(
    network: Recorded,
    inputs: tuple[torch.Tensor, torch.Tensor],
    staying_rows: torch.Tensor,
) -> None:
    """Refuses, by name, the first layer in which replaced rows change rows that stay."""
    first, second = (_passed(network, x) for x in inputs)
    for (name, given, output), (_, given_too, output_too) in zip(first, second, strict=True):
        if len(given) != len(staying_rows) or len(output) != len(staying_rows):
            continue
        same = _same(given[staying_rows], given_too[staying_rows])
        if same and not _same(output[staying_rows], output_too[staying_rows]):
            raise _mixed(name)


def _passed(
    network: Recorded,
    x: torch.Tensor,
    y: torch.Tensor | None = None,
) -> Passed:
    """Returns the input and output of each module in one forward pass, in the order in which they
    end.

    With labels, also the result of the loss.
    """
    calls: Passed = []
    hooks = [
        layer.register_forward_hook(
            _noted(f"{name or 'the module'} ({type(layer).__name__})", calls)
        )
        for name, layer in network.module.named_modules()
    ]
    try:
        with torch.set_grad_enabled(y is not None), repeatable(network.device):
            outputs = network.module(x)
            if y is not None:
                calls.append(("the loss", y, network.loss(outputs, y).detach()))
    finally:
        for hook in hooks:
            hook.remove()
    return calls


def _noted(
    name: str,
    calls: Passed,
) -> Callable[..., None]:
    """Returns a hook that records the input and output tensors of a module.

    Of a tuple, as recurrent layers return, it records the first tensor.
    """

    def hook(
        layer: nn.Module,
        inputs: Any,
        output: Any,
    ) -> None:
        if isinstance(output, tuple) and output:
            output = output[0]
        if inputs and isinstance(inputs[0], torch.Tensor) and isinstance(output, torch.Tensor):
            calls.append((name, inputs[0].detach().clone(), output.detach().clone()))

    return hook


def _arrays(
    sums: GradientSums,
    x: torch.Tensor,
    y: torch.Tensor,
) -> Sequence[torch.Tensor]:
    """Returns the integers that each row adds if it is a unit of its own."""
    known = np.ones(len(x), np.bool)
    if sums.whole:
        vectors = torch.cat(list(sums.network.vectors(x, y)), 1).double()
        found = sums.integers(sums.blocks(vectors.cpu().numpy()), known)
        return [vectors, *(array.to(x.device) for arrays in found for array in arrays)]
    found = sums.integers(sums.parts(sums.network.begun(x), y), known)
    return [array.to(x.device) for arrays in found for array in arrays]


def _same(
    first: torch.Tensor,
    two: torch.Tensor,
) -> bool:
    """Whether two tensors have the same shape and values; NaN equals NaN."""
    if first.shape != two.shape:
        return False
    return bool(torch.allclose(first, two, rtol=0.0, atol=0.0, equal_nan=True))


def _mixed(name: str) -> WrongUse:
    return WrongUse(
        f"Rows are mixed by {name}: one example moves another.",
        allowed="modules that treat each row by itself",
        remedy=_REMEDY,
    )
