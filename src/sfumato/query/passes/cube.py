# SPDX-License-Identifier: Apache-2.0
"""Cube -> BoundedCube: one weight for each row, and the distance of every marginal."""

from dataclasses import replace

from sfumato.plan.cube import BoundedCube, Cube
from sfumato.privacy.distance import Norm
from sfumato.query.passes import Context
from sfumato.query.passes.prune import prune
from sfumato.query.passes.track import rows_in_all, whose
from sfumato.query.stability import full_weight, marginal


def cube(raw: Cube, context: Context) -> BoundedCube:
    """Returns a cube (contingency table) in which the contribution of each unit is bounded by
    weights.

    At most T rows of a unit count fully; if a unit has more, each of its rows gets less weight. T
    is ``max_rows_total``, or ``max_rows`` times ``max_groups`` if that is less.

    Raises:
        MissingDeclaration: no limit bounds the rows of a unit.
    """
    relation = prune(raw.raw, context).relation
    unit, limits = whose(relation, context.dataset)
    most = rows_in_all(unit, limits, "rows beyond it are weighed down, never refused.")
    fine = full_weight(unit, relation)
    neighbours = context.dataset.relation
    moved = (marginal(most, fine, norm, neighbours) for norm in (Norm.L1, Norm.L2, Norm.LINF))
    return BoundedCube(replace(raw, relation=relation), unit, most, fine, *moved)
