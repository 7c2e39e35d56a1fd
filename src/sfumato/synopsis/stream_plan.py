# SPDX-License-Identifier: Apache-2.0
"""Compares the encoders of a stream by their exact error, before anything is charged."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import attrgetter
from typing import TypeAlias

import numpy as np

from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.encoder import (
    MOST_REMEMBERED,
    MOST_TICKS,
    Encoder,
    SquareRoot,
    Tree,
    most_times,
)
from sfumato.metadata.column import Date, Integer
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.timestamp import Timestamp
from sfumato.noise import Integers
from sfumato.plan.cube import MAX_CELLS
from sfumato.plan.rows import BoundedRows, RowList
from sfumato.plan.scope import provided
from sfumato.plan.value import Value
from sfumato.privacy.distance import Norm
from sfumato.query.allowance import Allowance, allowance
from sfumato.query.pipeline import compile_rows
from sfumato.query.ticks import Ticks
from sfumato.show.render import number, text_table
from sfumato.sql.lower import understand
from sfumato.synopsis.decoders import Decoder, block_counts, buffered, decoder_of, levels, tree
from sfumato.synopsis.one_table import require_one_table

# How many powers of two are compared as participations.
_DOUBLINGS = 7
# The largest standard deviation of the noise, in lattice steps.
_WIDEST = 2**56
# The most rows of a unit in a tick, and the bases of trees that are tried.
_MOST_ROWS = 2**20
_BASES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)
# The most ranges of which the error is computed; of more, so many that are equally far apart.
_RANGES = 2**20
# Where no end is known: so many in each epoch, which is twice as long as the one before.
_IN_EPOCH = 256


@dataclass(frozen=True, slots=True)
class Totals:
    """The workload of running totals: at each tick, the count of all ticks so far.

    >>> str(Totals())
    'running totals'
    """

    def ranges(self, ends: Integers) -> "Ranges":
        """Returns the ranges (after, upto] whose last ticks are ``ends``."""
        return np.zeros_like(ends), ends

    def __str__(self) -> str:
        return "running totals"


@dataclass(frozen=True, slots=True)
class Windows:
    """Sliding windows as a workload: the count of the last ``ticks`` ticks, at each tick.

    Raises:
        WrongUse: fewer than one tick.

    >>> str(Windows(7))
    'windows of 7 ticks'
    """

    ticks: int

    def __post_init__(self) -> None:
        if type(self.ticks) is not int or self.ticks < 1:
            raise WrongUse(f"A window of {shown(self.ticks)} ticks.", allowed="1 or more")

    def ranges(self, ends: Integers) -> "Ranges":
        """Returns the ranges (after, upto] whose last ticks are ``ends``; only complete windows."""
        width = min(self.ticks, int(ends[-1]))
        ends = ends[ends >= width]
        return ends - width, ends

    def __str__(self) -> str:
        return "single ticks" if self.ticks == 1 else f"windows of {self.ticks} ticks"


Wanted: TypeAlias = Totals | Windows
# The ticks after which ranges begin, and those with which they end.
Ranges: TypeAlias = tuple[Integers, Integers]
# The types of a column that can say when a row came.
Clock: TypeAlias = Date | Integer | Timestamp
TOTALS = Totals()


@dataclass(frozen=True, slots=True)
class Candidate:
    """An encoder, with the exact mean and largest variance of the workload's counts, in rows."""

    name: str
    ticks: Ticks
    mechanism: AdditiveMechanism
    mean: float
    worst: float


