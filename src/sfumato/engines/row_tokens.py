# SPDX-License-Identifier: Apache-2.0
"""Splits the texts of rows into tokens and numbers them. Proof: row_tokens.proof.md."""

from collections.abc import Iterable

import numpy as np

from sfumato.engines.base import RowTokens
from sfumato.metadata.column import Text


class _Numbers(dict[str, int]):
    """The number of each string, by first appearance."""

    __slots__ = ()

    def __missing__(self, string: str) -> int:
        number = self[string] = len(self)
        return number


class TokenReader:
    """A builder of the ``RowTokens`` of one text column, which reads its texts batch by batch.

    A text without ``tokens=`` is one token, and a missing text has none.

    >>> reader = TokenReader(Text())
    >>> reader.read(["b c", None, "a"])
    >>> found = reader.tokens()
    >>> found.numbers.tolist(), found.starts.tolist(), found.strings
    ([1, 0], [0, 1, 1, 2], ['a', 'b c'])
    """

    __slots__ = ("_kind", "_numbers", "_parts", "_sizes")

    def __init__(self, kind: Text) -> None:
        self._kind = kind
        self._numbers = _Numbers()
        self._parts = [np.zeros(0, np.int32)]
        self._sizes = [np.zeros(0, np.int64)]

    def read(self, texts: Iterable[str | None]) -> None:
        """Splits a batch of texts into tokens and adds them to those read so far."""
        numbers = self._numbers
        rule = self._kind.tokens
        part: list[int] = []
        sizes = []
        for text in texts:
            tokens: tuple[str, ...] = ()
            if text is not None:
                tokens = (text,) if rule is None else rule.split(text)
            part += map(numbers.__getitem__, tokens)
            sizes.append(len(tokens))
        self._parts.append(np.array(part, np.int32))
        self._sizes.append(np.array(sizes, np.int64))

    def tokens(self) -> RowTokens:
        """Returns the tokens of all rows, numbered in the order of their strings."""
        by_number = list(self._numbers)
        order = sorted(range(len(by_number)), key=by_number.__getitem__)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        numbers = rank[np.concatenate(self._parts)]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(self._sizes))])
        return RowTokens(numbers, starts, [by_number[place] for place in order])
