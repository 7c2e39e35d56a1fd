# SPDX-License-Identifier: Apache-2.0
"""The dataframe API: builds the SQL of a question from Python expressions.

``session.table("people")`` begins a question; ``where``, ``join``, ``group_by`` and ``agg`` extend
it; ``query`` and ``preview`` run it through ``Session``. Nothing is read before that.
"""

import datetime
import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, cast

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import TokenType

from sfumato.errors import InvalidNumber, UnknownName, WrongUse, shown
from sfumato.exact.rational import Number, decimal_text, to_fraction
from sfumato.query.price import Wish

if TYPE_CHECKING:
    from sfumato.query.answer import Answer
    from sfumato.query.outer_preview import OuterPreview
    from sfumato.query.preview import Preview

Literal: TypeAlias = bool | int | float | Decimal | Fraction | str | datetime.date
# The names of the declared columns of each table.
Columns: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
Operand: TypeAlias = "Expression | Literal"

_DIALECT = Dialect.get_or_raise("duckdb")
# Names with a special meaning in SQL although they are not keywords.
_NOT_NAMES = frozenset(_DIALECT.parser_class.NO_PAREN_FUNCTION_PARSERS)


class Binding(IntEnum):
    """The precedence of the outermost operator of an expression, which decides on parentheses."""

    OR = 1
    AND = 2
    NOT = 3
    TEST = 4
    SUM = 5
    PRODUCT = 6
    SIGN = 7
    ATOM = 8


