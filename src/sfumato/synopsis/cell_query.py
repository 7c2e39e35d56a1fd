# SPDX-License-Identifier: Apache-2.0
"""Reads an SQL statement as weighted sums over the cells of single columns.

A cell is a declared value of a column, or its missing value. If every test and every aggregate
reads one column, each group of the answer is a product of factors: the weight that each cell of
each column has in it. A synopsis answers such statements, and workloads are declared by them. All
follows from declarations.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from typing import TypeAlias

import numpy as np

from sfumato.errors import UnsupportedSql, WrongUse, shown
from sfumato.metadata.column import Column, Integer, Text
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import Aggregate, CountRows, CountValues, Sum
from sfumato.plan.cube import axis
from sfumato.plan.evaluate import evaluate
from sfumato.plan.output import Item, Output
from sfumato.plan.relation import Filter, Relation, Scan, predicates
from sfumato.plan.scalar import COMPARE, And, Compare, Constant, Field, Key, Leaf, Scalar, leaves
from sfumato.plan.scalar import Estimate as Released
from sfumato.plan.scalar import Value as Code
from sfumato.plan.value import GroupKey, Value
from sfumato.sql.lower import understand
from sfumato.synopsis.estimate import Estimate
from sfumato.synopsis.wanted import Kind, Term, Wanted
from sfumato.synopsis.workload import Cells, Floats, GivenKind

# What each cell of some columns counts, by their names. A column that is not there counts 1.
Weights: TypeAlias = dict[str, Floats]
# The most groups of a statement.
MAX_GROUPS = 100_000


@dataclass(frozen=True, eq=False)
class Grouping:
    """A GROUP BY key: its column, and for each cell the index of its group, or -1 for none."""

    key: GroupKey
    column: str
    places: Floats

    @property
    def codes(self) -> tuple[int | None, ...]:
        """The code of each group; None for the group of missing values, which is last."""
        codes = self.key.codes or ()
        return (*codes, None) if self.key.missing else codes

    def cells(self, group: int) -> Floats:
        """Returns an array with 1 for the cells of a group and 0 for the others."""
        inside: Floats = (self.places == group).astype(np.float64)
        return inside

    @property
    def each_value(self) -> bool:
        """Whether each declared value is its own group."""
        return bool((self.places[:-1] == np.arange(len(self.places) - 1)).all())


@dataclass(frozen=True, eq=False)
class CellQuery:
    """A statement as weights of cells: groups, tests and aggregates by column.

    >>> import sfumato as sf
    >>> columns = {"age": sf.Integer(0, 4), "sex": sf.Category("F", "M")}
    >>> data = Dataset("survey", {"people": sf.Table("people.csv", columns=columns)})
    >>> asked = cell_query("SELECT sex, COUNT(*) FROM people WHERE age > 2 GROUP BY sex", data)
    >>> [weights["age"].tolist() for weights in asked.aggregates], asked.groups
    ([[0.0, 0.0, 0.0, 1.0, 1.0, 0.0]], [(0,), (1,)])
    """

    sql: str
    keys: tuple[Grouping, ...]
    aggregates: tuple[Weights, ...]
    items: tuple[Item, ...]

    @cached_property
    def groups(self) -> list[tuple[int, ...]]:
        """The groups, each as a tuple of indices into the codes of the keys."""
        return list(product(*(range(len(key.codes)) for key in self.keys)))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns whose cells do not all have the same weight."""
        found = [key.column for key in self.keys]
        for weights in self.aggregates:
            found += weights
        return tuple(dict.fromkeys(found))

    def weights(self, aggregate: int) -> Iterator[Weights]:
        """Yields, for each group, the weights by column that an aggregate gives the cells."""
        fixed = self.aggregates[aggregate]
        inside: list[list[Floats]] = []
        for key in self.keys:
            cells = [key.cells(group) for group in range(len(key.codes))]
            inside.append([each * fixed.get(key.column, 1.0) for each in cells])
        for group in self.groups:
            chosen = dict(fixed)
            for key, cells, place in zip(self.keys, inside, group, strict=True):
                chosen[key.column] = cells[place]
            yield chosen

    def columns(
        self, estimates: Callable[[Sequence[Weights]], Sequence[Estimate]]
    ) -> dict[str, list[object]]:
        """Returns the columns of the answer, given the estimates of sums over cells."""
        all_columns: dict[str, list[object]] = {}
        for item in self.items:
            if isinstance(item.expression, Key):
                keys = {item.name: self._decoded(item.expression.index)}
                _require_free(all_columns, keys)
                all_columns |= keys
            else:
                assert isinstance(item.expression, Released), "checked by cell_query"
                group_weights = list(self.weights(item.expression.index))
                columns = _released(item.name, estimates(group_weights))
                _require_free(all_columns, columns)
                all_columns |= columns
        return all_columns

    def terms(self) -> tuple[Term, ...]:
        """Returns the statement as a workload: a term for each aggregate, of one query a group.

        Raises:
            UnsupportedSql: no declared value passes its tests.
        """
        terms = []
        for weights in self.aggregates:
            factors = []
            for name in self.names:
                kind = self._kind(name, weights)
                if kind is not None:
                    factors.append((name, kind))
            terms.append(Term(tuple(factors)))
        return tuple(terms)

    def _kind(self, name: str, weights: Weights) -> Kind | None:
        """Returns the queries of one column; None if all cells count 1."""
        key = next((key for key in self.keys if key.column == name), None)
        if key is None:
            rows = [weights[name]] if name in weights else []
        elif name not in weights and key.each_value:
            return Cells
        else:
            cells = map(key.cells, range(len(key.codes)))
            rows = [each * weights.get(name, 1.0) for each in cells]
        counted_rows = [row for row in rows if row.any()]
        if rows and not counted_rows:
            raise UnsupportedSql(
                f"No declared value of {shown(name)} is in {shown(self.sql)}.",
                remedy="Leave the statement out of the workload.",
            )
        return GivenKind.of(counted_rows) if counted_rows else None

    def _decoded(self, place: int) -> list[object]:
        """Returns the value of a key in each group."""
        key = self.keys[place]
        kind = key.key.value.type
        assert not isinstance(kind, Text), "its codes are declared"
        values = [None if code is None else kind.decode(code) for code in key.codes]
        return [values[group[place]] for group in self.groups]


