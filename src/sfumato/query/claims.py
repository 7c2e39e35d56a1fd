# SPDX-License-Identifier: Apache-2.0
"""Checks the plan of a task against the declarations of the asker. Proof: claims.proof.md.

``charge.charged`` calls it before every charge, since a task from outside may state any plan.
"""

from sfumato.errors import WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.plan.cube import BoundedCube
from sfumato.plan.graph import BoundedGraph
from sfumato.plan.levels import Levels
from sfumato.plan.open_cube import OpenCube
from sfumato.plan.open_rows import OpenRows
from sfumato.plan.rows import BoundedRows
from sfumato.plan.stages import Bounded
from sfumato.privacy.distance import Norm
from sfumato.query.passes import Context
from sfumato.query.passes.graph import bound_graph
from sfumato.query.passes.track import track, whose
from sfumato.query.stability import distance, marginal, occupied
from sfumato.query.statistic import Plan


def require_proved(plan: Plan, declarations: Dataset) -> None:
    """Raises WrongUse unless the unit and the sensitivities that a plan states are those proved
    from the declarations.

    They are computed again from the declarations and compared.

    Guarantees:
        a plan that claims another distance than is proved is refused

    Raises:
        WrongUse: the plan states another unit or another distance.
        Refused: a pass finds that the declarations do not allow such a plan.
    """
    if not _is_proved(plan, declarations):
        raise WrongUse(
            "A plan that was not made for these declarations.",
            remedy="Compile it with compile_plan, compile_cube or compile_rows from "
            "session.dataset.",
        )


def _is_proved(plan: Plan, declarations: Dataset) -> bool:
    """Whether the units and distances of a plan are those computed from the declarations."""
    # a subclass could override equality
    known = Bounded, Levels, BoundedCube, BoundedRows, BoundedGraph, OpenCube, OpenRows
    if type(plan) not in known:
        return False
    try:
        match plan:
            case BoundedRows():
                return _rows_hold(plan, declarations)
            case BoundedGraph():
                return bound_graph(plan.relation, Context(declarations, Norm.L1)) == plan
            case BoundedCube():
                return _cube_holds(plan, declarations)
            case Levels():
                questions = plan.questions
                are_questions = all(type(each) is Bounded for each in questions)
                return are_questions and all(_is_proved(each, declarations) for each in questions)
            case OpenCube(opened, questions) | OpenRows(opened, questions):
                claimed: tuple[Plan, ...] = (opened, *questions)
                return all(_is_proved(each, declarations) for each in claimed)
            case _:
                return _question_holds(plan, declarations)
    except TypeError:
        # the rows are not read with their declared owner
        return False


def _question_holds(plan: Bounded, declarations: Dataset) -> bool:
    """Whether the unit, groups and distances of an aggregate query are the proved ones."""
    claimed = plan.tracked
    raw = plan.tracked.raw
    relation = declarations.relation
    tracked = track(raw, Context(declarations, plan.norm))
    if (claimed.unit, claimed.groups) != (tracked.unit, tracked.groups):
        return False
    if tuple(part.aggregate for part in plan.parts) != raw.aggregates:
        return False
    for part in plan.parts:
        proved = distance(part.aggregate, claimed, plan.norm, relation, plan.refinement)
        if part.distance != proved or part.groups != occupied(part.aggregate, claimed):
            return False
    return True


def _cube_holds(plan: BoundedCube, declarations: Dataset) -> bool:
    """Whether the unit and distances of a cube are the proved ones."""
    unit, _ = whose(plan.cube.relation, declarations)
    proved = [
        marginal(plan.most, plan.refinement, norm, declarations.relation)
        for norm in (Norm.L1, Norm.L2, Norm.LINF)
    ]
    return plan.unit == unit and [plan.l1, plan.l2, plan.apart] == proved


def _rows_hold(plan: BoundedRows, declarations: Dataset) -> bool:
    """Whether the unit and neighbour relation of a plan of rows are the declared ones."""
    unit, _ = whose(plan.rows.relation, declarations)
    return plan.unit == unit and plan.neighbours is declarations.relation
