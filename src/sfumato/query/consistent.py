# SPDX-License-Identifier: Apache-2.0
"""Makes the counts of an answer whole, non-negative and consistent with their totals.

``Answer.consistent`` uses it. This is post-processing and changes only how an answer is shown.
Cutting at zero makes small counts too large on average, and their totals too: it is meant for
reading; compute sums and means from the original answer.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import cast

from sfumato.plan.output import Output
from sfumato.plan.reading import Kind
from sfumato.plan.scalar import Estimate, Scalar
from sfumato.plan.statistic import Statistic
from sfumato.privacy.event import Json
from sfumato.query.estimate import AnyReleased

NOTE = (
    "Counts are shown as whole numbers of 0 or more, totals as sums of these; "
    "intervals are cut at 0."
)


def consistent_rows(
    form: Mapping[str, Json], output: Output, parts: Sequence[AnyReleased]
) -> list[list[Json]]:
    """Returns the rows of an answer with each noisy count rounded half up and at least 0.

    A total over several groups is the sum of their rounded counts, if the answer has rows for these
    groups. Columns other than counts are unchanged.

    Guarantees:
        consistent counts are whole and not negative
        a total agrees with its parts
    """
    released = cast(dict[str, Json], form["released"])
    order = cast(list[int], released["order"])
    members = cast(list[list[int]], released["members"])
    rows = [list(row) for row in cast(list[list[Json]], form["rows"])]
    for place, item in enumerate(output.items):
        if is_count(item.expression, parts):
            whole = _whole_counts(cast(Estimate, item.expression), parts, members)
            for line, row in enumerate(order):
                rows[line][place] = whole[row]
    return rows


def consistent_error(error: Json, value: Json) -> Json:
    """Returns an interval without its part below 0; the half-width is the larger distance of its
    ends from ``value``, the count shown.
    """
    if not isinstance(error, dict) or error["low"] is None or error["high"] is None:
        return error
    low = max(cast(float, error["low"]), 0)
    high = max(cast(float, error["high"]), 0)
    point = cast(float, value)
    return {
        **error,
        "low": low,
        "high": high,
        "half_width": max(point - low, high - point),
    }


def is_count(expression: Scalar, parts: Sequence[AnyReleased]) -> bool:
    """Returns whether a column is a released count itself, not an expression computed from one."""
    if not isinstance(expression, Estimate):
        return False
    part = parts[expression.index]
    plain = part.reading.kind is Kind.NUMBER and part.title.startswith("COUNT")
    return plain or expression.statistic is Statistic.COUNT


def _whole_counts(
    estimate: Estimate, parts: Sequence[AnyReleased], members: Sequence[Sequence[int]]
) -> list[int]:
    """The whole count of each row; a total is a sum if each of its groups is a row of the answer."""
    part = parts[estimate.index]
    counts = []
    for row in range(len(members)):
        rounded = math.floor(part.point(row, estimate.statistic) + Fraction(1, 2))
        counts.append(max(rounded, 0))
    of_group = {}
    for count, groups in zip(counts, members, strict=True):
        if len(groups) == 1:
            of_group[groups[0]] = count
    for row, groups in enumerate(members):
        if all(group in of_group for group in groups):
            counts[row] = sum(of_group[group] for group in groups)
    return counts
