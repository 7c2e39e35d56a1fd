# SPDX-License-Identifier: Apache-2.0
"""Counts over time: a stream is charged once, and advanced tick by tick.

``plan_stream`` compares encoders and costs no budget; ``stream`` opens the best one and charges it;
``Stream.advance`` reads the rows of a tick. All that a ``Stream`` computes from the stored rows is
post-processing, and costs no budget.
"""

import datetime
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sfumato.errors import LeaseExpired, WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.metadata.column import Date, date_code
from sfumato.metadata.timestamp import Timestamp, moment_of
from sfumato.noise import DiscreteGaussian
from sfumato.query.series import OpenSeries
from sfumato.query.session import Session
from sfumato.show.svg import Figure
from sfumato.synopsis.counts import Counts
from sfumato.synopsis.decoders import Decoder, decoder_of
from sfumato.synopsis.estimate import gaussian_reach, laplace_reach, miss_of, noise_width
from sfumato.synopsis.plot import STEPS, bands
from sfumato.synopsis.stream_plan import TOTALS, StreamPlan, Wanted, plan_stream
from sfumato.synopsis.tick_task import StreamSeries, all_rows

if TYPE_CHECKING:
    import pyarrow

# A time of a stream: a date or moment, its ISO form, or a whole number.
Time: TypeAlias = datetime.date | datetime.datetime | str | int


def stream(
    session: Session,
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
) -> "Stream":
    """Opens a stream of counts, or goes on with it; the whole of it is charged once.

    Args:
        session: who asks, and pays.
        table: the table of which rows are counted.
        time: the column that says when a row came: a date, a moment or a whole number. A row that
            is dated into a tick that is over is not counted: where rows come late, this is the
            column that says when they arrived.
        by: the columns by whose declared values rows are counted, each in a counter of its own.
        horizon: the most ticks. None: no end is known; 2^21 ticks are paid, and the encoder is
            chosen as if each doubling of the length were as likely to be asked for.
        epsilon, rho, delta: the cost of all ticks together; as in ``Session.marginals``.
        participations: in how many ticks the rows of one unit count; later rows are dropped.
        separation: how many ticks later a unit counts again, at the earliest.
        rows: how many rows of a unit count in one tick.
        where: a test of SQL that rows must pass.
        wanted: the counts whose mean error decides the encoder: ``Totals()`` or ``Windows(7)``.

    Raises:
        Refused, WrongUse: as ``plan_stream``, or the budget does not allow it; nothing is charged.
        InProgress: another process has it open.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> days = pa.table({"day": ["2026-11-01"] * 3 + ["2026-11-02"] * 2})
    >>> trips = sf.Table(days, columns={"day": sf.Date("2026-11-01", "2026-12-31")})
    >>> folder = tempfile.TemporaryDirectory()
    >>> session = sf.connect({"trips": trips}, dataset="city", budget=sf.Budget(10**6, "1e-6"),
    ...                      ledger=folder.name + "/l.db")
    >>> found = stream(session, "trips", time="day", horizon=60, rho=10_000)
    >>> round(found.advance("2026-11-01").value), round(found.advance("2026-11-02").value)
    (3, 5)
    >>> round(found.between("2026-11-02", "2026-11-02").value)
    2
    >>> found.close(); session.close(); folder.cleanup()
    """
    planned = plan_stream(
        session.dataset,
        table,
        time=time,
        by=by,
        horizon=horizon,
        epsilon=epsilon,
        rho=rho,
        delta=delta,
        participations=participations,
        separation=separation,
        rows=rows,
        where=where,
        wanted=wanted,
    )
    return Stream(session, planned)


