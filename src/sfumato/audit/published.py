# SPDX-License-Identifier: Apache-2.0
"""What published tables of counts give away: the joint cells that follow from them.

Linear programs bound the count of each combination of all columns. Where both bounds are the same,
everybody knows how many persons have this combination. Source: Cox, "On properties of
multi-dimensional statistical tables" (2003); Dinur and Nissim (PODS 2003). Proof:
published.proof.md.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from sfumato.errors import InvalidDeclaration, InvalidNumber

Row: TypeAlias = Mapping[str, object]
Table: TypeAlias = Sequence[Row]
# For each column, the values that a coarser value stands for.
Groups: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]
Floats: TypeAlias = NDArray[np.float64]

_MOST_CELLS = 10**6
# A bound this close to an integer is taken for it: far above the tolerances of the solver.
_NEAR = 1e-4
_STARTS = 6


@dataclass(frozen=True, slots=True)
class Cell:
    """A combination of all columns, with its exact count as it follows from the published tables.

    >>> rows = [{"sex": "f", "n": 1}, {"sex": "m", "n": 2}]
    >>> published([rows]).cells[0]
    Cell(values=('f',), count=1)
    """

    values: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Published:
    """The result of ``published``: the cells whose counts follow, except those of count 0.

    ``complete``: every cell was examined in time. ``reason`` says why nothing follows, if the
    tables contradict each other; it is empty otherwise.

    >>> rows = [{"sex": "f", "n": 1}, {"sex": "m", "n": 2}]
    >>> result = published([rows])
    >>> result.determined, result.unique, result.complete
    (3, 1, True)
    """

    columns: tuple[str, ...]
    cells: tuple[Cell, ...] = field(repr=False)
    complete: bool
    reason: str = ""

    @property
    def determined(self) -> int:
        """The number of persons whose combination of columns has a count that follows from the
        tables.
        """
        return sum(cell.count for cell in self.cells)

    @property
    def unique(self) -> int:
        """The number of persons who are proved to be alone in their combination of columns."""
        return sum(cell.count == 1 for cell in self.cells)


def published(
    tables: Sequence[Table],
    *,
    count: str = "n",
    suppressed: tuple[int, int] | None = None,
    rounded: int | None = None,
    groups: Groups | None = None,
    seconds: float = 60,
) -> Published:
    """Finds the combinations of all columns whose counts follow from exact tables of counts.

    Each table is a list of rows: its categories by column, and its count. A combination that a
    table does not list has count 0; an empty count is suppressed and between the two numbers of
    ``suppressed``. ``rounded``: counts were rounded to the nearest multiple. ``groups``: values that
    stand for several others. Noisy tables contradict each other, so nothing follows.

    Guarantees:
        every table with these counts has the counts that follow

    Raises:
        InvalidDeclaration: no table; rows with different columns; a combination twice; an empty
            count without ``suppressed``; more than a million combinations.
        InvalidNumber: ``suppressed``, ``rounded`` or ``seconds`` out of range.

    >>> by_sex = [{"sex": "f", "n": 1}, {"sex": "m", "n": 2}]
    >>> by_age = [{"age": "old", "n": 3}]
    >>> published([by_sex, by_age]).cells[1]
    Cell(values=('m', 'old'), count=2)
    """
    _check_numbers(suppressed, rounded, seconds)
    deadline = time.monotonic() + seconds
    read = [_read(table, count, suppressed) for table in tables]
    if not read:
        raise InvalidDeclaration("No table.", allowed="at least one table of counts")
    domain = _domain(read, groups or {})
    noisy = any(n is not None and (n < 0 or n != int(n)) for table in read for n in table.counts)
    if noisy:
        reason = "a count is negative or no integer: the tables have noise"
        return Published(tuple(domain.values), (), complete=True, reason=reason)
    program = _program(read, domain, suppressed, rounded)
    return _solve(program, domain, deadline)


@dataclass(frozen=True, slots=True)
class _Read:
    """A table of counts: None is a suppressed count."""

    columns: tuple[str, ...]
    combinations: list[tuple[str, ...]]
    counts: list[float | None]


@dataclass(frozen=True, slots=True)
class _Domain:
    """The values of each column, and the values that each coarser value stands for."""

    values: dict[str, list[str]]
    groups: Groups

    def members(self, column: str, value: str) -> Sequence[str]:
        return self.groups.get(column, {}).get(value, (value,))


@dataclass(frozen=True, slots=True)
class _Program:
    """Joint cells x >= 0 that may be above 0 (``live``), with ``lower`` <= matrix x <= ``upper``."""

    matrix: Any
    lower: Floats
    upper: Floats
    live: NDArray[np.int64]

    def solve(self, goal: Floats, seconds: float) -> Any:
        """Minimises the goal with HiGHS."""
        exact = self.lower == self.upper
        inexact = self.matrix[~exact]
        return linprog(
            goal,
            A_ub=sparse.vstack([inexact, -inexact]).tocsr(),
            b_ub=np.concatenate([self.upper[~exact], -self.lower[~exact]]),
            A_eq=self.matrix[exact],
            b_eq=self.lower[exact],
            method="highs",
            options={"time_limit": max(seconds, 0.01)},
        )


def _check_numbers(suppressed: tuple[int, int] | None, rounded: int | None, seconds: float) -> None:
    if suppressed is not None and not 0 <= suppressed[0] <= suppressed[1]:
        raise InvalidNumber(f"suppressed = {suppressed}.", allowed="two integers, 0 <= low <= high")
    if rounded is not None and rounded < 2:
        raise InvalidNumber(f"rounded = {rounded}.", allowed="an integer of 2 or more")
    if not 0 < seconds < math.inf:
        raise InvalidNumber(f"seconds = {seconds}.", allowed="above 0")


def _read(table: Table, count: str, suppressed: tuple[int, int] | None) -> _Read:
    """Reads the rows of a table."""
    rows = list(table)
    if not rows or count not in rows[0]:
        raise InvalidDeclaration(
            f"A table without rows, or without a column {count!r}.",
            allowed="rows of categories with a count; count= names it",
        )
    columns = tuple(name for name in rows[0] if name != count)
    combinations, counts = [], []
    for row in rows:
        if set(row) != {*columns, count}:
            raise InvalidDeclaration("Rows of one table with different columns.")
        combinations.append(tuple(str(row[name]) for name in columns))
        counts.append(_count_of(row[count]))
    if len(set(combinations)) < len(combinations):
        raise InvalidDeclaration("A table has a combination twice.", allowed="each one once")
    if None in counts and suppressed is None:
        raise InvalidDeclaration(
            "A table has an empty count.", allowed="suppressed=(1, 9): what an empty count may be"
        )
    return _Read(columns, combinations, counts)


def _count_of(value: object) -> float | None:
    """A count as a number; None if it is empty."""
    text = "" if value is None else str(value).strip()
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        raise InvalidDeclaration("A count that is no number.", allowed="numbers") from None
    if not math.isfinite(number):
        raise InvalidDeclaration("A count that is not finite.", allowed="numbers")
    return number


def _domain(tables: Sequence[_Read], groups: Groups) -> _Domain:
    """The values of each column over all tables, coarser values replaced by what they stand for."""
    values: dict[str, set[str]] = {}
    for table in tables:
        for position, column in enumerate(table.columns):
            coarse = groups.get(column, {})
            for combination in table.combinations:
                value = combination[position]
                values.setdefault(column, set()).update(coarse.get(value, (value,)))
    domain = {column: sorted(found) for column, found in values.items()}
    cells = math.prod(map(len, domain.values()))
    if cells > _MOST_CELLS:
        raise InvalidDeclaration(
            f"{cells:,} combinations of all columns.",
            allowed=f"at most {_MOST_CELLS:,}",
            remedy="Take fewer columns, or coarser values, in all tables.",
        )
    return _Domain(domain, groups)


def _program(
    tables: Sequence[_Read],
    domain: _Domain,
    suppressed: tuple[int, int] | None,
    rounded: int | None,
) -> _Program:
    """The linear program of all tables; cells that a count of 0 excludes are left out."""
    parts = [_constraints(table, domain, suppressed, rounded) for table in tables]
    matrix = sparse.vstack([part[0] for part in parts]).tocsr()
    lower = np.concatenate([part[1] for part in parts])
    upper = np.concatenate([part[2] for part in parts])
    excluded = np.asarray(matrix[upper == 0].sum(axis=0)).ravel() > 0
    live = np.flatnonzero(~excluded)
    some = upper > 0
    return _Program(matrix[some][:, live], lower[some], upper[some], live)


def _constraints(
    table: _Read, domain: _Domain, suppressed: tuple[int, int] | None, rounded: int | None
) -> tuple[Any, Floats, Floats]:
    """The sums of joint cells that a table counts, with bounds of each."""
    levels = {
        column: _levels(
            column, {combination[position] for combination in table.combinations}, domain
        )
        for position, column in enumerate(table.columns)
    }
    matrix: Any = sparse.csr_matrix(np.ones((1, 1)))
    for column, values in domain.values.items():
        if column in levels:
            members = [
                [value in domain.members(column, level) for value in values]
                for level in levels[column]
            ]
            matrix = sparse.kron(matrix, sparse.csr_matrix(np.array(members, float)), "csr")
        else:
            matrix = sparse.kron(matrix, np.ones((1, len(values))), "csr")
    order = [column for column in domain.values if column in levels]
    listed = {
        tuple(combination[table.columns.index(column)] for column in order): number
        for combination, number in zip(table.combinations, table.counts, strict=True)
    }
    bounds = [
        _bounds(listed.get(combination, 0.0), suppressed, rounded)
        for combination in product(*(levels[column] for column in order))
    ]
    lower, upper = np.array(bounds, float).T
    return matrix, lower, upper


def _levels(column: str, seen: set[str], domain: _Domain) -> list[str]:
    """The values of a column in one table, with all others that none of them stands for."""
    covered = {member for value in seen for member in domain.members(column, value)}
    return sorted(seen | (set(domain.values[column]) - covered))


def _bounds(
    count: float | None, suppressed: tuple[int, int] | None, rounded: int | None
) -> tuple[float, float]:
    """The exact counts that a published one may stand for."""
    if count is None:
        assert suppressed is not None
        return suppressed
    half = rounded // 2 if rounded else 0
    return max(0.0, count - half), count + half


def _solve(program: _Program, domain: _Domain, deadline: float) -> Published:
    """Bounds every cell, and skips those that two solutions show to be open."""
    columns = tuple(domain.values)
    size = len(program.live)
    if size == 0 and not program.lower.any():
        return Published(columns, (), complete=True)
    least, most = np.full(size, math.inf), np.full(size, -math.inf)
    for goal in _starts(size):
        result = program.solve(goal, deadline - time.monotonic()) if size else None
        if result is None or result.status == 2:
            reason = "no table has all these counts: they have noise or an undeclared rounding"
            return Published(columns, (), complete=True, reason=reason)
        if result.status == 0:
            np.minimum(least, result.x, out=least)
            np.maximum(most, result.x, out=most)
    cells, complete = [], True
    shape = [len(values) for values in domain.values.values()]
    for position in range(size):
        if _floor(most[position]) > _ceiling(least[position]):
            continue
        if time.monotonic() > deadline:
            complete = False
            break
        ends = []
        for direction in (1.0, -1.0):
            goal = np.zeros(size)
            goal[position] = direction
            result = program.solve(goal, deadline - time.monotonic())
            if result.status != 0:
                complete = False
                break
            np.minimum(least, result.x, out=least)
            np.maximum(most, result.x, out=most)
            ends.append(direction * result.fun)
        if len(ends) == 2 and _ceiling(ends[0]) == _floor(ends[1]) > 0:
            codes = np.unravel_index(program.live[position], shape)
            names = zip(domain.values.values(), codes, strict=True)
            cells.append(Cell(tuple(values[code] for values, code in names), _floor(ends[1])))
    return Published(columns, tuple(cells), complete=complete)


def _starts(size: int) -> Iterator[Floats]:
    """Goals whose solutions differ in many cells; any goals would do."""
    yield np.zeros(size)
    generator = np.random.default_rng(1)
    for _ in range(_STARTS):
        goal = generator.normal(size=size)
        yield goal
        yield -goal


def _ceiling(number: float) -> float:
    return number if math.isinf(number) else math.ceil(number - _NEAR)


def _floor(number: float) -> Any:
    return number if math.isinf(number) else math.floor(number + _NEAR)
