# SPDX-License-Identifier: Apache-2.0
"""RowList -> BoundedRows: the unit of the rows, and how many rows of a unit are read."""

from dataclasses import replace

from sfumato.plan.rows import BoundedRows, RowList
from sfumato.query.passes import Context
from sfumato.query.passes.prune import prune
from sfumato.query.passes.track import rows_in_all, whose


def rows(raw: RowList, context: Context) -> BoundedRows:
    """Bounds a list of rows: at most T rows of a unit are read.

    T is ``max_rows_total``, or ``max_rows`` times ``max_groups`` if that is less.

    Raises:
        MissingDeclaration: no limit bounds the rows of a unit.
    """
    relation = prune(raw.raw, context).relation
    unit, limits = whose(relation, context.dataset)
    most = rows_in_all(unit, limits, "rows beyond it are dropped, never refused.")
    return BoundedRows(replace(raw, relation=relation), unit, most, context.dataset.relation)
