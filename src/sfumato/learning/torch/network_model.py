# SPDX-License-Identifier: Apache-2.0
"""Trained networks: what they predict and what they cost. All of it is free."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from sfumato.errors import WrongUse
from sfumato.learning.features import Floats
from sfumato.learning.frames import FrameColumn, column_of
from sfumato.learning.torch.reading import Reading
from sfumato.query.cost import Cost


@dataclass(frozen=True)
class NetworkModel:
    """A trained module with the columns that it reads.

    ``module`` is an ordinary one, in evaluation mode: ``torch.save(model.module.state_dict(), f)``.

    >>> NetworkModel.__name__, "fit returns one"
    ('NetworkModel', 'fit returns one')
    """

    module: nn.Module = field(repr=False)
    reading: Reading
    columns: tuple[FrameColumn, ...]
    classes: tuple[str, ...]
    bounds: tuple[float, float]
    cost: Cost
    charge: str

    def predict_proba(
        self,
        frame: Any,
    ) -> Floats:
        """The probability of each class: softmax of the outputs, or the logistic of a single one.

        Raises:
            WrongUse: the label is a number: see ``predict``.
            UnknownName: the frame lacks a feature.
        """
        if not self.classes:
            raise WrongUse("Probabilities of a number.", remedy="model.predict(frame)")
        scores = self._outputs(frame)
        if scores.shape[1] == 1:
            scores = torch.cat([torch.zeros_like(scores), scores], 1)
        return np.asarray(torch.softmax(scores, 1).numpy())

    def predict(
        self,
        frame: Any,
    ) -> list[str] | Floats:
        """The most probable class of each row; the number, if the label is one."""
        if self.classes:
            best = self.predict_proba(frame).argmax(axis=1)
            return [self.classes[place] for place in best]
        lower, upper = self.bounds
        shares = np.clip(self._outputs(frame)[:, 0].numpy(), 0, 1)
        found: Floats = lower + (upper - lower) * shares
        return found

    def _outputs(
        self,
        frame: Any,
    ) -> torch.Tensor:
        """The outputs of the module for each row, as (rows, outputs) in float64."""
        read = [
            each.read(column.codes(column_of(frame, column.name)))
            for each, column in zip(self.reading.inputs, self.columns, strict=True)
        ]
        with torch.no_grad():
            outputs = self.module(torch.from_numpy(np.stack(read, axis=1)))
        return outputs.double().reshape(len(outputs), -1)
