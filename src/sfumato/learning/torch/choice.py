# SPDX-License-Identifier: Apache-2.0
"""Chooses how the gradients of a network are computed, by trying it on made-up rows.

Rules are used only where they give the gradients of an ordinary backward pass. So tied parameters,
layers that are called twice and weights that are used elsewhere go through ``torch.func``.
"""

import numpy as np
import torch
from torch import nn

from sfumato.errors import WrongUse
from sfumato.learning.torch.layers import has_rule
from sfumato.learning.torch.reading import Reading
from sfumato.learning.torch.recorded import Recorded

_ROWS = 16
_SCALE = 2.0**30
# Gradients agree if they differ by less than this share of their length.
_NEAR = 1e-3


def needs_whole(
    network: Recorded,
    reading: Reading,
) -> bool:
    """Whether the gradient of each row must be computed whole.

    Raises:
        WrongUse: that is not possible either.
    """
    if _ruled(network) and _agrees(network, reading):
        return False
    try:
        network.vectors(*reading.drawn(_ROWS, seed=4))
    except (RuntimeError, ValueError, NotImplementedError) as refused:
        raise WrongUse(
            "A module for which neither the rules of layers nor torch.func.vmap work.",
            allowed="layers of Linear, Conv1d, Conv2d, Embedding, LayerNorm, GroupNorm; "
            "or any that torch.func.vmap can take",
            remedy=f"torch says: {str(refused).splitlines()[0][:200]}",
        ) from refused
    return True


def _ruled(network: Recorded) -> bool:
    """Whether each layer that has parameters to train has a rule."""
    return all(has_rule(layer) for layer in network.module.modules() if _is_trained(layer))


def _is_trained(layer: nn.Module) -> bool:
    """Whether a layer has parameters of its own to train."""
    return any(value.requires_grad for value in layer.parameters(recurse=False))


def _agrees(
    network: Recorded,
    reading: Reading,
) -> bool:
    """Whether the rules give the gradients of ordinary backward passes."""
    x, y = reading.drawn(_ROWS, seed=4)
    wanted = torch.cat(list(network.one_by_one(x, y)), 1).double()
    try:
        blocks = network.bookkeeping(x, y)
    except (KeyError, RuntimeError, AttributeError, ValueError):
        return False
    lengths = wanted.square().sum(1).sqrt()
    for row in range(0, _ROWS, 5):
        factor = _SCALE / max(float(lengths[row]), 1e-30)
        factors = torch.from_numpy(np.where(np.arange(_ROWS) == row, factor, 0.0))
        parts = [block.total(block.integers(factors)) for block in blocks]
        off = torch.cat(parts) / factor - wanted[row]
        if not float(off.square().sum().sqrt()) <= _NEAR * float(lengths[row]):
            return False
    return True
