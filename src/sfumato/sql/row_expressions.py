# SPDX-License-Identifier: Apache-2.0
"""Lowers row expressions to typed values: names, constants, tests, CASE; see ``functions``."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Protocol

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.exact.rational import two_digits
from sfumato.plan.scalar import (
    And,
    Case,
    Coalesce,
    Comparison,
    Constant,
    Extreme,
    IsNull,
    Not,
    Or,
    Scalar,
)
from sfumato.sql import arithmetic, compare, dates, texts, timestamps
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
    Instant,
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

# At most this much of an expression is shown in a line of bias.
_LONGEST_NAME = 60
COMPARISONS: Mapping[type[exp.Expr], Comparison] = {
    exp.EQ: Comparison.EQ,
    exp.NEQ: Comparison.NE,
    exp.LT: Comparison.LT,
    exp.LTE: Comparison.LE,
    exp.GT: Comparison.GT,
    exp.GTE: Comparison.GE,
}
# The nodes that are tests: comparisons, and what combines them.
_TESTS = (*COMPARISONS, exp.Is, exp.In, exp.Between, exp.Not, exp.And, exp.Or)


class Names(Protocol):
    """The interface that resolves columns of a row and collects notes about the answer."""

    def column(self, node: exp.Column) -> Typed:
        """Returns the value of a column; refuses an unknown one."""

    def note(self, words: str) -> None:
        """Adds a note to the answer."""

    def reads(self, person: Person) -> None:
        """Adds the unit's own column to the columns that the scan reads, for a test of it."""

    def answered(self, test: Scalar) -> None:
        """Records that a test contains the answer of a scalar sub-query."""

    def rounded(self, words: str) -> None:
        """Adds a line of bias to the answer: a test reads a rounded number."""


Functions = Mapping[type[exp.Expr], Callable[["Rows", exp.Expr], Typed]]


