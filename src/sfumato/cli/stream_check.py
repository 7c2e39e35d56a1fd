# SPDX-License-Identifier: Apache-2.0
"""Counts the rows that the limits of a declared stream drop: for the owner, not private.

``sfumato check --data`` prints it.
"""

from dataclasses import dataclass

from sfumato.config.stream import read_stream
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.inspect_ticks import TickFacts, inspect_ticks
from sfumato.metadata.column import Column, Date
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.timestamp import Timestamp
from sfumato.privacy.event import Json
from sfumato.query.data_check_text import counted
from sfumato.synopsis.stream_plan import StreamPlan

# Advice leaves out at most this share of the rows.
_SHARE = 0.01
_DAY = 86_400


@dataclass(frozen=True, slots=True, repr=False)
class StreamCheck:
    """How many rows the limits of a stream drop, and limits that drop at most 1%.

    Ticks are assumed to be equally long, from the first declared time to the last; ``separation``
    is ignored.
    """

    name: str
    plan: StreamPlan
    width: int
    facts: TickFacts

    @property
    def left_out(self) -> int:
        """The number of rows that the limits of the stream drop."""
        ticks = self.plan.best.ticks
        return self.facts.left_out(ticks.participations, ticks.plan.most)

    def __repr__(self) -> str:
        ticks = self.plan.best.ticks
        limits = f"participations={ticks.participations:,} and rows={ticks.plan.most:,}"
        lost = self._share(ticks.participations, ticks.plan.most)
        lines = [f"stream {self.name}: {limits} leave out {lost} of the rows"]
        lines.append(f"  a tick is taken to be {self._length}")
        if ticks.separation > 1:
            lines.append(f"  and those that separation={ticks.separation:,} leaves out")
        if self.left_out > _SHARE * self.facts.rows:
            participations, rows = self.facts.limits_for(_SHARE)
            lost = self._share(participations, rows)
            lines.append(
                f"  participations = {participations}, rows = {rows} would leave out {lost}; "
                f"sfumato stream plan {self.name} shows the error\n"
                "  such a limit becomes public: take one that is known of the people anyway"
            )
        return "\n".join(lines)

    def to_json(self) -> dict[str, Json]:
        """The check as JSON."""
        participations, rows = self.facts.limits_for(_SHARE)
        return {
            "stream": self.name,
            "tick": self._length,
            "rows": self.facts.rows,
            "left_out": self.left_out,
            "advised": {"participations": participations, "rows": rows},
        }

    def _share(self, participations: int, rows: int) -> str:
        """The rows that given limits drop, as text."""
        lost = self.facts.left_out(participations, rows)
        return counted(lost, self.facts.rows) if lost else "none"

    @property
    def _length(self) -> str:
        """The length of a tick as text."""
        if isinstance(self.plan.time, Date):
            return "a day" if self.width == 1 else f"{self.width:,} days"
        if isinstance(self.plan.time, Timestamp):
            return f"{self.width * self.plan.time.step:,} seconds"
        return f"{self.width:,} of {self.plan.source.columns[0]}"


def check_stream(engine: DuckDB, dataset: Dataset, config: str, name: str) -> StreamCheck:
    """Counts the rows that the limits of a declared stream drop.

    Raises:
        InvalidConfig, WrongUse: the declaration of the stream is invalid.
        InvalidSource: a column cannot be read to its end.
    """
    plan = read_stream(dataset, config, name)
    kind = plan.time
    codes = kind.upper_code - kind.lower_code + 1
    # with no end known, a tick is a day, or one number
    width = int(_DAY / kind.step) if isinstance(kind, Timestamp) else 1
    if plan.horizon is not None:
        width = -(-codes // plan.horizon)
    relation = plan.best.ticks.plan.rows.relation
    facts = inspect_ticks(engine, relation, Column(plan.source.columns[0], kind), width)
    return StreamCheck(name, plan, width, facts)
