# SPDX-License-Identifier: Apache-2.0
"""The sampling order as DuckDB SQL: where a group, or a value, stands among those of a unit.

Each has two numbers of its own, a and b, made by md5 from the sampling key and what it is; a unit
has y, made from the sampling key and its number. It stands at the upper 24 bits of (a y + b) modulo
the prime 2^31 - 1, ties by what it is. So md5 is asked once for each group, not for each unit in it, and
still the groups of a unit are in an order like any other, and those of two units in orders that
have nothing to do with each other. Every engine can compute it: group_sampling.proof.md.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.engines.value_codes import WHOLE_PATTERN
from sfumato.engines.value_sql import narrowest, text
from sfumato.plan.value import GroupKey

PRIME = 2**31 - 1
# a number of 64 bits in three pieces
_PIECE = 22
# a place of 24 bits, the number of a group and an amount fit into 63 bits
_COARSE, _GROUP, _AMOUNT = 7, 31, 8
LARGEST = 2**_AMOUNT - 1
# So many declared groups are listed in a statement.
_LISTED = 2**12


@dataclass(frozen=True, slots=True)
class Order:
    """The order that a sampling key makes.

    ``numbered``: units are whole numbers (BIGINT), else texts. ``by_row``: md5 is asked of each row,
    where the rows would be computed again to be joined with the numbers of their groups.
    """

    key: str
    numbered: bool
    by_row: bool = False

    def placed(self, rows: str, names: Sequence[str]) -> str:
        """Rows of units with ``h``, the place of what the names hold among that of the unit.

        Guarantees:
            the order is that of the reference
        """
        if self.by_row:
            unit = "unit" if self.numbered else _NUMBER
            named = f"SELECT *, md5({self._words(names)}) AS o_m, {unit} AS o_id FROM ({rows})"
            numbers = f"{_hexadecimal('o_m', 1, 8)} AS o_a, {_hexadecimal('o_m', 9, 8)} AS o_b, {self._y('o_id')} AS o_y"
            return f"SELECT *, {_place('o_a', 'o_y', 'o_b')} AS h FROM (SELECT *, {numbers} FROM ({named}))"
        return (
            f"WITH found AS MATERIALIZED ({rows})\n"
            f"SELECT found.*, {self.place} AS h FROM found JOIN ({self.numbers('found', names)}) AS o ON {_same(names)}"
            f"{self.units('found')}"
        )

    def first(
        self, rows: str, names: Sequence[str], most: int, amount: str = "", groups: str = ""
    ) -> str:
        """Of each unit the first groups: how many units keep one (``units``), and the sum of an ``amount`` of theirs.

        The few are kept while all come by, which is far cheaper than to sort them. An amount, where one is
        asked for, is from 0 to LARGEST, of columns that are not names. ``groups``: a SELECT of all that the names can
        hold, each once, if that is known; it saves reading the rows twice.

        Guarantees:
            a unit keeps its first groups
        """
        shown, by = ", ".join(names), ", ".join(f"{name} NULLS FIRST" for name in names)
        every = f"({groups})" if groups else "found"
        added = f", sum(p & {LARGEST}) AS amount" if amount else ""
        return (
            f"WITH found AS {'' if groups else 'MATERIALIZED '}({rows}),\n"
            f"o AS MATERIALIZED (SELECT *, row_number() OVER (ORDER BY {by}) AS r FROM ({self.numbers(every, names)})),\n"
            f"placed AS (SELECT found.unit, (({self.place}) * {2**_GROUP} + r) * {2**_AMOUNT} + {amount or 0} AS p\n"
            f"FROM found JOIN o ON {_same(names)}{self.units('found')}),\n"
            f"kept AS (SELECT unnest(min(p, {most})) AS p FROM placed GROUP BY unit),\n"
            f"c AS (SELECT (p >> {_AMOUNT}) & {2**_GROUP - 1} AS r, count(*) AS units{added} FROM kept GROUP BY r)\n"
            f"SELECT {shown}, units{', amount' if amount else ''} FROM c JOIN o ON c.r = o.r"
        )

    @property
    def place(self) -> str:
        """Where a row stands, from the numbers a and b of its group."""
        return _place("a", self._y("unit") if self.numbered else "y", "b")

    def numbers(self, rows: str, names: Sequence[str]) -> str:
        """One row for each of what the names hold, with its numbers a and b."""
        shown = ", ".join(names)
        return (
            f"SELECT {shown}, {_hexadecimal('m', 1, 8)} AS a, {_hexadecimal('m', 9, 8)} AS b FROM "
            f"(SELECT {shown}, md5({self._words(names)}) AS m FROM (SELECT {shown} FROM {rows} GROUP BY {shown}))"
        )

    def _words(self, names: Sequence[str]) -> str:
        """The text of which md5 is asked."""
        return " || '|' || ".join(
            [text(self.key), *(f"coalesce(CAST({name} AS VARCHAR), 'N')" for name in names)]
        )

    def units(self, rows: str) -> str:
        """Where units are texts: a join to their y, which is made once for each."""
        if self.numbered:
            return ""
        every = f"SELECT unit, {_NUMBER} AS id FROM (SELECT unit FROM {rows} GROUP BY unit)"
        return (
            f" JOIN (SELECT unit, {self._y('id')} AS y FROM ({every})) AS u ON {rows}.unit = u.unit"
        )

    def _y(self, name: str) -> str:
        """The number of a unit mixed: linear in its pieces modulo the prime."""
        digits = hashlib.md5(self.key.encode(), usedforsecurity=False).hexdigest()
        first, *times = (int(digits[start : start + 8], 16) for start in range(0, 32, 8))
        pieces = [
            f"{each} * ({f'({name} >> {shift})' if shift else name} & {2**_PIECE - 1})"
            for each, shift in zip(times, range(0, 64, _PIECE), strict=True)
        ]
        return f"(({' + '.join([str(first), *pieces])}) % {PRIME})"


def _same(names: Sequence[str]) -> str:
    return " AND ".join(f"found.{name} IS NOT DISTINCT FROM o.{name}" for name in names)


def every_group(keys: Sequence[GroupKey], names: Sequence[str]) -> str:
    """The declared groups as a SELECT; empty: they are too many to be listed, or not declared."""
    listed, size = [], 1
    for key, name in zip(keys, names, strict=True):
        if key.codes is None:
            return ""
        codes = [*map(str, key.codes), *["NULL"] * key.missing]
        size *= len(codes)
        listed.append(
            f"(SELECT unnest([{', '.join(codes)}]::{narrowest(key.value.type)}[]) AS {name})"
        )
    return f"SELECT * FROM {' CROSS JOIN '.join(listed)}" if size <= _LISTED else ""


def _place(a: str, y: str, b: str) -> str:
    return f"(({a} * {y} + {b}) % {PRIME}) >> {_COARSE}"


def _hexadecimal(digits: str, start: int, length: int) -> str:
    return f"TRY_CAST('0x' || substr({digits}, {start}, {length}) AS BIGINT)"


# the number of a unit that is named by a text
_NUMBER = (
    f"coalesce(CASE WHEN regexp_full_match(unit, {text(WHOLE_PATTERN)}) THEN TRY_CAST(unit AS BIGINT) END, "
    f"{_hexadecimal('md5(unit)', 1, 15)})"
)