@dataclass(frozen=True, slots=True)
class Source:
    """The rows that a stream counts: those of a table that pass an SQL test, with some of its
    columns.

    The first column is the time. At most ``most`` rows of a unit are read at once.
    """

    table: str
    columns: tuple[str, ...]
    most: int
    where: str = ""

    def rows(
        self,
        dataset: Dataset,
        times: str = "",
    ) -> BoundedRows:
        """Returns the plan of the rows, with bounded contributions; ``times`` is a further test on
        the time column.

        Raises:
            As a question in SQL.
        """
        require_one_table(self.table)
        if not isinstance(self.table, str) or self.table not in dataset.tables:
            raise UnknownName(f"No table {shown(self.table)}.", allowed=", ".join(dataset.tables))
        tests = " AND ".join(f"({test})" for test in (self.where, times) if test)
        where = f" WHERE {tests}" if tests else ""
        sql = f"SELECT COUNT(*) AS n FROM {_quoted(self.table)}{where}"
        relation = understand(sql, dataset).raw.relation
        columns = {column.name: column for column in provided(relation)}
        values = []
        for name in self.columns:
            if not isinstance(name, str) or name not in columns:
                raise UnknownName(f"No column {shown(name)}.", allowed=", ".join(columns))
            values.append(Value.of(columns[name]))
        listed = RowList(relation, tuple(values))
        naming = f"sfumato stream of {dataset.name}"
        return compile_rows(listed, dataset, most=self.most, naming=naming)

    def between(
        self,
        dataset: Dataset,
        after: int | None,
        until: int,
    ) -> BoundedRows:
        """Returns the plan of the rows of one tick: those with a time after ``after``, up to
        ``until``.

        Both are codes of the time column.
        """
        kind = dataset.tables[self.table].columns[self.columns[0]]
        assert isinstance(kind, Clock), "checked by plan_stream"
        name = _quoted(self.columns[0])
        tests = [f"{name} <= {_literal(kind, until)}"]
        if after is not None:
            tests.append(f"{name} > {_literal(kind, after)}")
        return self.rows(dataset, " AND ".join(tests))


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """The encoders for a stream with their exact errors, the best first; nothing was charged.

    >>> import sfumato as sf
    >>> city = Dataset("city", {"trips": sf.Table("t.csv", columns={"day": sf.Integer(1, 9)})})
    >>> plan_stream(city, "trips", time="day", horizon=2, epsilon=1)
    running totals over 2 ticks, 1 cells; a unit counts in 1 ticks, 1 apart, with 1 rows each
    every row counts once; one dated into a tick that is over is left out
    encoder              standard error...
    """

    source: Source
    time: Clock
    wanted: Wanted
    horizon: int | None
    allowance: Allowance
    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        """The encoder with the least mean variance."""
        return self.candidates[0]

    @property
    def limits(self) -> str:
        """A text that says which rows the declared limits of a unit leave out; their number is
        private.
        """
        ticks = self.best.ticks
        if ticks.plan.unit is None:
            return "every row counts once; one dated into a tick that is over is left out"
        apart = ""
        if ticks.separation > 1:
            apart = f", or in fewer than {ticks.separation:,} ticks after one that counted,"
        return (
            f"rows of a unit ({ticks.plan.unit}) beyond {ticks.plan.most:,} a tick and "
            f"{ticks.participations:,} ticks{apart} are left out; how many these are is private"
        )

    def with_limits(self, dataset: Dataset, participations: int, rows: int) -> "StreamPlan":
        """Returns the plan of the same stream with other declared limits of a unit.

        Raises:
            As ``plan_stream``.
        """
        is_pure = self.allowance.norm is Norm.L1
        return plan_stream(
            dataset,
            self.source.table,
            time=self.source.columns[0],
            by=self.source.columns[1:],
            horizon=self.horizon,
            epsilon=self.allowance.amount if is_pure else None,
            rho=None if is_pure else self.allowance.amount,
            participations=participations,
            separation=self.best.ticks.separation,
            rows=rows,
            where=self.source.where,
            wanted=self.wanted,
        )

    def __repr__(self) -> str:
        body = []
        for each in self.candidates:
            errors = (math.sqrt(each.mean), math.sqrt(each.worst))
            body.append([each.name, *(f"+- {number(error)}" for error in errors)])
        header = ["encoder", "standard error", "at worst"]
        ticks = self.best.ticks
        end = ""
        if self.horizon is None:
            end = " (no end known; each doubling weighs the same)"
        return (
            f"{self.wanted} over {ticks.steps:,} ticks{end}, {ticks.cells:,} cells; "
            f"a unit counts in {ticks.participations:,} ticks, {ticks.separation:,} apart, "
            f"with {ticks.plan.most:,} rows each\n"
            f"{self.limits}\n"
            f"{text_table(header, body)}\nnothing was charged"
        )


