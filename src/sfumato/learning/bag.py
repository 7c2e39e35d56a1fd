# SPDX-License-Identifier: Apache-2.0
"""Reads a text as codes for models: the buckets of its different tokens, by a public hash.

Proof: examples.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from sfumato.errors import InvalidDeclaration, WrongUse, shown
from sfumato.noise import Integers
from sfumato.plan.rows import MISSING
from sfumato.query.statistic import Rows, RowTokens

# The most buckets, and the most tokens of a text.
_BUCKETS, _MOST = 2**20, 2**10


@dataclass(frozen=True, slots=True)
class Bag:
    """A bag-of-words setting for texts: the first ``most`` different tokens of a text, each hashed
    to one of ``buckets`` buckets.

    The bucket of a token follows from a public hash of its string, so several tokens share one. A
    bucket is counted once, however many tokens of a text are in it.

    Raises:
        InvalidDeclaration: ``buckets`` is not 2 to 2^20, or ``most`` not 1 to 1,024.

    >>> Bag().bucket("eye") == Bag().bucket("eye") < 4096
    True
    """

    buckets: int = 4096
    most: int = 64

    def __post_init__(self) -> None:
        for name, least, largest in (("buckets", 2, _BUCKETS), ("most", 1, _MOST)):
            count = getattr(self, name)
            if type(count) is not int or not least <= count <= largest:
                raise InvalidDeclaration(
                    f"{name}= of a bag is out of range.",
                    allowed=f"an integer from {least} to {largest:,}",
                )

    def bucket(self, token: str) -> int:
        """Returns the bucket of a token, which depends on its string alone."""
        text = token.encode("utf-8", "surrogatepass")
        digest = blake2b(text, digest_size=8, key=b"sfumato bag").digest()
        return int.from_bytes(digest, "little") % self.buckets

    def codes(self, texts: RowTokens, first: int, last: int) -> Integers:
        """Returns the buckets of the texts of rows ``first`` to ``last`` (exclusive), as a matrix
        with ``most`` columns.

        The different buckets of a text ascend; the places after them are ``MISSING``.
        """
        starts = texts.starts[first : last + 1]
        numbers = texts.numbers[starts[0] : starts[-1]].astype(np.int64)
        row = np.repeat(np.arange(last - first), np.diff(starts))
        row, numbers = self._first_tokens(row, numbers)
        used, index = np.unique(numbers, return_inverse=True)
        buckets = np.array([self.bucket(texts.strings[each]) for each in used], np.int64)
        # each bucket of a row once, in ascending order
        row, bucket = np.divmod(np.unique(row * self.buckets + buckets[index]), self.buckets)
        codes = np.full((last - first, self.most), MISSING, np.int64)
        codes[row, _ranks(row)] = bucket
        return codes

    def _first_tokens(self, row: Integers, numbers: Integers) -> tuple[Integers, Integers]:
        """Keeps the first ``most`` different tokens of each row, in their order."""
        size = int(numbers.max(initial=0)) + 1
        _, places = np.unique(row * size + numbers, return_index=True)
        places.sort()
        row, numbers = row[places], numbers[places]
        stays = _ranks(row) < self.most
        return row[stays], numbers[stays]


# How a recipe reads texts unless it says otherwise.
BAG = Bag()


def require_bag(bag: object) -> None:
    """Raises WrongUse for a setting of a recipe that is no bag."""
    if not isinstance(bag, Bag):
        raise WrongUse(f"bag={shown(bag)}.", allowed="ln.Bag(buckets=4096, most=64)")


def _ranks(row: Integers) -> Integers:
    """Returns the place of each entry among those of its row; rows ascend."""
    return np.arange(len(row)) - np.searchsorted(row, row)


def codes_with_bags(rows: Rows, first: int, last: int, bag: Bag | None) -> Integers:
    """Returns the codes of the rows ``first`` to ``last`` (exclusive), followed by the bucket codes
    of each text column.
    """
    codes = rows.codes[first:last]
    if bag is None:
        return codes
    bags = [bag.codes(rows.tokens[place], first, last) for place in sorted(rows.tokens)]
    return np.concatenate([codes, *bags], axis=1)


def row_tokens(texts: Sequence[Sequence[str]]) -> RowTokens:
    """Returns the ``RowTokens`` of texts that are already split into tokens: each token as the
    number of its string.
    """
    strings = sorted({token for tokens in texts for token in tokens})
    number_of = {token: number for number, token in enumerate(strings)}
    numbers = np.array([number_of[token] for tokens in texts for token in tokens], np.int32)
    starts = np.cumsum([0, *map(len, texts)])
    return RowTokens(numbers, starts, strings)
