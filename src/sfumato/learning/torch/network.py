# SPDX-License-Identifier: Apache-2.0
"""The recipe ``Network``: a module, a loss, an optimizer, an order, a clip and a number of steps.

It checks the module on made-up rows and plans a run (``training`` or ``stream``).
"""

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
from sfumato.learning.bag import BAG, Bag, require_bag
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
from sfumato.learning.torch.reading import Input, Reading, TextReading
from sfumato.learning.torch.recorded import Loss, Recorded, modes_kept
from sfumato.learning.torch.stream import NetworkStream, cycle_of
from sfumato.learning.torch.training import NetworkTraining
from sfumato.metadata.column import Text
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

    The module takes a float tensor (rows, columns): a numeric column is scaled to 0 to 1 between
    its declared bounds, a Category or Boolean is the index of its value. A text has ``bag.most``
    places, each the bucket of a token or ``bag.buckets``: an ``nn.Embedding(bag.buckets + 1, ...)``
    reads them. ``loss`` takes outputs and
    labels and returns one number per row. ``size`` is the approximate number of units, by which
    gradients are divided; it must be public, since the exact number is private. The gradient of
    each unit is clipped to ``clip``; an ``AdaptiveClip`` follows a quantile of the norms, at a
    share of the cost. Module and loss are copied, so the caller's own see no row. Training runs on
    the module's device: a CPU, or one CUDA GPU. With ``order=Cyclic(20)``,
    ``noise=MatrixNoise(20)`` is noise of which later steps cancel a part.

    The module is code that sees rows: only the owner of the data should provide it, and is
    responsible that no row affects another. The check before the charge tries made-up rows, not all
    rows.

    Raises:
        WrongUse, InvalidNumber: an argument of another kind.

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
    bag: Bag = BAG

    def __post_init__(self) -> None:
        require_bag(self.bag)
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
        """Checks the module on made-up rows and returns the training run (steps, noise and
        checkpoints); nothing is charged.

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
        """Returns the run; ``tried`` runs the trial, and only after all other checks have
        passed.
        """
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
        """Returns the run in cyclic order: all its rows together are one Gaussian release."""
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
        """The hash of the module, loss, optimizer and settings.

        The clip is part of it, because it is in no other form (``plan.show``), and similar clips
        may need equal noise. A clip of 1 is left out, so that keys of earlier versions stay valid.
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
        """Tries the module on made-up rows and returns the statistic of its gradients.

        Its lattice is replaced later (``_for_noise``); nothing that is tried depends on it.
        """
        allowed = (
            f"one that takes all inputs within the declared bounds: {_describe_inputs(examples)}"
        )
        # as silent as the run: an anomaly of torch is no fault of the module there
        with SILENCE, trying(self.module, self.loss, allowed):
            return self._checked(examples)

    def _checked(
        self,
        examples: Examples,
    ) -> GradientSums:
        """Returns the statistic of the gradients of a module that passes all checks."""
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
        """Returns the planned fit: a training run whose model is the module with the weights of the
        last checkpoint.
        """
        return self.prepared(examples)(asked, orders)

    def prepared(
        self,
        examples: Examples,
    ) -> Prepared[NetworkModel]:
        """Returns a function that plans the fit for different costs; the module is checked on
        made-up rows only once.
        """
        tried = cache(partial(self._tried, examples))

        def planned(asked: Asked, orders: Collection[Fraction]) -> Planned[NetworkModel]:
            training = self._training(tried, examples, asked.budget, orders)
            return _run_of(training, examples)

        return planned


def _for_noise(
    sums: GradientSums,
    multiplier: Fraction,
) -> GradientSums:
    """Returns the same statistic on a lattice for noise of about ``multiplier`` clips."""
    lattice = sums.lattice
    return replace(sums, lattice=lattice_for(lattice.size, lattice.clip, multiplier))


def _run_of(
    training: NetworkTraining | NetworkStream,
    examples: Examples,
) -> Run[NetworkModel]:
    """Returns the planned run, with the function that builds the model from the last checkpoint."""
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
    """Raises WrongUse for an invalid noise, and for correlated noise where a unit may be in any
    step.
    """
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
    """Returns the noise in steps of the lattice.

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
    """Raises WrongUse for an adaptive clip in an order that releases streams."""
    if isinstance(order, Cyclic):
        raise WrongUse(
            f"AdaptiveClip with order={shown(order)}.",
            allowed="FullBatch(), Poisson(rate), Fixed(size, population)",
            remedy="Steps of a stream share their noise, which later ones take away only at the "
            "same clip: state a number as clip.",
        )


def _settings(clip: AdaptiveClip) -> str:
    """Returns the settings of an adaptive clip as exact numbers."""
    return f"{clip.start} {clip.quantile} {clip.rate} {clip.share}"


def _describe_inputs(examples: Examples) -> str:
    """Describes in words what a module and its loss receive."""
    labels = f"classes 0 to {len(examples.classes) - 1} (int64)"
    if not examples.classes:
        labels = 'numbers from 0 to 1; for classes that are numbers, sf.Category(["0", "1"])'
    return f"floats of shape (rows, {len(examples.places)}), and labels that are {labels}"


def _reading_of(examples: Examples) -> Reading:
    """Returns how a network reads examples; reads declarations only."""
    label = examples.label
    is_class = bool(examples.classes)
    read = inputs_of(examples), Input(label.place, label.lower, label.upper, is_class)
    if examples.bag is not None and any(isinstance(each.type, Text) for each in examples.coded):
        return TextReading(*read, examples.bag)
    return Reading(*read)


def inputs_of(examples: Examples) -> tuple[Input, ...]:
    """Returns a description of each input of a module (column, range, class or number), from the
    declarations of the examples.

    Raises:
        WrongUse: a column with one value, or of a type that no model reads.
    """
    inputs = []
    for coded in examples.coded:
        if isinstance(coded.type, Text) and examples.bag is not None:
            last = examples.bag.buckets - 1
            inputs += [Input(place, 0, last, is_class=True) for place in examples.places_of(coded)]
            continue
        feature = linear(coded.name, coded.type)
        if isinstance(feature, Listed):
            last = feature.lower + feature.count - 1
            inputs.append(Input(coded.place, feature.lower, last, is_class=True))
        else:
            assert isinstance(feature, Line), "a column is listed, or a line"
            inputs.append(Input(coded.place, feature.lower, feature.upper, is_class=False))
    return tuple(inputs)
