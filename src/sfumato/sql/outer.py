# SPDX-License-Identifier: Apache-2.0
"""The language of outer statements, which run over answers: an allow-list, and their text.

Privacy does not rest on it: whatever is computed from answers is post-processing. It keeps a
statement from the host (files, settings, extensions, memory) and from what differs at the next call
(clocks, randomness).
"""

from collections.abc import Collection

from sqlglot import exp

from sfumato.errors import UnknownName, UnsupportedSql
from sfumato.sql.reject import refuse, reject, require_few, require_only

_CLAUSES = (
    exp.Select, exp.Union, exp.Except, exp.Intersect, exp.Subquery, exp.From, exp.Join, exp.Where,
    exp.Group, exp.Having, exp.Qualify, exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Fetch,
    exp.Distinct, exp.Alias, exp.TableAlias, exp.Table, exp.Identifier, exp.Column, exp.Star,
    exp.Values, exp.Tuple, exp.Paren, exp.Window, exp.WindowSpec, exp.Rollup, exp.Cube,
    exp.GroupingSets, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls,
)  # fmt: skip
_VALUES = (
    exp.Literal, exp.Boolean, exp.Null, exp.Interval, exp.Var, exp.DataType, exp.DataTypeParam,
    exp.Cast, exp.TryCast, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Neg,
    exp.Greatest, exp.Least,
)  # fmt: skip
_TESTS = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is,
    exp.Between, exp.In, exp.Exists, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Like, exp.ILike,
    exp.Escape, exp.StartsWith, exp.EndsWith, exp.Contains, exp.IsNan,
)  # fmt: skip
_NUMBERS = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Abs, exp.Ceil, exp.Floor,
    exp.Round, exp.Trunc, exp.Sign, exp.Sqrt, exp.Cbrt, exp.Exp, exp.Ln, exp.Log, exp.Pow,
    exp.Degrees, exp.Radians, exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan, exp.Atan2,
    exp.Pi, exp.SafeDivide, exp.WidthBucket,
)  # fmt: skip
# No function that makes a text longer but || and CONCAT, which ``_require_short`` limits.
_TEXTS = (
    exp.DPipe, exp.Concat, exp.ConcatWs, exp.Lower, exp.Upper, exp.Length, exp.Substring, exp.Left,
    exp.Right, exp.Trim, exp.StrPosition, exp.Initcap,
)  # fmt: skip
_TIMES = (
    exp.DateTrunc, exp.TimestampTrunc, exp.Extract, exp.Year, exp.Month, exp.Quarter, exp.Week,
    exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfWeekIso, exp.DayOfYear, exp.WeekOfYear,
    exp.Hour, exp.Minute, exp.Second, exp.DateDiff, exp.DateAdd, exp.DateSub, exp.TsOrDsAdd,
    exp.TsOrDsDiff, exp.LastDay, exp.TimeToStr, exp.StrToTime, exp.Dayname, exp.Monthname,
    exp.DateFromParts, exp.TimestampDiff, exp.TimestampAdd, exp.Date,
)  # fmt: skip
_AGGREGATES = (
    exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Stddev, exp.StddevPop,
    exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Median, exp.Quantile, exp.PercentileCont,
    exp.PercentileDisc, exp.Corr, exp.CovarPop, exp.CovarSamp, exp.ArgMax, exp.ArgMin,
    exp.AnyValue, exp.LogicalAnd, exp.LogicalOr, exp.Mode, exp.Skewness, exp.First, exp.Last,
    exp.RegrSlope, exp.RegrIntercept, exp.RegrR2, exp.RegrCount, exp.Grouping, exp.GroupingId,
)  # fmt: skip
_WINDOWS = (
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag,
    exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue,
)  # fmt: skip
ALLOWED: Collection[type[exp.Expr]] = frozenset(
    (*_CLAUSES, *_VALUES, *_TESTS, *_NUMBERS, *_TEXTS, *_TIMES, *_AGGREGATES, *_WINDOWS)
)
# Functions that the parser does not know.
_BY_NAME = frozenset({"even", "gcd", "lcm", "isfinite", "isinf", "product", "kurtosis", "mad"})
_TYPES = frozenset(
    {"TINYINT", "SMALLINT", "INT", "BIGINT", "INT128", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN",
     "DATE", "TIMESTAMP", "VARCHAR", "TEXT"}
)  # fmt: skip
_OF_A_QUERY = (
    "expressions", "from_", "joins", "where", "group", "having", "qualify", "order", "limit",
    "offset", "distinct", "windows",
)  # fmt: skip
_OF_A_SET = ("this", "expression", "distinct", "by_name", "order", "limit", "offset")
_OF_A_JOIN = ("this", "on", "using", "side", "kind", "method")
# The words in one statement that may be joined, and the operands of one join.
_MOST_JOINED = 64


