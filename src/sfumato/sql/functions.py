# SPDX-License-Identifier: Apache-2.0
"""The aggregates that are allowed; no other function is."""

from sqlglot import exp

from sfumato.errors import MissingDeclaration, UnsupportedSql
from sfumato.metadata.column import Boolean, Column, Integer, Real, Text
from sfumato.plan.aggregate import Aggregate, CountRows, CountUnits, CountValues, Mean, Sum
from sfumato.sql.names import Scope
from sfumato.sql.reject import refuse, reject, require_only


def aggregate(node: exp.Expr, scope: Scope) -> Aggregate | None:
    """The aggregate that a node calls; None if it calls none. Others are refused."""
    if isinstance(node, exp.Count):
        return _count(node, scope)
    if isinstance(node, exp.Sum | exp.Avg):
        require_only(node, "this")
        kind = Sum if isinstance(node, exp.Sum) else Mean
        return kind(_number(node, scope))
    if isinstance(node, exp.AggFunc):
        raise reject(node)
    return None


def _count(node: exp.Count, scope: Scope) -> Aggregate:
    require_only(node, "this", "big_int")
    inner = node.this
    if isinstance(inner, exp.Star) or (isinstance(inner, exp.Literal) and not inner.is_string):
        return CountRows()
    if isinstance(inner, exp.Distinct):
        return _distinct(inner, scope)
    if isinstance(inner, exp.Column):
        return CountValues(scope.column(inner))
    raise reject(inner)


def _distinct(node: exp.Distinct, scope: Scope) -> Aggregate:
    columns = node.expressions
    if len(columns) == 1 and scope.is_unit(columns[0]):
        return CountUnits()
    if scope.table.unit is None:
        raise UnsupportedSql(
            "COUNT(DISTINCT ...) on a table where each row is one person.",
            remedy="COUNT(*) counts the persons; GROUP BY column counts by value.",
        )
    raise UnsupportedSql(
        "COUNT(DISTINCT ...) of another column than the unit is not answered by this version.",
        remedy=f"COUNT(DISTINCT {scope.table.unit.column}) counts the persons; GROUP BY column counts by value.",
    )


def _number(node: exp.Sum | exp.Avg, scope: Scope) -> Column:
    name = "SUM" if isinstance(node, exp.Sum) else "AVG"
    if not isinstance(node.this, exp.Column):
        if isinstance(node.this, exp.Distinct):
            raise refuse(f"{name}(DISTINCT ...)", ("is not answered by this version", f"{name}(column)"))
        raise reject(node.this)
    column = scope.column(node.this)
    if isinstance(column.type, Integer | Real | Boolean):
        return column
    if isinstance(column.type, Text):
        raise MissingDeclaration(
            f"{name}({column.name}) needs declared bounds, and {column.name!r} is declared as {column.type!r}.",
            allowed="sf.Integer(lower, upper) or sf.Real(lower, upper)",
            remedy=f"Declare columns={{{column.name!r}: sf.Real(lower, upper)}} with bounds that are public.",
        )
    raise UnsupportedSql(
        f"{name} of {column.name!r}, which is declared as {column.type!r}.",
        allowed="a number or a Boolean (its AVG is a share)",
        remedy=f"GROUP BY {column.name} to count its values.",
    )
