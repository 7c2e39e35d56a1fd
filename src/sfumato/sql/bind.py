# SPDX-License-Identifier: Apache-2.0
"""Binds a statement before it is lowered: parameters, CURRENT_DATE, scalar sub-queries.

Each becomes a constant node of the syntax tree, never a piece of SQL text, so no value can change
the meaning of a statement.
"""

import datetime
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from sfumato.errors import InvalidNumber, UnsupportedSql, WrongUse
from sfumato.exact.rational import to_fraction
from sfumato.sql.reject import CORRELATED, refuse, require_few, written

_One: TypeAlias = int | float | str | bool | Decimal | Fraction | datetime.date
Parameter: TypeAlias = _One | Sequence[_One]
Parameters: TypeAlias = Mapping[str, Parameter] | Sequence[Parameter]
Answered: TypeAlias = Fraction | datetime.date | None
Scalars: TypeAlias = Callable[[exp.Select], Answered]

# Parents under which a sub-query means rows, or where a literal number is required.
_ROWS = (
    exp.From,
    exp.Join,
    exp.In,
    exp.Limit,
    exp.Offset,
    exp.SetOperation,
    exp.Subquery,
    exp.Any,
    exp.All,
    exp.CTE,
)
# The clauses with which an aggregate without GROUP BY always returns one row.
_ONE_ROW = ("expressions", "from_", "joins", "where", "with_")
_CLOCKS = (
    exp.CurrentTimestamp,
    exp.CurrentDatetime,
    exp.Localtimestamp,
)
_HOURS = (exp.CurrentTime, exp.Localtime)
# Clocks that the parser does not know as functions.
_CLOCK_NAMES = ("NOW", "GET_CURRENT_TIMESTAMP", "GETDATE", "SYSDATETIME")


def with_parameters(select: exp.Select, parameters: Parameters | None) -> exp.Select:
    """Replaces the parameters of a statement by constants, in place.

    Raises:
        UnsupportedSql: a parameter without a value.
        WrongUse: a value that the statement does not use.
    """
    values = _by_name(parameters)
    used = set()
    for node in list(select.find_all(exp.Placeholder, exp.Parameter)):
        name = str(node.name or node.this or "").lower()
        if name not in values:
            raise UnsupportedSql(
                f"The parameter {'$' + name if name else '?'} has no value here.",
                allowed=", ".join(f"${known}" for known in values) or "none was given",
                remedy="Give it: parameters=[...] for $1 and ?, "
                "parameters={...} for :name and $name.",
            )
        value = values[name]
        listing = node.parent if node.arg_key == "expressions" else None
        if isinstance(value, list | tuple) and isinstance(listing, exp.In):
            values_of_list = [constant(name, item) for item in value]
            before, after = listing.expressions[: node.index], listing.expressions[node.index :]
            listing.set("expressions", [*before, *values_of_list, *after[1:]])
        else:
            node.replace(constant(name, value))
        used.add(name)
    unused = [f"${name}" for name in values if name not in used]
    if unused:
        raise WrongUse(
            f"Parameters that the statement does not use: {', '.join(unused)}.",
            remedy="Leave them out.",
        )
    return select


def with_today(select: exp.Select, today: datetime.date) -> tuple[exp.Select, tuple[str, ...]]:
    """Replaces CURRENT_DATE and NOW() by the date, in place; returns notes that state it.

    Raises:
        UnsupportedSql: the statement reads the time of day alone.
    """
    for clock in select.find_all(*_HOURS):
        raise refuse(
            f"The time of day ({written(clock)})",
            (
                "is not the same when the answer is checked",
                "CURRENT_DATE, or a constant: DATE '2026-11-30'.",
            ),
        )
    notes = []
    dates = list(select.find_all(exp.CurrentDate))
    if dates:
        notes.append(f"CURRENT_DATE is {today.isoformat()} here.")
    moments = [
        node
        for node in select.find_all(*_CLOCKS, exp.Anonymous)
        if not isinstance(node, exp.Anonymous) or str(node.this).upper() in _CLOCK_NAMES
    ]
    if moments:
        notes.append(
            f"NOW() is the first moment of {today.isoformat()} here, in the time zone of what it "
            "is compared with: a later one would be another question, with its own cost."
        )
    for node in (*dates, *moments):
        node.replace(constant("CURRENT_DATE", today))
    return select, tuple(notes)


