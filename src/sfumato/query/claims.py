# SPDX-License-Identifier: Apache-2.0
"""What a plan claims, worked out again from the declarations of who asks. Proof: claims.proof.md."""

from sfumato.errors import WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.plan.cube import BoundedCube
from sfumato.plan.rows import BoundedRows
from sfumato.plan.stages import Bounded
from sfumato.privacy.distance import Norm
from sfumato.query.passes import Context
from sfumato.query.passes.track import track, whose
from sfumato.query.stability import distance, marginal, occupied
from sfumato.query.statistic import Plan


def require_proved(plan: Plan, declarations: Dataset) -> None:
    """Refuses a plan about other units than the declared ones, or with a distance that is not the proved one.

    Guarantees:
        a plan that claims another distance than is proved is refused

    Raises:
        WrongUse: it does.
        Refused: as the passes, where the declarations do not allow such a plan.
    """
    if not _is_proved(plan, declarations):
        raise WrongUse(
            "A plan that was not made for these declarations.",
            remedy="Compile it with compile_plan, compile_cube or compile_rows from session.dataset.",
        )


def _is_proved(plan: Plan, declarations: Dataset) -> bool:
    # a subclass could say of itself that it equals another plan
    if type(plan) not in (Bounded, BoundedCube, BoundedRows):
        return False
    try:
        match plan:
            case BoundedRows():
                return _rows_hold(plan, declarations)
            case BoundedCube():
                return _cube_holds(plan, declarations)
            case _:
                return _question_holds(plan, declarations)
    except TypeError:
        # rows that are not read with their declared owner
        return False


def _question_holds(plan: Bounded, declarations: Dataset) -> bool:
    claimed, raw, relation = plan.tracked, plan.tracked.raw, declarations.relation
    tracked = track(raw, Context(declarations, plan.norm))
    if (claimed.unit, claimed.groups) != (tracked.unit, tracked.groups):
        return False
    if tuple(part.aggregate for part in plan.parts) != raw.aggregates:
        return False
    return all(
        part.distance == distance(part.aggregate, claimed, plan.norm, relation, plan.refinement)
        and part.groups == occupied(part.aggregate, claimed)
        for part in plan.parts
    )


def _cube_holds(plan: BoundedCube, declarations: Dataset) -> bool:
    unit, _ = whose(plan.cube.relation, declarations)
    proved = [
        marginal(plan.most, plan.refinement, norm, declarations.relation)
        for norm in (Norm.L1, Norm.L2, Norm.LINF)
    ]
    return plan.unit == unit and [plan.l1, plan.l2, plan.apart] == proved


def _rows_hold(plan: BoundedRows, declarations: Dataset) -> bool:
    unit, _ = whose(plan.rows.relation, declarations)
    return plan.unit == unit and plan.neighbours is declarations.relation
