# SPDX-License-Identifier: Apache-2.0
"""Every kind of event has a relation and a cost, and an unknown one is refused by every
dispatch.
"""

from fractions import Fraction
from typing import get_args

import pytest

from sfumato.accounting.account import account, relations_of
from sfumato.accounting.curve import privacy_curve
from sfumato.accounting.gaussian_dp import mu_squared
from sfumato.accounting.odometer import ConcentratedFilter, Odometer
from sfumato.accounting.order_price import price
from sfumato.accounting.renyi import renyi
from sfumato.errors import InvalidDeclaration
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import (
    AdditiveNoise,
    Composed,
    Distance,
    Event,
    NoisyMax,
    Norm,
    PoissonSample,
    PureEvent,
    Relation,
    Repeated,
    Sampled,
    Thresholded,
)
from sfumato.privacy.event import event_to_json
from tests.contracts.events import ABOUT_VALUES, EACH_KIND

L1, L2, LINF = (Distance(norm, Fraction(1)) for norm in (Norm.L1, Norm.L2, Norm.LINF))


def test_the_list_holds_every_kind_of_event():
    assert {type(each) for each in EACH_KIND} == set(get_args(Event))


@pytest.mark.parametrize("event", EACH_KIND, ids=lambda event: type(event).__name__)
def test_every_event_states_its_relation_and_has_a_cost(event):
    wanted = Relation.REPLACE_ONE if isinstance(event, ABOUT_VALUES) else Relation.ADD_REMOVE
    assert relations_of(event) == {wanted}
    assert price(event, ()).rho > 0
    # what is proved for one relation is refused by books of the other
    (other,) = set(Relation) - {wanted}
    with pytest.raises(InvalidDeclaration):
        ConcentratedFilter(cap=Fraction(100), relation=other).admits(event)


class Unheard(PureEvent):
    """An event of which nothing is known: a subclass may mean something else."""


@pytest.mark.parametrize(
    "read",
    [
        account,
        relations_of,
        lambda event: renyi(event, 2),
        mu_squared,
        privacy_curve,
        event_to_json,
        lambda event: ConcentratedFilter(cap=Fraction(100)).admits(event),
        lambda event: Odometer().spend(event),
    ],
)
@pytest.mark.parametrize("event", [Unheard(Fraction(1)), "dp-sgd", None], ids=str)
def test_the_relation_of_an_unknown_event_is_refused(read, event):
    for each in (
        (event, Composed((event,)), Repeated(event, 2))
        if isinstance(event, PureEvent)
        else (event,)
    ):
        with pytest.raises(InvalidDeclaration):
            read(each)


def test_a_relation_that_is_silent_would_be_noticed(monkeypatch):
    monkeypatch.setattr("sfumato.accounting.odometer.relations_of", lambda event: set())
    assert ConcentratedFilter(cap=Fraction(100), relation=Relation.REPLACE_ONE).admits(
        PureEvent(Fraction(1))
    )


@pytest.mark.parametrize("written", ["0.1", 0.1, Fraction(1, 10)])
def test_a_known_loss_costs_exactly_itself(written):
    assert account(PureEvent(written)).epsilon == Fraction(1, 10)


@pytest.mark.parametrize(
    ("event", "remedy"),
    [
        (AdditiveNoise(DiscreteLaplace(2), L2), "Laplace noise takes L1"),
        (
            Sampled(PoissonSample(Fraction(1, 2)), AdditiveNoise(DiscreteGaussian(2), L2)),
            "privacy_curve",
        ),
        (Thresholded(AdditiveNoise(DiscreteLaplace(2), LINF, cells=2), 40, 1), "cells=1"),
        (NoisyMax(DiscreteGaussian(2), LINF), "DiscreteLaplace"),
    ],
)
def test_a_refusal_says_why_and_what_to_do(event, remedy):
    with pytest.raises(InvalidDeclaration) as refused:
        account(event)
    assert remedy in refused.value.remedy and ": " in refused.value.problem
