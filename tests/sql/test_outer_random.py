# SPDX-License-Identifier: Apache-2.0
"""Random outer statements: with hidden columns they give the rows that DuckDB gives without."""

import math
import random
from itertools import product

import pytest
from sqlglot import parse_one

from sfumato.engines.scratch import Held, Scratch, Stopped, Unbound
from sfumato.sql.outer import require_allowed, text_of_outer
from sfumato.sql.outer_forms import ANY_OR_NULL, NO_ROW, FixedNumber, Kind, Leaf, cell_of
from sfumato.sql.trace import ROW, Inner, traced

COLUMNS = (("g", "text"), ("k", "integer"), ("n", "integer"), ("x", "real"))
ROWS = [
    [("a", 1, 10, 0.5), ("a", 2, -3, 2.25), ("b", 1, 40, None), ("b", 3, 0, -1.5), (None, 2, 7, 8.0)],
    [("a", 1, 5, 1.0), ("c", 2, 6, 0.25), ("b", 1, 5, 3.5)],
]  # fmt: skip
NAMES = ("answer 0", "answer 1")
RELEASED = (False, False, True, True)


def tables(*, numbered):
    """The two answers, with the numbers of their rows."""
    held = {}
    for name, rows in zip(NAMES, ROWS, strict=True):
        columns = (*COLUMNS, (ROW, "integer")) if numbered else COLUMNS
        values = list(zip(*rows, strict=True))
        held[name] = Held(columns, [*values, range(len(rows))] if numbered else values)
    return held


