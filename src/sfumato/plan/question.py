# SPDX-License-Identifier: Apache-2.0
"""A question: a raw plan, and the output that is computed from its released numbers."""

from dataclasses import dataclass

from sfumato.plan.output import Output
from sfumato.plan.stages import Raw


@dataclass(frozen=True, slots=True)
class Question:
    """A SQL statement after parsing and type checking, split into private aggregates and
    post-processing.

    ``raw`` is what is computed from private rows, ``output`` what is computed from the released
    numbers. ``text`` is the statement as the analyst wrote it; ``table`` names the private table
    whose declared size applies. ``notes`` are shown with the answer; ``bias`` lists the errors
    that its intervals do not cover. ``twins`` has the positions of each aggregate of clipped values
    and of the same aggregate of the table's own values.

    >>> from sfumato.plan.aggregate import CountRows
    >>> from sfumato.plan.relation import Scan
    >>> raw = Raw(Scan("people"), (), (CountRows(),))
    >>> Question("SELECT COUNT(*) FROM people", "people", raw, Output(())).notes
    ()
    """

    text: str
    table: str
    raw: Raw
    output: Output
    notes: tuple[str, ...] = ()
    bias: tuple[str, ...] = ()
    twins: tuple[tuple[int, int], ...] = ()