def plan_stream(
    dataset: Dataset,
    table: str,
    *,
    time: str,
    by: Sequence[str] = (),
    horizon: int | None,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    participations: int = 1,
    separation: int = 1,
    rows: int = 1,
    where: str = "",
    wanted: Wanted = TOTALS,
) -> StreamPlan:
    """Compares the encoders of a stream, from declarations alone, at no cost.

    The arguments are those of ``stream``.

    Raises:
        UnknownName, MissingDeclaration, UnsupportedSql: as a question in SQL.
        WrongUse: a number is out of range, or the time is no date, moment or whole number.

    >>> import sfumato as sf
    >>> trips = sf.Table("trips.csv", columns={"day": sf.Date("2026-01-01", "2028-12-31")})
    >>> city = Dataset("city", {"trips": trips})
    >>> found = plan_stream(city, "trips", time="day", horizon=1024, rho="0.5")
    >>> found.best.name, round(found.best.mean, 1)
    ('square root, 512 bands', 9.6)
    >>> plan_stream(city, "trips", time="day", horizon=None, epsilon=1).best.name
    'tree of 16, 5 levels'
    """
    allowed = allowance(epsilon=epsilon, rho=rho, delta=delta)
    steps = MOST_TICKS if horizon is None else horizon
    _require_counts(steps, participations, separation, rows)
    ranges = _ranges(wanted, horizon)
    stream_source = Source(table, (time, *_columns(by)), rows, where)
    source = stream_source.rows(dataset)
    kind = _time(source)
    if source.unit is None:
        # a row has one time: it is in one tick
        participations = separation = 1
    times = most_times(steps, participations, separation)
    widths = _widths(wanted, separation)
    candidates = []
    for name, encoder in _encoders(allowed.norm, steps, ranges, widths):
        ticks = Ticks(source, encoder, times, separation, kind.lower_code)
        candidates.append(_candidate(name, ticks, allowed, ranges))
    best_first = sorted(candidates, key=attrgetter("mean"))
    return StreamPlan(stream_source, kind, wanted, horizon, allowed, tuple(best_first))


def compare_limits(dataset: Dataset, plan: StreamPlan) -> str:
    """Returns a text table of the error by a unit's limits of ticks and of rows; costs no budget.

    It follows from the declarations alone. Empty if each row is its own unit.
    """
    ticks = plan.best.ticks
    if ticks.plan.unit is None:
        return ""
    steps = most_times(ticks.steps, MOST_TICKS, ticks.separation)
    choices = {ticks.participations, *(2**power for power in range(_DOUBLINGS))}
    sizes = sorted({1, ticks.plan.most, 2 * ticks.plan.most})
    body = []
    for participations in sorted(choice for choice in choices if choice <= steps):
        errors = []
        for rows in sizes:
            best = plan.with_limits(dataset, participations, rows).best
            errors.append(f"+- {number(math.sqrt(best.mean))}")
        body.append([f"{participations:,}", *errors])
    return text_table(["participations", *(f"rows = {rows:,}" for rows in sizes)], body)


def _ranges(wanted: object, horizon: int | None) -> Ranges:
    """Returns the ranges that are wanted (WrongUse for what is no kind of them)."""
    if not isinstance(wanted, Totals | Windows):
        raise WrongUse(f"wanted={shown(wanted)}.", allowed="Totals(), Windows(7)")
    return wanted.ranges(_ends(horizon))


def _time(source: BoundedRows) -> Clock:
    """Returns the type of the time (WrongUse unless it is a date, a moment or a whole number)."""
    value = source.rows.values[0]
    if not isinstance(value.type, Clock):
        raise WrongUse(
            f"time={shown(value.name)} is no date, moment or whole number.",
            allowed="a column declared as sf.Date, sf.Timestamp or sf.Integer",
            remedy="Give the day, or a number of the tick, in a column of its own.",
        )
    return value.type


def _require_counts(
    horizon: object,
    participations: object,
    separation: object,
    rows: object,
) -> None:
    """Raises WrongUse unless all are whole numbers in their range."""
    _require_whole("horizon", horizon, MOST_TICKS)
    _require_whole("participations", participations, MOST_TICKS)
    _require_whole("separation", separation, MOST_TICKS)
    _require_whole("rows", rows, _MOST_ROWS)