@dataclass(
    frozen=True,
    slots=True,
    eq=False,
    repr=False,
)
class Expression:
    """A SQL expression: a column, a constant, or a comparison, calculation or aggregate of these.

    ``repr`` returns its SQL, which is what is asked and stored.

    Guarantees:
        the SQL of an expression means what Python computed it to be

    >>> (col("age") >= 65) & col("sex").isin("F", "M")
    age >= 65 AND sex IN ('F', 'M')
    >>> 1 - col("income").mean() / Fraction(2, 3)
    1 - AVG(income) / (2 / 3)
    >>> col("income").mean().alias("m")
    AVG(income) AS m
    """

    text: str
    binding: Binding
    name: str | None = None

    def __eq__(self, other: Operand) -> "Expression":  # type: ignore[override]
        return self._test("=", other)

    def __ne__(self, other: Operand) -> "Expression":  # type: ignore[override]
        return self._test("<>", other)

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: Operand) -> "Expression":
        return self._test("<", other)

    def __le__(self, other: Operand) -> "Expression":
        return self._test("<=", other)

    def __gt__(self, other: Operand) -> "Expression":
        return self._test(">", other)

    def __ge__(self, other: Operand) -> "Expression":
        return self._test(">=", other)

    def __add__(self, other: Operand) -> "Expression":
        return _binary(self, "+", other, Binding.SUM)

    def __radd__(self, other: Operand) -> "Expression":
        return _binary(other, "+", self, Binding.SUM)

    def __sub__(self, other: Operand) -> "Expression":
        return _binary(self, "-", other, Binding.SUM)

    def __rsub__(self, other: Operand) -> "Expression":
        return _binary(other, "-", self, Binding.SUM)

    def __mul__(self, other: Operand) -> "Expression":
        return _binary(self, "*", other, Binding.PRODUCT)

    def __rmul__(self, other: Operand) -> "Expression":
        return _binary(other, "*", self, Binding.PRODUCT)

    def __truediv__(self, other: Operand) -> "Expression":
        return _binary(self, "/", other, Binding.PRODUCT)

    def __rtruediv__(self, other: Operand) -> "Expression":
        return _binary(other, "/", self, Binding.PRODUCT)

    def __floordiv__(self, other: Operand) -> "Expression":
        return _floor(self / other)

    def __rfloordiv__(self, other: Operand) -> "Expression":
        return _floor(other / self)

    def __neg__(self) -> "Expression":
        # two signs in a row would begin a comment
        return Expression(f"-{_operand(self, Binding.ATOM)}", Binding.SIGN)

    def __and__(self, other: Operand) -> "Expression":
        return _binary(self, "AND", other, Binding.AND)

    def __rand__(self, other: Operand) -> "Expression":
        return _binary(other, "AND", self, Binding.AND)

    def __or__(self, other: Operand) -> "Expression":
        return _binary(self, "OR", other, Binding.OR)

    def __ror__(self, other: Operand) -> "Expression":
        return _binary(other, "OR", self, Binding.OR)

    def __invert__(self) -> "Expression":
        return Expression(f"NOT {_operand(self, Binding.NOT)}", Binding.NOT)

    def __bool__(self) -> bool:
        raise WrongUse(
            "An expression is not true or false by itself.",
            remedy="Write & | ~ instead of and, or, not.",
        )

    def isin(self, *values: Literal | Sequence[Literal]) -> "Expression":
        """Whether the expression equals one of the values, passed as arguments or as one list."""
        is_list = len(values) == 1 and isinstance(values[0], list | tuple)
        members = cast(Sequence[Literal], values[0] if is_list else values)
        if not members:
            raise WrongUse("isin() without a value.", allowed='col("sex").isin("F", "M")')
        listed = ", ".join(_operand(value, Binding.SUM) for value in members)
        return Expression(f"{_operand(self, Binding.SUM)} IN ({listed})", Binding.TEST)

    def between(self, low: Literal, high: Literal) -> "Expression":
        """Whether the expression is at least ``low`` and at most ``high``."""
        value = _operand(self, Binding.SUM)
        least = _operand(low, Binding.SUM)
        most = _operand(high, Binding.SUM)
        return Expression(f"{value} BETWEEN {least} AND {most}", Binding.TEST)

    def is_null(self) -> "Expression":
        """Whether the value is missing."""
        return Expression(f"{_operand(self, Binding.SUM)} IS NULL", Binding.TEST)

    def like(self, pattern: str) -> "Expression":
        """Whether a string matches a pattern: % is any string, _ is one character."""
        if not isinstance(pattern, str):
            raise WrongUse(f"like() of {type(pattern).__name__}.", allowed='a text such as "job%"')
        return self._test("LIKE", pattern)

    def alias(self, name: str) -> "Expression":
        """The expression under another name, which is that of its column in the answer."""
        if not isinstance(name, str) or not name:
            raise WrongUse(f"alias({shown(name)}).", allowed="a name for the column")
        return replace(self, name=name)

    def count(self) -> "Expression":
        """The number of rows that have a value."""
        return self._call("COUNT")

    def n_unique(self) -> "Expression":
        """The number of different values; for the unit's column, the number of units."""
        return Expression(f"COUNT(DISTINCT {_operand(self, Binding.OR)})", Binding.ATOM)

    def sum(self) -> "Expression":
        """The sum of the values."""
        return self._call("SUM")

    def mean(self) -> "Expression":
        """The mean of the values."""
        return self._call("AVG")

    def var(self) -> "Expression":
        """The sample variance of the values, with the divisor n - 1."""
        return self._call("VARIANCE")

    def std(self) -> "Expression":
        """The sample standard deviation: the square root of ``var``."""
        return self._call("STDDEV_SAMP")

    def quantile(self, level: Number) -> "Expression":
        """The value below which the share ``level`` of the rows lies."""
        written = decimal_text(to_fraction("level", level))
        if "/" in written:
            raise InvalidNumber(f"level = {level}.", allowed="a decimal from 0 to 1, such as 0.9")
        return Expression(f"QUANTILE_CONT({_operand(self, Binding.OR)}, {written})", Binding.ATOM)

    def median(self) -> "Expression":
        """The median of the values."""
        return self._call("MEDIAN")

    def min(self) -> "Expression":
        """A quantile close to the least value; the least itself would reveal one unit's value."""
        return self._call("MIN")

    def max(self) -> "Expression":
        """A quantile close to the greatest value, since the greatest would reveal one unit's."""
        return self._call("MAX")

    def _call(self, function: str) -> "Expression":
        """A SQL function of the expression."""
        return Expression(f"{function}({_operand(self, Binding.OR)})", Binding.ATOM)

    def _test(self, operator: str, other: Operand) -> "Expression":
        """A comparison of the expression with another one."""
        left = _operand(self, Binding.SUM)
        right = _operand(other, Binding.SUM)
        return Expression(f"{left} {operator} {right}", Binding.TEST)

    def __repr__(self) -> str:
        if self.name is None:
            return self.text
        return f"{self.text} AS {_name(self.name)}"


