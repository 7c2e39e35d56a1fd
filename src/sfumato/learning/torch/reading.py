# SPDX-License-Identifier: Apache-2.0
"""What a network reads of a row: one float a column, within bounds that are declared."""

from collections.abc import Sequence
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

    >>> Input(0, 10, 20, is_class=False).most
    1
    """

    place: int
    lower: int
    upper: int
    is_class: bool

    @property
    def most(self) -> int:
        """The largest float."""
        return self.upper - self.lower + 1 if self.is_class else 1


@dataclass(frozen=True, slots=True)
class Reading:
    """The inputs of a network, and its label: a class, or a number from 0 to 1."""

    inputs: tuple[Input, ...]
    label: Input

    def floats(
        self,
        codes: Integers,
    ) -> NDArray[np.float32]:
        """The floats of codes with a column for each input, whatever the codes are."""
        return _floats(codes, self.inputs)

    def tensors(
        self,
        codes: Integers,
        rows: int,
    ) -> tuple[torch.Tensor, torch.Tensor, Known]:
        """Inputs and labels, padded to ``rows``; and which rows are there with a known label."""
        count = len(codes)
        x = np.zeros((rows, len(self.inputs)), np.float32)
        x[:count] = self.floats(codes[:, [each.place for each in self.inputs]])
        labels = codes[:, self.label.place]
        known = np.zeros(rows, np.bool)
        known[:count] = (labels >= self.label.lower) & (labels <= self.label.upper)
        y = np.zeros(rows, np.float32)
        y[:count] = np.where(known[:count], _floats(labels, (self.label,)), 0)
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


def _floats(
    codes: Integers,
    inputs: Sequence[Input],
) -> NDArray[np.float32]:
    """The floats of codes, whose last axis is that of the inputs."""
    lower = np.array([each.lower for each in inputs])
    upper = np.array([each.upper for each in inputs])
    is_class = np.array([each.is_class for each in inputs], np.bool)
    known = (codes >= lower) & (codes <= upper)
    classes = np.where(known, codes - lower, upper - lower + 1)
    shares = (np.clip(codes, lower, upper) - lower) / np.maximum(upper - lower, 1)
    numbers = np.where(codes == MISSING, 0.0, shares)
    return np.where(is_class, classes, numbers).astype(np.float32)