def _require_whole(
    name: str,
    value: object,
    most: int,
) -> None:
    """Raises WrongUse unless the value is a whole number from 1 to ``most``."""
    if type(value) is not int or not 1 <= value <= most:
        raise WrongUse(f"{name}={shown(value)}.", allowed=f"a whole number from 1 to {most:,}")


def _candidate(
    name: str,
    ticks: Ticks,
    allowed: Allowance,
    ranges: Ranges,
) -> Candidate:
    """Returns a candidate with its errors (WrongUse for too many cells or too much noise)."""
    if ticks.cells > MAX_CELLS:
        raise WrongUse(f"{ticks.cells:,} cells.", allowed=f"at most {MAX_CELLS:,}")
    mechanism = allowed.noise(ticks.distance(ticks.participations), allowed.amount)
    variance = mechanism.noise.variance.upper
    if variance > Fraction(_WIDEST) ** 2:
        raise WrongUse("Noise beyond 2^56 steps.", remedy="Open it at a higher cost.")
    decoder: Decoder = decoder_of(ticks.encoder)
    squared = decoder.squared(*ranges) * float(variance)
    return Candidate(name, ticks, mechanism, float(squared.mean()), float(squared.max()))


def _encoders(
    norm: Norm,
    steps: int,
    ranges: Ranges,
    widths: set[int],
) -> Iterator[tuple[str, Encoder]]:
    """Yields the encoders that are tried, with their names."""
    if norm is Norm.L1:
        yield from _trees(steps, ranges)
        return
    yield "each tick by itself", SquareRoot(steps, 1)
    bands = set(widths)
    if steps <= MOST_REMEMBERED:
        bands |= {steps, *(2**power for power in range(1, steps.bit_length()))}
    for width in sorted(bands):
        if 1 < width <= min(steps, MOST_REMEMBERED):
            name = "square root" if width == steps else f"square root, {width:,} bands"
            yield name, SquareRoot(steps, width)
    if steps > 2:
        yield "buffered square root", buffered(steps)


def _widths(wanted: Wanted, separation: int) -> set[int]:
    """Returns the numbers of bands that fit the windows, and the ticks between two of a unit."""
    if isinstance(wanted, Windows):
        return {separation, wanted.ticks}
    return {separation}


def _trees(steps: int, ranges: Ranges) -> Iterator[tuple[str, Encoder]]:
    """Trees of several bases, their levels weighed for the wanted ranges."""
    yield "each tick by itself", Tree(steps, 2, (1,))
    for base in _BASES:
        height = levels(steps, base)
        for used in {height, height - 1} - {0, 1}:
            plain = Tree(steps, base, (1,) * used)
            needs = block_counts(plain, *ranges).mean(axis=0)
            yield f"tree of {base}, {used} levels", tree(steps, base, needs)


def _ends(steps: int | None) -> Integers:
    """Returns the ends of ranges: every tick, or so many that are equally far apart, and the last.

    If no end is known, every epoch has as many: a day is as likely in the first 100 as in the next.
    """
    if steps is None:
        epochs = MOST_TICKS.bit_length() - 1
        powers = 2 ** (np.arange(epochs * _IN_EPOCH + 1) / _IN_EPOCH)
        return np.floor(powers).astype(np.int64)
    stride = -(-steps // _RANGES)
    return np.arange(steps, 0, -stride)[::-1].copy()


def _columns(by: object) -> list[str]:
    """Returns the columns of the cells (WrongUse unless they are names, each once)."""
    listed = list(by) if isinstance(by, list | tuple) else [None]
    names = [name for name in listed if isinstance(name, str) and name]
    if len(set(names)) == len(listed):
        return names
    raise WrongUse(f"by={shown(by)}.", allowed='names of columns, each once: ["line", "zone"]')


def _quoted(name: object) -> str:
    """Returns a name as SQL (WrongUse unless it is a string)."""
    if not isinstance(name, str) or not name:
        raise WrongUse(f"A column {shown(name)}.", allowed="the name of a column")
    return '"' + name.replace('"', '""') + '"'


def _literal(kind: Clock, code: int) -> str:
    """Returns a time as SQL."""
    value = kind.decode(code)
    if isinstance(kind, Integer):
        return str(value)
    # a moment is written with its offset from UTC
    return f"{'DATE' if isinstance(kind, Date) else 'TIMESTAMP'} '{value}'"
