# SPDX-License-Identifier: Apache-2.0
"""What a statement leaves open is filled in before it is understood: parameters, today, inner answers.

A parameter becomes a constant of the syntax tree, never a piece of text, so that no value
can change what a statement means.
"""

import datetime
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from sfumato.errors import InvalidNumber, UnsupportedSql, WrongUse
from sfumato.exact.rational import to_fraction
from sfumato.sql.reject import refuse, require_few

Parameter: TypeAlias = int | float | str | bool | Decimal | Fraction | datetime.date
Parameters: TypeAlias = Mapping[str, Parameter] | Sequence[Parameter]
Answered: TypeAlias = Fraction | datetime.date | None
Scalars: TypeAlias = Callable[[exp.Select], Answered]

# Where a sub-query stands for rows, or for a number that has to be written.
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
# What leaves a sub-query without GROUP BY its one row.
_ONE_ROW = ("expressions", "from_", "joins", "where", "with_")
_CLOCKS = (
    exp.CurrentTimestamp,
    exp.CurrentTime,
    exp.CurrentDatetime,
    exp.Localtime,
    exp.Localtimestamp,
)


def with_parameters(select: exp.Select, parameters: Parameters | None) -> exp.Select:
    """The statement with its parameters as constants."""
    places = list(select.find_all(exp.Placeholder, exp.Parameter))
    given = _by_name(parameters)
    used = set()
    for node in places:
        name = str(node.name or node.this or "").lower()
        if name not in given:
            raise UnsupportedSql(
                f"The parameter {'$' + name if name else '?'} has no value here.",
                allowed=", ".join(f"${each}" for each in given) or "none was given",
                remedy="Give it: parameters=[...] for $1 and ?, parameters={...} for :name and $name.",
            )
        node.replace(constant(name, given[name]))
        used.add(name)
    unused = [f"${each}" for each in given if each not in used]
    if unused:
        raise WrongUse(
            f"Parameters that the statement does not use: {', '.join(unused)}.",
            remedy="Leave them out.",
        )
    return select


def with_today(select: exp.Select, today: datetime.date) -> tuple[exp.Select, tuple[str, ...]]:
    """The statement with CURRENT_DATE as a constant, and what to tell the reader."""
    for clock in select.find_all(*_CLOCKS, exp.Anonymous):
        if not isinstance(clock, exp.Anonymous) or str(clock.this).upper() in (
            "NOW",
            "GET_CURRENT_TIMESTAMP",
        ):
            raise refuse(
                "The time of day (NOW, CURRENT_TIMESTAMP)",
                (
                    "is not the same when the answer is checked",
                    "CURRENT_DATE, or a constant: DATE '2026-11-30'.",
                ),
            )
    places = list(select.find_all(exp.CurrentDate))
    for node in places:
        node.replace(constant("CURRENT_DATE", today))
    return select, (f"CURRENT_DATE is {today.isoformat()} here.",) if places else ()


def scalar_queries(select: exp.Select) -> list[exp.Select]:
    """The sub-queries that stand for one number: each is a private question of its own.

    Each can be asked alone: it is given with what it uses of the WITH around it. They come in the
    order in which they can be asked, those inside a WITH before those that use it.

    >>> from sfumato.sql.parse import parse
    >>> scalar_queries(parse("SELECT COUNT(*) FROM t WHERE a > (SELECT AVG(a) FROM t)"))[0].sql()
    'SELECT AVG(a) FROM t'
    """
    return [_standing_alone(node) for node in _places(select)]


def with_scalars(
    select: exp.Select, scalars: Scalars | Mapping[str, Answered] | None
) -> exp.Select:
    """The statement with the answers of its scalar sub-queries in their places (``literal.answered``).

    ``scalars`` answers a sub-query, in which those that came before it are answered already; or
    it maps the texts that ``scalar_queries`` gives to answers.
    """
    places = _places(select)
    texts = [_standing_alone(node).sql(dialect="duckdb") for node in places]
    for node, text in zip(places, texts, strict=True):
        if scalars is None or (isinstance(scalars, Mapping) and text not in scalars):
            raise UnsupportedSql(
                "A sub-query in place of a number is a private question of its own, with its own cost.",
                remedy=f"Ask it first, session.query({text!r}, ...), and write its answer as a number; "
                "or give the cost of both to session.query.",
            )
        answer = scalars[text] if isinstance(scalars, Mapping) else scalars(_standing_alone(node))
        node.set(
            "this",
            _null() if answer is None else constant("The answer of a sub-query", answer).unnest(),
        )
    return select


