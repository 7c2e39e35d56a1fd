# SPDX-License-Identifier: Apache-2.0
"""Chooses how the per-row gradients of a network are computed, by a trial on made-up rows.

The rules of ``layers`` are used only if they reproduce an ordinary backward pass. Otherwise, as for
weights used outside their layers, or both as a table and as a weight, the gradients come from
``torch.func``.
"""

import numpy as np
import torch
from torch import nn

from sfumato.errors import WrongUse
from sfumato.learning.torch.layers import has_rule, in_lines
from sfumato.learning.torch.reading import Reading
from sfumato.learning.torch.recorded import Recorded

_ROWS = 16
# What torch, and modules that are used as they cannot be, raise.
FAILURES = (
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    ArithmeticError,
)
# Fine steps of the gradient that is compared.
_SCALE = 2.0**29
# Gradients of a parameter agree if they differ by less than this share of their length, by that
# one if factors are rounded for float32, or by the last one of the whole gradient.
_SHARE, _SHARE_SINGLE, _OFF = 1e-3, 3e-2, 1e-4


def needs_whole(
    network: Recorded,
    reading: Reading,
) -> bool:
    """Whether the gradient of each row must be computed as one vector by ``torch.func.vmap``,
    because the module has a layer without a rule (``layers.has_rule``).

    Raises:
        WrongUse: that is not possible either.
    """
    if _ruled(network) and _agrees(network, reading):
        return False
    try:
        network.vectors(*reading.drawn(_ROWS, 4, network.device))
    except FAILURES as refused:
        raise WrongUse(
            "A module for which neither the rules of layers nor torch.func.vmap work.",
            allowed="layers of Linear, Conv1d to Conv3d, Embedding, LayerNorm, RMSNorm, GroupNorm, "
            "MultiheadAttention, LSTM, GRU, RNN and their cells; or any that torch.func.vmap takes",
            remedy=f"torch says: {first_line(refused)}",
        ) from refused
    return True


def _ruled(network: Recorded) -> bool:
    """Whether each layer with trained parameters has a rule."""
    trained = [layer for layer in network.module.modules() if _is_trained(layer)]
    return all(has_rule(layer) or in_lines(layer) for layer in trained)


def _is_trained(layer: nn.Module) -> bool:
    """Whether a layer has trained parameters of its own."""
    return any(value.requires_grad for value in layer.parameters(recurse=False))


def _agrees(
    network: Recorded,
    reading: Reading,
) -> bool:
    """Whether the rules reproduce ordinary backward passes on made-up rows."""
    try:
        return _near(network, *reading.drawn(_ROWS, 4, network.device))
    except FAILURES:
        return False


def _near(
    network: Recorded,
    x: torch.Tensor,
    y: torch.Tensor,
) -> bool:
    """Whether the blocks of the rows agree with the gradients of ordinary backward passes."""
    expected = [part.double() for part in network.one_by_one(x, y)]
    blocks = network.bookkeeping(network.begun(x), y)
    lengths = torch.stack([part.square().sum(1) for part in expected]).sum(0).sqrt()
    for row in range(0, _ROWS, 5):
        factor = _SCALE / max(float(lengths[row]), 1e-30)
        factors = np.where(np.arange(_ROWS) == row, factor, 0.0)
        for part, block in zip(expected, blocks, strict=True):
            found = block.total(block.integers(factors)).double() * (block.unit / factor)
            off = float((found - part[row]).square().sum().sqrt())
            share = _SHARE_SINGLE if block.rounding and block.unit > 1 else _SHARE
            near = share * float(part[row].square().sum().sqrt())
            if not off <= near + _OFF * float(lengths[row]):
                return False
    return True


def first_line(failure: Exception) -> str:
    """Returns the first line of an error message."""
    return f"{failure} ".splitlines()[0][:200]
