# SPDX-License-Identifier: Apache-2.0
"""The dataframe front: the same questions without SQL text, the same plans.

``session.table("people")`` begins one; ``where``, ``join``, ``group_by`` and ``agg`` add to
it; ``query`` and ``preview`` ask it. Nothing runs before.
"""

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from sfumato.errors import WrongUse
from sfumato.exact.rational import Number, decimal_text, to_fraction
from sfumato.query.request import Wish

if TYPE_CHECKING:
    from sfumato.query.answer import Answer
    from sfumato.query.preview import Preview

Literal: TypeAlias = bool | int | float | Decimal | Fraction | str | datetime.date
Operand: TypeAlias = "Expression | Literal"


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A column, a constant, or what is computed of them; compare, calculate, aggregate.

    >>> (col("age") >= 65) & col("sex").isin("F", "M")
    age >= 65 AND sex IN ('F', 'M')
    >>> col("income").mean().alias("m")
    AVG(income) AS m
    """

    node: exp.Expr

    def __eq__(self, other: Operand) -> "Expression":  # type: ignore[override]
        return self._with(exp.EQ, other)

    def __ne__(self, other: Operand) -> "Expression":  # type: ignore[override]
        return self._with(exp.NEQ, other)

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: Operand) -> "Expression":
        return self._with(exp.LT, other)

    def __le__(self, other: Operand) -> "Expression":
        return self._with(exp.LTE, other)

    def __gt__(self, other: Operand) -> "Expression":
        return self._with(exp.GT, other)

    def __ge__(self, other: Operand) -> "Expression":
        return self._with(exp.GTE, other)

    def __add__(self, other: Operand) -> "Expression":
        return self._with(exp.Add, other)

    def __sub__(self, other: Operand) -> "Expression":
        return self._with(exp.Sub, other)

    def __mul__(self, other: Operand) -> "Expression":
        return self._with(exp.Mul, other)

    def __truediv__(self, other: Operand) -> "Expression":
        return self._with(exp.Div, other)

    def __neg__(self) -> "Expression":
        return Expression(exp.Neg(this=_paren(self.node, exp.Mul, right=True)))

    def __and__(self, other: "Expression") -> "Expression":
        return self._with(exp.And, other)

    def __or__(self, other: "Expression") -> "Expression":
        return self._with(exp.Or, other)

    def __invert__(self) -> "Expression":
        return Expression(exp.Not(this=_paren(self.node, exp.Not)))

    def __bool__(self) -> bool:
        raise WrongUse("An expression is not true or false by itself.", remedy="Write & | ~ instead of and, or, not.")

    def isin(self, *values: Literal) -> "Expression":
        """Whether it is one of the values."""
        return Expression(
            exp.In(this=_paren(self.node, exp.In, right=True), expressions=[_node(value) for value in values])
        )

    def between(self, low: Literal, high: Literal) -> "Expression":
        """Whether it is from ``low`` to ``high``, both included."""
        return Expression(
            exp.Between(this=_paren(self.node, exp.Between, right=True), low=_node(low), high=_node(high))
        )

    def is_null(self) -> "Expression":
        """Whether it is missing."""
        return Expression(exp.Is(this=_paren(self.node, exp.Is, right=True), expression=exp.Null()))

    def like(self, pattern: str) -> "Expression":
        """Whether a text has the form of a pattern: % any text, _ one character."""
        return Expression(
            exp.Like(this=_paren(self.node, exp.Like, right=True), expression=exp.Literal.string(pattern))
        )

    def alias(self, name: str) -> "Expression":
        """The same under a name."""
        if not isinstance(name, str):
            raise WrongUse(f"alias({name!r}).", allowed="a name for the column")
        return Expression(exp.alias_(self.node, name, quoted=not name.isidentifier()))

    def count(self) -> "Expression":
        """How many rows have a value."""
        return Expression(exp.Count(this=self.node, big_int=True))

    def n_unique(self) -> "Expression":
        """How many different values there are; of the unit: how many units."""
        return Expression(exp.Count(this=exp.Distinct(expressions=[self.node]), big_int=True))

    def sum(self) -> "Expression":
        """The sum of its values."""
        return Expression(exp.Sum(this=self.node))

    def mean(self) -> "Expression":
        """The mean of its values."""
        return Expression(exp.Avg(this=self.node))

    def var(self) -> "Expression":
        """The variance of its values, over n - 1."""
        return Expression(exp.Variance(this=self.node))

    def std(self) -> "Expression":
        """The root of ``var``."""
        return Expression(exp.StddevSamp(this=self.node))

    def quantile(self, level: Number) -> "Expression":
        """The value below which a share ``level`` of the rows lies."""
        number = exp.Literal.number(decimal_text(to_fraction("level", level)))
        return Expression(exp.Quantile(this=self.node, quantile=number))

    def median(self) -> "Expression":
        """The middle value."""
        return Expression(exp.Median(this=self.node))

    def min(self) -> "Expression":
        """A quantile close to the least value (the least itself is somebody's)."""
        return Expression(exp.Min(this=self.node))

    def max(self) -> "Expression":
        """A quantile close to the greatest value (the greatest itself is somebody's)."""
        return Expression(exp.Max(this=self.node))

    def _with(self, kind: type[exp.Expr], other: Operand) -> "Expression":
        right = _paren(_node(other), kind, right=kind not in (exp.And, exp.Or))
        left = _paren(self.node, kind, right=issubclass(kind, exp.Predicate))
        return Expression(kind(this=left, expression=right))

    def __repr__(self) -> str:
        return self.node.sql(dialect="duckdb")


def col(name: str) -> Expression:
    """A declared column, ``"age"`` or ``"people.age"``."""
    if not isinstance(name, str) or not name:
        raise WrongUse(f"col({name!r}).", allowed="the name of a declared column")
    table, _, column = name.rpartition(".")
    return Expression(exp.Column(this=exp.to_identifier(column), table=exp.to_identifier(table) if table else None))


def count() -> Expression:
    """How many rows there are."""
    return Expression(exp.Count(this=exp.Star(), big_int=True))


@dataclass(frozen=True, slots=True)
class Frame:
    """A question in the making. Each step gives a new one.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> people = sf.Table(pa.table({"age": [30, 40]}), columns={"age": sf.Integer(0, 120)})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(1),
    ...                 ledger=folder.name + "/ledger.db") as session:
    ...     frame = session.table("people").where(sf.col("age") >= 35).agg(n=sf.count())
    ...     answer = frame.query(epsilon=0.5)
    >>> frame.sql
    'SELECT COUNT(*) AS n FROM people WHERE age >= 35'
    >>> folder.cleanup()
    """

    select: exp.Select
    ask: "Callable[..., Answer]"
    foresee: "Callable[..., Preview]"

    def where(self, *tests: Expression) -> "Frame":
        """The rows that pass every test."""
        return self._with(self.select.where(*(_expression(test).node for test in tests)))

    def join(self, table: str, *, on: str, how: str = "inner") -> "Frame":
        """Each row with the row of another table that agrees in the column ``on``: the unit, or a public key."""
        if how not in ("inner", "left"):
            raise WrongUse(f"how={how!r}.", allowed='"inner" or "left"')
        return self._with(self.select.join(_table(table), using=on, join_type=how))

    def group_by(self, *keys: str | Expression) -> "Frame":
        """A row of the answer for each value of the keys."""
        nodes = [_expression(col(key) if isinstance(key, str) else key).node for key in keys]
        plain = [node.this if isinstance(node, exp.Alias) else node for node in nodes]
        return self._with(self.select.select(*nodes).group_by(*plain))

    def agg(self, *aggregates: Expression, **named: Expression) -> "Frame":
        """The columns of the answer."""
        columns = [*aggregates, *(_expression(each).alias(name) for name, each in named.items())]
        return self._with(self.select.select(*(_expression(each).node for each in columns)))

    @property
    def sql(self) -> str:
        """The same question as SQL."""
        return self.select.sql(dialect="duckdb")

    def query(self, **price: Wish) -> "Answer":
        """The private answer, at a price as of ``Session.query``."""
        return self.ask(self.select, **price)

    def preview(self, **price: Wish) -> "Preview":
        """Cost and expected error, free."""
        return self.foresee(self.select, **price)

    def _with(self, select: exp.Select) -> "Frame":
        return replace(self, select=select)


def frame(name: str, ask: "Callable[..., Answer]", foresee: "Callable[..., Preview]") -> Frame:
    """A question about a declared table."""
    return Frame(exp.Select().from_(_table(name)), ask, foresee)


def _expression(given: object) -> Expression:
    if not isinstance(given, Expression):
        raise WrongUse(f"{str(given)[:50]!r} is no expression.", allowed='sf.col("age") >= 65, sf.count()')
    return given


def _table(name: str) -> exp.Table:
    if not isinstance(name, str):
        raise WrongUse(f"A table {name!r}.", allowed="the name of a declared table")
    return exp.Table(this=exp.to_identifier(name))


# How tightly an operator binds; what binds less tightly inside it needs brackets.
_TIGHT: tuple[tuple[tuple[type[exp.Expr], ...], int], ...] = (
    ((exp.Or,), 1),
    ((exp.And,), 2),
    ((exp.Not,), 3),
    ((exp.Predicate,), 4),
    ((exp.Add, exp.Sub), 5),
    ((exp.Mul, exp.Div), 6),
)


def _tightness(node: exp.Expr | type[exp.Expr]) -> int:
    kind = node if isinstance(node, type) else type(node)
    return next((tight for kinds, tight in _TIGHT if issubclass(kind, kinds)), 7)


def _paren(node: exp.Expr, around: type[exp.Expr], *, right: bool = False) -> exp.Expr:
    """An operand in brackets, if it needs them."""
    loose = _tightness(node) < _tightness(around) + right
    return exp.Paren(this=node) if loose else node


def _node(value: Operand) -> exp.Expr:
    """A constant as SQL writes it, exactly."""
    if isinstance(value, Expression):
        return value.node
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return exp.Cast(this=exp.Literal.string(value.isoformat()), to=exp.DataType.build("date"))
    if isinstance(value, int | float | Decimal | Fraction):
        number = to_fraction("A constant", value)
        shown = exp.Literal.number(decimal_text(abs(number)))
        return exp.Neg(this=shown) if number < 0 else shown
    raise WrongUse(f"A constant of type {type(value).__name__}.", allowed="a number, a text, a date, True or False")