def col(name: str) -> Expression:
    """Returns an expression for a declared column, ``"age"`` or ``"people.age"``."""
    if not isinstance(name, str) or not name:
        raise WrongUse(f"col({shown(name)}).", allowed="the name of a declared column")
    table, _, column = name.rpartition(".")
    names = [_name(part) for part in (table, column) if part]
    return Expression(".".join(names), Binding.ATOM)


def count() -> Expression:
    """Returns an expression for the number of rows."""
    return Expression("COUNT(*)", Binding.ATOM)


@dataclass(frozen=True, slots=True, repr=False)
class Frame:
    """A question that is built without SQL; every method returns a new frame.

    Guarantees:
        a frame asks what its SQL says

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> people = sf.Table(pa.table({"age": [30, 40]}), columns={"age": sf.Integer(0, 120)})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(1),
    ...                 ledger=folder.name + "/ledger.db") as session:
    ...     frame = session.table("people").where(sf.col("age") >= 35).agg(n=sf.count())
    ...     answer = frame.query(epsilon=0.5)
    >>> frame
    SELECT COUNT(*) AS n FROM people WHERE age >= 35
    >>> frame["age"]
    age
    >>> folder.cleanup()
    """

    table: str
    ask: "Callable[..., Answer]"
    foresee: "Callable[..., Preview | OuterPreview]"
    joins: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    declared: Columns = ()
    joined: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Expression:
        """A declared column of the table or of a joined table: ``people["age"] >= 65``.

        Raises:
            UnknownName: no such column is declared.
        """
        names = self._ipython_key_completions_()
        if name not in names:
            raise UnknownName(f"No column {shown(name)}.", allowed=", ".join(names))
        return col(name)

    def _ipython_key_completions_(self) -> list[str]:
        """The column names that a notebook offers after ``people["``."""
        columns = dict(self.declared)
        found: dict[str, None] = {}
        for table in self.joined:
            found.update(dict.fromkeys(columns.get(table, ())))
        return list(found)

    def where(self, *tests: Expression) -> "Frame":
        """Returns a frame with only the rows for which all ``tests`` are true."""
        passed = tuple(_operand(_expression(test), Binding.AND) for test in tests)
        return replace(self, tests=self.tests + passed)

    def join(
        self,
        table: str,
        *,
        on: str,
        how: str = "inner",
    ) -> "Frame":
        """Returns a frame joined to another table on the column ``on``, which is the unit or a
        public key.
        """
        if how not in ("inner", "left"):
            raise WrongUse(f"how={shown(how)}.", allowed='"inner" or "left"')
        if not isinstance(on, str) or not on:
            raise WrongUse(f"on={shown(on)}.", allowed="the name of a column of both tables")
        joined = f"{how.upper()} JOIN {_table(table)} USING ({_name(on)})"
        return replace(self, joins=(*self.joins, joined), joined=(*self.joined, table))

    def group_by(self, *keys: str | Expression) -> "Frame":
        """Returns a frame that is grouped by the keys: a row for each combination of their values."""
        texts = []
        columns = []
        for key in keys:
            expression = _expression(col(key) if isinstance(key, str) else key)
            texts.append(expression.text)
            columns.append(repr(expression))
        return replace(
            self,
            keys=(*self.keys, *texts),
            columns=(*self.columns, *columns),
        )

    def agg(self, *aggregates: Expression, **named: Expression) -> "Frame":
        """Returns a frame with aggregates as columns of the answer; a keyword is the name of its
        column.
        """
        columns = [_expression(aggregate) for aggregate in aggregates]
        for name, aggregate in named.items():
            columns.append(_expression(aggregate).alias(name))
        return replace(self, columns=self.columns + tuple(map(repr, columns)))

    @property
    def sql(self) -> str:
        """The SQL of the question."""
        clauses = [f"SELECT {', '.join(self.columns) or '*'} FROM {self.table}", *self.joins]
        if self.tests:
            clauses.append(f"WHERE {' AND '.join(self.tests)}")
        if self.keys:
            clauses.append(f"GROUP BY {', '.join(self.keys)}")
        return " ".join(clauses)

    def query(self, **price: Wish) -> "Answer":
        """Returns the private answer to the question; its price is as in ``Session.query``."""
        return self.ask(self.sql, **price)

    def preview(self, **price: Wish) -> "Preview | OuterPreview":
        """Returns the cost and the expected error of the question; this costs no budget."""
        return self.foresee(self.sql, **price)

    def __repr__(self) -> str:
        return self.sql

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.sql)}</pre>"