def constant(name: str, value: object) -> exp.Expr:
    """The syntax of a constant.

    Raises:
        InvalidNumber: a value that is no number, text, truth or date.
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
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return exp.Cast(this=exp.Literal.string(value.isoformat()), to=exp.DataType.build("date"))
    if not isinstance(value, int | float | Decimal | Fraction):
        raise InvalidNumber(
            f"The parameter {name} is a {type(value).__name__}.",
            allowed="int, Decimal, Fraction, float, str, bool, datetime.date; for NULL write IS NULL",
        )
    exact = to_fraction(name, value)
    written = exp.Literal.number(str(abs(exact)))
    return exp.Paren(this=exp.Neg(this=written)) if exact < 0 else written


def _null() -> exp.Expr:
    """A number that is NULL; NULL itself would be refused, as one does not write it."""
    return exp.Nullif(this=exp.Literal.number("1"), expression=exp.Literal.number("1"))


def _by_name(parameters: Parameters | None) -> dict[str, Parameter]:
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


def _places(select: exp.Select) -> list[exp.Subquery]:
    """Sub-queries in place of a value, outermost only; those of a WITH before those beside it."""
    found: list[exp.Subquery] = []
    waiting: list[exp.Expr] = [select]
    while waiting:
        node = waiting.pop()
        if (
            isinstance(node, exp.Subquery)
            and node.parent is not None
            and _is_scalar(node, node.parent)
        ):
            found.append(node)
        else:
            inner = list(node.iter_expressions())
            if node.args.get("with_"):
                inner.sort(key=lambda each: not isinstance(each, exp.With))
            waiting += reversed(inner)
    require_few(len(found), "sub-queries in place of numbers")
    return found


def _is_scalar(node: exp.Subquery, above: exp.Expr) -> bool:
    """One aggregate without GROUP BY, which does not look at the rows outside."""
    inner = node.this
    if isinstance(above, _ROWS) or not isinstance(inner, exp.Select):
        return False
    if inner.args.get("group") or len(inner.expressions) != 1 or inner.find(exp.AggFunc) is None:
        return False
    if any(value and name not in _ONE_ROW for name, value in inner.args.items()):
        raise refuse(
            "HAVING, ORDER BY, LIMIT or DISTINCT of a sub-query in place of a number",
            ("can leave it without one", "Leave them out: (SELECT AVG(x) FROM t WHERE ...)."),
        )
    _require_own_columns(inner)
    return True


def _require_own_columns(inner: exp.Select) -> None:
    tables = {each.alias_or_name.lower() for each in inner.find_all(exp.Table, exp.Subquery)}
    for column in inner.find_all(exp.Column):
        if column.table and column.table.lower() not in tables:
            raise refuse(
                "A sub-query that reads the row outside (a correlated one)",
                (
                    "compares each person with all others",
                    "Ask for the two numbers separately, or test against a constant.",
                ),
            )


def _standing_alone(node: exp.Subquery) -> exp.Select:
    """A copy of a sub-query with the definitions that it uses of every WITH around it."""
    inner = node.this.copy()
    assert isinstance(inner, exp.Select), "so says _is_scalar"
    used = _tables(inner)
    kept: list[exp.Expr] = []
    for each in reversed(list(_known(node))):
        if each.alias.lower() in used:
            used |= _tables(each)
            kept.insert(0, each.copy())
    if kept:
        own = inner.args.get("with_")
        inner.set("with_", exp.With(expressions=[*kept, *(own.expressions if own else [])]))
    return inner


def _tables(node: exp.Expr) -> set[str]:
    return {each.name.lower() for each in node.find_all(exp.Table)}


def _known(node: exp.Expr) -> list[exp.Expr]:
    """What WITH defines where a node stands, in order: inside a definition only those before it."""
    found: list[exp.Expr] = []
    inside, above = node, node.parent
    while above is not None:
        clause = above if isinstance(above, exp.With) else above.args.get("with_")
        if clause is not None and clause is not inside:
            every = clause.expressions
            before = next((place for place, each in enumerate(every) if each is inside), len(every))
            found = [*every[:before], *found]
        inside, above = above, above.parent
    return found
