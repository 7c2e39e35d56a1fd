# SPDX-License-Identifier: Apache-2.0
"""The interface of an oracle: how one device reports, and what the reports of all devices say.

A report *supports* some values: the device's own value with probability ``own``, and each other
value with probability ``other``, whichever it is. Both are exact. So the number of reports that
support a value is a sum of independent coins, from which the error of every estimate follows
(``estimates``).
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.exact.rounding import exp_down
from sfumato.noise import Entropy, Integers
from sfumato.privacy.event import Report

# One row of bytes a report.
Payloads: TypeAlias = NDArray[np.uint8]
Mask: TypeAlias = NDArray[np.bool_]

WHOLE = 1 << 64
# Reports of larger domains could not be added up in the memory of a server.
MOST_VALUES = 1 << 24
# e^50 > 2^64: no probability over 2^64 is further from 1.
_LARGEST = Fraction(50)


class Oracle(Protocol):
    """The interface of a frequency oracle (local mechanism): how a device randomises its value into
    a report, and how the aggregator counts reports.

    Values are numbers from 0 to ``values`` - 1; probabilities are integers over 2^64.

    >>> from sfumato.telemetry.oracles.category import category
    >>> oracle: Oracle = category(8, "1")
    >>> oracle.encode(3, [0]), oracle.draws, oracle.size
    (b'\\x03', 1, 1)
    """

    kind: ClassVar[str]

    @property
    def values(self) -> int:
        """The number of values of the domain."""
        ...

    @property
    def event(self) -> Report:
        """The privacy event of one report, from which the accountant computes its cost."""
        ...

    @property
    def draws(self) -> int:
        """The number of random 64-bit words that a report takes, whatever the value."""
        ...

    @property
    def size(self) -> int:
        """The number of bytes of a report, whatever the value."""
        ...

    @property
    def cells(self) -> int:
        """The number of counts of a tally, in which the aggregator sums up reports."""
        ...

    @property
    def own(self) -> Fraction:
        """The probability that a report supports the value of its device; which values a report
        supports is set by the oracle.
        """
        ...

    @property
    def other(self) -> Fraction:
        """The probability that a report supports one given value that is not the device's."""
        ...

    def encode(self, value: int, words: Sequence[int]) -> bytes:
        """Returns the report of a value, computed from ``draws`` uniform random words in exact
        integers.
        """
        ...

    def encode_many(self, values: Integers, entropy: Entropy) -> Payloads:
        """Returns the reports of many devices, independent and with the same distribution as those
        of ``encode``.
        """
        ...

    def valid(self, payloads: Payloads) -> Mask:
        """Returns a mask of the payloads (rows of bytes) that some device could have sent."""
        ...

    def tally(self, payloads: Payloads) -> Integers:
        """Returns the aggregator's counts over valid reports; tallies of disjoint batches can be
        added.
        """
        ...

    def support(self, tally: Integers, reports: int) -> Integers:
        """Returns how many of the reports support each value."""
        ...


def require_domain(values: object, *, least: int = 2) -> None:
    """Raises InvalidDeclaration unless ``values`` is an allowed number of values."""
    if type(values) is not int or not least <= values <= MOST_VALUES:
        raise InvalidDeclaration(
            f"A domain of {shown(values)} values.",
            allowed=f"{least} to {MOST_VALUES:,} values",
            remedy="Report fewer values: a coarser step, or the most common ones and 'other'.",
        )


def odds_of(epsilon: Fraction) -> Fraction:
    """Returns e^epsilon, rounded down; e^50 for an epsilon beyond 50."""
    if epsilon <= 0:
        raise InvalidNumber(f"epsilon = {epsilon} of a report.", allowed="greater than 0")
    return exp_down(min(epsilon, _LARGEST))


def least_weight(total: Fraction) -> int:
    """Returns the least integer weight (a probability over 2^64) that is at least 1 / ``total``,
    and at least 1.
    """
    return -(-WHOLE * total.denominator // total.numerator)


def require_useful(own: Fraction, other: Fraction) -> None:
    """Raises InvalidNumber if, over 2^64, the probabilities ``own`` and ``other`` round to the same
    number: reports would carry no information.
    """
    if own <= other:
        raise InvalidNumber(
            "An epsilon so small that, over 2^64, the odds of a report round to one.",
            allowed="a larger epsilon for so many values",
            remedy="The one-bit Hadamard oracle takes the smallest epsilon.",
        )


def bytes_for(most: int) -> int:
    """Returns the number of bytes that integers up to ``most`` need.

    >>> bytes_for(255), bytes_for(256)
    (1, 2)
    """
    return max(1, -(-most.bit_length() // 8))


def packed(numbers: NDArray[np.uint64], size: int) -> Payloads:
    """Returns numbers as rows of ``size`` bytes, the most significant byte first.

    >>> packed(np.array([258], np.uint64), 2).tolist()
    [[1, 2]]
    """
    rows = numbers.astype(">u8").view(np.uint8).reshape(-1, 8)
    return np.ascontiguousarray(rows[:, 8 - size :])


def unpacked(payloads: Payloads) -> NDArray[np.uint64]:
    """Returns the numbers of rows of at most 8 bytes.

    >>> unpacked(np.array([[1, 2]], np.uint8)).tolist()
    [258]
    """
    rows = np.zeros((len(payloads), 8), np.uint8)
    rows[:, 8 - payloads.shape[1] :] = payloads
    return rows.reshape(-1).view(">u8").astype(np.uint64)