class Writer:
    """Writes random outer statements over the two answers."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.names = 0

    def name(self):
        self.names += 1
        return f"t{self.names}"

    def table(self, depth):
        """An item of FROM with the columns g, k, n and x."""
        if depth <= 0 or self.chance.random() < 0.3:
            return f'"{self.chance.choice(NAMES)}"'
        return f"({self.query(depth - 1)})"

    def key(self, alias):
        return self.chance.choice([f"{alias}.g", f"{alias}.k"])

    def number(self, alias, depth=2):
        """A number of one row."""
        chance = self.chance
        if depth <= 0 or chance.random() < 0.3:
            return f"{alias}.{chance.choice('nxk')}"
        one, other = self.number(alias, depth - 1), self.number(alias, depth - 1)
        return chance.choice(
            [
                f"({one} {chance.choice('+-*')} {other})",
                f"{one} / NULLIF({other}, 0)",
                f"ROUND({one}, {chance.randint(-1, 2)})",
                f"COALESCE({one}, {other})",
                f"CASE WHEN {self.test(alias)} THEN {one} ELSE {other} END",
                f"GREATEST({one}, {other})",
                f"CAST({one} AS DOUBLE)",
                f"(-{one})",
            ]
        )

    def test(self, alias):
        column = self.chance.choice("gknx")
        if column == "g":
            return (
                f"{alias}.g {self.chance.choice(['= ', '<> ', '>= '])}'{self.chance.choice('abc')}'"
            )
        return f"{alias}.{column} {self.chance.choice(['>', '<=', '<>'])} {self.chance.randint(-2, 10)}"

    def windowed(self, alias):
        """A window function of one row; the order is total, so that its value is one."""
        chance = self.chance
        total = f"{alias}.g, {alias}.k, {alias}.n, {alias}.x"
        part = chance.choice(["", f"PARTITION BY {self.key(alias)} "])
        order = chance.choice([total, f"{alias}.n DESC, {total}"])
        frame = chance.choice(["", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"])
        value = chance.choice([f"{alias}.n", self.number(alias, 1)])
        if chance.random() < 0.5:
            call = chance.choice(
                ["LAG({})", "LEAD({}, 1, 0)", "FIRST_VALUE({})", "LAG({} IGNORE NULLS)"]
            )
            return f"{call.format(value)} OVER ({part}ORDER BY {order})"
        call = chance.choice(["SUM", "AVG", "MIN", "COUNT"])
        return f"{call}({value}) OVER ({part}ORDER BY {order}{frame})"

    def query(self, depth):
        """A query with the columns g, k, n and x."""
        chance = self.chance
        if depth > 0 and chance.random() < 0.15:
            return f"{self.query(depth - 1)} {chance.choice(['UNION ALL', 'UNION', 'EXCEPT'])} {self.query(depth - 1)}"
        alias = self.name()
        source = f"{self.table(depth)} AS {alias}"
        if chance.random() < 0.3:
            other = self.name()
            side = chance.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
            source += f" {side} {self.table(depth - 1)} AS {other} ON {alias}.k = {other}.k AND {self.test(other)}"
        where = f" WHERE {self.test(alias)}" if chance.random() < 0.3 else ""
        if chance.random() < 0.25:
            call = chance.choice(["SUM", "AVG", "MAX", "COUNT"])
            having = f" HAVING SUM({alias}.n) > 3" if chance.random() < 0.3 else ""
            return (
                f"SELECT {alias}.g, MIN({alias}.k) AS k, {call}({alias}.n) AS n, "
                f"SUM({self.number(alias, 1)}) AS x FROM {source}{where} GROUP BY {alias}.g{having}"
            )
        x = self.windowed(alias) if chance.random() < 0.4 else self.number(alias)
        distinct = "DISTINCT " if chance.random() < 0.1 else ""
        scalar = f'(SELECT SUM(s.n) FROM "{chance.choice(NAMES)}" AS s)'
        n = chance.choice([f"{alias}.n", f"{alias}.n", scalar, self.number(alias)])
        qualify = ""
        if not distinct and chance.random() < 0.1:
            qualify = f" QUALIFY ROW_NUMBER() OVER (ORDER BY {alias}.n, {alias}.g, {alias}.k, {alias}.x) <= 2"
        return f"SELECT {distinct}{alias}.g, {alias}.k, {n} AS n, {x} AS x FROM {source}{where}{qualify}"


def ordered(rows, width):
    """Rows as texts, in an order of their own; doubles with 9 digits, since sums may differ."""
    shown = []
    for row in rows:
        cells = [None if cell is None else cell for cell in row[:width]]
        shown.append(
            tuple(f"{cell:.9g}" if isinstance(cell, float) else str(cell) for cell in cells)
        )
    return sorted(shown)


def possible(form, row):
    """The values that a form may have in a row; a NULL in it is None."""
    if isinstance(form, FixedNumber):
        return {float(form.value)}
    if isinstance(form, Leaf):
        value = row[form.hidden[0]]
        if form.kind is Kind.CELL and value is not None:
            answer, column, place = cell_of(value)
            value = None if value == NO_ROW else ROWS[answer][place][column]
        return {None if value is None else float(value)}
    parts = [possible(part, row) for part in form.parts]
    if form.operation in ("any", ANY_OR_NULL, "first", "lagged"):
        return set().union(*parts) | {None}
    return {computed(form.operation, values) for values in product(*parts)}


def computed(operation, values):
    """The value of an operation; None if it is NULL."""
    if operation in ("greatest", "least"):
        known = [value for value in values if value is not None]
        return (max if operation == "greatest" else min)(known) if known else None
    if None in values or (operation == "/" and values[1] == 0):
        return None
    one, other = values
    if operation == "round":
        return math.copysign(math.floor(abs(one) / other + 0.5) * other, one)
    return {"+": one + other, "-": one - other, "*": one * other, "/": other and one / other}[
        operation
    ]


def is_possible(value, form, row):
    """Whether a visible value is one that its form gives."""
    values = possible(form, row)
    if value is None:
        # a NULL has no interval
        return True
    return any(
        math.isclose(float(value), one, rel_tol=1e-6, abs_tol=1e-6)
        for one in values
        if one is not None
    )


def rows_of(scratch, *statement):
    """The rows of a statement."""
    return list(zip(*scratch.values(*statement), strict=True))


def compared(scratch, seed):
    """Whether a statement was compared; fails where its rows differ."""
    text = Writer(seed).query(3)
    tree = parse_one(text, dialect="duckdb")
    require_allowed(tree, NAMES)
    try:
        plain = rows_of(scratch, text_of_outer(tree), tables(numbered=False))
    except (Stopped, Unbound):
        return False
    answers = {name: Inner(tuple(c for c, _ in COLUMNS), RELEASED, chosen=False) for name in NAMES}
    trace = traced(tree, answers)
    if trace is None:
        return False
    rows = rows_of(scratch, text_of_outer(trace.query), tables(numbered=True))
    assert ordered(rows, 4) == ordered(plain, 4), text
    for row in rows:
        for value, known in zip(row, trace.columns, strict=False):
            assert known.form is None or is_possible(value, known.form, row), (text, known, row)
    return True


@pytest.mark.parametrize("start", range(4))
def test_hidden_columns_change_no_row(start):
    with Scratch() as scratch:
        found = sum(compared(scratch, 1000 * start + seed) for seed in range(25))
    assert found > 15
