# SPDX-License-Identifier: Apache-2.0
"""Random declarations, rows and statements, each statement in sfumato's words and in plain DuckDB's.

What is chosen keeps to what both mean alike: constants and values of tests are numbers that a
float holds, or quotients of them; NULL decides LEAST and GREATEST.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from random import Random

import duckdb
import pyarrow as pa

import sfumato as sf
from sfumato.metadata.dataset import Dataset

LETTERS = ("a", "b", "c")
FIRST_DAY, LAST_DAY = date(1999, 3, 1), date(2004, 2, 29)
# Numbers of a date, and their largest size.
DATED = {
    "EXTRACT(MONTH FROM d)": 12, "EXTRACT(DOW FROM d)": 6, "YEAR(d)": 2004, "DATE_DIFF('day', DATE '2001-12-31', d)": 1100,
    "DATE_DIFF('month', d, DATE '2003-06-15')": 60,
}  # fmt: skip
# A float holds sums and products of so many bits.
_FLOAT = 2.0**48
_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
_RATES = ("0.015", "0.5", "-0.25", "1.5", "0.3", "2", "0.1", "-3", "0", "33.3")


@dataclass(frozen=True)
class Number:
    """A number in both languages: its largest size, its finest digit, and whether a test of it is exact."""

    ours: str
    plain: str
    size: float
    digit: float
    exact: bool = True
    ratio: bool = False
    null: bool = True

    @property
    def tested(self) -> bool:
        """Whether a float tells it from all its neighbours."""
        return self.exact and self.size / self.digit < _FLOAT


@dataclass(frozen=True)
class Pair:
    """The same words in both languages."""

    ours: str
    plain: str


@dataclass(frozen=True)
class Statement:
    """A statement in both languages; ``kinds`` say how each column is compared."""

    ours: str
    plain: str
    kinds: tuple[str, ...]
    grouped: bool


@dataclass(frozen=True)
class World:
    """Tables with their declarations, and the same rows in DuckDB."""

    columns: Mapping[str, object]
    numbers: Mapping[str, Number]
    dataset: Dataset
    plain: duckdb.DuckDBPyConnection


def world(random: Random, rows: int = 60) -> World:
    """A random table ``t`` of units ``who``, or of rows that are units; of units, ``u`` has a row for some of them."""
    wide, high = 10 ** random.randint(1, 6), 10 ** random.randint(1, 6)
    low = random.choice([0, 0, 1, -5, -high])
    step = 2.0 ** -random.randint(0, 3)
    columns = {
        "i": sf.Integer(0, wide),
        "j": sf.Integer(low, high),
        "r": sf.Real(-8 * step, 100 * step, step=step),
        "x": sf.Real(-100, 900),
        "p": sf.Real(0, 50, step="0.1"),
        "z": sf.Real(0, 50),
        "c": sf.Category(*LETTERS),
        "b": sf.Boolean(),
        "d": sf.Date("1999-03-01", "2004-02-29"),
    }
    drawn: dict[str, Callable[[], object]] = {
        "i": lambda: random.choice([random.randint(0, min(wide, 9)), random.randint(0, wide)]),
        "j": lambda: random.choice([random.randint(low, min(low + 9, high)), random.randint(low, high)]),
        "r": lambda: random.randint(-8, 100) * step,
        "x": lambda: random.randint(-800, 7200) / 8,
        "p": lambda: random.randint(0, 500) / 10,
        "z": lambda: random.randint(0, 500) / 10,
        "c": lambda: random.choice(LETTERS),
        "b": lambda: random.random() < 0.5,
        "d": lambda: FIRST_DAY + timedelta(random.randint(0, (LAST_DAY - FIRST_DAY).days)),
    }
    held = {name: [None if random.random() < 0.04 else draw() for _ in range(rows)] for name, draw in drawn.items()}
    kinds = {"c": pa.string(), "b": pa.bool_(), "d": pa.date32()}
    arrays = {name: pa.array(values, kinds.get(name, pa.float64())) for name, values in held.items()}
    arrays["who"] = pa.array([random.randint(1, rows // 4) for _ in range(rows)], pa.int64())
    frame = pa.table(arrays)
    limits = random.choice([None, {"max_rows": 500, "max_groups": 20}, {"max_rows_total": 1000}])
    people = [who for who in range(1, rows // 3) if random.random() < 0.7]
    others = pa.table({"who": people, "g": [random.randint(0, 50) for _ in people]})
    if limits is None:
        tables = {"t": sf.Table(frame, columns=columns)}
    else:
        tables = {
            "t": sf.Table(frame, columns=columns, unit=sf.Unit("who", name="who", **limits)),
            "u": sf.Table(others, columns={"g": sf.Integer(0, 50)}, unit=sf.Unit("who", name="who", max_rows_total=1)),
        }
    plain = duckdb.connect()
    for name, each in (("t", frame), ("u", others)):
        plain.register("frame", each)
        plain.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
    numbers = {
        "i": Number("i", "i", wide, 1),
        "j": Number("j", "j", max(-low, high), 1),
        "r": Number("r", "r", 100 * step, step),
        "x": Number("x", "x", 900, 1 / 8),
    }
    numbers |= {each: Number(each, each, size, 1) for each, size in DATED.items()}
    return World(columns, numbers, Dataset("d", tables), plain)


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

    def _of(self, ours: str, *parts: Number, size: float, digit: float, exact: bool = True) -> Number:
        """``ours`` with {0}, {1} for the parts."""
        plain = ours.format(*(each.plain for each in parts))
        exact = exact and all(each.exact for each in parts)
        return Number(ours.format(*(each.ours for each in parts)), plain, size, digit, exact)

    def _sum(self, depth: int) -> Number:
        one, other = self.number(depth), self.number(depth)
        size, digit = one.size + other.size, min(one.digit, other.digit)
        return self._of(self._random.choice(["({0} + {1})", "({0} - {1})"]), one, other, size=size, digit=digit)

    def _product(self, depth: int) -> Number:
        one, other = self.number(depth), self.number(depth)
        return self._of("({0} * {1})", one, other, size=one.size * other.size, digit=one.digit * other.digit)

    def _quotient(self, depth: int) -> Number:
        one, other = self.number(depth), self.number(depth)
        found = self._of("({0} / NULLIF({1}, 0))", one, other, size=one.size / other.digit, digit=1e-12, exact=False)
        return replace(found, ratio=one.tested and other.tested)

    def _shifted(self, depth: int) -> Number:
        one, other = self.number(depth), self._constant()
        size = (one.size + 1) * max(other.size, 1)
        words = self._random.choice(["({0} * {1})", "({0} + {1})", "({1} - {0})", "(-{0})", "({0} / 4)"])
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
        words = self._random.choice(["FLOOR({0})", "CEIL({0})", "SIGN({0})", "ROUND({0})", "TRUNC({0})"])
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
        """A decimal against a decimal: on its lattice, or for the declared one between two points."""
        name = self._random.choice("pz")
        tenth = self._random.randint(0, 500) / 10
        value = tenth + 0.05 if name == "p" and self._random.random() < 0.5 else tenth
        words = f"({name} {self._random.choice(_OPERATORS)} {value:.2f})"
        return Pair(words, words)

    def _label(self, depth: int) -> Pair:
        words = self._random.choice(["(c = 'a')", "(c <> 'b')", "(c IN ('a', 'c'))", "(b)", "(NOT b)", "(c LIKE '%b')"])
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
        one, words = self._random.choice(self._numbers), self._random.choice(["({} IS NULL)", "({} IS NOT NULL)"])
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
            items.append(Pair(f"{word.format(one.ours)} AS {name}", f"{word.format(one.plain)} AS {name}"))
            digit = 1.0 if counted else one.digit
            numbers.append(Number(name, name, size, digit, exact, ratio=mean and one.tested))
        numbers.append(Number("n", "n", 60, 1, null=False))
        items.append(Pair("COUNT(*) AS n", "COUNT(*) AS n"))
        where = self._where()
        ours, plain = (", ".join(getattr(each, name) for each in items) for name in ("ours", "plain"))
        words = "SELECT who, {} FROM t{} GROUP BY who"
        return Pair(words.format(ours, where.ours), words.format(plain, where.plain)), numbers

    def _where(self) -> Pair:
        if self._random.random() < 0.5:
            return Pair("", "")
        test = self.test(2)
        return Pair(f" WHERE {test.ours}", f" WHERE {test.plain}")

    def _asked(self, ours: str, plain: str) -> Statement:
        asked = [self._aggregate() for _ in range(self._random.randint(1, 3))]
        key = self._key()
        where = self._where()
        words = "SELECT {} FROM {}{}{}"
        by = Pair(f" GROUP BY {key.ours}", f" GROUP BY {key.plain}") if key else Pair("", "")
        listed = [", ".join(getattr(each, name) for _, each in asked) for name in ("ours", "plain")]
        first = f"{key.plain} AS k, " if key else ""
        return Statement(
            words.format(listed[0], ours, where.ours, by.ours),
            words.format(f"{first}COUNT(*) AS rows_here, {listed[1]}", plain, where.plain, by.plain),
            tuple(kind for kind, _ in asked),
            key is not None,
        )

    def _key(self) -> Pair | None:
        if self._random.random() < 0.5:
            return None
        if not self._inner and self._random.random() < 0.9:
            return Pair("c", "c")
        test = self.test(1)
        words = "CASE WHEN {} THEN 1 ELSE 0 END"
        return Pair(words.format(test.ours), words.format(test.plain))

    def _aggregate(self) -> tuple[str, Pair]:
        """An aggregate, and how it is compared."""
        random, one = self._random, self.number(3)
        kind = random.choice(["rows", "count", "sum", "sum", "mean", "mean", "deviation", "if", "distinct"])
        if not self._inner and kind in ("sum", "mean") and random.random() < 0.2:
            one = replace(one, ours=random.choice("pz"))
            one = replace(one, plain=one.ours)
        words = {
            "rows": "COUNT(*)",
            "count": "COUNT({})",
            "sum": "SUM({})",
            "mean": "AVG({})",
            "deviation": "STDDEV_POP({})",
        }
        if kind == "rows" and self._found and random.random() < 0.5:
            return kind, Pair(f"COUNT({self._found})", f"COUNT({self._found})")
        if kind == "distinct":
            named = random.choice([each.ours for each in self._numbers if each.tested] + ["c", "d"] * (not self._inner))
            return "rows", Pair(*[f"COUNT(DISTINCT {named})"] * 2)
        if kind == "if":
            test = self.test(2)
            return "rows", Pair(f"COUNT_IF({test.ours})", f"COUNT_IF({test.plain})")
        found = Pair(words[kind].format(one.ours), words[kind].format(one.plain))
        if random.random() < 0.2:
            test = self.test(1)
            found = Pair(f"{found.ours} FILTER (WHERE {test.ours})", f"{found.plain} FILTER (WHERE {test.plain})")
        return kind, found
