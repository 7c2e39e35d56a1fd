# SPDX-License-Identifier: Apache-2.0
"""SQL trees for the sampling order: the place of a group, or of a value, among those of a unit.

Each group has two numbers, a and b, from the md5 of the sampling key and the group; each unit has a
number y, from the sampling key and the number of the unit. The place of the group is the upper 24
bits of (a y + b) modulo the prime 2^31 - 1; ties are broken by the group itself. So md5 is computed
once for each group, not for each unit in it; the groups of one unit are still in an arbitrary
order, and the orders of two units are unrelated. Every engine can compute it. Proof:
group_sampling.proof.md.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfumato.engines import sql_tree as sql
from sfumato.engines.value_sql import narrowest
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
_UNIT, _P, _R = sql.columns(["unit", "p", "r"])
_FOUND = sql.Item(sql.Table("found"))


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

    def placed(self, rows: sql.Query, names: Sequence[sql.Column]) -> sql.Query:
        """Adds the column ``h`` to rows: the place of the values of ``names`` for the unit.

        Guarantees:
            the order is that of the reference
        """
        if self.by_row:
            return self._placed_by_row(rows, names)
        numbers = sql.Item(self.numbers(_FOUND, names), "o")
        joins = sql.Join("JOIN", numbers, _same(names)), *self.units("found")
        items = sql.Star("found"), sql.As(self.place, sql.Column("h"))
        found = sql.Named("found", rows, materialized=True)
        return sql.With((found,), sql.Select(items, _FOUND, joins))

    def _placed_by_row(self, rows: sql.Query, names: Sequence[sql.Column]) -> sql.Query:
        unit = _UNIT if self.numbered else _NUMBER
        digits = sql.Column("o_m")
        number = sql.Column("o_id")
        a, b, y = sql.columns(["o_a", "o_b", "o_y"])
        md5 = sql.Call("md5", (self._words(names),))
        hashed = (sql.Star(), sql.As(md5, digits), sql.As(unit, number))
        numbered = (
            sql.Star(),
            sql.As(sql.HexNumber(digits, 1, 8), a),
            sql.As(sql.HexNumber(digits, 9, 8), b),
            sql.As(self._y(number), y),
        )
        source = sql.Select(numbered, sql.Item(sql.Select(hashed, sql.Item(rows))))
        placed = sql.As(_place(a, y, b), sql.Column("h"))
        return sql.Select((sql.Star(), placed), sql.Item(source))

    def first(
        self,
        rows: sql.Query,
        names: Sequence[sql.Column],
        most: int,
        amount: sql.Expression | None = None,
        groups: sql.Query | None = None,
    ) -> sql.Query:
        """Counts, for each group, the units that keep it among their first ``most`` groups.

        The column ``units`` is this count; the column ``amount`` is the sum of the expression
        ``amount`` over them, where it is given. Each amount must be from 0 to LARGEST and read
        columns that are not names. The first groups are kept by a streaming top-k, which is far
        cheaper than a sort. ``groups`` is a SELECT of all values of the names, each once, if they
        are known; then the rows need not be read twice.

        Guarantees:
            a unit keeps its first groups
        """
        found = sql.Named("found", rows, materialized=groups is None)
        listed = _FOUND if groups is None else sql.Item(groups)
        ordered = tuple(sql.Ordered(name, nulls="FIRST") for name in names)
        rank = sql.As(sql.Window(sql.Aggregate("row_number"), (), ordered), _R)
        numbers = sql.Item(self.numbers(listed, names))
        groups_of = sql.Named("o", sql.Select((sql.Star(), rank), numbers), materialized=True)
        placed = sql.Named("placed", self._packed(names, amount))
        least = sql.Aggregate("min", (_P, sql.Constant(most)))
        kept = sql.Select(
            (sql.As(sql.Unnest(least), _P),), sql.Item(sql.Table("placed")), group=(_UNIT,)
        )
        tables = found, groups_of, placed, sql.Named("kept", kept), _counts(with_amount=amount)
        same = sql.Binary("=", sql.Column("r", "c"), sql.Column("r", "o"))
        joined = sql.Join("JOIN", sql.Item(sql.Table("o")), same)
        shown = *names, *sql.columns(["units"] if amount is None else ["units", "amount"])
        return sql.With(tables, sql.Select(shown, sql.Item(sql.Table("c")), (joined,)))

    def _packed(self, names: Sequence[sql.Column], amount: sql.Expression | None) -> sql.Query:
        """Selects one integer for each unit and group: its place, its group and its amount."""
        places = sql.Binary("*", sql.Paren(self.place), sql.Constant(2**_GROUP))
        ranked = sql.Paren(sql.Binary("+", places, _R))
        moved = sql.Binary("*", ranked, sql.Constant(2**_AMOUNT))
        packed = sql.Binary("+", moved, sql.Constant(0) if amount is None else amount)
        joins = sql.Join("JOIN", sql.Item(sql.Table("o")), _same(names)), *self.units("found")
        items = sql.Column("unit", "found"), sql.As(packed, _P)
        return sql.Select(items, _FOUND, joins, breaks=("FROM",))

    @property
    def place(self) -> sql.Expression:
        """The place of a row, given the columns a and b of its group."""
        y = self._y(_UNIT) if self.numbered else sql.Column("y")
        return _place(sql.Column("a"), y, sql.Column("b"))

    def numbers(self, rows: sql.Item, names: Sequence[sql.Column]) -> sql.Query:
        """Selects each distinct value of the names once, with its numbers a and b."""
        digits = sql.Column("m")
        a = sql.As(sql.HexNumber(digits, 1, 8), sql.Column("a"))
        b = sql.As(sql.HexNumber(digits, 9, 8), sql.Column("b"))
        distinct = sql.Select(tuple(names), rows, group=tuple(names))
        md5 = sql.As(sql.Call("md5", (self._words(names),)), digits)
        return sql.Select((*names, a, b), sql.Item(sql.Select((*names, md5), sql.Item(distinct))))

    def _words(self, names: Sequence[sql.Column]) -> sql.Expression:
        """Returns the string that md5 is applied to."""
        words: list[sql.Expression] = [sql.Constant(self.key)]
        for name in names:
            shown = sql.Cast(name, sql.SqlType.VARCHAR)
            words += [sql.Constant("|"), sql.Call("coalesce", (shown, sql.Constant("N")))]
        return sql.Concat(tuple(words))

    def units(self, rows: str) -> tuple[sql.Join, ...]:
        """Returns a join that adds the number y of each unit; none where units are integers."""
        if self.numbered:
            return ()
        number = sql.Column("id")
        distinct = sql.Select((_UNIT,), sql.Item(sql.Table(rows)), group=(_UNIT,))
        every = sql.Select((_UNIT, sql.As(_NUMBER, number)), sql.Item(distinct))
        mixed = sql.Select((_UNIT, sql.As(self._y(number), sql.Column("y"))), sql.Item(every))
        same = sql.Binary("=", sql.Column("unit", rows), sql.Column("unit", "u"))
        return (sql.Join("JOIN", sql.Item(mixed, "u"), same),)

    def _y(self, name: sql.Column) -> sql.Expression:
        """Returns the number y of a unit: linear in the pieces of its number, modulo the prime."""
        digits = hashlib.md5(self.key.encode(), usedforsecurity=False).hexdigest()
        first, *times = (int(digits[start : start + 8], 16) for start in range(0, 32, 8))
        terms: list[sql.Expression] = [sql.Constant(first)]
        for factor, shift in zip(times, range(0, 64, _PIECE), strict=True):
            shifted: sql.Expression = name
            if shift:
                shifted = _shifted(name, shift)
            piece = sql.Paren(sql.Binary("&", shifted, sql.Constant(2**_PIECE - 1)))
            terms.append(sql.Binary("*", sql.Constant(factor), piece))
        return _modulo_prime(sql.total(terms))


def _counts(*, with_amount: sql.Expression | None) -> sql.Named:
    """Counts the kept places of each group, and adds up their amounts where there are any."""
    group = sql.Binary("&", _shifted(_P, _AMOUNT), sql.Constant(2**_GROUP - 1))
    items = [sql.As(group, _R), sql.As(sql.Aggregate("count", (sql.Star(),)), sql.Column("units"))]
    if with_amount is not None:
        amount = sql.Binary("&", _P, sql.Constant(LARGEST))
        items.append(sql.As(sql.Aggregate("sum", (amount,)), sql.Column("amount")))
    return sql.Named("c", sql.Select(tuple(items), sql.Item(sql.Table("kept")), group=(_R,)))


def _same(names: Sequence[sql.Column]) -> sql.Expression:
    """Tests whether the names have the same values in ``found`` and in ``o``."""
    tests = []
    for name in names:
        left = replace(name, table="found")
        tests.append(sql.Binary("IS NOT DISTINCT FROM", left, replace(name, table="o")))
    test = sql.conjunction(tests)
    assert test is not None, "groups have a key"
    return test


def every_group(keys: Sequence[GroupKey], names: Sequence[sql.Column]) -> sql.Query | None:
    """Returns a SELECT of the declared groups.

    It is None if there are too many to list, or if a key is not declared.
    """
    listed = []
    size = 1
    for key, name in zip(keys, names, strict=True):
        if key.codes is None:
            return None
        codes = [*map(sql.Constant, key.codes), *[sql.NULL] * key.missing]
        size *= len(codes)
        values = sql.ListOf(tuple(codes), narrowest(key.value.type))
        listed.append(sql.Item(sql.Lists(((name.name, values),))))
    if size > _LISTED:
        return None
    first, *others = listed
    return sql.Select(
        (sql.Star(),), first, tuple(sql.Join("CROSS JOIN", other) for other in others)
    )


def _place(a: sql.Expression, y: sql.Expression, b: sql.Expression) -> sql.Expression:
    mixed = sql.Binary("+", sql.Binary("*", a, y), b)
    return sql.Binary(">>", _modulo_prime(mixed), sql.Constant(_COARSE))


def _modulo_prime(value: sql.Expression) -> sql.Expression:
    return sql.Paren(sql.Binary("%", sql.Paren(value), sql.Constant(PRIME)))


def _shifted(value: sql.Expression, places: int) -> sql.Expression:
    return sql.Paren(sql.Binary(">>", value, sql.Constant(places)))


# the number of a unit whose name is a string
_NUMBER = sql.Call(
    "coalesce",
    (sql.WholeNumber(_UNIT), sql.HexNumber(sql.Call("md5", (_UNIT,)), 1, 15)),
)
