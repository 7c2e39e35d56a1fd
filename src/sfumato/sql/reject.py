# SPDX-License-Identifier: Apache-2.0
"""What is refused, by the name it has in SQL; why; and what to write instead."""

from sqlglot import exp

from sfumato.errors import UnsupportedSql

RAW_ROWS = (
    "would show rows or values of single persons",
    "Aggregate: SELECT COUNT(*), SUM(...) or AVG(...), by columns with declared values.",
)
NOT_A_QUERY = ("is not a question about the data", "Only SELECT is answered; the data is never changed.")
_SET = (
    "of whole questions is not answered",
    (
        "Ask each SELECT by itself; UNION ALL of the rows of two tables goes into a sub-query: "
        "SELECT COUNT(*) FROM (SELECT a FROM one UNION ALL SELECT a FROM two)."
    ),
)
_SUBQUERY = (
    "here is not part of the language",
    "Sub-queries stand in FROM, in WITH, in WHERE unit IN (...) or EXISTS (...), or give one number: (SELECT AVG(x) FROM t).",
)
UNIT_TEST = ("is a test of units, and stands alone in WHERE or joined by AND", "Take it out of OR, CASE and SELECT.")
_NESTED = ("is not part of the language", "FROM table, or FROM (SELECT ... FROM table) AS name, and JOIN ... ON.")
_WINDOW = (
    "lets one person change the values of others",
    (
        "Aggregate with GROUP BY, and rank or accumulate the noisy answer; within one person: "
        "ROW_NUMBER() OVER (PARTITION BY unit ORDER BY ...) in a sub-query."
    ),
)
_DISTINCT = (
    "shows values that occur, which is itself private",
    (
        "GROUP BY the column with COUNT(*): a Text column shows the groups that enough persons share; "
        "COUNT(DISTINCT column) counts them."
    ),
)
_SAMPLE = ("samples rows, not persons", "Leave it out: the answer of all rows is the better one at the same cost.")
_RANDOM = (
    "is not the same when the answer is checked",
    "Leave it out: all rows give the better answer at the same cost.",
)
_PARAMETER = ("has no value here", "Give it by parameters=, or write the value.")
_EXPRESSION = (
    "is not part of the language",
    (
        "Allowed of a row: + - * /, ABS, ROUND, FLOOR, LEAST, GREATEST, COALESCE, NULLIF, CASE, WIDTH_BUCKET, EXTRACT, "
        "DATE_TRUNC, UPPER, SUBSTRING, LIKE, IN, BETWEEN, IS NULL; or compute on the noisy answer."
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
        "There: + - * /, ROUND, FLOOR, CEIL, ABS, LEAST, GREATEST, COALESCE, NULLIF, CASE and comparisons; "
        "or group by the expression, to have it of a key."
    ),
)
_AGGREGATE = (
    "is not answered",
    "COUNT, COUNT(DISTINCT ...), SUM, AVG, VARIANCE, STDDEV, MEDIAN, QUANTILE_CONT, MIN, MAX.",
)
_VALUES = ("returns values of single persons", "GROUP BY the column with COUNT(*), or " + _AGGREGATE[1])

_MOST = 200
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
    (exp.Limit, "LIMIT in a sub-query", ("depends on the rows of everybody", "Put it after the aggregate.")),
    (
        exp.Order,
        "ORDER BY in a sub-query",
        ("has no effect on an aggregate", "Leave it out, or put it after the aggregate."),
    ),
    (exp.Predicate, "This test", _EXPRESSION),
    (exp.Func, "This function", _EXPRESSION),
    (exp.Binary, "This expression", _EXPRESSION),
)


def reject(node: exp.Expr | None, *, where: str = "") -> UnsupportedSql:
    """The refusal for a node; an unknown kind is refused as such.

    >>> print(reject(exp.TableSample()).problem)
    TABLESAMPLE samples rows, not persons.
    """
    for kind, name, (why, instead) in _RULES:
        if isinstance(node, kind):
            return UnsupportedSql(f"{_named(node, name)} {why}{where}.", remedy=instead)
    kind_name = type(node).__name__ if node is not None else "Nothing"
    return UnsupportedSql(
        f"{kind_name} is not part of the language of private questions{where}.", remedy=_EXPRESSION[1]
    )


def refuse_node(node: exp.Expr, reason: tuple[str, str]) -> UnsupportedSql:
    """A refusal of a function or an expression for a reason of its place."""
    name = "The aggregate" if isinstance(node, exp.AggFunc) else "This function" if isinstance(node, exp.Func) else ""
    called = f"{name} {_sql_name(node)}" if name else "This expression"
    return refuse(called, reason)


def _sql_name(node: exp.Expr) -> str:
    """A function by the name that the analyst knows."""
    if isinstance(node, exp.Anonymous) or not isinstance(node, exp.Func):
        return str(node.this)[:40]
    return type(node).sql_name()


def refuse(name: str, reason: tuple[str, str]) -> UnsupportedSql:
    """A refusal of something by the name that the user wrote."""
    why, instead = reason
    return UnsupportedSql(f"{name} {why}.", remedy=instead)


def require_only(node: exp.Expr, *allowed: str) -> None:
    """Refuses a node that carries anything beyond the ``allowed`` parts (deny by default)."""
    for name, value in node.args.items():
        if value and name not in allowed:
            part = value[0] if isinstance(value, list) else value
            if isinstance(part, exp.Expr) and not isinstance(part, exp.Identifier | exp.Literal | exp.Var):
                raise reject(part)
            clause = name.strip("_").upper().replace("_", " ")
            raise UnsupportedSql(f"{clause} is not part of the language of private questions.", remedy="Leave it out.")


def require_few(count: int, what: str) -> None:
    """Refuses so many parts of one SELECT that comparing each with each takes seconds."""
    if count > _MOST:
        raise UnsupportedSql(f"{count:,} {what} in one SELECT.", allowed=f"at most {_MOST}", remedy="Ask less at once.")


def _named(node: exp.Expr | None, name: str) -> str:
    """A function by the name that the analyst wrote."""
    if isinstance(node, exp.Anonymous):
        return f"The function {str(node.this)[:40]}"
    if isinstance(node, exp.Func) and name.startswith("This"):
        return f"{name} ({type(node).sql_name()})"
    return name
