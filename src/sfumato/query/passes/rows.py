# SPDX-License-Identifier: Apache-2.0
"""RowList -> BoundedRows: the unit of the rows, and how many rows of a unit are read."""

from dataclasses import replace

from sfumato.plan.rows import BoundedRows, RowList
from sfumato.query.passes import Context
from sfumato.query.passes.prune import prune
from sfumato.query.passes.track import rows_in_all, whose


def rows(
    raw: RowList,
    context: Context,
    *,
    most: int | None = None,
    naming: str = "",
) -> BoundedRows:
    """Returns the plan that reads a list of rows, at most T of each unit.

    T is ``most`` if it is given; else ``max_rows_total``, or ``max_rows`` times ``max_groups`` if
    that is less. With ``naming``, the units of the rows are named.

    Raises:
        MissingDeclaration: no limit bounds the rows of a unit.
    """
    relation = prune(raw.raw, context).relation
    unit, limits = whose(relation, context.dataset)
    if most is None or unit is None:
        most = rows_in_all(unit, limits, "rows beyond it are dropped, never refused.")
    bounded = replace(raw, relation=relation)
    return BoundedRows(bounded, unit, most, context.dataset.relation, naming)