def scalar_queries(select: exp.Select) -> list[exp.Select]:
    """Returns the scalar sub-queries of a statement: each is a private question of its own.

    Each is returned as a complete statement, with the WITH definitions that it uses. The order is
    one in which they can be asked: those inside a WITH come before those that use it.

    Args:
        select: the syntax tree of a statement, as ``parse`` returns it; it is not changed.

    Raises:
        UnsupportedSql: a correlated sub-query, or one that may return no row.

    >>> from sfumato.sql.parse import parse
    >>> scalar_queries(parse("SELECT COUNT(*) FROM t WHERE a > (SELECT AVG(a) FROM t)"))[0].sql()
    'SELECT AVG(a) FROM t'
    """
    return [copy_with_definitions(node) for node in _outermost_queries(select)]


def with_scalars(
    select: exp.Select, scalars: Scalars | Mapping[str, Answered] | None
) -> exp.Select:
    """Replaces the scalar sub-queries of a statement by their answers (``literal.answered``).

    ``scalars`` is a function that answers a sub-query, in which earlier sub-queries are already
    replaced; or a mapping from the SQL text of each sub-query (``scalar_queries``) to its answer.

    Raises:
        UnsupportedSql: a sub-query without an answer.
    """
    places = _outermost_queries(select)
    texts = [copy_with_definitions(node).sql(dialect="duckdb") for node in places]
    for node, text in zip(places, texts, strict=True):
        if scalars is None or (isinstance(scalars, Mapping) and text not in scalars):
            raise UnsupportedSql(
                "A sub-query in place of a number is a private question of its own, "
                "with its own cost.",
                remedy=f"Ask it first, session.query({text!r}, ...), "
                "and write its answer as a number; "
                "or give the cost of both to session.query.",
            )
        answer = (
            scalars[text] if isinstance(scalars, Mapping) else scalars(copy_with_definitions(node))
        )
        node.set("this", _answer_node(answer))
    return select


def _answer_node(answer: Answered) -> exp.Expr:
    """Returns the node that replaces a scalar sub-query."""
    if answer is None:
        return _null()
    return constant("The answer of a sub-query", answer).unnest()


def constant(name: str, value: object) -> exp.Expr:
    """Returns the syntax tree of a constant.

    Raises:
        InvalidNumber: the value is not a number, string, Boolean, date or datetime.
        WrongUse: a string that UTF-8 cannot encode.
    """
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise WrongUse(
                f"The parameter {name} is no text: it has half of a character.",
                allowed="what UTF-8 can write",
            )
        return exp.Literal.string(value)
    if isinstance(value, datetime.datetime):
        written_moment = exp.Literal.string(value.isoformat(" "))
        return exp.Cast(this=written_moment, to=exp.DataType.build("timestamp"))
    if isinstance(value, datetime.date):
        written_day = exp.Literal.string(value.isoformat())
        return exp.Cast(this=written_day, to=exp.DataType.build("date"))
    if not isinstance(value, int | float | Decimal | Fraction):
        raise InvalidNumber(
            f"The parameter {name} is a {type(value).__name__}.",
            allowed="int, Decimal, Fraction, float, str, bool, datetime.date, datetime.datetime; "
            "for NULL write IS NULL",
        )
    exact = to_fraction(name, value)
    written = exp.Literal.number(str(abs(exact)))
    if exact < 0:
        return exp.Paren(this=exp.Neg(this=written))
    return written


def _null() -> exp.Expr:
    """Returns an expression that is NULL; a literal NULL would be refused."""
    one = exp.Literal.number("1")
    return exp.Nullif(this=one, expression=one.copy())


