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
    """The training run of a network by DP-SGD, in parts that each end with a checkpoint.

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
        """The line about the run in the ledger, which states the number of steps."""
        return f"network: {sum(self.sizes)} releases, {len(self.sizes)} checkpoints"

    @property
    def form(self) -> str:
        """A canonical string of all that the run depends on (plan, hash of the module, settings),
        from which cache keys are computed.
        """
        return form(self)

    @property
    def mechanism(self) -> AdditiveMechanism:
        """The noise mechanism of each training step."""
        return AdditiveMechanism(RoundedGaussian(self.sigma))

    @property
    def step(self) -> Event:
        """The privacy event of a single training step."""
        return event_of(self.order, self.mechanism.event(self.sums.distance(Norm.L2)))

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
    def example(self) -> float:
        """The integer value of a mean gradient of 1 in the release of a step."""
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
        """Returns the task of the training steps that end with checkpoint number ``place``; it
        starts from the last of the checkpoints ``earlier``.
        """
        state = self.start
        if earlier:
            state = Weights.from_bytes(earlier[max(earlier)])
        return NetworkPiece(self, state, self.sizes[place - 1])


@dataclass(frozen=True, slots=True)
class NetworkPiece:
    """The task of the training steps between two checkpoints of a network's run."""

    run_of: NetworkTraining
    state: Weights
    steps: int

    kind: ClassVar[str] = "network"
    line: ClassVar[str] = ""
    form: ClassVar[str] = "a piece of a run"

    @property
    def event(self) -> Event:
        """The privacy event of the training steps of this task."""
        return Repeated(self.run_of.step, self.steps)

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of noisy integers in the release of each step."""
        return (self.run_of.sums.lattice.size,) * self.steps

    @property
    def size(self) -> int:
        """The exact number of bytes of a checkpoint."""
        return Weights.size(self.run_of.sums.lattice.size)

    def ready(
        self,
        declarations: Dataset,
    ) -> BoundedRows:
        """Checks at the current weights that the network does not mix rows, then returns the plan
        of the private rows.
        """
        require_isolated(self.run_of.sums.at(self.state.weights))
        return self.run_of.sums.plan

    def run(
        self,
        curator: Curator,
    ) -> bytes:
        """Runs the training steps through a curator, and returns the optimizer's state at the
        checkpoint as bytes.
        """
        training, state = self.run_of, self.state
        for _ in range(self.steps):
            sample = drawn(training.order, curator)
            sums = training.sums.at(state.weights)
            released = curator.measure(sums, training.mechanism, of=sample)
            state = training.optimizer.after(state, released, training.example)
        return state.to_bytes()
