# SPDX-License-Identifier: Apache-2.0
"""A stream as a series of tasks: one task for each tick, and the storage format of its rows.

``Stream`` opens a ``StreamSeries`` in the session and advances it.
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from sfumato.errors import WrongUse
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.plan.rows import BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Stream
from sfumato.query.curator import Curator
from sfumato.query.stream_state import Row
from sfumato.query.ticks import Ticks
from sfumato.synopsis.stream_plan import Source, StreamPlan

# Before the integers of a row: its place, the end of its tick, and how many integers follow.
_HEAD = struct.Struct("<qqq")
# An integer takes so many bytes.
_WIDTH = 16


@dataclass(frozen=True, slots=True)
class TickTask:
    """Measures one tick: the encoded rows of the table between two times.

    ``places`` is the number of ticks begun since the last stored one, this tick included.
    """

    source: Source
    ticks: Ticks
    mechanism: AdditiveMechanism
    after: int | None
    places: int

    kind: ClassVar[str] = "tick"
    line: ClassVar[str] = ""

    @property
    def form(self) -> str:
        """The end time of the tick; its rows are stored under the key of the stream."""
        return form([self.after, self.ticks.until])

    @property
    def event(self) -> Stream:
        """The event of the whole stream, which is charged once."""
        return self.ticks.event(self.mechanism)

    @property
    def cells(self) -> tuple[int | None]:
        """The number of integers of the encoded row; for a tree it depends on the tick."""
        if self.ticks.encoder.norm is Norm.L1:
            return (None,)
        return (self.ticks.cells,)

    @property
    def size(self) -> int:
        """The largest number of bytes of the rows that may be stored."""
        most = self.ticks.encoder.most_numbers * self.ticks.cells
        return self.places * (_HEAD.size + _WIDTH * most)

    def ready(self, declarations: Dataset) -> BoundedRows:
        """The rows of the tick (WrongUse if the stream was planned for other declarations)."""
        plan = self.source.between(declarations, self.after, self.ticks.until)
        if plan != self.ticks.plan:
            raise WrongUse("A stream of other declarations.", remedy="Plan it anew.")
        return plan

    def run(self, curator: Curator) -> bytes:
        """Returns the noisy rows that are not stored yet, as bytes."""
        return packed(curator.tick(self.ticks, self.mechanism))


class StreamSeries:
    """A stream of counts as a series of tasks, one for each tick, for ``Session.open_series``.

    ``until`` is the end of the next tick; ``advance`` sets it.
    """

    kind: ClassVar[str] = "stream"

    def __init__(
        self,
        plan: StreamPlan,
        dataset: Dataset,
    ) -> None:
        self.plan = plan
        self.until = plan.time.lower_code
        self._dataset = dataset

    @property
    def line(self) -> str:
        """A line of text: the table and its columns."""
        source = self.plan.source
        return f"{source.table} by {', '.join(source.columns)}"

    @property
    def form(self) -> str:
        """A canonical string for the cache key: all that the answers depend on besides the event."""
        source = self.plan.source
        asked = [source.table, list(source.columns), source.where]
        return form([*asked, self.plan.best.ticks.form])

    @property
    def event(self) -> Stream:
        """The privacy event of the whole stream."""
        best = self.plan.best
        return best.ticks.event(best.mechanism)

    def piece(self, place: int, earlier: Mapping[int, bytes]) -> TickTask:
        """Returns the task of the next tick, which counts the rows from the end of the last stored
        tick to ``until``.
        """
        best, source = self.plan.best, self.plan.source
        stored = max(earlier, default=0)
        after = _last_end(earlier[stored]) if stored else None
        rows = source.between(self._dataset, after, self.until)
        ticks = replace(best.ticks, plan=rows, until=self.until)
        return TickTask(source, ticks, best.mechanism, after, place - stored)


def packed(rows: Mapping[int, Row]) -> bytes:
    """Serialises rows by tick number.

    >>> unpacked(packed({3: (20, (-1, 5))}))
    {3: (20, (-1, 5))}
    """
    pieces = []
    for place, (until, row) in rows.items():
        pieces.append(_HEAD.pack(place, until, len(row)))
        pieces += [each.to_bytes(_WIDTH, "little", signed=True) for each in row]
    return b"".join(pieces)


def unpacked(body: bytes) -> dict[int, Row]:
    """Returns the rows that ``packed`` wrote."""
    rows = {}
    start = 0
    while start < len(body):
        place, until, numbers = _HEAD.unpack_from(body, start)
        start += _HEAD.size
        ends = range(start, start + _WIDTH * numbers, _WIDTH)
        row = [int.from_bytes(body[at : at + _WIDTH], "little", signed=True) for at in ends]
        start += _WIDTH * numbers
        rows[place] = (until, tuple(row))
    return rows


def all_rows(bodies: Iterable[bytes]) -> dict[int, Row]:
    """Returns the noisy integers of every tick in the stored answers, by the number of the tick."""
    rows: dict[int, Row] = {}
    for body in bodies:
        rows |= unpacked(body)
    return rows


def _last_end(body: bytes) -> int:
    """Returns the end of the last tick of a stored piece."""
    *_, (until, _) = unpacked(body).values()
    return until
