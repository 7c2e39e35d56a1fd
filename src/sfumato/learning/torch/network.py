# SPDX-License-Identifier: Apache-2.0
"""The recipe of a network: a module, a loss, an optimizer, an order, a clip and steps."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, partial
from math import ceil
from typing import Any

from torch import nn

from sfumato.errors import InvalidNumber, WrongUse, shown
from sfumato.exact.rational import Number, to_fraction
from sfumato.exact.rounding import sqrt_up
from sfumato.learning.budget import Budgeted
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import Line, Listed, linear
from sfumato.learning.matrix_noise import MatrixNoise, turned
from sfumato.learning.order import Cyclic, FullBatch, Order, require_order
from sfumato.learning.recipe import Asked, Planned, Prepared, Recipe, Run
from sfumato.learning.run import checkpointed
from sfumato.learning.torch.adaptive import AdaptiveClip, AdaptiveSums
from sfumato.learning.torch.adaptive_training import AdaptiveTraining, parts_of
from sfumato.learning.torch.blocks import MOST_ROWS
from sfumato.learning.torch.choice import needs_whole
from sfumato.learning.torch.device import device_of
from sfumato.learning.torch.fingerprint import fingerprint
from sfumato.learning.torch.gradients import GradientSums, lattice_for
from sfumato.learning.torch.isolation import (
    require_forgetful,
    require_isolated_elsewhere,
    require_rows_apart,
)
from sfumato.learning.torch.made_up import trying
from sfumato.learning.torch.network_model import NetworkModel, require_released
from sfumato.learning.torch.optimizers import Optimizer
from sfumato.learning.torch.reading import Input, Reading
from sfumato.learning.torch.recorded import Loss, Recorded, modes_kept
from sfumato.learning.torch.stream import NetworkStream, cycle_of
from sfumato.learning.torch.training import NetworkTraining
from sfumato.privacy.distance import Norm
from sfumato.privacy.unit import Relation
from sfumato.query.cost import Cost
from sfumato.query.silence import SILENCE

_MOST = 10**6
# A rounded Gaussian is at most so wide.
_WIDEST = 2**28


@dataclass(frozen=True)
class Network(Recipe[NetworkModel]):
    """Trains an ordinary ``nn.Module`` on clipped gradients with exact noise.

    A module takes a tensor (rows, columns) of floats: a number from 0 to 1 between its declared
    bounds, a Category or Boolean as the place of its value. ``loss`` takes outputs and labels and
    returns one number for each row. ``size`` is about how many units there are: a public number,
    since the data's own is private; gradients are divided by it. The gradient of each unit is
    clipped to ``clip``; an ``AdaptiveClip`` follows a quantile of them, at a share of the cost.
    Module and loss are copied: the caller's own see no row. It is trained on the device on which
    it is: a CPU, or one GPU of CUDA. With ``order=Cyclic(20)``,
    ``noise=MatrixNoise(20)`` is noise that later steps take away in part.

    The module is code that sees rows: only the owner of the data should bring it, and vouches that
    no row moves another. The check before the charge tries made-up rows, not all.

    Raises:
        WrongUse, InvalidNumber: an argument that is none of these.

    >>> from sfumato.learning.torch import SGD
    >>> loss = nn.CrossEntropyLoss(reduction="none")
    >>> Network(nn.Linear(3, 2), loss, SGD(0.5), size=1000, steps=20).clip
    1
    """

    module: nn.Module
    loss: Loss
    optimizer: Optimizer
    order: Order | Cyclic = field(default_factory=FullBatch)
    clip: Number | AdaptiveClip = 1
    steps: int = 100
    size: int = 0
    checkpoints: int = 4
    noise: MatrixNoise | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.module, nn.Module) or not callable(self.loss):
            raise WrongUse(
                f"module={shown(self.module)}.", allowed="an nn.Module, and a loss to call"
            )
        # refuses one that is elsewhere
        device_of(self.module)
        if not isinstance(self.optimizer, Optimizer):
            raise WrongUse(
                f"optimizer={shown(self.optimizer)}.",
                allowed="SGD(rate, momentum), Adam(rate)",
                remedy="One of torch's own would step without noise.",
            )
        order: Any = self.order
        if not isinstance(order, Order | Cyclic):
            # its message says what an order is
            require_order(order, Relation.ADD_REMOVE)
        _require_noise(self.noise, order)
        for name in ("steps", "size", "checkpoints"):
            value: Any = getattr(self, name)
            most = 2**40 if name == "size" else _MOST
            if type(value) is not int or not 1 <= value <= most:
                raise WrongUse(f"{name}={shown(value)}.", allowed=f"a whole number to {most:,}")
        if isinstance(self.clip, AdaptiveClip):
            _require_still(order)
        elif isinstance(self.clip, float) and not math.isfinite(self.clip):
            raise InvalidNumber(f"clip={shown(self.clip)}.", allowed="above 0")
        elif not Fraction(1, 2**20) <= to_fraction("clip", self.clip) <= 2**20:
            raise InvalidNumber(f"clip={shown(self.clip)}.", allowed="from 2^-20 to 2^20")

    def training(
        self,
        examples: Examples,
        budget: Budgeted,
        orders: Collection[Fraction],
    ) -> NetworkTraining | NetworkStream:
        """The run, checked with made-up rows and before any charge.

        Raises:
            WrongUse: the module mixes rows, or its loss is not one number for each row.
        """
        return self._training(partial(self._tried, examples), examples, budget, orders)

    def _training(
        self,
        tried: Callable[[], GradientSums],
        examples: Examples,
        budget: Budgeted,
        orders: Collection[Fraction],
    ) -> NetworkTraining | NetworkStream:
        """The run of what was tried, which is called once all else is known to be allowed."""
        if isinstance(self.order, Cyclic):
            return self._stream(self.order, tried, budget, orders)
        require_order(self.order, examples.plan.neighbours)
        multiplier = budget.multiplier(self.order, self.steps, orders)
        sums = _for_noise(tried(), multiplier)
        kind: type[NetworkTraining] = NetworkTraining
        if isinstance(sums, AdaptiveSums):
            kind = AdaptiveTraining
        sensitivity = sqrt_up(sums.distance(Norm.L2).value)
        return kind(
            self._made_of,
            sums,
            self.order,
            checkpointed(self.steps, self.checkpoints),
            _sigma(multiplier, sensitivity),
            budget,
            self.optimizer,
            self.size,
        )

    def _stream(
        self,
        order: Cyclic,
        tried: Callable[[], GradientSums],
        budget: Budgeted,
        orders: Collection[Fraction],
    ) -> NetworkStream:
        """The run in cyclic order: all its rows together are one Gaussian release."""
        multiplier = budget.multiplier(FullBatch(), 1, orders)
        bands = 1 if self.noise is None else self.noise.bands
        sums = _for_noise(tried(), multiplier)
        sizes = turned(self.steps, order.separation, self.checkpoints)
        cycles = [cycle_of(sums, order, bands, size) for size in sizes]
        squared = sum(cycle.distance(cycle.participations).value for cycle in cycles)
        return NetworkStream(
            self._made_of,
            sums,
            order,
            bands,
            sizes,
            _sigma(multiplier, sqrt_up(Fraction(squared))),
            budget,
            self.optimizer,
            self.size,
        )

    @property
    def _made_of(self) -> str:
        """The hash of what trains.

        A clip is in no form (``plan.show``), and clips that are near each other may need the same
        noise: so it is in here. A clip of 1 is not, as it was before others were.
        """
        parts = (self.module, self.loss, self.optimizer, self.size, *modes_kept(self.module))
        if isinstance(self.clip, AdaptiveClip):
            return fingerprint(*parts, f"adaptive {_settings(self.clip)}")
        clip = to_fraction("clip", self.clip)
        if clip == 1:
            return fingerprint(*parts)
        return fingerprint(*parts, f"clip {clip}")

    def _tried(
        self,
        examples: Examples,
    ) -> GradientSums:
        """The gradients, once the module has been tried on made-up rows.

        The lattice is for another noise (``_for_noise``): nothing that is tried hangs on it.
        """
        allowed = f"one that takes all inputs within the declared bounds: {_given(examples)}"
        # as silent as the run: an anomaly of torch is no fault of the module there
        with SILENCE, trying(self.module, self.loss, allowed):
            return self._checked(examples)

    def _checked(
        self,
        examples: Examples,
    ) -> GradientSums:
        """The gradients of a module that passes all checks."""
        network = Recorded(self.module, self.loss)
        reading = _reading_of(examples)
        require_rows_apart(network, reading, MOST_ROWS)
        clip = self.clip
        start = clip.start if isinstance(clip, AdaptiveClip) else clip
        lattice = lattice_for(max(network.width, 1), to_fraction("clip", start), Fraction(1))

        def summed(*, whole: bool) -> GradientSums:
            known = (examples.plan, reading, lattice, whole, network)
            if isinstance(clip, AdaptiveClip):
                return AdaptiveSums(*known, clipping=clip)
            return GradientSums(*known)

        sums = summed(whole=True)
        if examples.plan.most == 1 and not needs_whole(network, reading):
            sums = summed(whole=False)
        # the first piece checks the weights of the start
        require_isolated_elsewhere(sums)
        require_forgetful(network, reading, MOST_ROWS)
        require_released(network, reading)
        return sums

    def planned(
        self,
        examples: Examples,
        asked: Asked,
        orders: Collection[Fraction],
    ) -> Planned[NetworkModel]:
        """The run, and the module with the weights of its last checkpoint."""
        return self.prepared(examples)(asked, orders)

    def prepared(
        self,
        examples: Examples,
    ) -> Prepared[NetworkModel]:
        """``planned`` for several costs; the module is tried once."""
        tried = cache(partial(self._tried, examples))

        def planned(asked: Asked, orders: Collection[Fraction]) -> Planned[NetworkModel]:
            training = self._training(tried, examples, asked.budget, orders)
            return _run_of(training, examples)

        return planned


def _for_noise(
    sums: GradientSums,
    multiplier: Fraction,
) -> GradientSums:
    """The same gradients on the lattice for noise of about so many clips."""
    lattice = sums.lattice
    return replace(sums, lattice=lattice_for(lattice.size, lattice.clip, multiplier))


def _run_of(
    training: NetworkTraining | NetworkStream,
    examples: Examples,
) -> Run[NetworkModel]:
    """The run, and how a model is made of its last checkpoint."""
    sums = training.sums

    def made(body: bytes, cost: Cost, charge: str) -> NetworkModel:
        return NetworkModel(
            sums.network.plain(training.weights(body)),
            sums.reading,
            examples.columns,
            examples.classes,
            examples.bounds,
            cost,
            charge,
        )

    noise = float(training.sigma * sums.lattice.step / sums.lattice.clip)
    numbers = sum(sums.widths)
    return Run(training, training.sizes, numbers, noise, made, parts_of(sums))


def _require_noise(
    noise: object,
    order: object,
) -> None:
    """Refuses what is no noise, and correlated noise where a unit may be in any step."""
    if noise is not None and not isinstance(noise, MatrixNoise):
        raise WrongUse(f"noise={shown(noise)}.", allowed="MatrixNoise(bands), or None")
    if noise is not None and not isinstance(order, Cyclic):
        raise WrongUse(
            f"MatrixNoise with order={shown(order)}.",
            allowed="order=Cyclic(separation)",
            remedy="A unit that may be in steps side by side pays for their common noise.",
        )


def _sigma(
    multiplier: Fraction,
    sensitivity: Fraction,
) -> Fraction:
    """The noise in steps of the lattice.

    Raises:
        InvalidNumber: wider than a rounded Gaussian may be.
    """
    sigma = ceil(multiplier * sensitivity)
    if sigma > _WIDEST:
        raise InvalidNumber(
            f"So little is to be spent that each release would need noise of "
            f"{float(multiplier):,.0f} times what one unit adds.",
            allowed=f"noise of about {float(_WIDEST / sensitivity):,.0f} times it",
            remedy="A larger rho or epsilon, fewer steps, or a smaller rate of a sample.",
        )
    return Fraction(sigma)


def _require_still(order: object) -> None:
    """Refuses an order of streams for a clip that moves."""
    if isinstance(order, Cyclic):
        raise WrongUse(
            f"AdaptiveClip with order={shown(order)}.",
            allowed="FullBatch(), Poisson(rate), Fixed(size, population)",
            remedy="Steps of a stream share their noise, which later ones take away only at the "
            "same clip: state a number as clip.",
        )


def _settings(clip: AdaptiveClip) -> str:
    """The settings of an adaptive clip as exact numbers."""
    return f"{clip.start} {clip.quantile} {clip.rate} {clip.share}"


def _given(examples: Examples) -> str:
    """What a module and its loss are given, in words."""
    labels = f"classes 0 to {len(examples.classes) - 1} (int64)"
    if not examples.classes:
        labels = "numbers from 0 to 1"
    return f"floats of shape (rows, {len(examples.coded)}), and labels that are {labels}"


def _reading_of(examples: Examples) -> Reading:
    """How a network reads examples, from declarations alone."""
    label = examples.label
    is_class = bool(examples.classes)
    return Reading(inputs_of(examples), Input(label.place, label.lower, label.upper, is_class))


def inputs_of(examples: Examples) -> tuple[Input, ...]:
    """How a module reads the features of examples, from declarations alone.

    Raises:
        WrongUse: a column with one value, or of a type that no model reads.
    """
    found = []
    for each in examples.coded:
        feature = linear(each.name, each.type)
        if isinstance(feature, Listed):
            last = feature.lower + feature.count - 1
            found.append(Input(each.place, feature.lower, last, is_class=True))
        else:
            assert isinstance(feature, Line), "a column is listed, or a line"
            found.append(Input(each.place, feature.lower, feature.upper, is_class=False))
    return tuple(found)
