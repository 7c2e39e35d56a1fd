# SPDX-License-Identifier: Apache-2.0
"""The run of a network: noisy gradients in pieces, each of which ends with a checkpoint.

It is the series that ``Network`` plans; weights are computed from released sums only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from sfumato.learning.budget import Budgeted
from sfumato.learning.features import Floats
from sfumato.learning.order import Order, drawn, event_of
from sfumato.learning.torch.gradients import GradientSums
from sfumato.learning.torch.isolation import require_isolated
from sfumato.learning.torch.optimizers import Optimizer, Weights
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.noise import RoundedGaussian
from sfumato.plan.rows import BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Block, Composed, Event, Repeated
from sfumato.query.curator import Curator


@dataclass(frozen=True, slots=True)
class NetworkTraining:
    """A network's training run, as a series of pieces that each end with a checkpoint.

    ``made_of`` is the hash of the module, loss and optimizer; ``sizes`` are the numbers of steps of
    each piece; ``sigma`` is the noise of each coordinate, in steps of the lattice.
    """

    made_of: str
    sums: GradientSums
    order: Order
    sizes: tuple[int, ...]
    sigma: Fraction
    budget: Budgeted
    optimizer: Optimizer = field(compare=False)
    size: int

    kind: ClassVar[str] = "network"

    @property
    def line(self) -> str:
        """A line for the ledger: the number of steps."""
        return f"network: {sum(self.sizes)} releases, {len(self.sizes)} checkpoints"

    @property
    def form(self) -> str:
        """The canonical text of the plan, the hash of the module and the numbers."""
        return form(self)

    @property
    def mechanism(self) -> AdditiveMechanism:
        """The mechanism that adds noise to every release."""
        return AdditiveMechanism(RoundedGaussian(self.sigma))

    @property
    def step(self) -> Event:
        """The privacy event of a single training step."""
        return event_of(self.order, self.mechanism.event(self.sums.distance(Norm.L2)))

    @property
    def event(self) -> Composed | Repeated | Block:
        """The privacy event of all steps: one part per piece."""
        plan = Composed(tuple(Repeated(self.step, size) for size in self.sizes))
        block = self.budget.block
        if block is None:
            return plan
        return Block(plan, *block)

    @property
    def example(self) -> float:
        """What a mean gradient of 1 is in the integers of a release."""
        return float(self.size * self.order.share / self.sums.lattice.step)

    @property
    def start(self) -> Weights:
        """Returns the initial weights of the module."""
        return Weights.start(self.sums.network.start)

    def weights(
        self,
        body: bytes,
    ) -> Floats:
        """Returns the weights of the network stored in a checkpoint."""
        return Weights.from_bytes(body).weights

    def piece(
        self,
        place: int,
        earlier: Mapping[int, bytes],
    ) -> "NetworkPiece":
        """Returns the task of the steps up to the checkpoint ``place``, from the last stored one
        on.
        """
        state = self.start
        if earlier:
            state = Weights.from_bytes(earlier[max(earlier)])
        return NetworkPiece(self, state, self.sizes[place - 1])


@dataclass(frozen=True, slots=True)
class NetworkPiece:
    """The training steps from a checkpoint to the next, as one task."""

    run_of: NetworkTraining
    state: Weights
    steps: int

    kind: ClassVar[str] = "network"
    line: ClassVar[str] = ""
    form: ClassVar[str] = "a piece of a run"

    @property
    def event(self) -> Event:
        """The privacy event of the steps of this piece."""
        return Repeated(self.run_of.step, self.steps)

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of integers of each release."""
        return (self.run_of.sums.lattice.size,) * self.steps

    @property
    def size(self) -> int:
        """The exact number of bytes of a checkpoint."""
        return Weights.size(self.run_of.sums.lattice.size)

    def ready(
        self,
        declarations: Dataset,
    ) -> BoundedRows:
        """Checks the network again at these weights, then returns the bounded rows."""
        require_isolated(self.run_of.sums.at(self.state.weights))
        return self.run_of.sums.plan

    def run(
        self,
        curator: Curator,
    ) -> bytes:
        """Runs the steps and returns the state at the checkpoint, as bytes."""
        training, state = self.run_of, self.state
        for _ in range(self.steps):
            sample = drawn(training.order, curator)
            sums = training.sums.at(state.weights)
            released = curator.measure(sums, training.mechanism, of=sample)
            state = training.optimizer.after(state, released, training.example)
        return state.to_bytes()
