# SPDX-License-Identifier: Apache-2.0
"""What is refused, by the name it has in SQL; why; and what to write instead."""

from sqlglot import exp

from sfumato.errors import UnsupportedSql

RAW_ROWS = (
    "would show rows or values of single persons",
    "Aggregate: SELECT COUNT(*), SUM(...) or AVG(...), by columns with declared values.",
)
NOT_A_QUERY = ("is not a question about the data", "Only SELECT is answered; the data is never changed.")
_OTHER_TABLE = (
    "needs more than one table or an inner query, which this version does not answer",
    "Ask one declared table; prepare a joined or nested table beforehand and declare it.",
)
_WINDOW = (
    "lets one person change the values of others",
    "Aggregate with GROUP BY; rank or accumulate the noisy answer afterwards.",
)
_EXTREME = (
    "is the value of single persons, whatever the others hold",
    "Ask the number of rows in ranges, COUNT(*) ... WHERE column BETWEEN a AND b, or AVG(column).",
)
_QUANTILE = ("is not answered by this version", _EXTREME[1])
_EXPRESSION = (
    "is not part of the language of this version",
    "Use a column as it is; compute on the noisy answer, SUM(a) / COUNT(*), or prepare the column in the data.",
)
_PREDICATE = (
    "is not answered by this version",
    "Use =, <>, <, <=, >, >=, IN (...), BETWEEN, IS NULL, AND, OR, NOT on a column and constants.",
)

_RULES: tuple[tuple[type[exp.Expr], str, tuple[str, str]], ...] = (
    (exp.SetOperation, "A set operation (UNION, EXCEPT, INTERSECT)", _OTHER_TABLE),
    (exp.Subquery, "A sub-query", _OTHER_TABLE),
    (exp.Exists, "EXISTS", _OTHER_TABLE),
    (exp.Join, "A join", _OTHER_TABLE),
    (exp.With, "WITH", _OTHER_TABLE),
    (exp.Values, "VALUES", _OTHER_TABLE),
    (exp.Lateral, "LATERAL", _OTHER_TABLE),
    (exp.Pivot, "PIVOT", _OTHER_TABLE),
    (exp.Star, "*", RAW_ROWS),
    (exp.Distinct, "DISTINCT", RAW_ROWS),
    (exp.Window, "A window function (OVER)", _WINDOW),
    (exp.Qualify, "QUALIFY", _WINDOW),
    (exp.TableSample, "TABLESAMPLE", ("samples rows, not persons", "Leave it out.")),
    (exp.Median, "MEDIAN", _QUANTILE),
    (exp.PercentileCont, "A quantile", _QUANTILE),
    (exp.PercentileDisc, "A quantile", _QUANTILE),
    (exp.Quantile, "A quantile", _QUANTILE),
    (exp.Max, "MAX", _EXTREME),
    (exp.Min, "MIN", _EXTREME),
    (exp.Filter, "FILTER", ("is not answered by this version", "Put the condition into WHERE, one question each.")),
    (exp.Placeholder, "A parameter", ("has no value here", "Write the value as a literal.")),
    (exp.Parameter, "A parameter", ("has no value here", "Write the value as a literal.")),
    (exp.Null, "A comparison with NULL", ("is never true", "Write IS NULL or IS NOT NULL.")),
    (exp.AggFunc, "This aggregate", ("is not answered by this version", "COUNT, COUNT(DISTINCT unit), SUM, AVG.")),
    (exp.Like, "LIKE", _PREDICATE),
    (exp.Predicate, "This test", _PREDICATE),
    (exp.Func, "This function", _EXPRESSION),
    (exp.Binary, "This expression", _EXPRESSION),
)


def reject(node: exp.Expr | None, *, where: str = "") -> UnsupportedSql:
    """The refusal for a node; an unknown kind is refused as such.

    >>> print(reject(exp.Median()).problem)
    MEDIAN is not answered by this version.
    """
    for kind, name, (why, instead) in _RULES:
        if isinstance(node, kind):
            return UnsupportedSql(f"{_named(node, name)} {why}{where}.", remedy=instead)
    kind_name = type(node).__name__ if node is not None else "Nothing"
    return UnsupportedSql(
        f"{kind_name} is not part of the language of private questions{where}.", remedy=_EXPRESSION[1]
    )


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


def _named(node: exp.Expr | None, name: str) -> str:
    """A function by the name that the analyst wrote."""
    if isinstance(node, exp.Anonymous):
        return f"The function {str(node.this)[:40]}"
    if isinstance(node, exp.Func) and name.startswith("This"):
        return f"{name} ({type(node).sql_name()})"
    return name
