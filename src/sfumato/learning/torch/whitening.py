# SPDX-License-Identifier: Apache-2.0
"""The recipe ``Whitening``: a frozen layer after which all directions of features vary alike.

A linear layer learns in far fewer clipped and noisy steps if its inputs vary equally in every
direction. The covariance is released once, as for ``PCA``; the layer is computed from it at no
cost. A direction is divided by the square root of its variance plus the noise, so that directions
that the noise hides are damped.
"""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from sfumato.errors import WrongUse, shown
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import Floats
from sfumato.learning.pca import MOST_NUMBERS, Spread, directions, spread
from sfumato.learning.recipe import Asked, OneRelease, Planned, Recipe
from sfumato.learning.torch.blocks import MOST_ROWS
from sfumato.learning.torch.fingerprint import fingerprint
from sfumato.learning.torch.isolation import require_outputs_apart
from sfumato.learning.torch.made_up import trying
from sfumato.learning.torch.network import inputs_of
from sfumato.learning.torch.network_model import no_loss
from sfumato.learning.torch.outputs import Outputs
from sfumato.learning.torch.reading import Input, Reading
from sfumato.learning.torch.recorded import Recorded, modes_kept
from sfumato.query.cost import Cost

# A module without a label has this one, which is never read.
_NO_LABEL = Input(0, 0, 1, is_class=False)
_MOST_REACH = 2**20
# Variances and noise are at least this: a direction in which nothing varies is kept finite.
_LEAST = 1e-12


class UnitLength(nn.Module):  # type: ignore[misc] # torch is not read by mypy
    """A layer that divides each row by its Euclidean norm; a row of zeros stays as it is.

    >>> UnitLength()(torch.tensor([[3.0, 4.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """

    def forward(
        self,
        x: torch.Tensor,
    ) -> torch.Tensor:
        """Returns rows of length 1."""
        return functional.normalize(x, dim=1)


@dataclass(frozen=True, repr=False)
class Whitened:
    """The result of a ``Whitening`` fit: a frozen layer that whitens the outputs of a module, and
    the privacy cost.

    ``fit`` returns one for ``Whitening``. ``layer`` is a ``nn.Linear`` onto the directions of most
    variance, then a ``UnitLength``. ``shares`` are the noisy shares of the variance along them.
    """

    layer: nn.Sequential
    shares: Floats
    cost: Cost
    charge: str

    def __repr__(self) -> str:
        line = self.layer[0]
        assert isinstance(line, nn.Linear), "as it was made"
        told = f"(cost: {self.cost}, charge {self.charge})"
        return f"{line.out_features} of {line.in_features} directions, whitened {told}"


@dataclass(frozen=True)
class Whitening(Recipe[Whitened]):
    """Whitens the outputs of ``features``, a module that is not trained on these rows.

    Put its layer between the features and a linear layer, and train the latter with a ``Network``.
    The outputs of a row are clipped to ``reach``; ``kept`` directions remain. The cost is a rho, or
    an epsilon with a delta. There is no label. Another number of directions of the same rows at the
    same cost costs no budget. A row with an output that is not finite counts as nothing.

    The module is code that sees rows, as that of a ``Network``: only the owner should provide it.

    Raises:
        WrongUse: an argument of another kind.

    >>> Whitening(nn.Identity(), kept=2).reach
    1
    """

    features: nn.Module
    kept: int
    reach: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.features, nn.Module):
            raise WrongUse(f"features={shown(self.features)}.", allowed="an nn.Module")
        for name, most in (("kept", MOST_NUMBERS), ("reach", _MOST_REACH)):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= most:
                raise WrongUse(f"{name}={shown(value)}.", allowed=f"a whole number to {most:,}")

    def task(
        self,
        examples: Examples,
        asked: Asked,
        orders: Collection[Fraction],
    ) -> Spread[Outputs]:
        """Checks the module on made-up rows and returns the task that releases a noisy mean, radius
        and covariance of its outputs; nothing is charged.

        Raises:
            WrongUse: a label; a module that mixes rows, fails, or has too few or many outputs.
        """
        examples.require_unlabelled("Whitening")
        reading = Reading(inputs_of(examples), _NO_LABEL)
        allowed = "one that takes all inputs within the declared bounds"
        with trying(self.features, no_loss, allowed):
            network = Recorded(self.features, no_loss)
            require_outputs_apart(network, reading, MOST_ROWS)
            made_up, _ = reading.drawn(1, 1, network.device)
            width = network.module(made_up).flatten(1).shape[1]
        if not self.kept <= width <= MOST_NUMBERS:
            raise WrongUse(
                f"{self.kept} directions of {width:,} outputs.",
                allowed="at most as many as outputs, which are at most 1,024",
            )
        made_of = fingerprint(self.features, *modes_kept(self.features))
        box = Outputs(reading, made_of, width, self.reach, network)
        return spread(examples, box, asked.budget, orders)

    def planned(
        self,
        examples: Examples,
        asked: Asked,
        orders: Collection[Fraction],
    ) -> Planned[Whitened]:
        """Returns the planned fit of a whitening layer: one task with three noisy releases."""
        task = self.task(examples, asked, orders)
        device = task.box.network.device

        def made(body: bytes, cost: Cost, charge: str) -> Whitened:
            mean, matrix = task.covariance(body)
            axes, variances = directions(matrix, self.kept)
            hidden = task.hidden(body)
            layer = _layer(self.reach, mean, axes, variances + hidden).to(device)
            total = max(float(np.trace(matrix)), float(variances.sum()))
            return Whitened(layer, variances / max(total, _LEAST), cost, charge)

        return OneRelease(task, task.cells[-1], task.noise, made, len(task.cells))


def _layer(
    reach: int,
    mean: Floats,
    axes: Floats,
    variances: Floats,
) -> nn.Sequential:
    """Returns the layer: offsets from the mean along the axes, each over the root of its
    variance.
    """
    divided = axes / np.sqrt(np.maximum(variances, _LEAST))[:, np.newaxis]
    line = nn.Linear(axes.shape[1], len(axes))
    with torch.no_grad():
        line.weight.copy_(torch.from_numpy(divided / reach))
        line.bias.copy_(torch.from_numpy(-divided @ mean))
    return nn.Sequential(line, UnitLength()).requires_grad_(requires_grad=False).eval()
