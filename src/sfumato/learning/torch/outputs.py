# SPDX-License-Identifier: Apache-2.0
"""Runs a public network on rows and returns its outputs as integer points, for ``Whitening``.

Outputs from -reach to reach become integers from -STEPS to STEPS. Proof: ../points.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from sfumato.learning.features import Floats
from sfumato.learning.points import STEPS, Points
from sfumato.learning.torch.blocks import MOST_ROWS
from sfumato.learning.torch.device import repeatable
from sfumato.learning.torch.reading import Reading
from sfumato.learning.torch.recorded import Recorded
from sfumato.noise import Integers


@dataclass(frozen=True, slots=True)
class Outputs:
    """A frozen public network as a feature extractor, which maps each row to a vector of its
    ``width`` outputs.

    Models that are fitted on the outputs of a network (``Whitening``, for example) read rows
    through it. Each output is clipped to -``reach``..``reach`` and stored as an integer from -STEPS
    to STEPS. ``network`` must be isolated (``isolation.require_outputs_apart``); ``made_of`` is its
    hash. ``reading`` turns a row's codes into the network's input.

    Guarantees:
        outputs of a row depend on that row alone
        outputs lie in the box
    """

    reading: Reading
    made_of: str
    width: int
    reach: int
    network: Recorded = field(repr=False, compare=False)

    def points(
        self,
        codes: Sequence[Integers],
    ) -> Points:
        """Returns the network's outputs for rows of codes, as integer points.

        ``codes`` has one array per column. A row for which the network returns a NaN or an infinity
        is marked as unknown, with all coordinates 0.
        """
        count = len(codes[0])
        matrix = np.zeros((count, self.width), np.int16)
        is_known = np.ones(count, np.bool)
        for first in range(0, count, MOST_ROWS):
            part = slice(first, first + MOST_ROWS)
            found = self._outputs(np.stack([column[part] for column in codes], axis=1))
            is_known[part] = np.isfinite(found).all(axis=1)
            matrix[part] = np.rint(np.clip(np.nan_to_num(found) / self.reach, -1, 1) * STEPS)
        matrix[~is_known] = 0
        return Points(matrix, is_known)

    def _outputs(
        self,
        codes: Integers,
    ) -> Floats:
        """Returns the outputs of at most MOST_ROWS rows; fewer rows are padded."""
        count = len(codes)
        x = np.pad(self.reading.floats(codes), ((0, MOST_ROWS - count), (0, 0)))
        # in torch's own memory, as made-up rows are: BLAS may compute by where numbers begin
        given = torch.from_numpy(x).clone().to(self.network.device)
        with torch.no_grad(), repeatable(self.network.device):
            found: Floats = self.network.module(given).flatten(1).double().cpu().numpy()[:count]
        return found