class Stream:
    """An open stream of counts: its ticks so far, and counts computed from them at no cost.

    ``advance`` reads the data of a new tick. While the stream is open, no other process can advance
    it; ``close``, or the end of a ``with`` block, releases it.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> columns = {"hour": sf.Integer(0, 23)}
    >>> calls = sf.Table(pa.table({"hour": [0, 1, 1, 2]}), columns=columns)
    >>> folder = tempfile.TemporaryDirectory()
    >>> session = sf.connect({"calls": calls}, dataset="desk", budget=sf.Budget(10**5),
    ...                      ledger=folder.name + "/l.db")
    >>> with stream(session, "calls", time="hour", horizon=24, epsilon=10**4) as found:
    ...     totals = [round(found.advance(hour).value) for hour in range(3)]
    >>> totals, found.ends
    ([1, 3, 4], [0, 1, 2])
    >>> session.close(); folder.cleanup()

    Attributes:
        plan: the encoders that were compared; the first one is used.
        charge: the id of the charge.
    """

    def __init__(
        self,
        session: Session,
        plan: StreamPlan,
    ) -> None:
        self.plan = plan
        self._session = session
        self._series = StreamSeries(plan, session.dataset)
        self._decoder: Decoder = decoder_of(plan.best.ticks.encoder, plan.best.ticks.cells)
        # the end of each tick, and its number
        self._ticks: dict[int, int] = {}
        self._known = 0
        self._open = self._opened()
        self.charge = self._open.charge

    @property
    def ends(self) -> list[Time]:
        """The end time of each tick so far."""
        return [self.plan.time.decode(code) for code in self._ticks]

    @property
    def left(self) -> int:
        """The number of ticks that the stream can still have; a failed tick uses one up."""
        return self._open.left

    def advance(self, end: Time) -> Counts:
        """Counts the rows up to and including a time, as one tick; returns the running totals.

        The rows since the last tick count, so days that were left out are counted in the next tick.
        A tick that is stored is not drawn again: the same counts are returned.

        Raises:
            WrongUse: the time lies before the end of the last tick or outside the declared ones;
                no tick is left; or the secret state is lost. Free.
            EngineFailed: the data could not be read, and a place is lost: advance again.
            InProgress: another process has the stream open.
        """
        code = self._code(end)
        if code not in self._ticks:
            if self._ticks and code < next(reversed(self._ticks)):
                raise WrongUse(
                    f"{shown(str(end))} lies before the end of the last tick.",
                    allowed=f"a time after {self.ends[-1]}, or the end of a tick",
                )
            self._series.until = code
            # a row that was drawn and not stored comes first, at a place of its own
            while code not in self._ticks:
                self._take(self._next())
        return self.totals(end)

    def totals(
        self,
        at: Time | None = None,
        *,
        confidence: Number = "0.95",
    ) -> Counts:
        """Returns the counts of all ticks up to the one that ends at a time; default: the last."""
        return self._counts(0, self._tick(at), confidence)

    def window(
        self,
        ticks: int,
        at: Time | None = None,
        *,
        confidence: Number = "0.95",
    ) -> Counts:
        """Returns the counts of the last ``ticks`` ticks up to the one that ends at a time.

        Raises:
            WrongUse: there are fewer ticks.
        """
        last = self._tick(at)
        if type(ticks) is not int or not 1 <= ticks <= last:
            raise WrongUse(f"A window of {shown(ticks)} ticks.", allowed=f"from 1 to {last:,}")
        return self._counts(last - ticks, last, confidence)

    def between(
        self,
        first: Time,
        last: Time,
        *,
        confidence: Number = "0.95",
    ) -> Counts:
        """Returns the counts from one time to another, both included.

        Raises:
            WrongUse: no tick begins with the first time, or none ends with the last.
        """
        before = self._code(first, is_end=False) - 1
        upto = self._tick(last)
        after = 0
        if next(iter(self._ticks)) <= before:
            after = self._tick(self.plan.time.decode(before))
        elif before >= self.plan.time.lower_code:
            raise WrongUse(
                f"{shown(str(first))} lies within the first tick.",
                allowed=f"{self.plan.time.decode(self.plan.time.lower_code)}, or the time after "
                f"the end of a tick: {self._some_ends()}",
            )
        if after >= upto:
            raise WrongUse(f"A range from {shown(str(first))} to {shown(str(last))}.")
        return self._counts(after, upto, confidence)

    def to_arrow(
        self,
        *,
        confidence: Number = "0.95",
    ) -> "pyarrow.Table":
        """A row for each tick and cell: the end of the tick, the count of the tick and the running
        total, each with its standard error and interval.
        """
        import pyarrow

        rows = []
        for tick, end in enumerate(self.ends, start=1):
            single = self._counts(tick - 1, tick, confidence)
            total = self._counts(0, tick, confidence)
            name = self.plan.source.columns[0]
            for one, all_ in zip(single.to_dicts("n"), total.to_dicts("total"), strict=True):
                rows.append({name: end} | one | all_)
        return pyarrow.Table.from_pylist(rows)

    def plot(self, *cell: object) -> Figure:
        """Draws the running total of one cell, with the 95% interval of each tick.

        ``cell`` has a value for each column of ``by``. Of many ticks some are drawn, always the
        last.

        Raises:
            WrongUse: no tick yet.
            UnknownName: no such cell.
        """
        last = self._tick(None)
        stride = -(-last // STEPS)
        shown = self.ends[::-1][::stride][::-1]
        rows = [self.totals(end)[cell] for end in shown]
        words = ", ".join(map(str, cell))
        source = self.plan.source
        title = f"{source.table}: running total" + (f" of {words}" if words else "")
        names = list(map(str, shown))
        return bands(title, source.columns[0], names, rows, note=self.plan.limits)

    def close(self) -> None:
        """Releases the stream, so that another process can continue it."""
        self._open.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        best = self.plan.best
        source = self.plan.source
        first = f"Stream of {source.table!r} by {', '.join(source.columns)}: {best.name}"
        state = f"{len(self._ticks):,} of {best.ticks.steps:,} ticks"
        if self._ticks:
            state = f"{state}, until {self.ends[-1]}"
        return f"{first}\n{state}; charge {self.charge[:12]}\n{self.plan.limits}"

    def _opened(self) -> OpenSeries:
        """Opens the series, and takes the rows that are stored."""
        opened = self._session.open_series(self._series)
        self._take(*opened.earlier.values())
        return opened

    def _next(self) -> bytes:
        """Returns the next piece; a series that was suspended is opened again."""
        if self._open.left:
            try:
                return self._open.next().body
            except LeaseExpired:
                self._open.close()
        self._open = self._opened()
        return self._open.next().body

    def _take(self, *bodies: bytes) -> None:
        """Decodes the rows that are new."""
        for place, (until, row) in all_rows(bodies).items():
            if place > self._known:
                self._known = place
                self._ticks[until] = len(self._ticks) + 1
                self._decoder.push(np.array(row, float))

    def _code(self, time: Time, *, is_end: bool = True) -> int:
        """Returns the code of a time (WrongUse unless it lies in the declared range).

        Of a date where moments are declared, the last second; the first one as a beginning.
        """
        kind = self.plan.time
        code: object = None
        if isinstance(kind, Date):
            code = date_code(time)
        elif isinstance(kind, Timestamp):
            second = moment_of(time, kind.zone, is_upper=is_end)
            code = None if second is None else second // int(kind.step)
        elif type(time) is int:
            code = time
        if not isinstance(code, int) or not kind.lower_code <= code <= kind.upper_code:
            first, last = kind.decode(kind.lower_code), kind.decode(kind.upper_code)
            raise WrongUse(f"The time {shown(str(time))}.", allowed=f"from {first} to {last}")
        return code

    def _tick(self, at: Time | None) -> int:
        """Returns the number of the tick that ends at a time; the last one for None."""
        if not self._ticks:
            raise WrongUse("No tick yet.", remedy="advance(...)")
        if at is None:
            return len(self._ticks)
        code = self._code(at)
        if code not in self._ticks:
            raise WrongUse(
                f"No tick ends at {shown(str(at))}.", allowed=f"among others {self._some_ends()}"
            )
        return self._ticks[code]

    def _some_ends(self) -> str:
        return ", ".join(str(end) for end in self.ends[-5:])

    def _counts(
        self,
        after: int,
        upto: int,
        confidence: Number,
    ) -> Counts:
        """Returns the counts of the ticks after one, up to another."""
        (weight,) = self._decoder.squared(np.array([after]), np.array([upto]))
        squared = float(weight)
        noise = self.plan.best.mechanism.noise
        far = self._reach(squared, after, upto, confidence) + self._decoder.rounding(after, upto)
        deviation = math.sqrt(float(noise.variance.upper) * squared)
        axes = self.plan.best.ticks.plan.rows.values[1:]
        values = self._decoder.total(after, upto)
        return Counts(axes, values, deviation, far, self.plan.limits)

    def _reach(
        self,
        squared: float,
        after: int,
        upto: int,
        confidence: Number,
    ) -> float:
        """Returns a bound on the noise of a count that is exceeded no more often than stated."""
        noise = self.plan.best.mechanism.noise
        width = noise_width(noise)
        tail = math.log(2 / miss_of(confidence))
        if isinstance(noise, DiscreteGaussian):
            return gaussian_reach(squared * width**2, tail)
        largest = self._decoder.largest(after, upto) * width
        return laplace_reach(squared * width**2, largest, tail)
