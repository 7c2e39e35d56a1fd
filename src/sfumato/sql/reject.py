# SPDX-License-Identifier: Apache-2.0
"""The refusals of SQL: which construct, why, and what to write instead.

Every module of this room raises them.
"""

import re

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sfumato.errors import UnsupportedSql

RAW_ROWS = (
    "would show rows or values of single persons",
    "Aggregate: SELECT COUNT(*), SUM(...) or AVG(...), by columns with declared values.",
)
NOT_A_QUERY = (
    "is not a question about the data",
    "Only SELECT is answered; the data is never changed.",
)
_SET = (
    "of whole questions is not answered",
    (
        "Ask each SELECT by itself; UNION ALL of the rows of two tables goes into a sub-query: "
        "SELECT COUNT(*) FROM (SELECT a FROM one UNION ALL SELECT a FROM two)."
    ),
)
_SUBQUERY = (
    "here is not part of the language",
    (
        "Sub-queries stand in FROM, in WITH, in WHERE unit IN (...) or EXISTS (...), "
        "or give one number: (SELECT AVG(x) FROM t)."
    ),
)
UNIT_TEST = (
    "is a test of units, and stands alone in WHERE or joined by AND",
    "Take it out of OR, CASE and SELECT.",
)
_NESTED = (
    "is not part of the language",
    "FROM table, or FROM (SELECT ... FROM table) AS name, and JOIN ... ON.",
)
_WINDOW = (
    "of persons' rows is not computed",
    (
        "Aggregate with GROUP BY, and rank or accumulate the noisy answer; within one person: "
        "ROW_NUMBER, RANK, LAG and LEAD OVER (PARTITION BY unit ORDER BY ...) in a sub-query."
    ),
)
_DISTINCT = (
    "shows values that occur, which is itself private",
    (
        "GROUP BY the column with COUNT(*): "
        "a Text column shows the groups that enough persons share; "
        "COUNT(DISTINCT column) counts them."
    ),
)
_SAMPLE = (
    "samples rows, not persons",
    "Leave it out: the answer of all rows is the better one at the same cost.",
)
_RANDOM = (
    "is not the same when the answer is checked",
    "Leave it out: all rows give the better answer at the same cost.",
)
_PARAMETER = ("has no value here", "Give it by parameters=, or write the value.")
# An operation is named by its own text.
_EXPRESSED = "This expression"
_EXPRESSION = (
    "is not part of the language",
    (
        "Allowed of a row: + - * /, ABS, ROUND, FLOOR, LEAST, GREATEST, COALESCE, NULLIF, CASE, "
        "WIDTH_BUCKET, EXTRACT, DATE_TRUNC, UPPER, SUBSTRING, LIKE, IN, BETWEEN, IS NULL; "
        "or compute on the noisy answer."
    ),
)
CORRELATED = (
    "compares each person with all others",
    (
        "Let it compare the unit alone with the row outside: "
        "(SELECT AVG(i.x) FROM t AS i WHERE i.unit = o.unit AND tests of i); "
        "else ask for the two numbers separately."
    ),
)
NESTED_AGGREGATE = (
    "stands where only a row is known",
    (
        "Test aggregates in HAVING; nest them through a sub-query that groups by the unit: "
        "SELECT AVG(n) FROM (SELECT unit, COUNT(*) AS n FROM ... GROUP BY unit)."
    ),
)
NOISY = (
    "is not computed on the noisy answer",
    (
        "There: + - * /, ROUND, FLOOR, CEIL, ABS, LEAST, GREATEST, COALESCE, NULLIF, CASE "
        "and comparisons; "
        "or group by the expression, to have it of a key."
    ),
)
_AGGREGATE = (
    "is not answered",
    "COUNT, COUNT(DISTINCT ...), SUM, AVG, VARIANCE, STDDEV, MEDIAN, QUANTILE_CONT, MIN, MAX.",
)
_VALUES = (
    "returns values of single persons",
    "GROUP BY the column with COUNT(*), or " + _AGGREGATE[1],
)

_MOST = 200
_LONGEST = 60
# What the generator of sqlglot raises for a tree that it cannot write.
_NO_TEXT = (SqlglotError, ValueError, TypeError, LookupError, AttributeError, NameError)
_WORDS = (exp.Identifier, exp.Literal, exp.Var, exp.Column, exp.Tuple)
_RULES: tuple[tuple[type[exp.Expr], str, tuple[str, str]], ...] = (
    (exp.SetOperation, "A set operation (UNION, EXCEPT, INTERSECT)", _SET),
    (exp.Exists, "EXISTS", UNIT_TEST),
    (exp.Query, "A sub-query", _SUBQUERY),
    (exp.Any, "ANY or ALL of a sub-query", _SUBQUERY),
    (exp.All, "ANY or ALL of a sub-query", _SUBQUERY),
    (exp.Join, "A join", _NESTED),
    (exp.With, "WITH", _SUBQUERY),
    (exp.Values, "VALUES", _NESTED),
    (exp.Lateral, "LATERAL", _NESTED),
    (exp.Pivot, "PIVOT", _NESTED),
    (exp.Star, "*", RAW_ROWS),
    (exp.Distinct, "DISTINCT", _DISTINCT),
    (exp.Window, "A window function (OVER)", _WINDOW),
    (exp.Qualify, "QUALIFY", _WINDOW),
    (exp.TableSample, "TABLESAMPLE", _SAMPLE),
    (exp.Rand, "RANDOM()", _RANDOM),
    (exp.Randn, "RANDOM()", _RANDOM),
    (exp.Uuid, "UUID()", _RANDOM),
    (exp.Placeholder, "A parameter", _PARAMETER),
    (exp.Parameter, "A parameter", _PARAMETER),
    (exp.Null, "A comparison with NULL", ("is never true", "Write IS NULL or IS NOT NULL.")),
    (exp.GroupConcat, "This aggregate", _VALUES),
    (exp.ArrayAgg, "This aggregate", _VALUES),
    (exp.AggFunc, "This aggregate", _AGGREGATE),
    (
        exp.Limit,
        "LIMIT in a sub-query",
        ("depends on the rows of everybody", "Put it after the aggregate."),
    ),
    (
        exp.Order,
        "ORDER BY in a sub-query",
        ("has no effect on an aggregate", "Leave it out, or put it after the aggregate."),
    ),
    (exp.Predicate, "This test", _EXPRESSION),
    (exp.Func, "This function", _EXPRESSION),
    (exp.Binary, _EXPRESSED, _EXPRESSION),
)


