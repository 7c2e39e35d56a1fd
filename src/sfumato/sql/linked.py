# SPDX-License-Identifier: Apache-2.0
"""Finds joins along a declared link (``via=``): to the table in which the units are looked up."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sfumato.plan.relation import Scan
from sfumato.sql.names import Link, Source
from sfumato.sql.tables import From


@dataclass(frozen=True, slots=True)
class Linked:
    """A join along a declared foreign key (``via=``): the child rows, the linked table, and the
    link.

    ``rest`` has the tests of ON besides link = key.
    """

    child: From
    parent: From
    link: Link
    rest: tuple[exp.Expr, ...]


def linked(left: From, right: From, tests: Sequence[exp.Expr]) -> Linked | None:
    """Returns the declared link (``via=``) that a join follows; None if its conditions contain
    none.
    """
    for child, parent in ((left, right), (right, left)):
        for source in child.sources:
            link = source.link
            target = parent.sources[0]
            if link is None or link.table != target.table or not isinstance(parent.relation, Scan):
                continue
            names = _qualified_name(source, link.name), _qualified_name(target, link.key)
            rest = tuple(test for test in tests if not _equates(test, *names))
            if len(rest) < len(tests):
                return Linked(child, parent, link, rest)
    return None


def _qualified_name(source: Source, column: str) -> tuple[str, str]:
    """Returns the qualifier and the name of a column, in lower case."""
    return source.name.lower(), column.lower()


def _equates(test: exp.Expr, link: tuple[str, str], key: tuple[str, str]) -> bool:
    """Whether a test is ``link = key``: both with the name of their table, or of USING."""
    if not isinstance(test, exp.EQ):
        return False
    sides = []
    for side in (test.this, test.expression):
        if not isinstance(side, exp.Column):
            return False
        sides.append((side.table.lower(), side.name.lower()))
    is_using = link[1] == key[1] and sides == [("", link[1])] * 2
    return is_using or sorted(sides) == sorted([link, key])
