# SPDX-License-Identifier: Apache-2.0
"""Expressions of a row: names, constants, tests, CASE; the functions are in ``functions``."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Protocol

from sqlglot import exp

from sfumato.errors import MissingDeclaration, UnsupportedSql
from sfumato.exact.rational import two_digits
from sfumato.plan.scalar import (
    And,
    Case,
    Coalesce,
    Comparison,
    Constant,
    Extreme,
    Field,
    IsNull,
    Not,
    Or,
    Scalar,
)
from sfumato.sql import arithmetic, compare, dates
from sfumato.sql.literal import answered, is_answered, literal
from sfumato.sql.reject import (
    NESTED_AGGREGATE,
    UNIT_TEST,
    refuse,
    refuse_node,
    reject,
    require_only,
)
from sfumato.sql.typed import (
    Day,
    Label,
    Null,
    Number,
    Person,
    Truth,
    Typed,
    Words,
    code_of,
    known,
    number,
    recoded,
    require_small,
    text,
    truth_of,
)

# How much of an expression a line of bias shows.
_LONGEST_NAME = 60
COMPARISONS: Mapping[type[exp.Expr], Comparison] = {
    exp.EQ: Comparison.EQ,
    exp.NEQ: Comparison.NE,
    exp.LT: Comparison.LT,
    exp.LTE: Comparison.LE,
    exp.GT: Comparison.GT,
    exp.GTE: Comparison.GE,
}


class Names(Protocol):
    """What the columns of a row are called."""

    def column(self, node: exp.Column) -> Typed:
        """What a name means; refuses what it does not."""

    def note(self, words: str) -> None:
        """Tells the reader of the answer something."""

    def reads(self, person: Person) -> None:
        """Lets a test see the unit's own column."""

    def answered(self, test: Scalar) -> None:
        """Notes that the answer of a sub-query stands in a test."""

    def rounded(self, words: str) -> None:
        """Tells the reader of the answer that a test is of a rounded number."""


Functions = Mapping[type[exp.Expr], Callable[["Rows", exp.Expr], Typed]]