def reject(node: exp.Expr | None) -> UnsupportedSql:
    """Returns the error that refuses a syntax node, with a text for its kind.

    >>> print(reject(exp.TableSample()).problem)
    TABLESAMPLE samples rows, not persons.
    """
    for kind, name, (why, instead) in _RULES:
        if isinstance(node, kind):
            return UnsupportedSql(f"{_named(node, name)} {why}.", remedy=instead)
    what = written(node) if node is not None else "Nothing"
    return UnsupportedSql(
        f"{what} is not part of the language of private questions.", remedy=_EXPRESSION[1]
    )


def refuse_node(node: exp.Expr, reason: tuple[str, str]) -> UnsupportedSql:
    """Returns the error that refuses a function or operator not allowed in its context."""
    if isinstance(node, exp.AggFunc):
        return refuse(f"The aggregate {called(node)}", reason)
    if isinstance(node, exp.Func):
        return refuse(f"This function {called(node)}", reason)
    return refuse(written(node), reason)


def called(node: exp.Expr) -> str:
    """Returns the name of a function in SQL; the SQL text of a node that is not a function call.

    >>> called(exp.Stddev(this=exp.column("age"))), called(exp.ArrayAgg(this=exp.column("age")))
    ('STDDEV', 'ARRAY_AGG')
    """
    if isinstance(node, exp.GroupConcat):
        # the generator writes LISTAGG, which few have heard of
        return "STRING_AGG"
    text = written(node)
    name = re.match(r"(\w+)\(", text)
    if name is None:
        return text
    return name[1]


def written(node: exp.Expr) -> str:
    """Returns a node as SQL text, cut to 60 characters.

    >>> written(exp.BitwiseNot(this=exp.column("age")))
    '~age'
    """
    text = _rendered(node, "duckdb")
    other = _rendered(node, None)
    # the DuckDB generator expands or drops what DuckDB does not have
    if text and len(text) <= 2 * len(other):
        return _short(text)
    return _short(other or text or node.key.upper())


def _short(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}..."


def _rendered(node: exp.Expr, dialect: str | None) -> str:
    try:
        return node.sql(dialect=dialect).strip()
    except _NO_TEXT:
        # a node without SQL text, or with a part missing
        return ""


def refuse(name: str, reason: tuple[str, str]) -> UnsupportedSql:
    """Returns the error that refuses SQL; ``reason`` is why, and what to write instead."""
    why, instead = reason
    return UnsupportedSql(f"{name} {why}.", remedy=instead)


def require_only(node: exp.Expr, *allowed: str) -> None:
    """Refuses a syntax node that has other parts (a clause, say) than the ``allowed`` ones.

    Unknown constructs of the parser are thereby refused.
    """
    for name, value in node.args.items():
        if value and name not in allowed:
            raise _not_allowed(node, name, value)


def _not_allowed(node: exp.Expr, name: str, value: object) -> UnsupportedSql:
    """Returns the refusal of one argument of a node."""
    part = value[0] if isinstance(value, list) else value
    if part is True:
        what = name.strip("_").upper().replace("_", " ")
    elif isinstance(part, exp.Expr) and not isinstance(part, _WORDS):
        return reject(part)
    else:
        what = f"{_short(str(part))} in {written(node)}"
    return UnsupportedSql(
        f"{what} is not part of the language of private questions.", remedy="Leave it out."
    )


def require_few(count: int, what: str) -> None:
    """Refuses more than 200 parts of a SELECT, because planning compares every pair of them."""
    if count > _MOST:
        raise UnsupportedSql(
            f"{count:,} {what} in one SELECT.",
            allowed=f"at most {_MOST}",
            remedy="Ask less at once.",
        )


def _named(node: exp.Expr | None, name: str) -> str:
    """Returns a function by the name that the analyst wrote, any other node by ``name``."""
    if isinstance(node, exp.Anonymous):
        return f"The function {str(node.this)[:40]}"
    if isinstance(node, exp.Func) and name.startswith("This"):
        return f"{name} ({called(node)})"
    if name == _EXPRESSED and node is not None:
        return written(node)
    return name
