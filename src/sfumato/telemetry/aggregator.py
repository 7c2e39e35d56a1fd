# SPDX-License-Identifier: Apache-2.0
"""Adds up reports and estimates how many devices hold each value.

All of it is post-processing of reports, which the devices made private: it costs nothing and needs
no trust.
"""

import io
from collections import Counter
from collections.abc import Sequence

import numpy as np

from sfumato.errors import InvalidDeclaration, TooFewReports, WrongUse, shown
from sfumato.exact.rational import Number, decimal_text
from sfumato.noise import Integers
from sfumato.noise.law import open_unit
from sfumato.telemetry.discovery import discovered, sketched
from sfumato.telemetry.domain import Lattice, Record, Texts, Words
from sfumato.telemetry.estimates import Estimates
from sfumato.telemetry.intervals import Coins
from sfumato.telemetry.numbers import Distribution, NumberEstimate, mean_of
from sfumato.telemetry.oracles.attributes import AttributesOracle
from sfumato.telemetry.oracles.fragments import FragmentsOracle
from sfumato.telemetry.oracles.frequency import FREQUENCY
from sfumato.telemetry.oracles.levels import LevelsOracle
from sfumato.telemetry.oracles.mean import MeanOracle
from sfumato.telemetry.oracles.oracle import Mask, Payloads
from sfumato.telemetry.oracles.prefixes import PrefixesOracle
from sfumato.telemetry.oracles.rappor import RapporOracle
from sfumato.telemetry.oracles.sketch import SketchOracle
from sfumato.telemetry.puzzle import joined
from sfumato.telemetry.report import HEADER, Layout, ids_of, periods_of
from sfumato.telemetry.rows import Reports, rows_of
from sfumato.telemetry.seen import Seen
from sfumato.telemetry.task import ReportTask, task_from_bytes
from sfumato.telemetry.texts import TextEstimates, text_estimates

_MAGIC = b"sfumato telemetry sums 1\n"
# Reports that are decoded at a time.
_BLOCK = 1 << 18