class Rows:
    """Lowers expressions of the rows of a scope.

    ``done``: nodes that something else has lowered (an aggregate of one unit's rows, a rank), by identity.
    """

    def __init__(
        self, names: Names, functions: Functions, done: Mapping[int, Typed] | None = None
    ) -> None:
        self._names = names
        self._functions = functions
        self._done = done or {}

    def value(self, node: exp.Expr) -> Typed:
        """What an expression is worth."""
        found = self._done.get(id(node))
        if found is not None:
            return found
        typed = self._lowered(node)
        require_small(typed)
        if isinstance(typed, Truth) and is_answered(node):
            self._names.answered(typed.test)
        return typed

    def test(self, node: exp.Expr) -> Scalar:
        """The test that an expression is."""
        match node:
            case exp.Paren():
                return self.test(node.this)
            case exp.Not():
                return Not(self.test(node.this))
            case exp.And():
                return And(tuple(self.test(each) for each in node.flatten()))
            case exp.Or():
                return Or(tuple(self.test(each) for each in node.flatten()))
        typed = self.value(node)
        if isinstance(typed, Truth):
            return typed.test
        shown = f"Column {node.name!r}" if isinstance(node, exp.Column) else "An expression"
        raise UnsupportedSql(
            f"{shown} alone is not a test.", remedy="Compare it: ... = 1, or IS NOT NULL."
        )

    def countable(self, node: exp.Expr) -> Typed:
        """What COUNT(expression) counts; of the unit of an outer join's other side, that there is a row of it."""
        typed = self.value(node)
        if isinstance(typed, Person):
            return kept(number(1), self.test(node.is_(exp.null()).not_()))
        return typed

    def number(self, node: exp.Expr) -> Number:
        """An expression that must be a number; a truth counts as 1 or 0."""
        return as_number(self.value(node), node)

    def day(self, node: exp.Expr) -> Day:
        """An expression that must be a date."""
        return as_date(self.value(node), node)

    def label(self, node: exp.Expr) -> Label:
        """An expression that must be one of declared texts."""
        return as_label(self.value(node), node)

    def comparable(self, one: exp.Expr, other: exp.Expr) -> tuple[Typed, Typed]:
        """Two values that are to be compared; whether they can be must not depend on an answer."""
        left, right = self._tested(one), self._tested(other)
        if (isinstance(left, Label) and is_answered(other)) or (
            isinstance(right, Label) and is_answered(one)
        ):
            raise UnsupportedSql(
                "A text is compared with the answer of a sub-query, which is a number.",
                remedy="Compare a column declared as sf.Integer or sf.Real with it, or write the text.",
            )
        return left, right

    def _lowered(self, node: exp.Expr) -> Typed:
        match node:
            case exp.Paren():
                return self.value(node.this)
            case exp.Column():
                return self._names.column(node)
            case exp.Null():
                return Null()
            case exp.Literal() | exp.Boolean():
                return _constant(node)
            case exp.Subquery() if (answer := answered(node)) is not None:
                return self.value(answer)
            case exp.Not() | exp.And() | exp.Or():
                return Truth(self.test(node))
            case exp.Is():
                return Truth(self._is(node))
            case exp.In() | exp.Between():
                return Truth(self._within(node))
            case exp.AggFunc():
                raise refuse_node(node, NESTED_AGGREGATE)
            case exp.Case():
                return self._case(node)
            case exp.If():
                return self._choice([(node.this, node.args["true"])], node.args.get("false"))
            case _ if type(node) in COMPARISONS:
                return Truth(
                    self._compared(
                        COMPARISONS[type(node)], *self.comparable(node.this, node.expression)
                    )
                )
            case _ if type(node) in self._functions:
                return self._functions[type(node)](self, node)
            case _:
                raise reject(node)

    def _within(self, node: exp.In | exp.Between) -> Scalar:
        """IN a list of values, or BETWEEN two."""
        if isinstance(node, exp.Between):
            require_only(node, "this", "low", "high")
            value, low, high = (self.value(node.args[each]) for each in ("this", "low", "high"))
            return And(
                (
                    self._compared(Comparison.GE, value, low),
                    self._compared(Comparison.LE, value, high),
                )
            )
        if node.args.get("query"):
            raise refuse("IN (SELECT ...)", UNIT_TEST)
        require_only(node, "this", "expressions")
        tested, values = self._tested(node.this), [self.value(each) for each in node.expressions]
        for each in values:
            self.tell(tested, each)
        return compare.member(tested, values)

    def _compared(self, op: Comparison, left: Typed, right: Typed) -> Scalar:
        self.tell(left, right)
        return compare.compare(op, left, right)

    def tell(self, left: Typed, right: Typed) -> None:
        """States by how much the numbers of a test are rounded, where that is much."""
        size = compare.uncertain(left, right)
        if size:
            self._names.rounded(
                f"A test of a computed number decides it as rounded by up to {two_digits(size)}."
            )

    def tell_divisor(self, divisor: Typed, node: exp.Expr) -> None:
        """States by how much a divisor is rounded, where that is much: it may become zero."""
        size = compare.uncertain(divisor, number(0))
        if size:
            name = node.sql(dialect="duckdb")
            shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
            self._names.rounded(
                f"The divisor {shown} is rounded by up to {two_digits(size)}: a row where that makes it zero has no quotient."
            )

    def _tested(self, node: exp.Expr) -> Typed:
        typed = self.value(node)
        if isinstance(typed, Person):
            self._names.reads(typed)
            self._names.note(
                f"WHERE names a value of {typed.name}: the answer is about very few persons, so it is mostly noise."
            )
        return typed

    def _is(self, node: exp.Is) -> Scalar:
        operand = self.value(node.this)
        if isinstance(node.expression, exp.Null):
            if isinstance(operand, Person) and operand.absent:
                self._names.reads(operand)
            return compare.is_null(operand)
        if isinstance(node.expression, exp.Boolean) and isinstance(operand, Truth):
            leaf = operand.test if operand.known_codes is None else operand.known_codes
            test = compare.compare(
                Comparison.EQ, operand, Truth(Constant(bool(node.expression.this)))
            )
            return And((Not(IsNull(leaf)), test))
        raise reject(node)

    def _case(self, node: exp.Case) -> Typed:
        require_only(node, "this", "ifs", "default")
        branches = [(each.this, each.args["true"]) for each in node.args["ifs"]]
        if node.this is None:
            return self._choice(branches, node.args.get("default"))
        tests = [
            self._compared(Comparison.EQ, *self.comparable(node.this, test)) for test, _ in branches
        ]
        return self._chosen(tests, [result for _, result in branches], node.args.get("default"))

    def _choice(
        self, branches: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None
    ) -> Typed:
        return self._chosen(
            [self.test(test) for test, _ in branches], [result for _, result in branches], default
        )

    def _chosen(
        self, tests: Sequence[Scalar], results: Sequence[exp.Expr], default: exp.Expr | None
    ) -> Typed:
        values = [self.value(each) for each in results] + [
            Null() if default is None else self.value(default)
        ]
        wrap, codes = unified(values)
        return wrap(Case(tuple(zip(tests, codes[:-1], strict=True)), codes[-1]))


def as_number(typed: Typed, node: exp.Expr) -> Number:
    """A value that must be a number; a truth counts as 1 or 0."""
    if isinstance(typed, Truth):
        return Number(typed.codes, Fraction(1))
    if isinstance(typed, Words):
        raise bounds_needed("A number", typed)
    if not isinstance(typed, Number):
        code_of(typed)
        raise UnsupportedSql(
            f"{_shown(node)} where a number is needed.",
            remedy="Use a column declared as Integer or Real.",
        )
    return typed