def frame(
    name: str,
    ask: "Callable[..., Answer]",
    foresee: "Callable[..., Preview | OuterPreview]",
    declared: Columns = (),
) -> Frame:
    """Returns a frame that asks about a declared table; ``ask`` and ``foresee`` are the session's
    methods.

    ``ask`` is ``Session.query``, ``foresee`` is ``Session.preview``.
    """
    return Frame(_table(name), ask, foresee, declared=declared, joined=(name,))


def _expression(argument: object) -> Expression:
    """The argument, if it is an expression (else WrongUse)."""
    if not isinstance(argument, Expression):
        raise WrongUse(
            f"{type(argument).__name__} is no expression.",
            allowed='sf.col("age") >= 65, sf.count()',
        )
    return argument


def _table(name: str) -> str:
    """The name of a table as SQL writes it (WrongUse if it is empty)."""
    if not isinstance(name, str) or not name:
        raise WrongUse(f"A table {shown(name)}.", allowed="the name of a declared table")
    return _name(name)


def _name(name: str) -> str:
    """A name as SQL writes it: in quotes unless it is a plain identifier."""
    if name.isascii() and name.isidentifier() and name.upper() not in _NOT_NAMES:
        (token,) = _DIALECT.tokenize(name)
        if token.token_type is TokenType.VAR:
            return name
    return '"' + name.replace('"', '""') + '"'


def _binary(
    left: Operand,
    operator: str,
    right: Operand,
    binding: Binding,
) -> Expression:
    """A binary operation. SQL operators associate to the left, so the right side must bind tighter."""
    first = _operand(left, binding)
    second = _operand(right, Binding(binding + 1))
    return Expression(f"{first} {operator} {second}", binding)


def _floor(quotient: Expression) -> Expression:
    """The quotient rounded down to a whole number, as ``//`` does in Python."""
    return Expression(f"FLOOR({quotient.text})", Binding.ATOM)


def _operand(value: Operand, least: Binding) -> str:
    """The SQL of an operand, in parentheses if it binds less tightly than ``least``."""
    operand = value if isinstance(value, Expression) else _constant(value)
    if operand.name is not None:
        raise WrongUse(
            f"{operand!r} is a column of the answer, and nothing is computed of it.",
            remedy="Give the name last, around the whole.",
        )
    if operand.binding >= least:
        return operand.text
    return f"({operand.text})"


def _constant(value: Literal) -> Expression:
    """A constant as SQL writes it, without rounding."""
    if isinstance(value, bool):
        return Expression("TRUE" if value else "FALSE", Binding.ATOM)
    if isinstance(value, str):
        return Expression("'" + value.replace("'", "''") + "'", Binding.ATOM)
    if isinstance(value, datetime.datetime):
        return Expression(f"TIMESTAMP '{value.isoformat(' ')}'", Binding.ATOM)
    if isinstance(value, datetime.date):
        return Expression(f"DATE '{value.isoformat()}'", Binding.ATOM)
    if not isinstance(value, int | float | Decimal | Fraction):
        raise WrongUse(
            f"A constant of type {type(value).__name__}.",
            allowed="a number, a text, a date, a datetime, True or False",
        )
    number = to_fraction("A constant", value)
    written = decimal_text(number).replace("/", " / ")
    if "/" in written:
        return Expression(written, Binding.PRODUCT)
    return Expression(written, Binding.SIGN if number < 0 else Binding.ATOM)
