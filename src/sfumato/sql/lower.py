# SPDX-License-Identifier: Apache-2.0
"""Lowers a statement to a question: a plan of the rows, and the output of released numbers.

This is the entry of the SQL compiler; ``Session`` and the planner call ``understand``.
"""

import datetime
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from sfumato.errors import UnsupportedSql, unknown
from sfumato.metadata.column import Date
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import Aggregate, CountUnits, Quantiles
from sfumato.plan.output import Item, Output
from sfumato.plan.question import Question
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    ChangeCase,
    Coalesce,
    Compare,
    Constant,
    DatePart,
    DateTrunc,
    Estimate,
    Extreme,
    Field,
    FloorDivide,
    Grouping,
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
    Substring,
    Trim,
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
from sfumato.sql.clip import NO_TWINS, Clipping, Occasion, paired
from sfumato.sql.declared_list import is_distinct
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.group import Group, grouped, require_linear
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
    """Returns the question that a statement asks of a dataset.

    Args:
        statement: SQL text, or the syntax tree of a SELECT, which is copied.
        dataset: the declarations. Nothing else decides what is answered: no data is read.
        parameters: values for ``$1`` and ``?`` (a sequence), ``:name`` and ``$name`` (a mapping).
        today: the value of CURRENT_DATE; by default the date of the call.
        scalars: the answers of the scalar sub-queries; see ``scalar_queries``.

    Guarantees:
        what is not allowed is refused

    Raises:
        SqlSyntaxError: the statement is not SQL.
        UnsupportedSql: it has something that is not allowed; the message says what to write.
        UnknownName: a table, a column or a value that is not declared.
        MissingDeclaration: bounds, values or limits that it needs are not declared.
        WrongUse: parameters that it does not use.

    >>> from sfumato.metadata.column import Integer
    >>> from sfumato.metadata.table import Table
    >>> data = Dataset("study", {"people": Table("people.csv", columns={"age": Integer(0, 120)})})
    >>> adults = understand("SELECT AVG(age) FROM people WHERE age > $1", data, parameters=[17])
    >>> adults.output.items[0].name
    'AVG(age)'
    """
    select = tree(statement)
    question = question_of(select, dataset, parameters=parameters, today=today, scalars=scalars)
    return replace(question, text=text_of(statement))


def tree(statement: str | exp.Select) -> exp.Select:
    """Returns a new syntax tree of a statement."""
    if isinstance(statement, exp.Expr):
        return built(statement)
    return parse(statement)


def text_of(statement: str | exp.Select) -> str:
    """Returns the SQL text of a statement, given as text or as a syntax tree."""
    if isinstance(statement, str):
        return statement
    return statement.sql(dialect="duckdb")


def question_of(
    select: exp.Select,
    dataset: Dataset,
    *,
    parameters: Parameters | None = None,
    today: datetime.date | None = None,
    scalars: Scalars | Mapping[str, Answered] | None = None,
    clipping: Clipping = NO_TWINS,
) -> Question:
    """Returns the question of a syntax tree, which is changed in place.

    Other arguments and errors are those of ``understand``.
    """
    select = with_parameters(select, parameters)
    today = today or datetime.datetime.now().astimezone().date()
    select, notes = with_today(select, today)
    return _lower_select(with_scalars(select, scalars), dataset, notes, clipping)


def _lower_select(
    select: exp.Select,
    dataset: Dataset,
    notes: tuple[str, ...],
    clipping: Clipping,
) -> Question:
    """Returns the question of a statement without parameters and scalar sub-queries."""
    _group_distinct(select)
    require_only(select, *_CLAUSES)
    context = Context(dataset, list(notes))
    rows = Relations(context).rows(select, {})
    if not select.args.get("group") and not calls(_aggregate_clauses(select)):
        raise _raw_rows(select)
    question = _plan_question(context, require_private(rows), select, clipping)
    return replace(question, notes=tuple(context.notes), bias=tuple(context.bias))


def _group_distinct(select: exp.Select) -> None:
    """Makes GROUP BY of SELECT DISTINCT without aggregates, in place."""
    if not is_distinct(select) or select.args.get("group") or calls(_aggregate_clauses(select)):
        return
    keys = [item.unalias() for item in select.expressions]
    if any(key.is_star or key.find(exp.Window, exp.Query) is not None for key in keys):
        return
    select.set("distinct", None)
    select.set("group", exp.Group(expressions=[key.copy() for key in keys]))


def stand_in(question: Question) -> Fraction | datetime.date:
    """Returns a placeholder for the answer of a scalar sub-query: 1, or the earliest date.

    It has the type of the answer and depends on declarations alone.

    Raises:
        UnsupportedSql: the answer is a Boolean or a string.

    >>> from sfumato.metadata.column import Integer
    >>> from sfumato.metadata.table import Table
    >>> data = Dataset("study", {"people": Table("people.csv", columns={"age": Integer(0, 120)})})
    >>> stand_in(understand("SELECT AVG(age) FROM people", data))
    Fraction(1, 1)
    """
    expression = question.output.items[0].expression
    if isinstance(expression, Estimate):
        part = question.raw.aggregates[expression.index]
        if isinstance(part, Quantiles) and isinstance(part.value.type, Date):
            return part.value.type.decode(part.value.type.lower_code)
    if not _is_number(expression):
        raise UnsupportedSql(
            "A sub-query in place of a number that gives a test or a text.",
            remedy="Let it give one number, (SELECT AVG(x) FROM t), and compare outside.",
        )
    return Fraction(1)