def bounds_needed(what: str, typed: Words) -> MissingDeclaration:
    """The refusal of a Text column where its bounds are needed."""
    column = typed.expression.column if isinstance(typed.expression, Field) else None
    name = "column" if column is None else column.name.rpartition(".")[2]
    return MissingDeclaration(
        f"{what} needs declared bounds, and {name!r} is declared as {'sf.Text()' if column is None else repr(column.type)}.",
        allowed="sf.Integer(lower, upper) or sf.Real(lower, upper)",
        remedy=f"Declare columns={{{name!r}: sf.Real(lower, upper)}} with bounds that are public.",
    )


def as_date(typed: Typed, node: exp.Expr) -> Day:
    """A value that must be a date."""
    found = dates.as_day(typed)
    if found is None:
        raise UnsupportedSql(
            f"{_shown(node)} where a date is needed.", remedy="Use a Date column, or DATE '...'."
        )
    return found


def as_label(typed: Typed, node: exp.Expr) -> Label:
    """A value that must be one of declared texts."""
    if not isinstance(typed, Label):
        code_of(typed)
        raise UnsupportedSql(
            f"{_shown(node)} where a text with declared values is needed.",
            remedy="Declare the column as sf.Category(...). A Text column knows =, IN and LIKE.",
        )
    return typed


def unified(values: Sequence[Typed]) -> tuple[Callable[[Scalar], Typed], list[Scalar]]:
    """Values of one kind as codes of one meaning, and what a choice among them is."""
    present = [each for each in values if not isinstance(each, Null)]
    if not present:
        raise UnsupportedSql("A choice among nothing but NULL.", remedy="Leave it out.")
    if any(isinstance(each, Day) for each in present):
        days = [dates.as_day(each) for each in present]
        present = [each for each in days if each is not None] if None not in days else present
    wrap, codes = _one_kind(present)
    left = iter(codes)
    return wrap, [Constant(None) if isinstance(each, Null) else next(left) for each in values]


def _one_kind(present: Sequence[Typed]) -> tuple[Callable[[Scalar], Typed], list[Scalar]]:
    numbers = [each for each in present if isinstance(each, Number)]
    labels = [each for each in present if isinstance(each, Label)]
    if len(numbers) == len(present):
        return arithmetic.together(numbers)
    if len(labels) == len(present):
        every = tuple(dict.fromkeys(label for each in labels for label in each.labels))
        return lambda scalar: Label(scalar, every), [recoded(each, every) for each in labels]
    for kind, wrap in ((Day, Day), (Truth, truth_of)):
        if all(isinstance(each, kind) for each in present):
            return wrap, [
                _truth_code(each) if isinstance(each, Truth) else code_of(each) for each in present
            ]
    for each in present:
        code_of(each)
    raise UnsupportedSql(
        "A choice among values of different kinds, or of a Text column.",
        allowed="numbers, dates, truths, or texts with declared values",
        remedy="Let every branch give the same kind; declare the column as sf.Category(...).",
    )


def _truth_code(truth: Truth) -> Scalar:
    constant = known(truth)
    return Constant(int(constant)) if isinstance(constant, bool) else truth.codes


def coalesced(values: Sequence[Typed]) -> Typed:
    """The first value that is not NULL."""
    wrap, codes = unified(values)
    return wrap(Coalesce(tuple(codes)))


def null_where_equal(one: Typed, other: Typed) -> Typed:
    """NULLIF."""
    wrap, codes = unified([one])
    return wrap(Case(((compare.compare(Comparison.EQ, one, other), Constant(None)),), codes[0]))


def extreme(values: Sequence[Typed], *, greatest: bool) -> Typed:
    """LEAST, GREATEST; NULL where one is NULL."""
    days = [dates.as_day(each) for each in values]
    found = [each.expression for each in days if each is not None]
    if len(found) == len(values):
        return Day(Extreme(greatest, tuple(found)))
    numbers = [each for each in values if isinstance(each, Number)]
    if len(numbers) < len(values):
        raise UnsupportedSql(
            "LEAST or GREATEST of something else than numbers or dates.",
            remedy="LEAST(column, 100)",
        )
    return arithmetic.extreme(numbers, greatest=greatest)


def _constant(node: exp.Expr) -> Typed:
    value = literal(node)
    if isinstance(value, bool):
        return Truth(Constant(value))
    return text(value) if isinstance(value, str) else number(value or 0)


def _shown(node: exp.Expr) -> str:
    return f"{node.sql(dialect='duckdb')[:60]}"


def kept(operand: Typed, test: Scalar | None) -> Typed:
    """The value where a test is TRUE, else NULL; without a test the value itself."""
    if test is None:
        return operand
    wrap, codes = unified([operand])
    return wrap(Case(((test, codes[0]),), Constant(None)))


def counted(operand: Typed, test: Scalar | None) -> Typed:
    """What is not NULL where a value is not and a test is TRUE; for COUNT."""
    if test is None:
        return operand
    return kept(number(1), And((test, Not(compare.is_null(operand)))))