def require_allowed(query: exp.Query, tables: Collection[str]) -> None:
    """Refuses anything in an outer statement that is not allowed; ``tables`` may be read.

    Guarantees:
        what is not allowed is refused

    Raises:
        UnsupportedSql: a clause, a function or a type that is not allowed.
        UnknownName: a table that is none of ``tables``.
    """
    joined = 0
    for node in query.walk():
        if type(node) is exp.Anonymous:
            if str(node.this).lower() not in _BY_NAME:
                raise reject(node)
        elif type(node) not in ALLOWED:
            raise reject(node)
        _require_plain(node, tables)
        if isinstance(node, exp.DPipe | exp.Concat | exp.ConcatWs):
            _require_outermost(node)
            joined += 1
    require_few(joined, "joined texts")


def _require_plain(node: exp.Expr, tables: Collection[str]) -> None:
    """Refuses what the arguments of an allowed node add to it."""
    if isinstance(node, exp.Table):
        if not isinstance(node.this, exp.Identifier):
            raise reject(node)
        require_only(node, "this", "alias")
        if node.name not in tables:
            raise UnknownName(f"No table {node.name!r}.", allowed="the answers in this statement")
    elif isinstance(node, exp.Select):
        require_only(node, *_OF_A_QUERY)
    elif isinstance(node, exp.SetOperation):
        require_only(node, *_OF_A_SET)
    elif isinstance(node, exp.Join):
        require_only(node, *_OF_A_JOIN)
    elif isinstance(node, exp.Limit | exp.Offset | exp.Fetch):
        count = node.args.get("count") or node.args.get("expression")
        if count is not None and not (isinstance(count, exp.Literal) and count.name.isdigit()):
            raise UnsupportedSql(
                f"{node.key.upper()} that is not a whole number.", remedy=f"{node.key.upper()} 10"
            )
    elif isinstance(node, exp.DataType):
        if node.this.name not in _TYPES or node.args.get("nested"):
            raise refuse(
                f"The type {node.sql('duckdb')}",
                ("is not computed on an answer", f"Types: {', '.join(sorted(_TYPES))}."),
            )
    elif isinstance(node, exp.Column):
        require_only(node, "this", "table")


def _require_outermost(node: exp.Expr) -> None:
    """Refuses || and CONCAT in a sub-query: texts joined again and again have no bound."""
    above = node.find_ancestor(exp.Select)
    if above is not None and above.find_ancestor(exp.Subquery, exp.Select) is not None:
        raise refuse(
            "Joining texts (|| or CONCAT) in a sub-query over answers",
            ("is not done", "Join them in the outermost SELECT."),
        )


def text_of_outer(query: exp.Query) -> str:
    """Returns the DuckDB SQL of an outer statement (over answers), with every name quoted.

    >>> from sqlglot import parse_one
    >>> text_of_outer(parse_one("SELECT a FROM t"))
    'SELECT "a" FROM "t"'
    """
    return query.sql(dialect="duckdb", identify=True)
