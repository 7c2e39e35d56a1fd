# SPDX-License-Identifier: Apache-2.0
"""The run of a network with an adaptive clip; computes with released numbers, so it costs no
budget.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from sfumato.learning.features import Floats
from sfumato.learning.fit_preview import part
from sfumato.learning.order import drawn
from sfumato.learning.torch.adaptive import AdaptiveSums
from sfumato.learning.torch.gradients import GradientSums
from sfumato.learning.torch.isolation import require_isolated
from sfumato.learning.torch.optimizers import Weights
from sfumato.learning.torch.training import NetworkPiece, NetworkTraining
from sfumato.metadata.dataset import Dataset
from sfumato.plan.rows import BoundedRows
from sfumato.query.curator import Curator

# The float of the clip, at the end of a checkpoint.
_CLIP_BYTES = 8


@dataclass(frozen=True, slots=True)
class AdaptiveTraining(NetworkTraining):
    """The training run of a network with an adaptive clip, whose current value is stored in
    checkpoints too.
    """

    sums: AdaptiveSums

    @property
    def everyone(self) -> float:
        """The value of a step's released count if the gradients of all units (of the declared
        number) are within the clip.
        """
        return float(self.sums.weight * self.size * self.order.share)

    def weights(
        self,
        body: bytes,
    ) -> Floats:
        """Returns the weights of the network stored in a checkpoint."""
        return Weights.from_bytes(body[:-_CLIP_BYTES]).weights

    def piece(
        self,
        place: int,
        earlier: Mapping[int, bytes],
    ) -> "AdaptivePiece":
        """Returns the task of the training steps that end with checkpoint number ``place``; weights
        and clip start from the last of the checkpoints ``earlier``.
        """
        state, moved = self.start, 1.0
        if earlier:
            body = earlier[max(earlier)]
            state = Weights.from_bytes(body[:-_CLIP_BYTES])
            moved = float(np.frombuffer(body[-_CLIP_BYTES:], "<f8")[0])
        return AdaptivePiece(self, state, self.sizes[place - 1], moved)


@dataclass(frozen=True, slots=True)
class AdaptivePiece(NetworkPiece):
    """One piece of a run; ``moved`` is the clip of its first step relative to ``start``."""

    run_of: AdaptiveTraining
    moved: float = field(default=1.0)

    form: ClassVar[str] = "a piece of a run"

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of integers of each release: gradients, and a count."""
        return (sum(self.run_of.sums.widths),) * self.steps

    @property
    def size(self) -> int:
        """The exact number of bytes of a checkpoint."""
        return Weights.size(self.run_of.sums.lattice.size) + _CLIP_BYTES

    def ready(
        self,
        declarations: Dataset,
    ) -> BoundedRows:
        """Checks the network again at these weights and this clip, then returns the bounded
        rows.
        """
        require_isolated(self.run_of.sums.to(self.moved).at(self.state.weights))
        return self.run_of.sums.plan

    def run(
        self,
        curator: Curator,
    ) -> bytes:
        """Returns the weights and the clip at the checkpoint, as bytes."""
        training, state, clip_factor = self.run_of, self.state, self.moved
        for _ in range(self.steps):
            sample = drawn(training.order, curator)
            sums = training.sums.to(clip_factor).at(state.weights)
            released = curator.measure(sums, training.mechanism, of=sample)
            # the step is that of gradients at the present clip
            state = training.optimizer.after(state, released[:-1], training.example / clip_factor)
            clip_factor = training.sums.clipping.after(
                clip_factor, float(released[-1]) / training.everyone
            )
        return state.to_bytes() + np.array([clip_factor], "<f8").tobytes()


def parts_of(sums: GradientSums) -> tuple[dict[str, str], ...]:
    """Returns the item of a cost report for the count of units whose gradients are within an
    adaptive clip; empty if the clip is fixed.

    Training with an adaptive clip releases this count in each step, beside the sum of gradients.
    """
    if not isinstance(sums, AdaptiveSums):
        return ()
    share = sums.clipping.share
    title = f"count of units within the clip, {share} of the squared sensitivity of each release"
    return (part(title, str(sums.weight**2)),)
