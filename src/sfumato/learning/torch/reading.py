# SPDX-License-Identifier: Apache-2.0
"""The inputs of a network: one float per column of a row, within declared bounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from sfumato.learning.bag import Bag, codes_with_bags
from sfumato.learning.torch.device import CPU
from sfumato.noise import Integers
from sfumato.query.statistic import Rows

GOLDEN = (1 + 5**0.5) / 2
# float32 holds the difference of any two integers that are smaller.
_SHORT = 2**22
Known: TypeAlias = NDArray[np.bool]


@dataclass(frozen=True, slots=True)
class Input:
    """One number that a network reads of a row: the column at index ``place``, scaled to 0 to 1, or
    the index of its class.

    A missing number becomes 0; a missing or undeclared class becomes the number of classes.

    >>> Input(0, 10, 20, is_class=False).most
    1
    """

    place: int
    lower: int
    upper: int
    is_class: bool

    @property
    def most(self) -> int:
        """The largest value that the input can have."""
        return self.upper - self.lower + 1 if self.is_class else 1


@dataclass(frozen=True)
class Reading:
    """The description of what a network reads of a row: its inputs, and its label (the index of a
    class, or a number scaled to 0 to 1).
    """

    inputs: tuple[Input, ...]
    label: Input

    @cached_property
    def _ends(self) -> "_Ends":
        return _Ends.of(self.inputs)

    @cached_property
    def _label_ends(self) -> "_Ends":
        return _Ends.of((self.label,))

    @cached_property
    def _places(self) -> Any:
        """The column indices of the inputs; a slice if they are adjacent."""
        places = [each.place for each in self.inputs]
        if places == list(range(places[0], places[0] + len(places))):
            return slice(places[0], places[0] + len(places))
        return places

    def codes(self, rows: Rows, first: int, last: int) -> Integers:
        """Returns the codes of the rows ``first`` to ``last`` (exclusive)."""
        return rows.codes[first:last]

    def floats(
        self,
        codes: Integers,
    ) -> NDArray[np.float32]:
        """Converts codes (a column for each input) to the network's input floats; defined for any
        codes.
        """
        return _floats(codes, self._ends)

    def tensors(
        self,
        codes: Integers,
        rows: int,
        device: torch.device = CPU,
    ) -> tuple[torch.Tensor, torch.Tensor, Known]:
        """Returns tensors of the inputs and labels of rows, padded to ``rows`` lines, and an array
        that says which rows have a known label.
        """
        count = len(codes)
        x = self.floats(codes[:, self._places])
        if count < rows:
            x = np.pad(x, ((0, rows - count), (0, 0)))
        labels = codes[:, self.label.place]
        known = np.zeros(rows, np.bool)
        known[:count] = (labels >= self.label.lower) & (labels <= self.label.upper)
        y = np.zeros(rows, np.float32)
        y[:count] = np.where(known[:count], _floats(labels, self._label_ends), 0)
        # in torch's own memory, as made-up rows are: BLAS may compute by where numbers begin
        return torch.from_numpy(x).clone().to(device), self._labels(y).to(device), known

    def drawn(
        self,
        rows: int,
        seed: int,
        device: torch.device = CPU,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns tensors of made-up inputs and labels within the declared bounds, on which a
        network is checked without private rows.

        Three of every four rows have half of their columns at a bound, like rows that end early.
        """
        most = np.array([each.most for each in self.inputs])
        # multiples of the golden ratio, without whole parts: spread evenly, and never the same
        places = np.arange(rows * (len(most) + 1)) * GOLDEN + seed / 7
        shares = (places % 1).reshape(rows, len(most) + 1)
        x = shares[:, 1:] * most
        classes = np.array([each.is_class for each in self.inputs])
        x = np.where(classes, np.rint(x), x)
        half = len(most) // 2
        x[1::4, half:], x[2::4, :half], x[3::4, half:] = 0, 0, most[half:]
        x[0], x[-1] = 0, most
        last = self.label.upper - self.label.lower if self.label.is_class else 1
        y = shares[:, 0] * last
        y = np.rint(y) if self.label.is_class else y
        inputs, labels = torch.from_numpy(x.astype(np.float32)), self._labels(y.astype(np.float32))
        return inputs.to(device), labels.to(device)

    def _labels(
        self,
        y: NDArray[np.float32],
    ) -> torch.Tensor:
        """Returns class labels as integers, numeric labels as floats."""
        if self.label.is_class:
            return torch.from_numpy(y.astype(np.int64))
        return torch.from_numpy(y)


@dataclass(frozen=True)
class TextReading(Reading):
    """A ``Reading`` of rows with texts, whose inputs include the bucket of each token in a text's
    bag of words.

    Each place of a bag is an input: the bucket of a token, or their number where there is none.
    """

    bag: Bag

    def codes(self, rows: Rows, first: int, last: int) -> Integers:
        """Returns the codes of the rows ``first`` to ``last`` (exclusive), followed by those of
        their bags of words.
        """
        return codes_with_bags(rows, first, last, self.bag)


@dataclass(frozen=True, slots=True)
class _Ends:
    """The bounds of the inputs as arrays, of one number if all inputs have the same bounds.

    They are float32 if that type holds all integers within them and just beyond.
    """

    lower: NDArray[Any]
    upper: NDArray[Any]
    is_class: NDArray[np.bool]

    @classmethod
    def of(
        cls,
        inputs: Sequence[Input],
    ) -> "_Ends":
        """Returns the bounds of these inputs."""
        ends = {(each.lower, each.upper, each.is_class) for each in inputs}
        listed = (
            list(ends)
            if len(ends) == 1
            else [(each.lower, each.upper, each.is_class) for each in inputs]
        )
        lower, upper, is_class = zip(*listed, strict=True)
        is_short = max(map(abs, (*lower, *upper))) < _SHORT
        kind = np.float32 if is_short else np.int64
        return cls(np.array(lower, kind), np.array(upper, kind), np.array(is_class, np.bool))


def _floats(
    codes: Integers,
    ends: _Ends,
) -> NDArray[np.float32]:
    """Converts codes to floats; the last axis is that of the inputs."""
    values = codes.astype(ends.lower.dtype)
    has_class = bool(ends.is_class.any())
    # MISSING is below every bound: of a number it becomes 0
    within = np.clip(values, ends.lower, ends.upper, out=None if has_class else values)
    is_within = values == within if has_class else None
    within -= ends.lower
    floats: NDArray[np.float32] = within.astype(np.float32, copy=False)
    span = np.maximum(ends.upper - ends.lower, 1).astype(np.float32)
    if is_within is None:
        floats /= span
        return floats
    classes = np.where(is_within, floats, (ends.upper - ends.lower + 1))
    mixed: NDArray[np.float32] = np.where(ends.is_class, classes, floats / span).astype(np.float32)
    return mixed