def _by_name(parameters: Parameters | None) -> dict[str, Parameter]:
    """Returns the parameters by lower-case name; those of a sequence are "1", "2", ..."""
    if parameters is None:
        return {}
    if isinstance(parameters, Mapping):
        return {str(name).lower(): value for name, value in parameters.items()}
    if isinstance(parameters, str) or not isinstance(parameters, Sequence):
        raise WrongUse(
            f"parameters= that is one {type(parameters).__name__}.",
            allowed="a list of values, or a mapping of names",
        )
    return {str(place): value for place, value in enumerate(parameters, 1)}


def _outermost_queries(select: exp.Select) -> list[exp.Subquery]:
    """Returns the outermost scalar sub-queries; those inside a WITH before the others."""
    places: list[exp.Subquery] = []
    waiting: list[exp.Expr] = [select]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Subquery) and _is_scalar(node):
            places.append(node)
            continue
        # the last of those that wait is the next
        inner = list(node.iter_expressions(reverse=True))
        if node.args.get("with_"):
            inner.sort(key=lambda part: isinstance(part, exp.With))
        waiting += inner
    require_few(len(places), "sub-queries in place of numbers")
    return places


def _is_scalar(node: exp.Subquery) -> bool:
    """Whether a sub-query stands for one number: one aggregate without GROUP BY.

    Raises:
        UnsupportedSql: it may return no row, or reads columns of the outer query.
    """
    inner = node.this
    if node.parent is None or isinstance(node.parent, _ROWS):
        return False
    if not isinstance(inner, exp.Select):
        return False
    if inner.args.get("group") or len(inner.expressions) != 1:
        return False
    if inner.find(exp.AggFunc) is None:
        return False
    if any(value and name not in _ONE_ROW for name, value in inner.args.items()):
        raise refuse(
            "HAVING, ORDER BY, LIMIT or DISTINCT of a sub-query in place of a number",
            ("can leave it without one", "Leave them out: (SELECT AVG(x) FROM t WHERE ...)."),
        )
    _require_own_columns(inner)
    return True


def _require_own_columns(inner: exp.Select) -> None:
    """Refuses a correlated sub-query."""
    sources = inner.find_all(exp.Table, exp.Subquery)
    tables = {source.alias_or_name.lower() for source in sources}
    for column in inner.find_all(exp.Column):
        if column.table and column.table.lower() not in tables:
            raise refuse(
                "A sub-query that reads the row outside (a correlated one)",
                CORRELATED,
            )


def copy_with_definitions(node: exp.Subquery) -> exp.Select:
    """Returns a copy of a sub-query, with the WITH definitions around it that it uses."""
    inner = node.this.copy()
    assert isinstance(inner, exp.Select), "so says _is_scalar"
    used = _table_names(inner)
    definitions: list[exp.Expr] = []
    for definition in reversed(_definitions_around(node)):
        if definition.alias.lower() in used:
            used |= _table_names(definition)
            definitions.insert(0, definition.copy())
    if definitions:
        own = inner.args.get("with_")
        if own:
            definitions += own.expressions
        inner.set("with_", exp.With(expressions=definitions))
    return inner


def _table_names(node: exp.Expr) -> set[str]:
    """Returns the names of the tables that a tree reads, in lower case."""
    return {table.name.lower() for table in node.find_all(exp.Table)}


def _definitions_around(node: exp.Expr) -> list[exp.Expr]:
    """Returns the WITH definitions that a node can refer to, in order.

    Inside a definition these are the ones before it.
    """
    known: list[exp.Expr] = []
    inside = node
    above = node.parent
    while above is not None:
        clause = above if isinstance(above, exp.With) else above.args.get("with_")
        if clause is not None and clause is not inside:
            known = [*_definitions_before(clause.expressions, inside), *known]
        inside, above = above, above.parent
    return known


def _definitions_before(definitions: list[exp.Expr], node: exp.Expr) -> list[exp.Expr]:
    """Returns the definitions before a node; all of them if it is not among them."""
    for place, definition in enumerate(definitions):
        if definition is node:
            return definitions[:place]
    return definitions
