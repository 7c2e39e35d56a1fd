# SPDX-License-Identifier: Apache-2.0
"""Constraints of the user that hold for every row, such as ``implies("age < 15", "income IS
NULL")``.

``rules_of`` compiles them into combinations of cells (``rules``); reads declarations only.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp

from sfumato.errors import WrongUse, shown
from sfumato.noise import Integers
from sfumato.synthetic.rules import Rule, Together, together
from sfumato.synthetic.schema import MOST_BINS, Axis, Schema, TextAxis
from sfumato.synthetic.tree import Clique

# The most combinations of values that a constraint is computed for.
MOST_COMBINATIONS = 10_000_000
# The most that are tried of constraints that share columns.
MOST_TOGETHER = 3 * MOST_COMBINATIONS
_COLUMNS = 3
# Functions with another value each time, or each day: the rows of tomorrow would obey another rule.
_CHANGING = re.compile("Rand|Randn|Uuid|Version|(Current|Local|Session|Utc).*")
# Nothing but the tables that are registered can be read.
_PUBLIC: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "threads": "1",
}


@dataclass(frozen=True, slots=True)
class Constraint:
    """An SQL test that is false for no row (NULL counts as not false).

    Raises:
        WrongUse: it is no test of SQL.

    >>> require("start <= finish").columns
    ('finish', 'start')
    """

    test: str

    def __post_init__(self) -> None:
        if not isinstance(self.test, str) or len(self.test) > 10_000:
            raise self._refused()
        try:
            parsed = sqlglot.parse_one(f"SELECT {self.test}", dialect="duckdb")
        except sqlglot.errors.SqlglotError:
            raise self._refused() from None
        subqueries = list(parsed.find_all(exp.Subquery, exp.Anonymous, exp.From))
        if subqueries or len(parsed.expressions) != 1:
            raise self._refused()
        for function in parsed.find_all(exp.Func):
            if _CHANGING.fullmatch(type(function).__name__):
                raise self._refused()

    def _refused(self) -> WrongUse:
        return WrongUse(
            f"A constraint {shown(self.test)}.",
            allowed="a test of columns of one row, without sub-queries and without functions that "
            "change, as random() and today() do: start <= finish",
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns in the test, in alphabetical order."""
        parsed = sqlglot.parse_one(f"SELECT {self.test}", dialect="duckdb")
        return tuple(sorted({column.name for column in parsed.find_all(exp.Column)}))

    def tests(self, column: str) -> list[str]:
        """Returns the comparisons of the test that involve a column.

        Empty if some comparison of the test involves several columns.
        """
        parsed = sqlglot.parse_one(f"SELECT {self.test}", dialect="duckdb")
        comparisons, column_count = [], 0
        for predicate in parsed.find_all(exp.Predicate):
            if predicate.find_ancestor(exp.Predicate):
                continue
            columns = [one.name for one in predicate.find_all(exp.Column)]
            column_count += len(columns)
            if len(set(columns)) > 1:
                return []
            if columns and columns[0] == column:
                comparisons.append(predicate.sql("duckdb"))
        if column_count < len(list(parsed.find_all(exp.Column))):
            return []
        return comparisons


def require(test: str) -> Constraint:
    """Returns the constraint that an SQL test is false for no row.

    >>> require("born <= died").test
    'born <= died'
    """
    return Constraint(test)


def implies(test: str, consequence: str) -> Constraint:
    """Returns the constraint that the second test is true wherever the first is.

    >>> implies("age < 15", "income IS NULL").columns
    ('age', 'income')
    """
    Constraint(test), Constraint(consequence)
    return Constraint(f"NOT coalesce(({test}), FALSE) OR coalesce(({consequence}), FALSE)")


def determines(column: str, other: str, values: Mapping[Any, Any]) -> Constraint:
    """Returns the constraint that a column determines another; ``values`` maps its values to the
    other's.

    >>> determines("education", "years", {"Bachelors": 13, "Masters": 14}).columns
    ('education', 'years')
    """
    one, two = (exp.to_identifier(name, quoted=True).sql("duckdb") for name in (column, other))
    tests = []
    for value, determined in values.items():
        left, right = (exp.convert(each).sql("duckdb") for each in (value, determined))
        tests.append(f"({one} IS NOT DISTINCT FROM {left} AND {two} IS NOT DISTINCT FROM {right})")
    if not tests:
        raise WrongUse("A dependence without values.", allowed='{"Bachelors": 13}')
    return Constraint(" OR ".join(tests))


def rules_of(schema: Schema, constraints: Sequence[Constraint]) -> tuple[Rule, ...]:
    """Returns the constraints compiled to tables of allowed cell combinations; reads declarations
    only, no data.

    Raises:
        UnknownName: a constraint on a column that is not synthesised.
        WrongUse: one on more than three columns or on too many combinations, one that divides a
            bin, or constraints that contradict one another.
    """
    rules: dict[Clique, Rule] = {}
    for constraint in constraints:
        if not isinstance(constraint, Constraint):
            raise WrongUse(
                f"A constraint {shown(constraint)}.", allowed="sf.synthetic.require(...)"
            )
        found = _rule_of(schema, constraint)
        before = rules.get(found.columns)
        if before is not None:
            found = Rule(found.columns, found.allowed & before.allowed)
        rules[found.columns] = found
        _require_possible(found, constraint)
    _require_together(schema, list(rules.values()), constraints)
    return tuple(rules.values())


