# SPDX-License-Identifier: Apache-2.0
"""A telemetry task: the question to devices, and how, how often and how long they answer it.

A task is public and never changes: it is canonical JSON, identified by its SHA-256. It contains the
probabilities themselves, as integers over 2^64, so every client draws from the distribution that
the accountant reads.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction

from sfumato.accounting.account import account
from sfumato.errors import InvalidDeclaration, SfumatoError, shown
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import log_up
from sfumato.privacy.event import Event, Json, Repeated
from sfumato.privacy.unit import AUTO, Auto
from sfumato.telemetry.choose import REPORT_BYTES, chosen
from sfumato.telemetry.domain import (
    OTHER,
    Declared,
    Domain,
    Lattice,
    Record,
    Texts,
    Words,
    domain_from_json,
    domain_of,
)
from sfumato.telemetry.keys import PublicKey, key_of_point, point_text
from sfumato.telemetry.oracles.attributes import AttributesOracle
from sfumato.telemetry.oracles.form import AnyOracle, oracle_from_json, oracle_to_json
from sfumato.telemetry.oracles.fragments import FragmentsOracle
from sfumato.telemetry.oracles.levels import LevelsOracle
from sfumato.telemetry.oracles.mean import MeanOracle
from sfumato.telemetry.oracles.prefixes import PrefixesOracle
from sfumato.telemetry.oracles.rappor import RapporOracle
from sfumato.telemetry.oracles.sketch import SketchOracle

FORMAT = 1
_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_MOST = (1 << 32) - 1
_DAY = 86_400


@dataclass(frozen=True)
class ReportTask:
    """A telemetry task: one question to devices, with its schedule and its oracle (local
    mechanism).

    Times are whole seconds since 1970-01-01T00:00:00Z. A period has ``period`` seconds; there are
    ``periods`` of them from ``start`` on, and a device sends at most ``reports`` in each.
    ``memory`` is the number of periods in an epoch, in which a device repeats the answer for its
    first value; with 0 each report is drawn anew. Devices send nothing after ``expires``. Estimates
    need ``min_batch`` reports. ``aggregator`` is the public key to which reports are encrypted, as
    ``point_text``; without it they are sent in the clear.

    Guarantees:
        a task is the same bytes everywhere
        a life costs all its epochs

    Raises:
        InvalidDeclaration: a field that is out of range, or fields that do not fit together.

    >>> task = report_task("emoji", "Which emoji is used most?", ["smile", "heart"], epsilon=1,
    ...                    start=1_800_000_000, periods=28, memory=7)
    >>> task.epochs, float(task.first_epsilon), float(task.life_epsilon)
    (4, 1.0, 4.0)
    """

    id: str
    question: str
    domain: Domain
    oracle: AnyOracle
    start: int
    period: int
    periods: int
    reports: int
    memory: int
    min_batch: int
    expires: int
    aggregator: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not _ID.fullmatch(self.id):
            raise InvalidDeclaration(
                f"The id {shown(self.id)} of a task.",
                allowed="1 to 63 of a-z, 0-9, '.', '_' and '-', a letter or digit first",
            )
        if not _is_text(self.question) or not 0 < len(self.question) <= 1000:
            raise InvalidDeclaration(
                "A task needs its question in words.", allowed="1 to 1,000 characters of Unicode"
            )
        for name, least, most in (
            ("start", 0, 1 << 40),
            ("period", 60, 1 << 32),
            ("periods", 1, _MOST),
            ("reports", 1, 1000),
            ("memory", 0, _MOST),
            ("min_batch", 2, 1 << 40),
            ("expires", self.start + 1, 1 << 41),
        ):
            _require_whole(name, getattr(self, name), least, most)
        self._require_point()
        self._require_fitting()

    def _require_point(self) -> None:
        """Raises InvalidDeclaration unless the key of the aggregator is one."""
        try:
            if self.aggregator:
                key_of_point(self.aggregator)
        except (ValueError, TypeError):
            raise InvalidDeclaration(
                "The key of an aggregator that is no point of P-256.",
                allowed="telemetry.point_text(public key)",
            ) from None

    def _require_fitting(self) -> None:
        """Raises InvalidDeclaration if the fields do not fit together."""
        if self.oracle.values != self.domain.size:
            raise InvalidDeclaration(
                f"An oracle of {self.oracle.values:,} values for a domain of {self.domain.size:,}.",
                allowed="the size of the domain, with 'other'",
            )
        numbers = isinstance(self.oracle, MeanOracle | LevelsOracle)
        if numbers and not isinstance(self.domain, Lattice):
            raise InvalidDeclaration(
                f"The oracle {self.oracle.kind!r} for texts.", allowed="sf.Integer, sf.Real"
            )
        pairs = (
            (RapporOracle | SketchOracle, Texts),
            (AttributesOracle, Record),
            (PrefixesOracle | FragmentsOracle, Words),
        )
        for oracle, domain in pairs:
            if isinstance(self.oracle, oracle) != isinstance(self.domain, domain):
                raise InvalidDeclaration(
                    f"The oracle {self.oracle.kind!r} for a domain of kind {self.domain.kind!r}.",
                    allowed="'rappor' and 'sketch' for telemetry.Texts(), 'prefixes' and "
                    "'fragments' for telemetry.Words(...), 'attributes' for "
                    "telemetry.Record(...), and each for nothing else",
                )
        self._require_spelling()
        if isinstance(self.oracle, AttributesOracle) and isinstance(self.domain, Record):
            self.domain.require_sizes([part.values for part in self.oracle.parts])
        if isinstance(self.oracle, RapporOracle) and not self.memory:
            raise InvalidDeclaration(
                "RAPPOR without memory, whose permanent step would be drawn anew.",
                allowed="memory=1 or more",
            )
        if self.memory and self.reports != 1:
            raise InvalidDeclaration(
                f"{self.reports} reports a period from devices that always answer the same.",
                allowed="reports=1 with memory, or memory=0",
            )

    def _require_spelling(self) -> None:
        """Raises InvalidDeclaration unless what is spelled are the words of the domain."""
        oracle = self.oracle
        if not isinstance(oracle, PrefixesOracle | FragmentsOracle):
            return
        if not isinstance(self.domain, Words):
            return
        spelled = (oracle.symbols, oracle.length)
        if spelled != (self.domain.symbols, self.domain.length):
            raise InvalidDeclaration(
                f"Texts of {spelled[1]} of {spelled[0]} symbols for other words.",
                allowed=f"oracles.{oracle.kind}(words.symbols, words.length, epsilon)",
            )

    @property
    def epochs(self) -> int:
        """The number of times that a device draws fresh random answers in its life: once per epoch.

        Without memory, once per report.
        """
        if self.memory:
            return -(-self.periods // self.memory)
        return self.periods * self.reports

    @property
    def life(self) -> Event:
        """The privacy event of all that a device ever reports: the event of one draw, once for each
        epoch.
        """
        return Repeated(self.oracle.event, self.epochs)

    @property
    def first_epsilon(self) -> Fraction:
        """The epsilon of the first report; for RAPPOR less than that of the permanent answer."""
        if isinstance(self.oracle, RapporOracle):
            return log_up(self.oracle.first_odds)
        return _epsilon(self.oracle.event)

    @property
    def life_epsilon(self) -> Fraction:
        """The epsilon of all reports that a device ever sends."""
        return _epsilon(self.life)

    def period_at(self, moment: float) -> int:
        """Returns the number of the period at a time; below 0 before the start."""
        return int((moment - self.start) // self.period)

    def epoch_of(self, period: int) -> int:
        """Returns the number of the epoch of a period; without memory, the period itself."""
        return period // (self.memory or 1)

    def to_bytes(self) -> bytes:
        """Returns the canonical JSON: sorted names, no spaces, UTF-8."""
        form: dict[str, Json] = {field.name: getattr(self, field.name) for field in fields(self)}
        if not self.aggregator:
            del form["aggregator"]
        form |= {"format": FORMAT, "domain": self.domain.to_json()}
        form["oracle"] = oracle_to_json(self.oracle)
        text = json.dumps(form, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return text.encode()

    @property
    def hash(self) -> bytes:
        """The SHA-256 of the canonical JSON, which identifies the task."""
        return hashlib.sha256(self.to_bytes()).digest()


def task_from_bytes(body: bytes) -> ReportTask:
    """Reads a task from its canonical JSON.

    Raises:
        InvalidDeclaration: the bytes are not the canonical form of a task of this version.

    >>> task = report_task("t", "?", ["a"], epsilon=1, start=0, periods=1)
    >>> task_from_bytes(task.to_bytes()) == task
    True
    """
    try:
        form = json.loads(body)
        if form.pop("format") != FORMAT:
            raise KeyError("format")
        task = _read(form)
        if task.to_bytes() == body:
            return task
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, SfumatoError):
        pass
    raise InvalidDeclaration(
        "These bytes are no telemetry task of this version in canonical form.",
        allowed=f"what ReportTask.to_bytes wrote, format {FORMAT}",
        remedy="A newer task needs a newer sfumato; a changed one is another task.",
    )


def _read(form: Mapping[str, Json]) -> ReportTask:
    """Returns the task of its fields."""
    domain, oracle = form["domain"], form["oracle"]
    if not isinstance(domain, Mapping) or not isinstance(oracle, Mapping):
        raise TypeError("domain and oracle")
    parts = {**form, "domain": domain_from_json(domain), "oracle": oracle_from_json(oracle)}
    return ReportTask(**parts)  # type: ignore[arg-type]


def report_task(
    id: str,
    question: str,
    domain: Declared,
    *,
    epsilon: Number | None = None,
    oracle: AnyOracle | Auto = AUTO,
    report_bytes: int = REPORT_BYTES,
    start: int,
    period: int = _DAY,
    periods: int,
    reports: int = 1,
    memory: int = 0,
    min_batch: int = 1000,
    expires: int | None = None,
    other: str = OTHER,
    aggregator: PublicKey | None = None,
) -> ReportTask:
    """Makes a telemetry task; the oracle ``sf.AUTO`` takes the smallest report within 2% of the
    least exact error.

    ``epsilon`` is the cost of one draw; ``candidates`` shows the cost of each oracle. ``other`` is
    the label of all strings that are not in the list. With ``aggregator``, a public key of P-256,
    devices encrypt their reports to it. Other arguments are the fields of ``ReportTask``;
    ``expires`` is by default the end of the last period.

    >>> report_task("beta", "Is beta on?", ["on", "off"], epsilon="0.5", start=0, periods=1).oracle
    CategoryOracle(values=3, ...)
    """
    values = domain_of(domain, other)
    if isinstance(oracle, Auto):
        if epsilon is None:
            raise InvalidDeclaration(
                "A task without an epsilon.", allowed="epsilon=1, or an oracle that has its own"
            )
        exact = positive("epsilon", epsilon)
        oracle = chosen(values.size, exact, report_bytes).oracle
    elif epsilon is not None:
        raise InvalidDeclaration(
            "An epsilon beside an oracle, which has its own.", remedy="Leave epsilon= out."
        )
    end = expires
    if end is None:
        for name, number in (("start", start), ("period", period), ("periods", periods)):
            _require_whole(name, number, 0, 1 << 40)
        end = start + period * periods
    point = "" if aggregator is None else point_text(aggregator)
    return ReportTask(
        id, question, values, oracle, start, period, periods, reports, memory, min_batch, end, point
    )


def _epsilon(event: Event) -> Fraction:
    """Returns the pure epsilon of an event, from the accountant."""
    epsilon = account(event).epsilon
    if epsilon is None:
        raise InvalidDeclaration("A report without an epsilon.")
    return epsilon


def _is_text(value: object) -> bool:
    """Whether a value is a text that UTF-8 can write."""
    if not isinstance(value, str):
        return False
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _require_whole(
    name: str,
    number: object,
    least: int,
    most: int,
) -> None:
    """Raises InvalidDeclaration unless a field is an integer in a range."""
    if type(number) is not int or not least <= number <= most:
        raise InvalidDeclaration(
            f"{name} = {shown(number)} of a task.", allowed=f"an integer from {least} to {most}"
        )