def cell_query(
    sql: str, dataset: Dataset, table: str | None = None, known: Sequence[str] | None = None
) -> CellQuery:
    """Parses ``SELECT keys, COUNT(*), SUM(x) FROM table WHERE ... GROUP BY keys``.

    Each test, key and sum reads one column; tests are joined by AND. COUNT(x) counts rows where x
    is not NULL, SUM adds integers, and a key may be computed from a column.

    Args:
        sql: the statement.
        dataset: the declarations.
        table: the only table that the statement may read; None: any.
        known: the only columns that the statement may read; None: all.

    Raises:
        UnsupportedSql: any other statement; the message names what is not supported.
        UnknownName, MissingDeclaration: as ``session.query``.
    """
    question = understand(sql, dataset)
    raw, output = question.raw, question.output
    _require_table(raw.relation, table, sql)
    if output != Output(output.items) or not all(map(_is_plain, output.items)):
        raise refused(sql, "SELECT keys, COUNT(*), SUM(x) FROM ... WHERE ... GROUP BY keys")
    passing: Weights = {}
    for test in _tests(raw.relation):
        _multiply(passing, *_passing(test, sql, known))
    keys = tuple(_grouping(key, sql, known) for key in raw.keys)
    if len({key.column for key in keys}) < len(keys):
        raise refused(sql, "keys of different columns")
    aggregates = []
    for aggregate in raw.aggregates:
        weights = dict(passing)
        if not isinstance(aggregate, CountRows):
            _multiply(weights, *_added(aggregate, sql, known))
        # a column whose cells all count 1 need not be measured
        aggregates.append({name: each for name, each in weights.items() if (each != 1).any()})
    query = CellQuery(sql, keys, tuple(aggregates), output.items)
    groups = 1
    for key in keys:
        groups *= len(key.codes)
    if groups > MAX_GROUPS:
        raise WrongUse(f"A query of {groups:,} groups.", allowed=f"at most {MAX_GROUPS:,}")
    return query


def weights_of(where: str, dataset: Dataset, table: str, known: Sequence[str]) -> Weights:
    """Returns the weights, 1 or 0, of the cells of each column that pass an SQL test.

    Raises:
        As ``cell_query``.
    """
    asked = cell_query(f"SELECT COUNT(*) FROM {table} WHERE {where}", dataset, table, known)
    if asked.keys:
        raise refused(where, "a test, as it stands behind WHERE")
    return asked.aggregates[0]


def resolved(wanted: Wanted, dataset: Dataset, table: str) -> Wanted:
    """Returns the workload with each of its SQL statements replaced by products of column workloads
    (``Term``).

    Raises:
        As ``cell_query``.
    """
    terms = list(wanted.terms)
    for statement in wanted.statements:
        for term in cell_query(statement.sql, dataset, table).terms():
            terms.append(replace(term, weight=statement.weight))
    return Wanted(tuple(terms))


def refused(sql: str, allowed: str) -> UnsupportedSql:
    """Returns the error for a statement that is not a sum over the cells of single columns."""
    return UnsupportedSql(
        f"A synopsis does not know {shown(sql)}.",
        allowed=allowed,
        remedy="Ask with session.query, which charges it.",
    )


def _is_plain(item: Item) -> bool:
    return isinstance(item.expression, Key | Released)


def _require_table(relation: Relation, table: str | None, sql: str) -> None:
    while isinstance(relation, Filter):
        relation = relation.source
    if not isinstance(relation, Scan):
        raise refused(sql, "one table")
    if table is not None and relation.table != table:
        raise refused(sql, f"the table {table}")