def _divided_bin(constraint: Constraint, axes: Sequence[Axis]) -> WrongUse:
    """Returns the error for a constraint that holds for only some values of a bin."""
    single = {}
    for one in axes:
        if one.starts is not None:
            single[one.name] = one.kind.upper_code - one.kind.lower_code + 1
    remedy = "Declare bins= that begin where the constraint changes."
    if all(values <= MOST_BINS for values in single.values()):
        remedy += f" Or a bin for each value: bins={single}."
    return WrongUse(
        f"The constraint {shown(constraint.test)} divides bins of {', '.join(single)}: it holds "
        "for some values of a bin, not for others.",
        remedy=remedy,
    )


def _rule_of(schema: Schema, constraint: Constraint) -> Rule:
    """Returns the combinations of cells that one constraint allows."""
    places = sorted(schema.place(name) for name in constraint.columns)
    axes = [schema.axes[place] for place in places]
    for axis in axes:
        if isinstance(axis, TextAxis):
            raise WrongUse(
                f"The constraint {shown(constraint.test)} on {shown(axis.name)}, a text.",
                allowed="columns whose values are declared",
            )
    with duckdb.connect(config=_PUBLIC) as public:
        tables = [_values_table(public, axis, constraint) for axis in axes]
    combinations = math.prod(map(len, tables))
    if not 1 <= len(places) <= _COLUMNS or combinations > MOST_COMBINATIONS:
        raise WrongUse(
            f"The constraint {shown(constraint.test)} on {len(places)} columns with "
            f"{combinations:,} combinations of values.",
            allowed=f"from 1 to {_COLUMNS} columns, {MOST_COMBINATIONS:,} combinations",
            remedy="Declare narrower bounds or a larger step.",
        )
    always, ever = _truth_tables(constraint, axes, tables)
    if not np.array_equal(always, ever):
        raise _divided_bin(constraint, axes)
    for at, axis in enumerate(axes):
        if not axis.is_nullable:
            np.moveaxis(always, at, -1)[..., -1] = False
    return Rule(tuple(places), always)


def _values_table(
    public: duckdb.DuckDBPyConnection,
    axis: Axis,
    constraint: Constraint,
) -> pa.Table:
    """Returns the declared values of an axis with their cells; missing has its own cell.

    If every comparison of the constraint is about one column, the values of a cell that all
    comparisons treat alike are listed once.
    """
    kind = axis.kind
    codes: Integers = np.arange(kind.lower_code, kind.upper_code + 2)
    cells = np.searchsorted(axis.limits, codes, side="right") - 1
    cell, name = f"cell of {axis.name}", axis.name
    table = pa.table({name: axis.values(codes), cell: cells})
    tests = constraint.tests(name)
    if not tests:
        return table
    public.register("listed", table)
    columns = ", ".join(_quote(each) for each in (name, cell))
    alike = ", ".join([_quote(cell), *(f"({test})" for test in tests)])
    statement = f"SELECT DISTINCT ON ({alike}) {columns} FROM listed"
    return _compute(public, statement, constraint)


def _compute(
    public: duckdb.DuckDBPyConnection,
    statement: str,
    constraint: Constraint,
) -> pa.Table:
    """Runs a statement with a constraint; raises WrongUse if it cannot be computed."""
    try:
        result: pa.Table = public.sql(statement).to_arrow_table()
    except duckdb.Error:
        raise WrongUse(
            f"The constraint {shown(constraint.test)} cannot be computed.",
            allowed="a test of SQL on the declared types of the columns",
        ) from None
    return result


def _quote(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql("duckdb")


def _truth_tables(
    constraint: Constraint,
    axes: Sequence[Axis],
    tables: Sequence[pa.Table],
) -> tuple[Any, Any]:
    """For each combination of cells: whether all of its values are allowed, and whether any is."""
    shape = tuple(one.cells for one in axes)
    always, ever = np.zeros(shape, bool), np.zeros(shape, bool)
    with duckdb.connect(config=_PUBLIC) as public:
        for place, table in enumerate(tables):
            public.register(f"t{place}", table)
        cells = ", ".join(_quote(f"cell of {one.name}") for one in axes)
        test = f"coalesce(({constraint.test}), TRUE)"
        statement = f"SELECT {cells}, bool_and({test}) AS every, bool_or({test}) AS some FROM "
        statement += ", ".join(f"t{place}" for place in range(len(tables)))
        found = _compute(public, f"{statement} GROUP BY {cells}", constraint)
    *where, every, some = (column.to_numpy() for column in found.columns)
    always[tuple(where)], ever[tuple(where)] = every, some
    return always, ever


def _require_possible(rule: Rule, constraint: Constraint) -> None:
    if not rule.allowed.any():
        raise WrongUse(
            f"No row can satisfy the constraint {shown(constraint.test)} with those before it.",
            remedy="Leave one of them out.",
        )


def _require_together(
    schema: Schema,
    rules: Sequence[Rule],
    constraints: Sequence[Constraint],
) -> None:
    """Raises WrongUse if no row satisfies all rules, or if there are too many to decide."""
    for each in together(rules, schema.cells):
        columns = [schema.names[place] for place in each.columns]
        names = ", ".join(map(shown, columns))
        require_few(each, names)
        if not each.allowed():
            tests = [shown(one.test) for one in constraints if set(columns) & set(one.columns)]
            raise WrongUse(
                f"No row can satisfy the constraints on {names} together: {', '.join(tests)}.",
                remedy="Leave one of them out.",
            )


def require_few(rules: Together, names: str) -> None:
    """Raises WrongUse if the rules have too many combinations to try."""
    if rules.cells > MOST_TOGETHER:
        raise WrongUse(
            f"Constraints that go together on {names}, with {rules.cells:,} combinations.",
            allowed=f"at most {MOST_TOGETHER:,} combinations of values that they tell apart",
            remedy="Leave one of them out, or declare a larger step.",
        )
