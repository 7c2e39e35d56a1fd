# SPDX-License-Identifier: Apache-2.0
"""A text to a question: what is computed of the rows, and what is made of the released numbers."""

import datetime
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from sfumato.errors import UnsupportedSql, unknown
from sfumato.metadata.column import Date
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import Quantiles
from sfumato.plan.output import Output
from sfumato.plan.question import Question
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    Coalesce,
    Compare,
    Constant,
    DatePart,
    DateTrunc,
    Estimate,
    Extreme,
    Field,
    FloorDivide,
    IsNull,
    Key,
    Like,
    Lookup,
    Member,
    Not,
    Operation,
    Or,
    Quotient,
    Scalar,
    children,
)
from sfumato.plan.stages import Raw
from sfumato.sql.aggregates import Aggregates, shared
from sfumato.sql.bind import (
    Answered,
    Parameters,
    Scalars,
    with_parameters,
    with_scalars,
    with_today,
)
from sfumato.sql.calls import calls
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.group import grouped, require_linear
from sfumato.sql.literal import literal
from sfumato.sql.names import Context
from sfumato.sql.output import Outputs
from sfumato.sql.parse import built, parse
from sfumato.sql.reject import RAW_ROWS, refuse, reject, require_few, require_only
from sfumato.sql.relations import Relations
from sfumato.sql.row_expressions import Rows
from sfumato.sql.tables import From, require_private, with_columns

_CLAUSES = (
    "expressions",
    "from_",
    "joins",
    "where",
    "group",
    "having",
    "order",
    "limit",
    "offset",
    "with_",
)


def understand(
    statement: str | exp.Select,
    dataset: Dataset,
    *,
    parameters: Parameters | None = None,
    today: datetime.date | None = None,
    scalars: Scalars | Mapping[str, Answered] | None = None,
) -> Question:
    """The question that a statement asks of a dataset.

    Args:
        statement: a text, or the syntax tree that a front of another form has built.
        dataset: the declarations; nothing else decides what is answered.
        parameters: values for ``$1`` and ``?`` (a sequence), ``:name`` and ``$name`` (a mapping).
        today: what CURRENT_DATE is; by default the day of the call.
        scalars: answers to the sub-queries that stand for one number; see ``scalar_queries``.

    Guarantees:
        what is not allowed is refused

    Raises:
        SqlSyntaxError, UnsupportedSql, UnknownName, MissingDeclaration; WrongUse for parameters.

    >>> from sfumato.metadata.column import Integer
    >>> from sfumato.metadata.table import Table
    >>> data = Dataset("study", {"people": Table("people.csv", columns={"age": Integer(0, 120)})})
    >>> understand("SELECT AVG(age) FROM people WHERE age > $1", data, parameters=[17]).output.items[0].name
    'AVG(age)'
    """
    question = question_of(
        tree(statement), dataset, parameters=parameters, today=today, scalars=scalars
    )
    return replace(question, text=text_of(statement))


def tree(statement: str | exp.Select) -> exp.Select:
    """The syntax tree of a statement, which nobody else holds."""
    return built(statement) if isinstance(statement, exp.Expr) else parse(statement)


def text_of(statement: str | exp.Select) -> str:
    """The text of a statement that is understood: another tree may have none."""
    return statement if isinstance(statement, str) else statement.sql(dialect="duckdb")


def question_of(
    select: exp.Select,
    dataset: Dataset,
    *,
    parameters: Parameters | None = None,
    today: datetime.date | None = None,
    scalars: Scalars | Mapping[str, Answered] | None = None,
) -> Question:
    """``understand`` of what ``tree`` gave, which is used up; without its text."""
    select = with_parameters(select, parameters)
    select, notes = with_today(select, today or datetime.datetime.now().astimezone().date())
    return _lowered(with_scalars(select, scalars), dataset, notes)


def _lowered(select: exp.Select, dataset: Dataset, notes: tuple[str, ...]) -> Question:
    """The question of a statement in which nothing is left open."""
    require_only(select, *_CLAUSES)
    context = Context(dataset, list(notes))
    found = Relations(context).rows(select, {})
    if not calls(_parts(select)):
        raise _raw_rows(select)
    raw, output = _asked(context, require_private(found), select)
    return Question("", found.table, raw, output, tuple(context.notes), tuple(context.bias))


