# SPDX-License-Identifier: Apache-2.0
"""Random statements over random tables, each in sfumato's words and in plain DuckDB's.

What is chosen keeps to what both mean alike: constants and values of tests are numbers that a float
holds, or quotients of them; NULL decides LEAST and GREATEST. Rows whose key is NULL are in no group
here, so that plain statements with several grouping sets leave them out.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

from tests.contracts.random_tables import FIRST_DAY, Number, World

_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
_SETS = (
    " GROUP BY {0}, {1}", " GROUP BY ROLLUP({0}, {1})", " GROUP BY CUBE({0}, {1})",
    " GROUP BY GROUPING SETS (({0}), ({1}), ())", " GROUP BY GROUPING SETS (({0}, {1}), ({1}))",
)  # fmt: skip
_MOMENTS = {
    "rows": "COUNT(*)", "count": "COUNT({})", "sum": "SUM({})", "mean": "AVG({})", "deviation": "STDDEV_POP({})",
}  # fmt: skip
# MIN and MAX are quantiles too: what 0.5% lie below, or above.
_QUANTILES = (
    ("MEDIAN({})", 0.5), ("QUANTILE_CONT({}, 0.25)", 0.25), ("QUANTILE_DISC({}, 0.875)", 0.875),
    ("PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY {})", 0.75), ("MIN({})", 0.005), ("MAX({})", 0.995),
)  # fmt: skip
_RATES = ("0.015", "0.5", "-0.25", "1.5", "0.3", "2", "0.1", "-3", "0", "33.3")


@dataclass(frozen=True)
class Pair:
    """The same words in both languages."""

    ours: str
    plain: str


@dataclass(frozen=True)
class Statement:
    """A statement in both languages.

    ``kinds`` say how each column is compared, after so many ``keys`` of the plain one.
    """

    ours: str
    plain: str
    kinds: tuple[str, ...]
    keys: int


class Writer:
    """Writes statements over a world."""

    def __init__(self, random: Random, world: World) -> None:
        self._random = random
        self._world = world
        self._numbers = list(world.numbers.values())
        self._inner = False
        self._found = ""

    # --- numbers ---------------------------------------------------------------------------

    def number(self, depth: int) -> Number:
        """A number of a row."""
        random = self._random
        if depth == 0 or random.random() < 0.2:
            return random.choice(self._numbers)
        makers = [
            self._sum, self._product, self._quotient, self._shifted, self._case, self._extreme,
            self._coalesced, self._stepped, self._signed,
        ]  # fmt: skip
        return random.choice(makers)(depth - 1)

    def _constant(self) -> Number:
        value = self._random.choice([0, 1, 2, 3, 7, 10, 0.5, 0.25, 100, 12.5])
        return Number(f"{value}", f"{value}", max(value, 1), 0.25, null=False)

    def _of(
        self, ours: str, *parts: Number, size: float, digit: float, exact: bool = True
    ) -> Number:
        """``ours`` with {0}, {1} for the parts."""
        plain = ours.format(*(each.plain for each in parts))
        exact = exact and all(each.exact for each in parts)
        return Number(ours.format(*(each.ours for each in parts)), plain, size, digit, exact)

    def _sum(self, depth: int) -> Number:
        one, other = self.number(depth), self.number(depth)
        size, digit = one.size + other.size, min(one.digit, other.digit)
        return self._of(
            self._random.choice(["({0} + {1})", "({0} - {1})"]), one, other, size=size, digit=digit
        )

    def _product(self, depth: int) -> Number:
        one, other = self.number(depth), self.number(depth)
        return self._of(
            "({0} * {1})", one, other, size=one.size * other.size, digit=one.digit * other.digit
        )

    def _quotient(self, depth: int) -> Number:
        one, other = self.number(depth), self.number(depth)
        found = self._of(
            "({0} / NULLIF({1}, 0))",
            one,
            other,
            size=one.size / other.digit,
            digit=1e-12,
            exact=False,
        )
        return replace(found, ratio=one.tested and other.tested)

    def _shifted(self, depth: int) -> Number:
        one, other = self.number(depth), self._constant()
        size = (one.size + 1) * max(other.size, 1)
        words = self._random.choice(
            ["({0} * {1})", "({0} + {1})", "({1} - {0})", "(-{0})", "({0} / 4)"]
        )
        found = self._of(words, one, other, size=size, digit=min(one.digit, 1) * 0.25)
        return replace(found, ratio=one.ratio)

    def _case(self, depth: int) -> Number:
        test, one, other = self.test(depth), self.number(depth), self.number(depth)
        ours, plain = (f"CASE WHEN {{}} THEN {{}} {word} END" for word in ("ELSE {}", "ELSE {}"))
        exact = one.exact and other.exact
        return Number(
            ours.format(test.ours, one.ours, other.ours), plain.format(test.plain, one.plain, other.plain),
            max(one.size, other.size), min(one.digit, other.digit), exact,
        )  # fmt: skip

    def _extreme(self, depth: int) -> Number:
        one, other = self.number(depth), self._constant()
        word = self._random.choice(["LEAST", "GREATEST"])
        plain = f"CASE WHEN {one.plain} IS NOT NULL THEN {word}({one.plain}, {other.plain}) END"
        size, digit = max(one.size, other.size), min(one.digit, other.digit)
        return Number(f"{word}({one.ours}, {other.ours})", plain, size, digit, one.exact)

    def _coalesced(self, depth: int) -> Number:
        one, other = self.number(depth), self._constant()
        size, digit = max(one.size, other.size), min(one.digit, other.digit)
        return self._of("COALESCE({0}, {1})", one, other, size=size, digit=digit)

    def _stepped(self, depth: int) -> Number:
        one = self.number(depth)
        if not one.tested:
            return one
        words = self._random.choice(
            ["FLOOR({0})", "CEIL({0})", "SIGN({0})", "ROUND({0})", "TRUNC({0})"]
        )
        return self._of(words, one, size=one.size + 1, digit=1)

    def _signed(self, depth: int) -> Number:
        one = self.number(depth)
        return self._of("ABS({0})", one, size=one.size, digit=one.digit)

    # --- tests -----------------------------------------------------------------------------

    def test(self, depth: int) -> Pair:
        """A test of a row."""
        random = self._random
        if depth > 0 and random.random() < 0.3:
            one, other = self.test(depth - 1), self.test(depth - 1)
            words = random.choice(["({0} AND {1})", "({0} OR {1})", "(NOT {0})"])
            return Pair(words.format(one.ours, other.ours), words.format(one.plain, other.plain))
        makers = [self._compared, self._compared, self._rate, self._between]
        if not self._inner:
            makers += [self._direct, self._label, self._missing, self._dated]
        return random.choice(makers)(depth)

    def _tested(self, depth: int) -> Number:
        for _ in range(5):
            found = self.number(depth)
            if found.tested:
                return found
        return next(each for each in self._numbers if each.tested)

    def _compared(self, depth: int) -> Pair:
        one = self._tested(depth)
        other = self._tested(depth) if self._random.random() < 0.5 else self._constant()
        op = self._random.choice(_OPERATORS)
        return Pair(f"({one.ours} {op} {other.ours})", f"({one.plain} {op} {other.plain})")

    def _rate(self, depth: int) -> Pair:
        one, other = self._tested(depth), self._tested(depth)
        rate, op = self._random.choice(_RATES), self._random.choice(_OPERATORS)
        words = f"({{}} / NULLIF({{}}, 0) {op} {rate})"
        ratios = [each for each in self._numbers if each.ratio]
        if ratios and self._random.random() < 0.6:
            one = self._random.choice(ratios)
            return Pair(f"({one.ours} {op} {rate})", f"({one.plain} {op} {rate})")
        return Pair(words.format(one.ours, other.ours), words.format(one.plain, other.plain))

    def _between(self, depth: int) -> Pair:
        one = self._tested(depth)
        low = self._random.choice([-1, 0, 2, 3.75])
        words = f"({{}} BETWEEN {low} AND {low + self._random.choice([0, 3, 40.1])})"
        return Pair(words.format(one.ours), words.format(one.plain))

    def _direct(self, depth: int) -> Pair:
        """A decimal against a decimal: on its lattice, or for the declared one between two
        points.
        """
        name = self._random.choice("pz")
        tenth = self._random.randint(0, 500) / 10
        value = tenth + 0.05 if name == "p" and self._random.random() < 0.5 else tenth
        words = f"({name} {self._random.choice(_OPERATORS)} {value:.2f})"
        return Pair(words, words)

    def _label(self, depth: int) -> Pair:
        words = self._random.choice(
            ["(c = 'a')", "(c <> 'b')", "(c IN ('a', 'c'))", "(b)", "(NOT b)", "(c LIKE '%b')"]
        )
        return Pair(words, words)

    def _dated(self, depth: int) -> Pair:
        days = [FIRST_DAY + timedelta(self._random.randint(-9, 1840)) for _ in range(2)]
        listed = [
            f"(d {self._random.choice(_OPERATORS)} DATE '{days[0]}')", f"(d BETWEEN '{min(days)}' AND '{max(days)}')",
            f"(DATE_TRUNC('month', d) >= DATE '{days[0]}')", f"(d + INTERVAL 20 DAY < DATE '{days[0]}')",
        ]  # fmt: skip
        words = self._random.choice(listed)
        return Pair(words, words)

    def _missing(self, depth: int) -> Pair:
        one, words = (
            self._random.choice(self._numbers),
            self._random.choice(["({} IS NULL)", "({} IS NOT NULL)"]),
        )
        return Pair(words.format(one.ours), words.format(one.plain))

    # --- statements ------------------------------------------------------------------------

    def statement(self) -> Statement:
        """A statement of some aggregates, perhaps of a sub-query by unit."""
        if self._world.dataset.tables["t"].unit is None or self._random.random() < 0.6:
            return self._asked("t AS q", "t AS q")
        if self._random.random() < 0.3:
            return self._joined()
        inner, numbers = self._by_unit()
        writer = Writer(self._random, self._world)
        writer._numbers, writer._inner = numbers, True
        return writer._asked(*(f"({each}) AS q" for each in (inner.ours, inner.plain)))

    def _joined(self) -> Statement:
        """A question of the rows of both tables, or of those of the first."""
        words = f"t {self._random.choice(['JOIN', 'LEFT JOIN'])} u ON t.who = u.who"
        writer = Writer(self._random, self._world)
        writer._numbers = [*self._numbers, *[Number("g", "g", 50, 1)] * 5]
        writer._found = "u.who"
        return writer._asked(words, words)

    def _by_unit(self) -> tuple[Pair, list[Number]]:
        """A sub-query with a row for each unit, and its columns."""
        items, numbers = [], []
        for place in range(self._random.randint(1, 3)):
            one, name = self.number(1), f"v{place}"
            word = self._random.choice(
                ["AVG({})", "SUM({})", "COUNT({})", "MAX({})", "SUM({0}) / NULLIF(COUNT({0}), 0)"]
            )
            mean = word.startswith("AVG") or "/" in word
            counted = word == "COUNT({})"
            size = 60.0 if counted else one.size * (60 if word == "SUM({})" else 1)
            exact = not mean and (counted or one.exact)
            items.append(
                Pair(f"{word.format(one.ours)} AS {name}", f"{word.format(one.plain)} AS {name}")
            )
            digit = 1.0 if counted else one.digit
            numbers.append(Number(name, name, size, digit, exact, ratio=mean and one.tested))
        numbers.append(Number("n", "n", 60, 1, null=False))
        items.append(Pair("COUNT(*) AS n", "COUNT(*) AS n"))
        where = self._where()
        ours, plain = (
            ", ".join(getattr(each, name) for each in items) for name in ("ours", "plain")
        )
        words = "SELECT who, {} FROM t{} GROUP BY who"
        return Pair(words.format(ours, where.ours), words.format(plain, where.plain)), numbers

    def _where(self) -> Pair:
        if self._random.random() < 0.5:
            return Pair("", "")
        test = self.test(2)
        return Pair(f" WHERE {test.ours}", f" WHERE {test.plain}")

    def _asked(self, ours: str, plain: str) -> Statement:
        keys, by = self._grouping()
        sets = "(" in by
        asked = [self._aggregate(sets=sets) for _ in range(self._random.randint(1, 3))]
        where = self._where()
        known = " AND ".join(f"{each.plain} IS NOT NULL" for each in keys)
        listed = [", ".join(getattr(each, name) for _, each in asked) for name in ("ours", "plain")]
        first = "".join(f"{key.plain} AS k{place}, " for place, key in enumerate(keys))
        tests = [each for each in (where.plain.removeprefix(" WHERE "), known) if each]
        return Statement(
            f"SELECT {listed[0]} FROM {ours}{where.ours}{by.format(*(each.ours for each in keys))}",
            f"SELECT {first}COUNT(*) AS rows_here, {listed[1]} FROM {plain}{' WHERE ' * bool(tests)}{' AND '.join(tests)}"
            f"{by.format(*(each.plain for each in keys))}",
            tuple(kind for kind, _ in asked),
            len(keys),
        )

    def _grouping(self) -> tuple[list[Pair], str]:
        """Up to two keys, and how they are grouped; several grouping sets now and then."""
        random = self._random
        if random.random() < 0.5:
            return [], ""
        keys = [self._key()]
        if random.random() < 0.4:
            keys += [each for each in [self._key()] if each not in keys]
        one, two = [" GROUP BY {0}", " GROUP BY {0}", " GROUP BY ROLLUP({0})"], list(_SETS)
        return keys, random.choice(two if len(keys) == 2 else one)

    def _key(self) -> Pair:
        if not self._inner and self._random.random() < 0.7:
            return Pair(*[self._random.choice("ccb")] * 2)
        test = self.test(1)
        words = "CASE WHEN {} THEN 1 ELSE 0 END"
        return Pair(words.format(test.ours), words.format(test.plain))

    def _aggregate(self, *, sets: bool) -> tuple[str, Pair]:
        """An aggregate, and how it is compared.

        Of several grouping sets one that can be added up.
        """
        kinds = ["rows", "count", "sum", "sum", "mean", "mean", "deviation", "if"]
        kind = self._random.choice(kinds if sets else [*kinds, "distinct", "quantile"])
        if kind == "if":
            test = self.test(2)
            return "rows", Pair(f"COUNT_IF({test.ours})", f"COUNT_IF({test.plain})")
        if kind == "distinct":
            return "rows", self._distinct()
        if kind == "rows" and self._found and self._random.random() < 0.5:
            return kind, Pair(f"COUNT({self._found})", f"COUNT({self._found})")
        found = self._quantile() if kind == "quantile" else self._moment(kind)
        if self._random.random() < 0.2:
            test = self.test(1)
            found = Pair(
                f"{found.ours} FILTER (WHERE {test.ours})",
                f"{found.plain} FILTER (WHERE {test.plain})",
            )
        return kind, found

    def _moment(self, kind: str) -> Pair:
        one, random = self.number(3), self._random
        if not self._inner and kind in ("sum", "mean") and random.random() < 0.2:
            one = replace(one, ours=random.choice("pz"))
            one = replace(one, plain=one.ours)
        return Pair(_MOMENTS[kind].format(one.ours), _MOMENTS[kind].format(one.plain))

    def _distinct(self) -> Pair:
        tested = [each.ours for each in self._numbers if each.tested]
        named = self._random.choice(tested + ["c", "d"] * (not self._inner))
        return Pair(*[f"COUNT(DISTINCT {named})"] * 2)

    def _quantile(self) -> Pair:
        """A quantile, which is the value of one row: in DuckDB's words a discrete one."""
        words, level = self._random.choice(_QUANTILES)
        one = self.number(2)
        if not self._inner and self._random.random() < 0.3:
            names = self._random.choice(
                ["pp", "zz", ("d", "DATE_DIFF('day', DATE '1970-01-01', d)")]
            )
            one = replace(one, ours=names[0], plain=names[1])
        return Pair(words.format(one.ours), f"QUANTILE_DISC({one.plain}, {level})")
