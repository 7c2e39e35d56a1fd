# SPDX-License-Identifier: Apache-2.0
"""SQL trees for the sampling order: the rank of each group, or value, among those of its unit.

``unit_limits`` uses the order to decide which groups a unit with too many groups keeps. Each group
has two numbers, a and b, from the md5 of the sampling key and the group; each unit has a number y,
from the sampling key and the number of the unit. The rank of the group is the upper 24 bits of (a y
+ b) modulo the prime 2^31 - 1; ties are broken by the group itself. So md5 is computed once for
each group, not for each unit in it. The groups of one unit are still in an arbitrary order, and the
orders of two units are unrelated. Every engine computes the same order. Proof:
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
    """The SQL that samples groups: it selects which groups of a unit are counted if the unit is in
    more groups than its limit.

    A keyed hash ranks the groups of each unit; the key is the sampling key.
    """

    key: str
    numbered: bool
    by_row: bool = False

    def placed(self, rows: sql.Query, names: Sequence[sql.Column]) -> sql.Query:
        """Returns the rows with an additional column ``h``: the rank of the row's group in the
        sampling order of its unit.

        Guarantees:
            the order is that of the reference
        """
        if self.by_row:
            return self._placed_by_row(rows, names)
        numbers = sql.Item(self.numbers(_FOUND, names), "o")
        joins = sql.Join("JOIN", numbers, _same(names)), *self.units("found")
        items = sql.Star("found"), self.place.named("h")
        found = sql.Named("found", rows, materialized=True)
        return sql.With((found,), sql.Select(items, _FOUND, joins))

    def _placed_by_row(self, rows: sql.Query, names: Sequence[sql.Column]) -> sql.Query:
        unit = _UNIT if self.numbered else _NUMBER
        digits = sql.Column("o_m")
        number = sql.Column("o_id")
        a, b, y = sql.columns(["o_a", "o_b", "o_y"])
        md5 = sql.call("md5", self._words(names))
        hashed = (sql.Star(), md5.named(digits), unit.named(number))
        numbered = (
            sql.Star(),
            sql.HexNumber(digits, 1, 8).named(a),
            sql.HexNumber(digits, 9, 8).named(b),
            self._y(number).named(y),
        )
        source = sql.Select(numbered, sql.Item(sql.Select(hashed, sql.Item(rows))))
        placed = _place(a, y, b).named("h")
        return sql.Select((sql.Star(), placed), sql.Item(source))

    def first(
        self,
        rows: sql.Query,
        names: Sequence[sql.Column],
        most: int,
        amount: sql.Expression | None = None,
        groups: sql.Query | None = None,
    ) -> sql.Query:
        """Returns the query that counts, for each group, the units in which it is among the first
        ``most`` groups in sampling order.

        The result has the count in the column ``units`` and, if ``amount`` is given, the sum of
        that expression over these units in the column ``amount``. Each amount must be from 0 to
        LARGEST and must not read the columns ``names``. A streaming top-k finds the first groups,
        which is far cheaper than a sort. ``groups`` is a SELECT of all values of the names, each
        once, if they are known; then the rows are read only once.

        Guarantees:
            a unit keeps its first groups
        """
        tables = (
            sql.Named("found", rows, materialized=groups is None),
            self._ranked(_FOUND if groups is None else sql.Item(groups), names),
            sql.Named("placed", self._packed(names, amount)),
            _kept(most),
            _counts(with_amount=amount is not None),
        )
        same = sql.Column("r", "c").equals(sql.Column("r", "o"))
        joined = sql.Join("JOIN", sql.Item(sql.Table("o")), same)
        shown = *names, *sql.columns(["units"] if amount is None else ["units", "amount"])
        return sql.With(tables, sql.Select(shown, sql.Item(sql.Table("c")), (joined,)))

    def _ranked(self, groups: sql.Item, names: Sequence[sql.Column]) -> sql.Named:
        """Numbers the groups in the order of the ties: the column ``r``."""
        ordered = tuple(sql.Ordered(name, nulls="FIRST") for name in names)
        rank = sql.Window(sql.Aggregate("row_number"), (), ordered).named(_R)
        ranked = sql.Select((sql.Star(), rank), sql.Item(self.numbers(groups, names)))
        return sql.Named("o", ranked, materialized=True)

    def _packed(self, names: Sequence[sql.Column], amount: sql.Expression | None) -> sql.Query:
        """Selects one integer for each unit and group: its place, its group and its amount."""
        places = sql.Paren(self.place) * 2**_GROUP
        ranked = sql.Paren(places + _R)
        moved = ranked * 2**_AMOUNT
        packed = moved + (sql.Constant(0) if amount is None else amount)
        joins = sql.Join("JOIN", sql.Item(sql.Table("o")), _same(names)), *self.units("found")
        items = sql.Column("unit", "found"), packed.named(_P)
        return sql.Select(items, _FOUND, joins, breaks=("FROM",))

    @property
    def place(self) -> sql.Expression:
        """The SQL of the rank of a row's group in its unit's sampling order, from the group's
        hashes in the columns a and b.
        """
        y = self._y(_UNIT) if self.numbered else sql.Column("y")
        return _place(sql.Column("a"), y, sql.Column("b"))

    def numbers(self, rows: sql.Item, names: Sequence[sql.Column]) -> sql.Query:
        """Returns the query that selects each distinct group once, with its two hashes a and b.
        ``names`` are the key columns.
        """
        digits = sql.Column("m")
        a = sql.HexNumber(digits, 1, 8).named("a")
        b = sql.HexNumber(digits, 9, 8).named("b")
        distinct = sql.Select(tuple(names), rows, group=tuple(names))
        md5 = sql.call("md5", self._words(names)).named(digits)
        return sql.Select((*names, a, b), sql.Item(sql.Select((*names, md5), sql.Item(distinct))))

    def _words(self, names: Sequence[sql.Column]) -> sql.Expression:
        """Returns the string that md5 is applied to."""
        words: list[sql.Expression] = [sql.Constant(self.key)]
        for name in names:
            shown = sql.Cast(name, sql.SqlType.VARCHAR)
            words += [sql.Constant("|"), sql.call("coalesce", shown, sql.Constant("N"))]
        return sql.Concat(tuple(words))

    def units(self, rows: str) -> tuple[sql.Join, ...]:
        """Returns the join that adds each unit's integer hash as a column y; empty if the units are
        integers already.
        """
        if self.numbered:
            return ()
        number = sql.Column("id")
        distinct = sql.Select((_UNIT,), sql.Item(sql.Table(rows)), group=(_UNIT,))
        every = sql.Select((_UNIT, _NUMBER.named(number)), sql.Item(distinct))
        mixed = sql.Select((_UNIT, self._y(number).named("y")), sql.Item(every))
        same = sql.Column("unit", rows).equals(sql.Column("unit", "u"))
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
            piece = sql.Paren(shifted & 2**_PIECE - 1)
            terms.append(sql.Constant(factor) * piece)
        return _modulo_prime(sum(terms[1:], terms[0]))


def _kept(most: int) -> sql.Named:
    """Keeps the least integers of each unit, by a streaming top-k."""
    least = sql.aggregate("min", _P, sql.Constant(most))
    items = (sql.call("unnest", least).named(_P),)
    return sql.Named("kept", sql.Select(items, sql.Item(sql.Table("placed")), group=(_UNIT,)))


def _counts(*, with_amount: bool) -> sql.Named:
    """Counts the kept places of each group, and adds up their amounts where there are any."""
    group = _shifted(_P, _AMOUNT) & 2**_GROUP - 1
    items = [group.named(_R), sql.aggregate("count").named("units")]
    if with_amount:
        amount = _P & LARGEST
        items.append(sql.aggregate("sum", amount).named("amount"))
    return sql.Named("c", sql.Select(tuple(items), sql.Item(sql.Table("kept")), group=(_R,)))


def _same(names: Sequence[sql.Column]) -> sql.Expression:
    """Tests whether the names have the same values in ``found`` and in ``o``."""
    tests = []
    for name in names:
        left = replace(name, table="found")
        tests.append(left.same(replace(name, table="o")))
    test = sql.conjunction(tests)
    assert test is not None, "groups have a key"
    return test


def every_group(keys: Sequence[GroupKey], names: Sequence[sql.Column]) -> sql.Query | None:
    """Returns a SELECT of all declared groups: every combination of the keys' values. None if there
    are too many, or if the values of a key are not declared.
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
    mixed = a * y + b
    return _modulo_prime(mixed) >> _COARSE


def _modulo_prime(value: sql.Expression) -> sql.Expression:
    return sql.Paren(sql.Paren(value) % PRIME)


def _shifted(value: sql.Expression, places: int) -> sql.Expression:
    return sql.Paren(value >> places)


# the number of a unit whose name is a string
_NUMBER = sql.call("coalesce", sql.WholeNumber(_UNIT), sql.HexNumber(sql.call("md5", _UNIT), 1, 15))
