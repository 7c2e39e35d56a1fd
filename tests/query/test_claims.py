# SPDX-License-Identifier: Apache-2.0
"""Plans that claim what nobody has proved are refused before anything is charged."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import SfumatoError, WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.plan.cube import BoundedCube
from sfumato.plan.open_cube import OpenCube
from sfumato.plan.stages import Bounded
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Composed
from sfumato.query import charge
from sfumato.query.claims import require_proved
from sfumato.query.marginals import marginal_cube
from sfumato.query.pipeline import compile_plan
from sfumato.sql.lower import understand
from tests.contracts import corpus
from tests.contracts.people import dataset, session
from tests.contracts.tasks import Probe, adding, cells, plan_of

UNIT = sf.Unit("person", max_rows=2, max_groups=2)


def declared(relation: object = sf.AddRemove) -> Dataset:
    return dataset(unit=UNIT, relation=relation)


def question() -> Bounded:
    return plan_of(unit=UNIT)


def cube() -> BoundedCube:
    return marginal_cube(declared(), "people", [("sex",), ("age",)])


def closer(plan: Bounded) -> Bounded:
    part = plan.parts[0]
    return replace(plan, parts=(replace(part, distance=replace(part.distance, value=Fraction(1))),))


class Agreeable(Bounded):
    """Says of itself that it equals any plan."""

    __slots__ = ()
    __hash__ = Bounded.__hash__

    def __eq__(self, other: object) -> bool:
        return True


def agreeable() -> Bounded:
    plan = question()
    return Agreeable(plan.tracked, plan.norm, plan.refinement, plan.parts)


FORGED: dict[str, Callable[[], object]] = {
    "a smaller distance": lambda: closer(question()),
    "fewer groups a unit": lambda: replace(
        question(), parts=(replace(question().parts[0], groups=1),)
    ),
    "fewer groups": lambda: replace(question(), tracked=replace(question().tracked, groups=1)),
    "rows as units": lambda: plan_of(),
    "another relation": lambda: plan_of(unit=UNIT, relation=sf.ReplaceOne),
    "another part": lambda: replace(
        question(),
        parts=plan_of("SELECT sex, COUNT(age) AS n FROM people GROUP BY sex", unit=UNIT).parts,
    ),
    "a subclass": agreeable,
    "no plan": lambda: None,
    "no parts": lambda: replace(question(), parts=()),
    "a smaller marginal": lambda: replace(cube(), l1=replace(cube().l1, value=Fraction(1))),
    "a smaller square": lambda: replace(cube(), l2=replace(cube().l2, value=Fraction(1))),
    "a cube of rows": lambda: marginal_cube(dataset(), "people", [("sex",), ("age",)]),
    "an open cube": lambda: OpenCube(replace(cube(), l1=replace(cube().l1, value=Fraction(1)))),
    "a question of an open cube": lambda: OpenCube(cube(), (closer(question()),)),
    "a cube of another relation": lambda: marginal_cube(
        declared(sf.ReplaceOne), "people", [("sex",), ("age",)]
    ),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_plan_that_claims_another_distance_than_is_proved_is_refused(what: str) -> None:
    with pytest.raises(SfumatoError):
        require_proved(FORGED[what](), declared())


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_what_the_passes_make_is_taken(norm: Norm) -> None:
    require_proved(cube(), declared())
    require_proved(OpenCube(cube(), (question(),)), declared())
    for each in corpus.statements():
        if each.verdict == "answered":
            asked = understand(
                each.text, corpus.DATASET, today=corpus.TODAY, scalars=lambda _: Fraction(1)
            )
            plan = compile_plan(asked.raw, corpus.DATASET, norm)
            require_proved(plan, corpus.DATASET)
            for place in range(len(plan.parts)):
                require_proved(plan.only([place]), corpus.DATASET)


def forged_task() -> Probe:
    """A measurement with noise for a smaller distance than the plan has."""
    plan = closer(question())
    return Probe(
        plan,
        Composed((adding(plan).event(plan.parts[0].distance),)),
        lambda curator: b"%d %d" % curator.measure(cells(plan), adding(plan)),
    )


def test_a_task_with_a_forged_plan_is_refused_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session(tmp_path, unit=UNIT) as opened:
        with pytest.raises(WrongUse):
            opened.ask(forged_task())
        assert opened.budget.spent == "0"
        # a door that does not look is noticed
        monkeypatch.setattr(charge, "require_proved", lambda plan, declarations: None)
        assert opened.ask(forged_task()).body
