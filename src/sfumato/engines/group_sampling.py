# SPDX-License-Identifier: Apache-2.0
"""DuckDB SQL for the sampling order: the place of a group, or of a value, among those of a unit.

Each group has two numbers, a and b, from the md5 of the sampling key and the group; each unit has a
number y, from the sampling key and the number of the unit. The place of the group is the upper 24
bits of (a y + b) modulo the prime 2^31 - 1; ties are broken by the group itself. So md5 is computed
once for each group, not for each unit in it; the groups of one unit are still in an arbitrary
order, and the orders of two units are unrelated. Every engine can compute it. Proof:
group_sampling.proof.md.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.engines.value_codes import WHOLE_PATTERN
from sfumato.engines.value_sql import narrowest, text
from sfumato.plan.value import GroupKey

PRIME = 2**31 - 1
# a 64-bit number is split into three pieces of this many bits
_PIECE = 22
# Bits that are dropped from a place, of a group's number, and of an amount: 24 + 31 + 8 = 63.
_COARSE = 7
_GROUP = 31
_AMOUNT = 8
LARGEST = 2**_AMOUNT - 1
# Declared groups are listed in a statement if there are at most this many.
_LISTED = 2**12


@dataclass(frozen=True, slots=True)
class Order:
    """The sampling order that a key defines.

    ``numbered``: units are integers (BIGINT), else strings. ``by_row``: md5 is computed for each
    row; for engines that would compute the rows again to join them with the numbers of their
    groups.
    """

    key: str
    numbered: bool
    by_row: bool = False

    def placed(self, rows: str, names: Sequence[str]) -> str:
        """Adds the column ``h`` to rows: the place of the values of ``names`` for the unit.

        Guarantees:
            the order is that of the reference
        """
        if self.by_row:
            return self._placed_by_row(rows, names)
        numbers = self.numbers("found", names)
        return (
            f"WITH found AS MATERIALIZED ({rows})\n"
            f"SELECT found.*, {self.place} AS h FROM found JOIN ({numbers}) AS o ON {_same(names)}"
            f"{self.units('found')}"
        )

    def _placed_by_row(self, rows: str, names: Sequence[str]) -> str:
        unit = "unit" if self.numbered else _NUMBER
        hashed = f"SELECT *, md5({self._words(names)}) AS o_m, {unit} AS o_id FROM ({rows})"
        a = _hexadecimal("o_m", 1, 8)
        b = _hexadecimal("o_m", 9, 8)
        numbered = f"SELECT *, {a} AS o_a, {b} AS o_b, {self._y('o_id')} AS o_y FROM ({hashed})"
        return f"SELECT *, {_place('o_a', 'o_y', 'o_b')} AS h FROM ({numbered})"

    def first(
        self, rows: str, names: Sequence[str], most: int, amount: str = "", groups: str = ""
    ) -> str:
        """Counts, for each group, the units that keep it among their first ``most`` groups.

        The column ``units`` is this count; the column ``amount`` is the sum of the expression
        ``amount`` over them, where it is given. Each amount must be from 0 to LARGEST and read
        columns that are not names. The first groups are kept by a streaming top-k, which is far
        cheaper than a sort. ``groups`` is a SELECT of all values of the names, each once, if they
        are known; then the rows need not be read twice.

        Guarantees:
            a unit keeps its first groups
        """
        shown = ", ".join(names)
        by = ", ".join(f"{name} NULLS FIRST" for name in names)
        materialized = "" if groups else "MATERIALIZED "
        numbers = self.numbers(f"({groups})" if groups else "found", names)
        added = f", sum(p & {LARGEST}) AS amount" if amount else ""
        numbered = f"SELECT *, row_number() OVER (ORDER BY {by}) AS r FROM ({numbers})"
        packed = f"(({self.place}) * {2**_GROUP} + r) * {2**_AMOUNT} + {amount or 0}"
        return (
            f"WITH found AS {materialized}({rows}),\n"
            f"o AS MATERIALIZED ({numbered}),\n"
            f"placed AS (SELECT found.unit, {packed} AS p\n"
            f"FROM found JOIN o ON {_same(names)}{self.units('found')}),\n"
            f"kept AS (SELECT unnest(min(p, {most})) AS p FROM placed GROUP BY unit),\n"
            f"c AS (SELECT (p >> {_AMOUNT}) & {2**_GROUP - 1} AS r, count(*) AS units{added} "
            f"FROM kept GROUP BY r)\n"
            f"SELECT {shown}, units{', amount' if amount else ''} FROM c JOIN o ON c.r = o.r"
        )

    @property
    def place(self) -> str:
        """The place of a row, given the columns a and b of its group."""
        y = self._y("unit") if self.numbered else "y"
        return _place("a", y, "b")

    def numbers(self, rows: str, names: Sequence[str]) -> str:
        """Selects each distinct value of the names once, with its numbers a and b."""
        shown = ", ".join(names)
        a = _hexadecimal("m", 1, 8)
        b = _hexadecimal("m", 9, 8)
        distinct = f"SELECT {shown} FROM {rows} GROUP BY {shown}"
        return (
            f"SELECT {shown}, {a} AS a, {b} AS b FROM "
            f"(SELECT {shown}, md5({self._words(names)}) AS m FROM ({distinct}))"
        )

    def _words(self, names: Sequence[str]) -> str:
        """Returns the string that md5 is applied to."""
        words = [text(self.key)]
        words += [f"coalesce(CAST({name} AS VARCHAR), 'N')" for name in names]
        return " || '|' || ".join(words)

    def units(self, rows: str) -> str:
        """Returns a join that adds the number y of each unit; empty where units are integers."""
        if self.numbered:
            return ""
        every = f"SELECT unit, {_NUMBER} AS id FROM (SELECT unit FROM {rows} GROUP BY unit)"
        mixed = f"SELECT unit, {self._y('id')} AS y FROM ({every})"
        return f" JOIN ({mixed}) AS u ON {rows}.unit = u.unit"

    def _y(self, name: str) -> str:
        """Returns the number y of a unit: linear in the pieces of its number, modulo the prime."""
        digits = hashlib.md5(self.key.encode(), usedforsecurity=False).hexdigest()
        first, *times = (int(digits[start : start + 8], 16) for start in range(0, 32, 8))
        terms = [str(first)]
        for factor, shift in zip(times, range(0, 64, _PIECE), strict=True):
            shifted = f"({name} >> {shift})" if shift else name
            terms.append(f"{factor} * ({shifted} & {2**_PIECE - 1})")
        return f"(({' + '.join(terms)}) % {PRIME})"


def _same(names: Sequence[str]) -> str:
    return " AND ".join(f"found.{name} IS NOT DISTINCT FROM o.{name}" for name in names)


def every_group(keys: Sequence[GroupKey], names: Sequence[str]) -> str:
    """Returns a SELECT of the declared groups.

    It is empty if there are too many to list, or if a key is not declared.
    """
    listed = []
    size = 1
    for key, name in zip(keys, names, strict=True):
        if key.codes is None:
            return ""
        codes = [*map(str, key.codes), *["NULL"] * key.missing]
        size *= len(codes)
        typed = f"[{', '.join(codes)}]::{narrowest(key.value.type)}[]"
        listed.append(f"(SELECT unnest({typed}) AS {name})")
    if size <= _LISTED:
        return f"SELECT * FROM {' CROSS JOIN '.join(listed)}"
    return ""


def _place(a: str, y: str, b: str) -> str:
    return f"(({a} * {y} + {b}) % {PRIME}) >> {_COARSE}"


def _hexadecimal(digits: str, start: int, length: int) -> str:
    return f"TRY_CAST('0x' || substr({digits}, {start}, {length}) AS BIGINT)"


# the number of a unit whose name is a string
_NUMBER = (
    f"coalesce(CASE WHEN regexp_full_match(unit, {text(WHOLE_PATTERN)}) "
    f"THEN TRY_CAST(unit AS BIGINT) END, "
    f"{_hexadecimal('md5(unit)', 1, 15)})"
)
