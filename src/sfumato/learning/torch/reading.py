# SPDX-License-Identifier: Apache-2.0
"""What a network reads of a row: one float a column, within bounds that are declared."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from sfumato.noise import Integers
from sfumato.plan.rows import MISSING

_GOLDEN = (1 + 5**0.5) / 2
Known: TypeAlias = NDArray[np.bool]


@dataclass(frozen=True, slots=True)
class Input:
    """A column at its place: a number from 0 to 1 between its bounds, or the place of a class.

    A missing number is 0; a missing or undeclared class is the number of classes.
    """

    place: int
    lower: int
    upper: int
    is_class: bool

    def read(
        self,
        codes: Integers,
    ) -> NDArray[np.float32]:
        """The floats of codes, whatever they are."""
        if self.is_class:
            known = (codes >= self.lower) & (codes <= self.upper)
            missing = self.upper - self.lower + 1
            return np.where(known, codes - self.lower, missing).astype(np.float32)
        inside = np.clip(codes, self.lower, self.upper) - self.lower
        shares = inside / (self.upper - self.lower)
        return np.where(codes == MISSING, 0.0, shares).astype(np.float32)

    @property
    def most(self) -> int:
        """The largest float."""
        return self.upper - self.lower + 1 if self.is_class else 1


@dataclass(frozen=True, slots=True)
class Reading:
    """The inputs of a network, and its label: a class, or a number from 0 to 1."""

    inputs: tuple[Input, ...]
    label: Input

    def tensors(
        self,
        codes: Integers,
        rows: int,
    ) -> tuple[torch.Tensor, torch.Tensor, Known]:
        """Inputs and labels, padded to ``rows``; and which rows are there with a known label."""
        count = len(codes)
        x = np.zeros((rows, len(self.inputs)), np.float32)
        for at, each in enumerate(self.inputs):
            x[:count, at] = each.read(codes[:, each.place])
        labels = codes[:, self.label.place]
        known = np.zeros(rows, np.bool)
        known[:count] = (labels >= self.label.lower) & (labels <= self.label.upper)
        y = np.zeros(rows, np.float32)
        y[:count] = np.where(known[:count], self.label.read(labels), 0)
        return torch.from_numpy(x), self._labels(y), known

    def drawn(
        self,
        rows: int,
        seed: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Made-up inputs and labels of every kind: between their bounds, and at them."""
        most = np.array([each.most for each in self.inputs])
        # multiples of the golden ratio, without whole parts: spread evenly, and never the same
        places = np.arange(rows * (len(most) + 1)) * _GOLDEN + seed / 7
        shares = (places % 1).reshape(rows, len(most) + 1)
        x = shares[:, 1:] * most
        classes = np.array([each.is_class for each in self.inputs])
        x = np.where(classes, np.rint(x), x)
        x[0], x[-1] = 0, most
        last = self.label.upper - self.label.lower if self.label.is_class else 1
        y = shares[:, 0] * last
        y = np.rint(y) if self.label.is_class else y
        return torch.from_numpy(x.astype(np.float32)), self._labels(y.astype(np.float32))

    def _labels(
        self,
        y: NDArray[np.float32],
    ) -> torch.Tensor:
        """Classes as integers."""
        if self.label.is_class:
            return torch.from_numpy(y.astype(np.int64))
        return torch.from_numpy(y)
