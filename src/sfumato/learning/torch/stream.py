# SPDX-License-Identifier: Apache-2.0
"""The run of a network in cyclic order, with correlated noise: one stream per piece."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from sfumato.learning.budget import Budgeted
from sfumato.learning.features import Floats
from sfumato.learning.matrix_noise import Decoder
from sfumato.learning.order import Cyclic
from sfumato.learning.torch.gradients import GradientSums
from sfumato.learning.torch.isolation import require_isolated
from sfumato.learning.torch.optimizers import Optimizer, Weights
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.noise import RoundedGaussian
from sfumato.plan.rows import BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Block, Composed, Stream
from sfumato.query.curator import Curator
from sfumato.query.cycle import Cycle


@dataclass(frozen=True, slots=True)
class NetworkStream:
    """The training run of a network in cyclic order, with noise that is correlated between steps
    (``MatrixNoise``).

    Like ``NetworkTraining`` otherwise. ``bands`` is the number of steps of a piece over which the
    noise is correlated.
    """

    made_of: str
    sums: GradientSums
    order: Cyclic
    bands: int
    sizes: tuple[int, ...]
    sigma: Fraction
    budget: Budgeted
    optimizer: Optimizer = field(compare=False)
    size: int

    kind: ClassVar[str] = "network_stream"

    @property
    def line(self) -> str:
        """The line about the run in the ledger: the numbers of releases, checkpoints, batches and
        bands.
        """
        steps = f"{sum(self.sizes)} releases, {len(self.sizes)} checkpoints"
        return f"network: {steps}, {self.order.separation} batches, {self.bands} bands"

    @property
    def form(self) -> str:
        """A canonical string of all that the run depends on (plan, hash of the module, settings),
        from which cache keys are computed.
        """
        return form(self)

    @property
    def mechanism(self) -> AdditiveMechanism:
        """The noise mechanism of each released row."""
        return AdditiveMechanism(RoundedGaussian(self.sigma))

    def cycle(self, steps: int) -> Cycle:
        """Returns the correlated-noise stream of ``steps`` steps between two checkpoints."""
        return cycle_of(self.sums, self.order, self.bands, steps)

    @property
    def event(self) -> Composed | Block:
        """The privacy event of the whole run: one stream of releases for each checkpoint."""
        mechanism = self.mechanism
        plan = Composed(tuple(self.cycle(size).event(mechanism) for size in self.sizes))
        block = self.budget.block
        if block is None:
            return plan
        return Block(plan, *block)

    @property
    def example(self) -> float:
        """The integer value of a mean gradient of 1 in the gradient sum of a step."""
        return float(self.size * self.order.share / self.sums.lattice.step)

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
    ) -> "StreamPiece":
        """Returns the task of the training steps that end with checkpoint number ``place``, as one
        stream of releases.

        ``earlier`` has the stored checkpoints.
        """
        state = Weights.start(self.sums.network.start)
        if earlier:
            state = Weights.from_bytes(earlier[max(earlier)])
        return StreamPiece(self, state, self.sizes[place - 1])


@dataclass(frozen=True, slots=True)
class StreamPiece:
    """One piece of a run: the steps from one checkpoint to the next."""

    run_of: NetworkStream
    state: Weights
    steps: int

    kind: ClassVar[str] = "network_stream"
    line: ClassVar[str] = ""
    form: ClassVar[str] = "a piece of a run"

    @property
    def event(self) -> Stream:
        """The stream of this piece."""
        return self.run_of.cycle(self.steps).event(self.run_of.mechanism)

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of integers of all rows of the stream together."""
        return (self.run_of.sums.lattice.size * self.steps,)

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
        """Returns the state at the checkpoint, as bytes."""
        stream, state = self.run_of, self.state
        turn = curator.turn(stream.cycle(self.steps), stream.mechanism)
        decoder = Decoder(stream.bands)
        for _ in range(self.steps):
            row = curator.row(turn, stream.sums.at(state.weights))
            state = stream.optimizer.after(state, decoder.next(row), stream.example)
        return state.to_bytes()


def cycle_of(
    sums: GradientSums,
    order: Cyclic,
    bands: int,
    steps: int,
) -> Cycle:
    """Returns the correlated-noise stream of ``steps`` steps in cyclic order, whose noise is
    correlated over at most ``bands`` steps.
    """
    apart = sums.distance(Norm.L2)
    return Cycle(apart, sums.lattice.size, steps, order.separation, min(bands, steps))