def may_be_null(expression: Scalar) -> bool:
    """Whether an expression over noisy estimates and group keys can be NULL.

    >>> may_be_null(Estimate(0)), may_be_null(Constant(None))
    (False, True)
    """
    inner = [may_be_null(child) for child in children(expression)]
    match expression:
        case Constant(value):
            return value is None
        case Arithmetic(Operation.DIVIDE, _, right):
            is_safe = isinstance(right, Constant) and bool(right.value)
            return any(inner) or not is_safe
        case Coalesce():
            return all(inner)
        case Case(branches, otherwise):
            return may_be_null(otherwise) or any(may_be_null(result) for _, result in branches)
        case Quotient() | Lookup():
            return True
        case _:
            return any(inner)


def _is_number(expression: Scalar) -> bool:
    """Whether an expression over released numbers is a number or NULL."""
    match expression:
        case Compare() | Member() | Like() | IsNull() | Not() | And() | Or():
            return False
        case ChangeCase() | Substring() | Trim():
            return False
        case Constant(value):
            return value is None or isinstance(value, Fraction)
        case Case(branches, otherwise):
            return _is_number(otherwise) and all(_is_number(result) for _, result in branches)
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
        case Field() | Key() | Estimate() | Grouping():
            return True
        case _:
            raise unknown(expression)


def _plan_question(
    context: Context,
    source: From,
    select: exp.Select,
    clipping: Clipping,
) -> Question:
    """Returns the plan of the aggregates by keys, and the output computed from them."""
    scope = source.scope(context)
    rows = Rows(scope, FUNCTIONS)
    group = grouped(select, scope, rows, source.relation)
    lowered = Aggregates(scope, rows, source.relation)
    aggregate_calls = calls(_aggregate_clauses(select))
    require_few(len(aggregate_calls), "aggregates")
    asks = {id(node): lowered.ask(node) for node in aggregate_calls}
    occasion = Occasion(source.relation, group.keys, len(aggregate_calls))
    split = replace(clipping, occasion=occasion).split(asks, calls(select.expressions))
    context.bias += split.bias
    context.notes += split.notes
    aggregates, estimates = shared([*split.asks.values(), *split.twins.values()])
    require_linear(group, aggregates)
    outputs = Outputs(scope, rows, group, split.asks, estimates)
    items = outputs.items(select.expressions)
    if split.twins:
        beside = Outputs(scope, rows, group, split.clipped, estimates)
        items = beside.with_clipped(items, select.expressions)
    if not aggregates:
        aggregates = _units_of_list(context, group)
    raw = Raw(with_columns(source.relation, context.units_read), group.keys, aggregates)
    output = _output(select, outputs, items, group.sets)
    return Question("", source.table, raw, output, twins=paired(split.twins, estimates))


def _units_of_list(context: Context, group: Group) -> tuple[Aggregate, ...]:
    """Returns what decides about a list of values: how many units have each.

    Raises:
        UnsupportedSql: the values are declared, so that the list says nothing about the data.
    """
    if all(key.codes is not None for key in group.keys):
        raise refuse(
            "SELECT DISTINCT of columns with declared values",
            (
                "would say which of them occur, which is itself private; the declared list is free",
                "Test these columns alone: then it is the answer; or GROUP BY them with COUNT(*).",
            ),
        )
    context.note(
        "A value is listed if enough units have it: their noisy number passes a threshold."
    )
    return (CountUnits(),)


def _output(
    select: exp.Select,
    outputs: Outputs,
    items: tuple[Item, ...],
    sets: tuple[tuple[int, ...], ...],
) -> Output:
    """Returns what is computed from the released numbers."""
    having = select.args.get("having")
    return Output(
        items,
        None if having is None else outputs.test(having.this),
        outputs.orders(select.args.get("order"), items),
        _row_count(select, "limit"),
        _row_count(select, "offset") or 0,
        sets,
    )


def _raw_rows(select: exp.Select) -> UnsupportedSql:
    """Returns the refusal of a SELECT without an aggregate, by what it has instead."""
    for kind in (exp.Window, exp.Anonymous, exp.Distinct, exp.Star):
        for part in (select.args.get("distinct"), *select.expressions):
            node = part.find(kind) if part else None
            if node is not None:
                return reject(node)
    return refuse("A SELECT without an aggregate", RAW_ROWS)


def _aggregate_clauses(select: exp.Select) -> list[exp.Expr | None]:
    """Returns the clauses that may contain aggregates."""
    return [*select.expressions, select.args.get("having"), select.args.get("order")]


def _row_count(select: exp.Select, name: str) -> int | None:
    """Returns the number of LIMIT or OFFSET; None without the clause."""
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
