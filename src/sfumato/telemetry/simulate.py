# SPDX-License-Identifier: Apache-2.0
"""Simulates the sums of an aggregator for known true counts: for planning and for tests.

Each simulated device has a report with exactly the probabilities of the task. Unary bits of
different devices are binomial in number, so devices are not drawn one by one; other oracles draw
every device.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.noise import SYSTEM, Binomial, Entropy, Integers
from sfumato.telemetry.aggregator import Aggregator
from sfumato.telemetry.domain import Texts, Words
from sfumato.telemetry.oracles.hashed import HashedOracle
from sfumato.telemetry.oracles.unary import UnaryOracle
from sfumato.telemetry.task import ReportTask

_BLOCK = 1 << 18
# Local hashing works for each device and value: half a minute.
_MOST_WORK = 1 << 35
_MOST_DEVICES = 1 << 40


def simulate(
    task: ReportTask,
    true_counts: Mapping[object, int] | Sequence[int],
    *,
    period: int = 0,
    entropy: Entropy = SYSTEM,
) -> Aggregator:
    """Returns an aggregator with a simulated random report of each of many devices whose values are
    known.

    ``true_counts`` are the numbers of devices by value, or by the number of the value.

    Guarantees:
        simulated sums have the law of the sums of reports

    Raises:
        WrongUse: counts that are no counts, or local hashing for too many devices and values.
        UnknownName: a value that is not in the domain.

    >>> from sfumato.telemetry.task import report_task
    >>> task = report_task("t", "?", ["yes", "no"], epsilon=1, start=0, periods=1)
    >>> simulate(task, {"yes": 10_000}).reports
    10000
    """
    numbers, counts = _holders(task, true_counts)
    devices = int(counts.sum())
    sums = Aggregator(task, period if task.memory or period else None)
    oracle = task.oracle
    if isinstance(oracle, UnaryOracle):
        every = np.zeros(oracle.values, np.int64)
        np.add.at(every, numbers, counts)
        sums.count_tally(_bits(oracle, every, devices, entropy), devices)
        return sums
    if isinstance(oracle, HashedOracle) and devices * oracle.values > _MOST_WORK:
        raise WrongUse(
            f"{devices:,} devices that hash {oracle.values:,} values.",
            allowed=f"devices x values up to {_MOST_WORK:,}",
            remedy="Plan with another oracle of nearly the same variance, such as projective.",
        )
    ends = np.cumsum(counts)
    for start in range(0, devices, _BLOCK):
        places = np.arange(start, min(start + _BLOCK, devices))
        values = numbers[np.searchsorted(ends, places, side="right")]
        payloads = oracle.encode_many(values, entropy)
        sums.count_tally(oracle.tally(payloads), len(payloads))
    return sums


def _holders(
    task: ReportTask, counts: Mapping[object, int] | Sequence[int]
) -> tuple[Integers, Integers]:
    """Returns the numbers of values, and how many devices hold each."""
    domain = task.domain
    if isinstance(counts, Mapping):
        numbers = [domain.known(label) for label in counts]
        devices = [_count(count) for count in counts.values()]
        kind = np.uint64 if isinstance(domain, Texts | Words) else np.int64
        return np.array(numbers, kind), np.array(devices, np.int64)
    if len(counts) != domain.size:
        raise WrongUse(
            f"{len(counts)} counts for {domain.size:,} values.", allowed="one a value, or by value"
        )
    devices = [_count(count) for count in np.asarray(counts).tolist()]
    return np.arange(len(devices)), np.array(devices, np.int64)


def _count(count: object) -> int:
    """Checks and returns a number of devices (WrongUse if it is invalid)."""
    if type(count) is int and 0 <= count <= _MOST_DEVICES:
        return count
    raise WrongUse(f"A count of {shown(count)} devices.", allowed="an integer from 0 to 2^40")


def _bits(
    oracle: UnaryOracle,
    counts: Integers,
    devices: int,
    entropy: Entropy,
) -> Integers:
    """Returns the sums of unary reports: for each value, those of its devices and of all others."""
    kept = successes(counts, oracle.kept, entropy)
    return kept + successes(devices - counts, oracle.added, entropy)


def successes(trials: Integers, weight: int, entropy: Entropy) -> Integers:
    """Draws independent binomials: for each number of trials, the number of successes.

    A trial succeeds with probability ``weight`` / 2^64. A binomial is the sum of those of the
    powers of two in its number of trials; all that share a power are drawn together.

    >>> successes(np.array([0, 0]), 1 << 63, SYSTEM).tolist()
    [0, 0]
    """
    sums = np.zeros(len(trials), np.int64)
    most = int(trials.max(initial=0))
    # larger binomials would have a variance that is not drawn in one piece
    for level in range(min(most.bit_length(), 28)):
        rows = np.flatnonzero(trials >> level & 1)
        law = Binomial(1 << level, f"{weight}/{1 << 64}")
        sums[rows] += law.sample(len(rows), entropy)
    for _ in range(most >> 28):
        rows = np.flatnonzero(trials >= 1 << 28)
        trials = np.where(trials >= 1 << 28, trials - (1 << 28), trials)
        sums[rows] += Binomial(1 << 28, f"{weight}/{1 << 64}").sample(len(rows), entropy)
    return sums
