# SPDX-License-Identifier: Apache-2.0
"""The series of gradient models: training steps under one charge, with checkpoints.

The whole cost is debited when the series is opened. A piece is recorded as begun before its noise
is drawn, and its checkpoint is stored before the next piece begins. After a crash the run resumes
at the last checkpoint; steps begun after it are lost and never drawn again. A checkpoint holds what
was computed of released numbers, and no personal data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.learning.budget import Budgeted
from sfumato.learning.descent import Descent, State
from sfumato.learning.examples import SCORES, ExampleSums, Residuals
from sfumato.learning.order import Order, drawn, event_of
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.noise import RoundedGaussian
from sfumato.plan.rows import BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Block, Composed, Event, Repeated
from sfumato.query.curator import Curator

# Weights beyond it are cut before they are written as integers.
_LARGEST = 1024.0


@dataclass(frozen=True, slots=True)
class Training:
    """The training run of one noisy gradient descent: its steps, their noise and its checkpoints.

    ``counted`` is the statistic of the first release; ``sizes`` are the numbers of releases of each
    piece; ``sigma`` is the noise in integer units of a release.
    """

    recipe: str
    counted: ExampleSums
    logistic: bool
    order: Order
    sizes: tuple[int, ...]
    sigma: Fraction
    budget: Budgeted

    kind: ClassVar[str] = "training"

    @property
    def line(self) -> str:
        """The line about the run in the ledger: the recipe and the number of steps."""
        return f"{self.recipe}: {sum(self.sizes)} releases, {len(self.sizes)} checkpoints"

    @property
    def form(self) -> str:
        """A canonical string of all that the run depends on (plan, features, recipe), from which
        cache keys are computed.
        """
        return form(self)

    @property
    def mechanism(self) -> AdditiveMechanism:
        """The mechanism that adds noise to every release."""
        return AdditiveMechanism(RoundedGaussian(self.sigma))

    @property
    def step(self) -> Event:
        """The privacy event of a single training step."""
        distance = self.counted.distance(Norm.L2)
        return event_of(self.order, self.mechanism.event(distance))

    @property
    def event(self) -> Composed | Repeated | Block:
        """The privacy event of the whole run: the steps between checkpoints, one after the
        other.
        """
        plan = Composed(tuple(Repeated(self.step, size) for size in self.sizes))
        block = self.budget.block
        if block is None:
            return plan
        return Block(plan, *block)

    @property
    def descent(self) -> Descent:
        """The gradient descent that turns the released sums into weights."""
        noise = float(self.sigma) / self.example
        features = len(self.counted.features.parts)
        return Descent(features, sum(self.sizes), noise, self.logistic)

    @property
    def example(self) -> float:
        """The amount that one example adds to the integers of a release, on average over the
        sampling.
        """
        counted = self.counted
        return float(counted.steps * counted.features.scale * self.order.share)

    def piece(
        self,
        place: int,
        earlier: Mapping[int, bytes],
    ) -> "Piece":
        """Returns the task of the training steps that end with checkpoint number ``place``; it
        starts from the last of the checkpoints ``earlier``.
        """
        state = State.start(self.counted.features.width)
        if earlier:
            state = State.from_bytes(earlier[max(earlier)])
        return Piece(self, state, self.sizes[place - 1])


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a run: the steps from one checkpoint to the next."""

    run_of: Training
    state: State
    steps: int

    kind: ClassVar[str] = "training"
    line: ClassVar[str] = ""
    form: ClassVar[str] = "a piece of a run"

    @property
    def event(self) -> Event:
        """The event of the releases of this piece."""
        return Repeated(self.run_of.step, self.steps)

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of integers of each release."""
        first = self.state.released
        return tuple(self._sums(first + step).width for step in range(self.steps))

    @property
    def size(self) -> int:
        """The exact number of bytes of a checkpoint."""
        return State.size(self.run_of.counted.features.width)

    def ready(self, declarations: Dataset) -> BoundedRows:
        """The bounded rows."""
        return self.run_of.counted.plan

    def run(self, curator: Curator) -> bytes:
        """Returns the state at the checkpoint, as bytes."""
        training, state = self.run_of, self.state
        for _ in range(self.steps):
            sample = drawn(training.order, curator)
            sums = self._sums(state.released, state)
            released = curator.measure(sums, training.mechanism, of=sample)
            state = training.descent.after(state, released, training.example)
        return state.to_bytes()

    def _sums(
        self,
        released: int,
        state: State | None = None,
    ) -> ExampleSums:
        """Returns the statistic of the next release: counts first, then gradients at the
        weights.
        """
        counted = self.run_of.counted
        if released == 0:
            return counted
        weights = np.zeros(counted.features.width)
        if state is not None:
            weights = np.rint(np.clip(state.weights, -_LARGEST, _LARGEST) * SCORES)
        reading = Residuals(weights.astype(np.int64), self.run_of.logistic)
        return replace(counted, reading=reading)


def checkpointed(releases: int, checkpoints: int) -> tuple[int, ...]:
    """Returns the number of releases before each checkpoint of a run: nearly equal numbers,
    ``checkpoints`` of them, or fewer if there are fewer releases.

    >>> checkpointed(10, 4)
    (3, 3, 2, 2)
    """
    size, more = divmod(releases, min(checkpoints, releases))
    return (size + 1,) * more + (size,) * (min(checkpoints, releases) - more)