def _tests(relation: Relation) -> list[Scalar]:
    """Returns the tests that all have to pass, without those that always do."""
    waiting = predicates(relation)
    tests: list[Scalar] = []
    while waiting:
        test = waiting.pop()
        if isinstance(test, And):
            waiting += test.operands
        elif not (isinstance(test, Constant) and test.value is True):
            tests.append(test)
    return tests


def _multiply(weights: Weights, name: str, factor: Floats) -> None:
    weights[name] = weights[name] * factor if name in weights else factor


def _passing(test: Scalar, sql: str, known: Sequence[str] | None) -> tuple[str, Floats]:
    """Returns the column of a test, and which of its cells pass."""
    column = _column(test, sql, "tests", known)
    match test:
        case Compare(op, Field(), Constant(int() as value)) if not isinstance(value, bool):
            # the usual test, of all codes at once; NULL passes none
            codes = _codes(column)
            passes = np.zeros(len(codes) + 1)
            passes[:-1] = COMPARE[op](np.arange(codes[0], codes[-1] + 1), value)
            return column.name, passes
        case _:
            truths = [float(found is True) for found in _values(test, column)]
            return column.name, np.array(truths)


def _grouping(key: GroupKey, sql: str, known: Sequence[str] | None) -> Grouping:
    """Returns a key, with the group of each cell."""
    column = _column(key.value.expression, sql, "groups", known)
    if key.codes is None:
        raise refused(sql, "groups of declared values")
    places: dict[Code, float] = {code: float(place) for place, code in enumerate(key.codes)}
    if key.missing:
        places[None] = float(len(key.codes))
    found = [places.get(code, -1.0) for code in _values(key.value.expression, column)]
    return Grouping(key, column.name, np.array(found))


def _added(aggregate: Aggregate, sql: str, known: Sequence[str] | None) -> tuple[str, Floats]:
    """Returns the column of an aggregate, and what each of its cells adds to it."""
    match aggregate:
        case CountValues(value):
            column = _column(value.expression, sql, "counts", known)
            there = [found is not None for found in _values(value.expression, column)]
            return column.name, np.array(there, np.float64)
        case Sum(Value(type=Integer(clip=None)) as value):
            column = _column(value.expression, sql, "sums", known)
            codes = [found or 0 for found in _values(value.expression, column)]
            return column.name, np.array(codes, np.float64)
        case _:
            raise refused(sql, "COUNT(*), COUNT(x), and SUM(x) of whole numbers without clip=")


def _column(expression: Scalar, sql: str, what: str, known: Sequence[str] | None) -> Column:
    """Returns the one column that an expression reads."""
    columns = {}
    for leaf in leaves(expression):
        if not isinstance(leaf, Field):
            raise refused(sql, f"{what} of columns")
        columns[leaf.column.name] = leaf.column
    if len(columns) != 1:
        raise refused(sql, f"{what} of one column each, joined by AND")
    ((name, column),) = columns.items()
    if known is not None and name not in known:
        raise refused(sql, f"tests, groups and sums of {', '.join(known)}")
    return column


@lru_cache(maxsize=256)
def _codes(column: Column) -> tuple[int, ...]:
    """Returns the code of each declared value.

    Raises:
        MissingDeclaration, WrongUse: it has no declared values, or too many.
    """
    return axis(Value.of(column)).codes or ()


def _values(expression: Scalar, column: Column) -> Sequence[Code]:
    """The value of an expression for each cell of its column, that of missing values last."""
    codes = _codes(column)
    if isinstance(expression, Field):
        return [*codes, None]
    return [evaluate(expression, _always(code)) for code in (*codes, None)]


def _always(code: int | None) -> Callable[[Leaf], int | None]:
    def lookup(leaf: Leaf) -> int | None:
        return code

    return lookup


def _require_free(taken_columns: Mapping[str, object], columns: Mapping[str, object]) -> None:
    """Refuses a name that the error or the interval of another column needs."""
    twice = sorted(taken_columns.keys() & columns.keys())
    if twice:
        raise WrongUse(
            f"Two columns would be named {shown(twice[0])}.", remedy="Rename one with AS."
        )


def listed(wheres: Sequence[str]) -> Sequence[str]:
    """Returns the given SQL tests as a sequence; refuses a single string.

    >>> listed(["age < 18"])
    ['age < 18']
    """
    if isinstance(wheres, str):
        raise WrongUse("One test where a list is needed.", remedy="answer(where) takes one.")
    return wheres


def _released(name: str, rows: Sequence[Estimate]) -> Mapping[str, list[object]]:
    """Returns the columns of an aggregate."""
    return {
        name: [row.value for row in rows],
        f"{name}_error": [row.standard_error for row in rows],
        f"{name}_low": [row.low for row in rows],
        f"{name}_high": [row.high for row in rows],
    }