class Rows:
    """Translates the SQL expressions of one SELECT over the columns of a single row.

    ``done`` has the values of nodes translated before, by identity: per-unit aggregates, row
    numbers.
    """

    def __init__(
        self,
        names: Names,
        functions: Functions,
        done: Mapping[int, Typed] | None = None,
    ) -> None:
        self._names = names
        self._functions = functions
        self._done = done or {}

    def value(self, node: exp.Expr) -> Typed:
        """Returns the typed value of a SQL expression over the columns of a row."""
        done = self._done.get(id(node))
        if done is not None:
            return done
        typed = self._lower_node(node)
        require_small(typed)
        if isinstance(typed, Truth) and is_answered(node):
            self._names.answered(typed.test)
        return typed

    def test(self, node: exp.Expr) -> Scalar:
        """Returns a SQL expression that must be Boolean, as a condition.

        Raises:
            UnsupportedSql: it is not a Boolean.
        """
        match node:
            case exp.Paren():
                return self.test(node.this)
            case exp.Not():
                return Not(self.test(node.this))
            case exp.And():
                return And(tuple(self.test(operand) for operand in node.flatten()))
            case exp.Or():
                return Or(tuple(self.test(operand) for operand in node.flatten()))
        typed = self.value(node)
        if isinstance(typed, Truth):
            return typed.test
        shown = f"Column {node.name!r}" if isinstance(node, exp.Column) else "An expression"
        raise UnsupportedSql(
            f"{shown} alone is not a test.", remedy="Compare it: ... = 1, or IS NOT NULL."
        )

    def countable(self, node: exp.Expr) -> Typed:
        """Returns the value of a SQL expression for COUNT(expression), which counts where it is not
        NULL.

        A unit column of the other side of an outer join is NULL if no row was joined.
        """
        typed = self.value(node)
        if not isinstance(typed, Person):
            return typed
        is_known = node.is_(exp.null()).not_()
        return kept(number(1), self.test(is_known))

    def number(self, node: exp.Expr) -> Number:
        """Returns the value of an expression that must be a number; a Boolean is 1 or 0."""
        return as_number(self.value(node), node)

    def label(self, node: exp.Expr) -> Label:
        """Returns the value of an expression that must be a string with declared values."""
        return as_label(self.value(node), node)

    def comparable(self, left_node: exp.Expr, right_node: exp.Expr) -> tuple[Typed, Typed]:
        """Returns the typed values of two SQL expressions that are compared with each other.

        Raises:
            UnsupportedSql: a string is compared with the answer of a scalar sub-query. Whether the
                answer is a declared string would decide about the refusal.
        """
        left = self._read_operand(left_node)
        right = self._read_operand(right_node)
        compares_left = isinstance(left, Label) and is_answered(right_node)
        compares_right = isinstance(right, Label) and is_answered(left_node)
        if compares_left or compares_right:
            raise UnsupportedSql(
                "A text is compared with the answer of a sub-query, which is a number.",
                remedy="Compare a column declared as sf.Integer or sf.Real with it, "
                "or write the text.",
            )
        return left, right

    def _lower_node(self, node: exp.Expr) -> Typed:
        """Returns the value of an expression that is not lowered yet."""
        function = self._functions.get(type(node))
        if function is not None:
            return function(self, node)
        if isinstance(node, _TESTS):
            return Truth(self._lowered_test(node))
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
            case exp.AggFunc():
                raise refuse_node(node, NESTED_AGGREGATE)
            case exp.Case():
                return self._case(node)
            case exp.If():
                test = self.test(node.this)
                return self._choose_branch([test], [node.args["true"]], node.args.get("false"))
            case _:
                raise reject(node)

    def _lowered_test(self, node: exp.Expr) -> Scalar:
        """Returns a test that is not lowered yet."""
        match node:
            case exp.Is():
                return self._is(node)
            case exp.In():
                return self._in(node)
            case exp.Between():
                return self._between(node)
            case exp.Not() | exp.And() | exp.Or():
                return self.test(node)
            case _:
                left, right = self.comparable(node.this, node.expression)
                return self._compare(COMPARISONS[type(node)], left, right)

    def _between(self, node: exp.Between) -> Scalar:
        """Returns the test ``value BETWEEN low AND high``."""
        require_only(node, "this", "low", "high")
        value = self.value(node.this)
        low = self.value(node.args["low"])
        high = self.value(node.args["high"])
        is_above = self._compare(Comparison.GE, value, low)
        is_below = self._compare(Comparison.LE, value, high)
        return And((is_above, is_below))

    def _in(self, node: exp.In) -> Scalar:
        """Returns the test ``value IN (list)``."""
        if node.args.get("query"):
            raise refuse("IN (SELECT ...)", UNIT_TEST)
        require_only(node, "this", "expressions")
        tested = self._read_operand(node.this)
        values = [self.value(item) for item in node.expressions]
        for value in values:
            self.tell(tested, value)
        return compare.member(tested, values)

    def _compare(
        self,
        op: Comparison,
        left: Typed,
        right: Typed,
    ) -> Scalar:
        """Returns a comparison, and reports how far its operands are rounded."""
        self.tell(left, right)
        return compare.compare(op, left, right)

    def tell(self, left: Typed, right: Typed) -> None:
        """Adds a note on rounding to the answer if a comparison reads a number that is not
        precise.
        """
        size = compare.uncertain(left, right)
        if size:
            self._names.rounded(
                f"A test of a computed number decides it as rounded by up to {two_digits(size)}."
            )

    def tell_divisor(self, divisor: Typed, node: exp.Expr) -> None:
        """Adds a note on rounding to the answer if a divisor may have been rounded to zero."""
        size = compare.uncertain(divisor, number(0))
        if size:
            name = node.sql(dialect="duckdb")
            if len(name) > _LONGEST_NAME:
                name = f"{name[:_LONGEST_NAME]}..."
            self._names.rounded(
                f"The divisor {name} is rounded by up to {two_digits(size)}: "
                "a row where that makes it zero has no quotient."
            )

    def note(self, words: str) -> None:
        """Adds a sentence to the notes shown with the answer."""
        self._names.note(words)

    def _read_operand(self, node: exp.Expr) -> Typed:
        """Returns the value of an operand of a test; a unit column is read and noted."""
        typed = self.value(node)
        if isinstance(typed, Person):
            self._names.reads(typed)
            self._names.note(
                f"WHERE names a value of {typed.name}: the answer is about very few persons, "
                "so it is mostly noise."
            )
        return typed

    def _is(self, node: exp.Is) -> Scalar:
        """Returns the test IS NULL, IS TRUE or IS FALSE."""
        operand = self.value(node.this)
        if isinstance(node.expression, exp.Null):
            if isinstance(operand, Person) and operand.absent:
                self._names.reads(operand)
            return compare.is_null(operand)
        if isinstance(node.expression, exp.Boolean) and isinstance(operand, Truth):
            leaf = operand.test if operand.known_codes is None else operand.known_codes
            wanted = Truth(Constant(bool(node.expression.this)))
            test = compare.compare(Comparison.EQ, operand, wanted)
            return And((Not(IsNull(leaf)), test))
        raise reject(node)

    def _case(self, node: exp.Case) -> Typed:
        """Returns the value of CASE, with or without an operand."""
        require_only(node, "this", "ifs", "default")
        tests = [self._branch_test(node, branch.this) for branch in node.args["ifs"]]
        results = [branch.args["true"] for branch in node.args["ifs"]]
        return self._choose_branch(tests, results, node.args.get("default"))

    def _branch_test(self, node: exp.Case, test: exp.Expr) -> Scalar:
        """Returns the test of one branch of CASE."""
        if node.this is None:
            return self.test(test)
        left, right = self.comparable(node.this, test)
        return self._compare(Comparison.EQ, left, right)

    def _choose_branch(
        self,
        tests: Sequence[Scalar],
        results: Sequence[exp.Expr],
        default: exp.Expr | None,
    ) -> Typed:
        """Returns the value of the first branch whose test is TRUE, else the default."""
        values = [self.value(result) for result in results]
        values.append(Null() if default is None else self.value(default))
        wrap, codes = unified(values)
        branches = zip(tests, codes[:-1], strict=True)
        return wrap(Case(tuple(branches), codes[-1]))


