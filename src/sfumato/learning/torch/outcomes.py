# SPDX-License-Identifier: Apache-2.0
"""The statistic that counts right predictions of a network. Proof: ../outcomes.proof.md."""

from dataclasses import dataclass, field

import numpy as np
import torch

from sfumato.learning.outcomes import Outcomes
from sfumato.learning.torch.blocks import MOST_ROWS
from sfumato.learning.torch.device import repeatable
from sfumato.learning.torch.reading import Reading
from sfumato.learning.torch.recorded import Recorded
from sfumato.noise import Integers
from sfumato.plan.show import form
from sfumato.query.statistic import Rows


@dataclass(frozen=True, slots=True)
class NetworkOutcomes(Outcomes):
    """A statistic of a network on private rows: the numbers of its right and of its wrong
    predictions.

    The network must be isolated (``isolation.require_outputs_apart``).

    Guarantees:
        outcomes of a network move by at most their proved distance
    """

    reading: Reading
    network: Recorded = field(repr=False, compare=False)

    @property
    def at_once(self) -> int:
        """The number of rows that are predicted in one batch; a shorter last batch is padded."""
        return MOST_ROWS

    @property
    def read(self) -> str:
        """A canonical string of the plan and of the columns that are read, for the answer's cache
        key.
        """
        return f"{form(self.plan)} {form(self.reading)}"

    def codes(self, rows: Rows, first: int, last: int) -> Integers:
        """Returns the codes of the rows ``first`` to ``last`` (exclusive), followed by those of
        their bags of words.
        """
        return self.reading.codes(rows, first, last)

    def predicted(
        self,
        codes: Integers,
    ) -> Integers:
        """Returns the index of the predicted class of each row: that with the largest output; for a
        network with one output, class 1 if it is positive.
        """
        x, _, _ = self.reading.tensors(codes, MOST_ROWS, self.network.device)
        with torch.no_grad(), repeatable(self.network.device):
            outputs = self.network.module(x).flatten(1)[: len(codes)]
        best = outputs[:, 0] > 0
        if outputs.shape[1] > 1:
            best = outputs.argmax(1)
        return np.asarray(best.cpu().numpy().astype(np.int64))