def stand_in(question: Question) -> Fraction | datetime.date:
    """A value of the kind that a question of one number gives, from its declarations: 1, or the first of its dates.

    Raises:
        UnsupportedSql: it gives a test or a text, which is no number.

    >>> from sfumato.metadata.column import Integer
    >>> from sfumato.metadata.table import Table
    >>> data = Dataset("study", {"people": Table("people.csv", columns={"age": Integer(0, 120)})})
    >>> stand_in(understand("SELECT AVG(age) FROM people", data))
    Fraction(1, 1)
    """
    expression = question.output.items[0].expression
    part = question.raw.aggregates[expression.index] if isinstance(expression, Estimate) else None
    if isinstance(part, Quantiles) and isinstance(part.value.type, Date):
        return part.value.type.decode(part.value.type.lower_code)
    if not _is_number(expression):
        raise UnsupportedSql(
            "A sub-query in place of a number that gives a test or a text.",
            remedy="Let it give one number, (SELECT AVG(x) FROM t), and compare outside.",
        )
    return Fraction(1)


def may_be_null(expression: Scalar) -> bool:
    """Whether an expression over released numbers can be NULL.

    >>> may_be_null(Estimate(0)), may_be_null(Constant(None))
    (False, True)
    """
    inner = [may_be_null(each) for each in children(expression)]
    match expression:
        case Constant(value):
            return value is None
        case Arithmetic(Operation.DIVIDE, _, right):
            return any(inner) or not (isinstance(right, Constant) and right.value)
        case Coalesce():
            return all(inner)
        case Case(branches, otherwise):
            return any(
                may_be_null(each) for each in (otherwise, *(result for _, result in branches))
            )
        case Quotient() | Lookup():
            return True
        case _:
            return any(inner)


def _is_number(expression: Scalar) -> bool:
    """Whether an expression over released numbers is one itself, or NULL."""
    match expression:
        case Compare() | Member() | Like() | IsNull() | Not() | And() | Or():
            return False
        case Constant(value):
            return value is None or isinstance(value, Fraction)
        case Case(branches, otherwise):
            return all(
                _is_number(each) for each in (otherwise, *(result for _, result in branches))
            )
        case (
            Coalesce()
            | Arithmetic()
            | Extreme()
            | Quotient()
            | FloorDivide()
            | Lookup()
            | DatePart()
            | DateTrunc()
        ):
            return True
        case Field() | Key() | Estimate():
            return True
        case _:
            raise unknown(expression)


def _asked(context: Context, found: From, select: exp.Select) -> tuple[Raw, Output]:
    """The aggregates by their keys, and what is made of them."""
    scope = found.scope(context)
    rows = Rows(scope, FUNCTIONS)
    group = grouped(select, scope, rows, found.relation)
    lowered = Aggregates(scope, rows, found.relation)
    asked = calls(_parts(select))
    require_few(len(asked), "aggregates")
    asks = {id(node): lowered.ask(node) for node in asked}
    aggregates, estimates = shared(asks.values())
    require_linear(group, aggregates)
    outputs = Outputs(scope, rows, group, asks, estimates)
    items = outputs.items(select.expressions)
    having = select.args.get("having")
    output = Output(
        items,
        None if having is None else outputs.test(having.this),
        outputs.orders(select.args.get("order"), items),
        _count(select, "limit"),
        _count(select, "offset") or 0,
        group.sets,
    )
    return Raw(with_columns(found.relation, context.units_read), group.keys, aggregates), output


def _raw_rows(select: exp.Select) -> UnsupportedSql:
    """The refusal of a SELECT that aggregates nothing, by what it shows."""
    told = (exp.Window, exp.Anonymous, exp.Distinct, exp.Star)
    distinct = select.args.get("distinct")
    found = (
        node
        for kind in told
        for part in (distinct, *select.expressions)
        if part
        for node in part.find_all(kind)
    )
    node = next(found, None)
    return refuse("A SELECT without an aggregate", RAW_ROWS) if node is None else reject(node)


def _parts(select: exp.Select) -> list[exp.Expr | None]:
    """Where aggregates may stand."""
    return [*select.expressions, select.args.get("having"), select.args.get("order")]


def _count(select: exp.Select, name: str) -> int | None:
    clause = select.args.get(name)
    if clause is None:
        return None
    require_only(clause, "expression")
    value = literal(clause.expression)
    if not isinstance(value, Fraction) or value.denominator != 1 or not 0 <= value <= 10**9:
        raise UnsupportedSql(
            f"{name.upper()} that is not a whole number.", remedy=f"{name.upper()} 10"
        )
    return int(value)