def as_number(typed: Typed, node: exp.Expr) -> Number:
    """Returns a SQL value as a number, a Boolean as 1 or 0; refuses other values.

    Raises:
        UnsupportedSql: it is neither.
        MissingDeclaration: a string of a Text column.
    """
    if isinstance(typed, Truth):
        return Number(typed.codes, Fraction(1))
    if isinstance(typed, Words):
        raise texts.bounds_needed("A number", typed)
    if not isinstance(typed, Number):
        code_of(typed)
        raise UnsupportedSql(
            f"{_short_text(node)} where a number is needed.",
            remedy="Use a column declared as Integer or Real.",
        )
    return typed


def as_date(typed: Typed, node: exp.Expr) -> Day:
    """Returns a SQL value as a date: a date, a constant ISO string, or a timestamp's local date."""
    if isinstance(typed, Instant):
        return timestamps.local_day(typed)
    day = dates.as_day(typed)
    if day is None:
        raise UnsupportedSql(
            f"{_short_text(node)} where a date is needed.",
            remedy="Use a Date column, or DATE '...'.",
        )
    return day


def as_label(typed: Typed, node: exp.Expr) -> Label:
    """Returns a SQL value as a string with declared values; refuses other values."""
    if not isinstance(typed, Label):
        code_of(typed)
        raise UnsupportedSql(
            f"{_short_text(node)} where a text with declared values is needed.",
            remedy="Declare the column as sf.Category(...). A Text column knows =, IN, LIKE, ILIKE, "
            "LEFT, SUBSTRING, LOWER, UPPER, TRIM, COALESCE, NULLIF, CASE and CONTAINS.",
        )
    return typed


def unified(values: Sequence[Typed]) -> tuple[Callable[[Scalar], Typed], list[Scalar]]:
    """Returns the codes of the values of CASE or COALESCE in one common type, and a constructor.

    The constructor makes a value of this type from a chosen code; the code of a literal NULL is
    NULL.

    Raises:
        UnsupportedSql: values of different types.
    """
    present = [value for value in values if not isinstance(value, Null)]
    if not present:
        raise UnsupportedSql("A choice among nothing but NULL.", remedy="Leave it out.")
    wrap, codes = _one_type(present)
    remaining = iter(codes)
    aligned = [Constant(None) if isinstance(value, Null) else next(remaining) for value in values]
    return wrap, aligned


