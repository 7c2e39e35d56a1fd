# SPDX-License-Identifier: Apache-2.0
"""Counts as counts are: whole, not negative, in agreement with their totals. Post-processing.

The noise is in the answer for good; this changes how it is shown. Cutting at zero makes
small counts too large on average, and totals of them too: an answer for the eye, while sums
and means are better made of the plain one.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import cast

from sfumato.plan.output import Output
from sfumato.plan.scalar import Estimate, Scalar
from sfumato.plan.statistic import Statistic
from sfumato.privacy.event import Json
from sfumato.query.estimate import Kind, Released

NOTE = "Counts are shown as whole numbers of 0 or more, totals as sums of these; intervals are cut at 0."


def consistent_rows(
    form: Mapping[str, Json], output: Output, parts: Sequence[Released]
) -> list[list[Json]]:
    """The rows of an answer with each count rounded, half up, and cut at 0.

    A total of groups is the sum of the rounded counts that it was made of, where the answer
    released these too. Other columns stay as they are.

    Guarantees:
        consistent counts are whole and not negative
        a total agrees with its parts
    """
    released = cast(dict[str, Json], form["released"])
    order, members = cast(list[int], released["order"]), cast(list[list[int]], released["members"])
    rows = [list(row) for row in cast(list[list[Json]], form["rows"])]
    for place, item in enumerate(output.items):
        if is_count(item.expression, parts):
            whole = _whole(cast(Estimate, item.expression), parts, members)
            for line, row in enumerate(order):
                rows[line][place] = whole[row]
    return rows


def consistent_error(error: Json, value: Json) -> Json:
    """An interval cut at 0, and how far the shown value may be from the truth."""
    if not isinstance(error, dict) or error["low"] is None or error["high"] is None:
        return error
    low, high = (max(cast(float, error[end]), 0) for end in ("low", "high"))
    return {
        **error,
        "low": low,
        "high": high,
        "half_width": max(cast(float, value) - low, high - cast(float, value)),
    }


def is_count(expression: Scalar, parts: Sequence[Released]) -> bool:
    """Whether a column is a released count as it is."""
    if not isinstance(expression, Estimate):
        return False
    part = parts[expression.index]
    plain = part.reading.kind is Kind.NUMBER and part.title.startswith("COUNT")
    return plain or expression.statistic is Statistic.COUNT


def _whole(
    estimate: Estimate, parts: Sequence[Released], members: Sequence[Sequence[int]]
) -> list[int]:
    """The count of every row; a total from its groups where each of them is a row of its own."""
    part = parts[estimate.index]
    alone = [
        max(math.floor(part.point(row, estimate.statistic) + Fraction(1, 2)), 0)
        for row in range(len(members))
    ]
    of_group = {each[0]: alone[row] for row, each in enumerate(members) if len(each) == 1}
    return [
        sum(of_group[group] for group in each)
        if all(group in of_group for group in each)
        else alone[row]
        for row, each in enumerate(members)
    ]