class Aggregator:
    """The sums of all reports to a task, from which estimates are computed.

    They are of one ``period`` or of all periods. With memory, a device repeats its answer in each
    period of an epoch, so reports of several periods must not be added up: a period must be given.
    ``reports`` is the number of counted reports; ``duplicates`` and ``refused`` (by reason) count
    those that were not added.

    Guarantees:
        no report is counted twice
        a foreign or damaged report is not counted
        fewer reports than the smallest batch are not looked at

    Raises:
        WrongUse: no period of the task, or none where it needs one.

    >>> from sfumato.telemetry.simulate import simulate
    >>> from sfumato.telemetry.task import report_task
    >>> task = report_task("t", "?", ["yes", "no"], epsilon=2, start=0, periods=1)
    >>> sums = simulate(task, {"yes": 9_000, "no": 1_000})
    >>> row = sums.estimate(["yes"]).to_dicts()[0]
    >>> row["value"], abs(row["estimate"] - 9_000) < 1_500
    ('yes', True)
    """

    def __init__(self, task: ReportTask, period: int | None = None) -> None:
        if period is None and task.memory:
            raise WrongUse(
                "Reports of all periods of a task with memory, whose devices repeat their answer.",
                allowed=f"one period: Aggregator(task, period=0) to {task.periods - 1}",
            )
        if period is not None and (type(period) is not int or not 0 <= period < task.periods):
            raise WrongUse(f"period={shown(period)}.", allowed=f"0 to {task.periods - 1}")
        self.task = task
        self.period = period
        self.reports = 0
        self.duplicates = 0
        self.repeated = 0
        self.refused: Counter[str] = Counter()
        self._layout = Layout.of(task)
        self._tally = np.zeros(task.oracle.cells, np.int64)
        self._seen = Seen()

    def add(self, report: bytes) -> bool:
        """Adds a report to the sums; returns False if it is refused or a duplicate."""
        return self.add_many([report]) == 1

    def add_many(self, reports: Reports) -> int:
        """Adds many reports (a list of bytes, or a binary column of Arrow) to the sums; returns the
        number that were counted.
        """
        before = self.reports
        rows, wrong = rows_of(reports, self._layout.size)
        self._refuse("size", wrong)
        for start in range(0, len(rows), _BLOCK):
            self._add(rows[start : start + _BLOCK])
        return self.reports - before

    def _add(self, rows: Payloads) -> None:
        """Counts the reports of a block that are for this task and period, whole and new."""
        oracle = self.task.oracle
        rows = self._kept(rows, self._layout.are_ours(rows), "task or version")
        rows = self._kept(rows, self._in_time(rows), "period")
        rows = self._kept(rows, oracle.valid(rows[:, HEADER:]), "payload")
        fresh = self._seen.fresh(ids_of(rows))
        kept = _chosen(rows, fresh)
        self.duplicates += len(rows) - len(kept)
        self._tally += oracle.tally(np.ascontiguousarray(kept[:, HEADER:]))
        self.reports += len(kept)

    def _in_time(self, rows: Payloads) -> Mask:
        """Returns which reports are of the period, or of any period of the task."""
        periods = periods_of(rows)
        good: Mask = periods < self.task.periods
        if self.period is not None:
            good = periods == self.period
        return good

    def _kept(self, rows: Payloads, good: Mask, reason: str) -> Payloads:
        """Returns the good rows; the others are refused."""
        kept = _chosen(rows, good)
        self._refuse(reason, len(rows) - len(kept))
        return kept

    def _refuse(self, reason: str, count: int) -> None:
        """Counts refused reports."""
        if count:
            self.refused[reason] += count

    def merge(self, other: "Aggregator") -> None:
        """Adds the sums of another aggregator of the same task and period.

        Reports that both aggregators have counted stay counted twice, because sums cannot be
        separated: ``repeated`` is their number. Give each aggregator the reports of other ids.

        Raises:
            WrongUse: the other is of another task or period.
        """
        if (self.task, self.period) != (other.task, other.period):
            raise WrongUse("Sums of another task or period.", allowed="the same task and period")
        ids = other._seen.all
        self.repeated += int(len(ids) - self._seen.fresh(ids).sum()) + other.repeated
        self._tally += other._tally
        self.reports += other.reports
        self.duplicates += other.duplicates
        self.refused += other.refused

    def count_tally(self, tally: Integers, reports: int) -> None:
        """Adds a tally (the oracle's sums over ``reports`` reports, such as those of a simulation)
        as if the reports had been added one by one.
        """
        self._tally += tally
        self.reports += reports

    def estimate(
        self,
        candidates: Sequence[object] | None = None,
        *,
        confidence: Number = "0.95",
        simultaneous: bool = False,
    ) -> Estimates:
        """Returns the estimates of some values, by default of all.

        ``simultaneous``: all intervals hold together with the confidence (Bonferroni).

        Raises:
            TooFewReports: fewer than the smallest batch of the task.
            UnknownName: a candidate that is not in the domain.
        """
        task = self.task
        self._require_batch()
        labels = task.domain.labels
        oracle = task.oracle
        if not isinstance(oracle, FREQUENCY):
            raise self._asked_otherwise("counts of values")
        support = oracle.support(self._tally, self.reports)
        values: tuple[object, ...] = labels
        if candidates is not None:
            numbers = [task.domain.known(label) for label in candidates]
            values = tuple(labels[number] for number in numbers)
            support = support[np.array(numbers, np.int64)]
        exact = open_unit("confidence", confidence)
        each = 1 - (1 - exact) / max(len(values), 1) if simultaneous else exact
        coins = Coins(self.reports, oracle.own, oracle.other)
        return Estimates(values, support, coins, decimal_text(each), simultaneous, self._notes)

    def mean(self, *, confidence: Number = "0.95") -> NumberEstimate:
        """Returns the estimated mean of the devices' numbers; for a task with the oracle of a mean.

        Raises:
            TooFewReports: fewer than the smallest batch of the task.
            WrongUse: a task that asks something else.
        """
        self._require_batch()
        oracle, domain = self.task.oracle, self.task.domain
        if not isinstance(oracle, MeanOracle) or not isinstance(domain, Lattice):
            raise self._asked_otherwise("a mean")
        return mean_of(oracle, domain, self._tally, confidence)

    def distribution(self, *, confidence: Number = "0.95") -> Distribution:
        """Returns the estimated distribution of the devices' numbers; for a task with levels.

        Raises:
            TooFewReports: fewer than the smallest batch of the task.
            WrongUse: a task that asks something else.
        """
        self._require_batch()
        oracle, domain = self.task.oracle, self.task.domain
        if not isinstance(oracle, LevelsOracle) or not isinstance(domain, Lattice):
            raise self._asked_otherwise("a distribution")
        return Distribution(oracle, domain, self._tally, confidence)

    def attribute(self, name: str, *, confidence: Number = "0.95") -> Estimates:
        """Returns the estimated counts of one attribute's values, from the random subset of devices
        that reported this attribute.

        Raises:
            TooFewReports: fewer about this attribute than the smallest batch of the task.
            WrongUse: a task that asks something else.
            UnknownName: no attribute of the task.
        """
        self._require_batch()
        oracle, domain = self.task.oracle, self.task.domain
        if not isinstance(oracle, AttributesOracle) or not isinstance(domain, Record):
            raise self._asked_otherwise("attributes")
        place = domain.place(name)
        part = oracle.parts[place]
        reports, support = oracle.split(self._tally)[place]
        self._require_enough(reports)
        coins = Coins(reports, part.own, part.other)
        exact = decimal_text(open_unit("confidence", confidence))
        labels = domain.domains[place].labels
        return Estimates(labels, support, coins, exact, notes=self._notes)

    def texts(self, candidates: Sequence[str], *, confidence: Number = "0.95") -> TextEstimates:
        """Estimates how many devices hold each candidate string; by RAPPOR or a sketch.

        Raises:
            TooFewReports: fewer than the smallest batch of the task.
            WrongUse: a task that asks something else, or too many candidates for RAPPOR.
        """
        self._require_batch()
        oracle, domain = self.task.oracle, self.task.domain
        exact = decimal_text(open_unit("confidence", confidence))
        if isinstance(oracle, RapporOracle) and isinstance(domain, Texts):
            return text_estimates(oracle, domain, self._tally, candidates, exact)
        if isinstance(oracle, SketchOracle) and isinstance(domain, Texts):
            return sketched(oracle, domain, self._tally, candidates, exact)
        raise self._asked_otherwise("texts")

    def discover(self, *, kept: int = 64, confidence: Number = "0.95") -> TextEstimates:
        """Finds frequent strings without a list of candidates, by prefixes or fragments.

        ``kept`` is the number of prefixes that the search extends at each length; four times as
        many fragments of each position are joined. Larger numbers take longer and find rarer
        strings. ``TextEstimates.found`` tests the resulting strings.

        Raises:
            TooFewReports: fewer than the smallest batch of the task.
            WrongUse: a task that asks something else.
        """
        self._require_batch()
        oracle, domain = self.task.oracle, self.task.domain
        exact = decimal_text(open_unit("confidence", confidence))
        if isinstance(oracle, PrefixesOracle) and isinstance(domain, Words):
            return discovered(oracle, domain, self._tally, kept, exact)
        if isinstance(oracle, FragmentsOracle) and isinstance(domain, Words):
            return joined(oracle, domain, self._tally, kept, exact)
        raise self._asked_otherwise("unknown texts")

    def _require_batch(self) -> None:
        """Raises TooFewReports below the smallest batch of the task."""
        self._require_enough(self.reports)

    def _require_enough(self, reports: int) -> None:
        if reports < self.task.min_batch:
            raise TooFewReports(
                f"{reports:,} reports of the task {self.task.id!r}.",
                allowed=f"{self.task.min_batch:,} or more, as the task says",
                remedy="Wait for more devices.",
            )

    def _asked_otherwise(self, wanted: str) -> WrongUse:
        """Returns the refusal of an answer that the oracle of the task does not give."""
        return WrongUse(
            f"{wanted.capitalize()} of the task {self.task.id!r}, whose oracle is "
            f"{self.task.oracle.kind!r}.",
            allowed="estimate() of counts, mean() with 'mean', distribution() with 'levels', "
            "texts() with 'rappor' and 'sketch', discover() with 'prefixes' and 'fragments', "
            "attribute() with 'attributes'",
        )

    @property
    def _notes(self) -> tuple[str, ...]:
        """What the reader of estimates should know."""
        if not self.repeated:
            return ()
        return (f"{self.repeated:,} reports were counted by two aggregators that were merged.",)

    def to_bytes(self) -> bytes:
        """Returns the sums and the ids of the reports as bytes; ``from_bytes`` reads them."""
        counts = [self.period or 0, self.reports, self.duplicates, self.repeated]
        body = io.BytesIO()
        body.write(_MAGIC)
        task = self.task.to_bytes()
        sizes = [len(task), self.period is not None, *counts, sum(self.refused.values())]
        body.write(np.array(sizes, "<i8").tobytes())
        body.write(task)
        body.write(self._tally.astype("<i8").tobytes())
        body.write(self._seen.all.astype("<u8").tobytes())
        return body.getvalue()

    @classmethod
    def from_bytes(cls, body: bytes) -> "Aggregator":
        """Restores an aggregator from the bytes that ``to_bytes`` returned.

        Raises:
            InvalidDeclaration: the bytes are not such sums.
        """
        start = len(_MAGIC) + 7 * 8
        if not body.startswith(_MAGIC) or len(body) < start:
            raise _no_sums()
        sizes = np.frombuffer(body[len(_MAGIC) : start], "<i8").tolist()
        length, has_period, period, reports, duplicates, repeated, refused = sizes
        task = task_from_bytes(body[start : start + max(length, 0)])
        aggregator = cls(task, period if has_period else None)
        rest = body[start + length :]
        if len(rest) % 8 or len(rest) < 8 * task.oracle.cells:
            raise _no_sums()
        aggregator._tally = np.frombuffer(rest[: 8 * task.oracle.cells], "<i8").astype(np.int64)
        ids = np.frombuffer(rest[8 * task.oracle.cells :], "<u8").astype(np.uint64)
        aggregator._seen.fresh(ids)
        aggregator.reports, aggregator.duplicates, aggregator.repeated = (
            reports,
            duplicates,
            repeated,
        )
        aggregator._refuse("before", refused)
        return aggregator

    def __repr__(self) -> str:
        return f"Aggregator({self.task.id!r}, reports={self.reports})"


def _chosen(rows: Payloads, good: Mask) -> Payloads:
    """Returns the good rows, without a copy where all are."""
    return rows if good.all() else rows[good]


def _no_sums() -> InvalidDeclaration:
    return InvalidDeclaration(
        "These bytes are no sums of reports.", allowed="what Aggregator.to_bytes wrote"
    )