def _one_type(present: Sequence[Typed]) -> tuple[Callable[[Scalar], Typed], list[Scalar]]:
    """``unified`` for values of which none is a literal NULL."""
    numbers = [value for value in present if isinstance(value, Number)]
    if len(numbers) == len(present):
        return arithmetic.together(numbers)
    labels = [value for value in present if isinstance(value, Label)]
    if len(labels) == len(present):
        names = (name for label in labels for name in label.labels)
        every = tuple(dict.fromkeys(names))
        return lambda scalar: Label(scalar, every), [recoded(label, every) for label in labels]
    truths = [value for value in present if isinstance(value, Truth)]
    if len(truths) == len(present):
        return truth_of, [_truth_code(truth) for truth in truths]
    words = texts.words(present)
    if words is not None:
        return Words, words
    moments = timestamps.instants(present)
    if moments is not None:
        return timestamps.chosen(moments)
    days = [dates.as_day(value) for value in present]
    dated = [day.expression for day in days if day is not None]
    if len(dated) == len(present):
        return Day, dated
    for value in present:
        code_of(value)
    raise UnsupportedSql(
        "A choice among values of different kinds.",
        allowed="numbers, dates, timestamps, truths, texts with declared values, or those of a "
        "Text column and constants",
        remedy="Let every branch give the same kind.",
    )


def _truth_code(truth: Truth) -> Scalar:
    """Returns the code of a Boolean, folded where it is a constant."""
    constant = known(truth)
    if isinstance(constant, bool):
        return Constant(int(constant))
    return truth.codes


def coalesced(values: Sequence[Typed]) -> Typed:
    """Returns COALESCE: the first value that is not NULL."""
    wrap, codes = unified(values)
    return wrap(Coalesce(tuple(codes)))


def null_where_equal(value: Typed, other: Typed) -> Typed:
    """Returns NULLIF: ``value``, or NULL where it equals ``other``."""
    wrap, codes = unified([value])
    is_equal = compare.compare(Comparison.EQ, value, other)
    return wrap(Case(((is_equal, Constant(None)),), codes[0]))


def extreme(values: Sequence[Typed], *, greatest: bool) -> Typed:
    """Returns LEAST or GREATEST of numbers or dates; NULL where one of them is NULL."""
    moments = timestamps.instants(values)
    if moments is not None:
        wrap, codes = timestamps.chosen(moments)
        return wrap(Extreme(greatest, tuple(codes)))
    days = [dates.as_day(value) for value in values]
    dated = [day.expression for day in days if day is not None]
    if len(dated) == len(values):
        return Day(Extreme(greatest, tuple(dated)))
    numbers = [value for value in values if isinstance(value, Number)]
    if len(numbers) < len(values):
        raise UnsupportedSql(
            "LEAST or GREATEST of something else than numbers or dates.",
            remedy="LEAST(column, 100)",
        )
    return arithmetic.extreme(numbers, greatest=greatest)


def _constant(node: exp.Expr) -> Typed:
    """Returns the value of a literal."""
    value = literal(node)
    if isinstance(value, bool):
        return Truth(Constant(value))
    if isinstance(value, str):
        return text(value)
    return number(value or 0)


def _short_text(node: exp.Expr) -> str:
    """Returns the first 60 characters of an expression, for messages."""
    return f"{node.sql(dialect='duckdb')[:60]}"


def kept(operand: Typed, test: Scalar | None) -> Typed:
    """Returns a SQL value that is NULL unless ``test`` is TRUE (FILTER); without a test, the
    value.
    """
    if test is None:
        return operand
    wrap, codes = unified([operand])
    return wrap(Case(((test, codes[0]),), Constant(None)))


def counted(operand: Typed, test: Scalar | None) -> Typed:
    """Returns the value that COUNT with FILTER counts: NULL unless ``test`` holds and it is not
    NULL.
    """
    if test is None:
        return operand
    is_known = Not(compare.is_null(operand))
    return kept(number(1), And((test, is_known)))
