# SPDX-License-Identifier: Apache-2.0
"""Rows of units whose values are chosen while they are read. Proof: open_rows.proof.md."""

from dataclasses import dataclass, replace

from sfumato.plan.rows import BoundedRows, RowList
from sfumato.plan.stages import Bounded


@dataclass(frozen=True, slots=True)
class OpenRows:
    """The plan of a task that first asks questions, then reads columns chosen from their answers.

    A task of ``Session.ask`` may state it as its plan. ``questions`` are asked first. Then the task
    reads rows by plans that differ from ``rows`` only in the values (columns) read; which values
    may depend on the released answers.

    Guarantees:
        only values of the same rows and bounds are admitted

    >>> from sfumato.metadata.column import Column, Integer
    >>> from sfumato.plan import Scan, Value
    >>> from sfumato.privacy.unit import AddRemove
    >>> columns = Column("age", Integer(0, 9)), Column("size", Integer(0, 3))
    >>> people = Scan("people", columns=columns)
    >>> lists = [RowList(people, (Value.of(column),)) for column in columns]
    >>> ages, sizes = (BoundedRows(rows, "person", 2, AddRemove) for rows in lists)
    >>> OpenRows(ages).admits(sizes), OpenRows(ages).admits(replace(sizes, most=3))
    (True, False)
    """

    rows: BoundedRows
    questions: tuple[Bounded, ...] = ()

    def admits(self, rows: BoundedRows) -> bool:
        """Returns whether a later read differs from ``self.rows`` at most in the values that it
        reads of each row.

        If so, the sensitivity bounds that were proved for ``self.rows`` hold for it.
        """
        # a subclass could override equality
        if type(rows) is not BoundedRows or type(rows.rows) is not RowList:
            return False
        values = self.rows.rows.values
        return replace(rows, rows=replace(rows.rows, values=values)) == self.rows
