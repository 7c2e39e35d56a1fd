# SPDX-License-Identifier: Apache-2.0
"""Copies of frozen values: equal, of exact types, and of classes of sfumato alone."""

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.values import copied, is_ours, is_same
from sfumato.metadata.column import Column
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.plan.cube import BoundedCube
from sfumato.plan.scalar import Constant, Member
from sfumato.plan.stages import Bounded
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import AdditiveNoise, Event, PureEvent
from sfumato.privacy.unit import Relation
from tests.contracts.events import EACH_KIND
from tests.contracts.plans import bounded, questions
from tests.contracts.tasks import cells, plan_of


def equals_anything(kind: type) -> Any:
    """A class whose values equal everything, and have the hash of what they stand for."""
    return type("Lie", (kind,), {"__eq__": lambda self, other: True, "__hash__": kind.__hash__})


class Metaclass(type):
    """A class of classes that equal int."""

    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return hash(int)


class LyingClass(int, metaclass=Metaclass):
    """An int whose class equals int."""


def subclass_of(value: Any) -> Any:
    """The same frozen value, of a subclass."""
    made = object.__new__(equals_anything(type(value)))
    for field in dataclasses.fields(value):
        object.__setattr__(made, field.name, getattr(value, field.name))
    return made


def parts(value: Any) -> list[Any]:
    """Every part of a value: of tuples, of fractions and of dataclasses."""
    inner: list[Any] = []
    if isinstance(value, tuple):
        inner = list(value)
    elif isinstance(value, Fraction):
        inner = [value.numerator, value.denominator]
    elif dataclasses.is_dataclass(value):
        inner = [getattr(value, each.name) for each in dataclasses.fields(value) if each.compare]
    return [value, *(each for part in inner for each in parts(part))]


LIES: dict[str, Callable[[], object]] = {
    "a code": lambda: ((equals_anything(int)(1),),),
    "a truth": lambda: (np.bool_(True),),
    "a name": lambda: ("a", equals_anything(str)("b")),
    "a tuple": lambda: equals_anything(tuple)((1, 2)),
    "a list": lambda: ([1, 2],),
    "a fraction": lambda: equals_anything(Fraction)(1, 2),
    "a class that equals int": lambda: (LyingClass(1),),
    "a plan": lambda: subclass_of(plan_of()),
    "a part of a plan": lambda: dataclasses.replace(
        plan_of(), parts=tuple(map(subclass_of, plan_of().parts))
    ),
    "a number in a plan": lambda: dataclasses.replace(
        plan_of(), refinement=equals_anything(int)(1)
    ),
    "a code in an expression": lambda: Member(Constant(1), (equals_anything(int)(1),)),
    "an array of objects": lambda: np.array([equals_anything(int)(1)], object),
    "a class of the name of one of sfumato": lambda: type(
        "Distance", (), {"__module__": "sfumato.privacy.distance"}
    )(),
}


@pytest.mark.parametrize("lie", LIES)
def test_every_part_of_a_copy_has_exactly_its_type(lie: str) -> None:
    with pytest.raises(InvalidDeclaration):
        copied(LIES[lie]())


@given(questions().flatmap(bounded))
def test_a_copy_of_a_plan_is_equal_and_shares_nothing_that_can_be_written(plan: Bounded) -> None:
    copy = copied(plan)
    assert copy == plan and is_same(plan, copy) and is_same(copy, plan)
    own = {id(part) for part in parts(copy) if dataclasses.is_dataclass(part)}
    assert not own & {id(part) for part in parts(plan)}


@pytest.mark.parametrize("event", EACH_KIND, ids=lambda event: type(event).__name__)
def test_a_copy_of_an_event_is_equal(event: Event) -> None:
    copy = copied(event)
    assert copy == event and copy is not event and is_same(event, copy)


def test_a_copy_has_a_sampler_of_its_own() -> None:
    noise = DiscreteLaplace(3)
    object.__setattr__(noise, "_sampler", None)
    assert len(copied(noise).sample(4)) == 4


def test_what_its_class_refuses_is_not_copied() -> None:
    sex = Value.of(Column("sex", sf.Category("F", "M")))
    key = GroupKey(sex, (0, 1))
    object.__setattr__(key, "codes", (0, 0))
    with pytest.raises(InvalidDeclaration):
        copied(key)
    rate = PureEvent(Fraction(1))
    object.__setattr__(rate, "epsilon", Fraction(-1))
    with pytest.raises(InvalidNumber):
        copied(rate)
    relation = object.__new__(Relation)
    relation._name_, relation._value_ = "ADD_REMOVE", "add-remove"
    with pytest.raises(InvalidDeclaration):
        copied(Distance(Norm.L1, Fraction(1), relation))


def test_a_part_that_is_known_is_not_copied_again() -> None:
    plan = plan_of()
    own = copied(plan)
    statistic = copied(cells(plan), {id(plan): own})
    assert statistic.plan is own and statistic == cells(own)


ONE = AdditiveNoise(DiscreteLaplace(3), Distance(Norm.L1, Fraction(1)))


def test_what_is_the_same_has_the_same_types() -> None:
    assert is_same(AdditiveNoise(DiscreteLaplace(3), Distance(Norm.L1, Fraction(1))), ONE)
    others = [
        AdditiveNoise(DiscreteLaplace(4), ONE.distance),
        AdditiveNoise(DiscreteGaussian(sigma_squared=3), ONE.distance),
        AdditiveNoise(ONE.noise, ONE.distance, 1),
        subclass_of(ONE),
        AdditiveNoise(subclass_of(ONE.noise), ONE.distance),
    ]
    assert not any(is_same(other, ONE) for other in others)
    assert is_same((1, "a"), (1, "a")) and not is_same((1, "a"), (True, "a"))
    assert not is_same((1,), (1, 1)) and not is_same((equals_anything(int)(2),), (1,))
    assert not is_same(equals_anything(Fraction)(2), Fraction(1))
    assert is_same(((1,), ONE), ((1,), ONE)) and not is_same(((1,), ONE), ((2,), ONE))


@given(st.lists(st.tuples(st.integers(), st.text()) | st.integers()))
def test_equality_of_exact_tuples_is_that_of_python(items: list[object]) -> None:
    value = tuple(items)
    assert copied(value) == value and is_same(value, tuple(items))


def test_classes_outside_are_not_ours() -> None:
    assert is_ours(BoundedCube) and is_ours(Relation)
    assert (
        not is_ours(subclass_of(ONE).__class__)
        and not is_ours(int)
        and not is_ours(type(ONE.noise).__class__)
    )


def test_a_class_of_a_module_that_is_not_loaded_is_not_ours() -> None:
    forged = type("Forged", (), {"__module__": "sfumato.exact.missing"})
    assert not is_ours(forged)
    with pytest.raises(InvalidDeclaration, match="A value of type Forged"):
        copied(forged())
