# SPDX-License-Identifier: Apache-2.0
"""An event survives its JSON form; what is not known is refused."""

import copy
import json
from fractions import Fraction
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration
from sfumato.noise import (
    Binomial,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
    Geometric,
    Noise,
    RoundedGaussian,
    Skellam,
    Truncated,
)
from sfumato.privacy import (
    AdditiveNoise,
    ApproxEvent,
    BestOf,
    BoundedRange,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Distance,
    Event,
    FixedSample,
    Group,
    NoisyMax,
    Nonadaptive,
    Norm,
    PoissonSample,
    PureEvent,
    RandomizedResponse,
    Relation,
    Repeated,
    Rule,
    Sampled,
    Selection,
    Shuffled,
    SparseVector,
    Stream,
    Thresholded,
    WithReplacementSample,
)
from sfumato.privacy.event import VERSION, event_from_json, event_to_json, serialization
from tests.contracts.events import COUNT, EACH, FORMS, LAPLACE, NOISE, ONE, SUM

AMOUNTS = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12)
COUNTS = st.integers(1, 10**9)
ENDS = st.integers(0, 2**70)
WHOLE = st.builds(DiscreteLaplace, AMOUNTS) | st.builds(
    lambda s: DiscreteGaussian(sigma_squared=s), AMOUNTS
)
NOISES = st.one_of(
    WHOLE,
    st.builds(lambda law, lower, upper: Truncated(law, -lower, upper), WHOLE, ENDS, ENDS),
    st.builds(lambda scale, upper: Truncated(Geometric(scale), 0, upper), AMOUNTS, ENDS),
    st.builds(
        DiscreteStaircase, AMOUNTS.filter(lambda epsilon: epsilon < 100), st.integers(1, 10**6)
    ),
    st.builds(
        Binomial,
        st.integers(1, 1000),
        st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999, 1000)),
    ),
    st.builds(Skellam, st.fractions(min_value=Fraction(1, 1000), max_value=1000)),
)
RELATIONS = st.sampled_from(Relation)
SCORES = st.builds(lambda value, relation: Distance(Norm.LINF, value, relation), AMOUNTS, RELATIONS)
ADDITIVE = st.builds(
    AdditiveNoise,
    NOISES,
    st.builds(Distance, st.sampled_from(Norm), AMOUNTS, RELATIONS),
    st.none() | COUNTS,
)
DESIGNS = st.one_of(
    st.builds(PoissonSample, st.fractions(min_value=Fraction(1, 10**9), max_value=1)),
    st.builds(lambda size, others: FixedSample(size, size + others), COUNTS, st.integers(0, 10**9)),
    st.builds(WithReplacementSample, COUNTS, COUNTS),
)
CONTINUOUS = st.builds(
    lambda law, scale, value, relation: ContinuousNoise(
        law, scale, Distance(Norm.L2 if law is ContinuousLaw.GAUSSIAN else Norm.L1, value, relation)
    ),
    st.sampled_from(ContinuousLaw),
    AMOUNTS,
    AMOUNTS,
    RELATIONS,
)
STREAMS = st.builds(
    lambda noise, part, most, apart: Stream(
        noise, most * apart, noise.distance.value * part, most, apart
    ),
    CONTINUOUS.filter(lambda noise: noise.law is ContinuousLaw.GAUSSIAN)
    | st.builds(
        lambda law, value: AdditiveNoise(law, Distance(Norm.L2, value)),
        st.builds(lambda s: DiscreteGaussian(sigma_squared=s), AMOUNTS),
        AMOUNTS,
    ),
    st.fractions(min_value=Fraction(1, 10**6), max_value=1),
    COUNTS,
    COUNTS,
)
LOCAL = st.builds(RandomizedResponse, AMOUNTS, st.integers(2, 10**9)) | st.builds(
    PureEvent, AMOUNTS, st.just(Relation.REPLACE_ONE)
)
LEAVES = st.one_of(
    ADDITIVE,
    st.builds(Selection, st.sampled_from(Rule), AMOUNTS, SCORES, st.booleans()),
    st.builds(NoisyMax, NOISES, SCORES, st.booleans(), st.booleans()),
    st.builds(SparseVector, NOISES, NOISES, SCORES, COUNTS, st.booleans(), st.booleans()),
    st.builds(RandomizedResponse, AMOUNTS, st.integers(2, 10**9)),
    st.builds(Thresholded, ADDITIVE, st.integers(), COUNTS),
    CONTINUOUS,
    STREAMS,
    st.builds(BoundedRange, AMOUNTS, RELATIONS),
    st.builds(PureEvent, AMOUNTS, RELATIONS),
    st.builds(
        ApproxEvent, AMOUNTS, st.fractions(min_value=0, max_value=Fraction(999, 1000)), RELATIONS
    ),
    st.builds(Shuffled, LOCAL, COUNTS),
)
EVENTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda events: Composed(tuple(events))),
        st.builds(Repeated, inner, COUNTS),
        st.builds(Nonadaptive, inner),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda events: BestOf(tuple(events), Fraction(1, 3), Fraction(1, 20))
        ),
        st.builds(Group, inner, COUNTS),
        st.builds(Sampled, DESIGNS, inner),
    ),
    max_leaves=5,
)

LAWS = [
    (LAPLACE, NOISE),
    ({"law": "discrete_gaussian", "sigma_squared": "7/3"}, DiscreteGaussian(sigma_squared="7/3")),
    (
        {"law": "discrete_staircase", "epsilon": "1/2", "sensitivity": 10, "step": 4},
        DiscreteStaircase("1/2", 10, 4),
    ),
    ({"law": "truncated", "whole": LAPLACE, "lower": -3, "upper": 5}, Truncated(NOISE, -3, 5)),
    (
        {"law": "truncated", "whole": {"law": "geometric", "scale": "2"}, "lower": 0, "upper": 5},
        Truncated(Geometric(2), 0, 5),
    ),
    ({"law": "binomial", "trials": 9, "probability": "1/3"}, Binomial(9, "1/3")),
    ({"law": "skellam", "rate": "5/2"}, Skellam("5/2")),
    ({"law": "rounded_gaussian", "sigma": "5/2"}, RoundedGaussian("5/2")),
]
# What may be left out, and then has the old meaning.
MAY_BE_ABSENT = {"relation", "cells", "monotone", "gap", "participations", "separation"}


def places(value, path=()):
    """The path to every entry of a form, however deep."""
    entries = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, part in entries:
        yield (*path, key)
        yield from places(part, (*path, key))


def changed(value, path, *, to=None, cut=False):
    """A copy of a form with one entry replaced, or cut away."""
    made = copy.deepcopy(value)
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    if cut:
        del holder[path[-1]]
    else:
        holder[path[-1]] = to
    return made


DAMAGED = [(name, path) for name, (written, _) in FORMS.items() for path in places(written)]


@given(EVENTS)
@settings(deadline=None)
def test_an_event_survives_its_json_form(original):
    assert event_from_json(json.loads(json.dumps(event_to_json(original)))) == original


def test_the_round_trip_notices_a_form_that_rounds(monkeypatch):
    rounded = serialization._Field("scale", lambda scale: str(float(scale)), serialization._number)
    monkeypatch.setitem(serialization._LAWS, "discrete_laplace", (DiscreteLaplace, (rounded,)))
    original = AdditiveNoise(DiscreteLaplace("1/3"), ONE)
    assert event_from_json(event_to_json(original)) != original


def test_the_round_trip_notices_a_flag_that_is_not_written(monkeypatch):
    make, fields = serialization._KINDS["noisy_max"]
    monkeypatch.setitem(
        serialization._KINDS,
        "noisy_max",
        (make, tuple(each for each in fields if each.name != "gap")),
    )
    original = NoisyMax(NOISE, EACH, gap=True)
    assert event_from_json(event_to_json(original)) != original


@pytest.mark.parametrize("name", FORMS)
def test_the_forms_of_version_one_are_for_ever(name):
    written, event = FORMS[name]
    assert event_to_json(event) == written
    assert event_from_json(written) == event


@pytest.mark.parametrize(("written", "law"), LAWS, ids=repr)
def test_the_laws_of_version_one_are_for_ever(written, law):
    event = AdditiveNoise(law, EACH, 4)
    assert event_to_json(event) == COUNT | {"noise": written}
    assert event_from_json(COUNT | {"noise": written}) == event


@pytest.mark.parametrize(("written", "law"), LAWS, ids=repr)
def test_a_damaged_law_raises(written, law):
    for path in places(written):
        for damaged in (changed(written, path, to="nonsense"), changed(written, path, cut=True)):
            with pytest.raises(InvalidDeclaration):
                event_from_json(COUNT | {"noise": damaged})
    with pytest.raises(InvalidDeclaration):
        event_from_json(COUNT | {"noise": written | {"later": "1"}})


def test_every_kind_has_its_form_and_every_form_is_tried():
    kinds, laws = (
        {make for make, _ in table.values()}
        for table in (serialization._KINDS, serialization._LAWS)
    )
    assert kinds == set(get_args(Event)) == {type(event) for _, event in FORMS.values()}
    assert (
        laws == set(get_args(Noise)) | {Geometric} == {type(law) for _, law in LAWS} | {Geometric}
    )
    assert VERSION == 1


@pytest.mark.parametrize(
    "name", [name for name in FORMS if name not in ("composed", "parallel", "shared")]
)
def test_what_is_false_or_usual_is_not_written(name):
    """So a field that came later leaves the older forms as they were."""
    written, event = FORMS[name]
    for entry in MAY_BE_ABSENT & set(written):
        shorter = {key: part for key, part in written.items() if key != entry}
        assert event_to_json(event_from_json(shorter)) == shorter
        assert event_from_json(shorter) != event


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "scrambled"},
        {"kind": None},
        {"kind": ["additive_noise"]},
        {"version": 0},
        {"version": 2},
        {"version": "1"},
        {"version": True},
        {"version": 1.0},
        {"version": None},
        {"norm": "L3"},
        {"norm": None},
        {"norm": []},
        {"relation": "friends"},
        {"relation": None},
        {"cells": "4"},
        {"cells": 4.0},
        {"cells": True},
        {"cells": None},
        {"noise": {"law": "laplace", "scale": "1"}},
        {"noise": {"law": "discrete_laplace"}},
        {"noise": {"law": "discrete_gaussian", "scale": "1"}},
        {"noise": LAPLACE | {"location": "3"}},
        {"noise": {"law": "discrete_laplace", "scale": "wide"}},
        {"noise": {"law": "discrete_laplace", "scale": "1/0"}},
        {"noise": {"law": "discrete_laplace", "scale": 2}},
        {"noise": {"law": "discrete_laplace", "scale": "-1"}},
        {"noise": "discrete_laplace"},
        {"noise": None},
        {"sensitivity": "nan"},
        {"sensitivity": "0"},
        {"sensitivity": 1},
        {"sensitivity": None},
        {"threshold": 7},
        {"distance": "1"},
        {"cells": -1},
        {"cells": 0},
    ],
    ids=str,
)
def test_an_unknown_event_raises(change):
    with pytest.raises(InvalidDeclaration) as caught:
        event_from_json(SUM | change)
    assert all(kind in caught.value.allowed for kind in serialization._KINDS)


@pytest.mark.parametrize(("name", "path"), DAMAGED, ids=lambda part: str(part))
def test_a_damaged_entry_raises(name, path):
    written, _ = FORMS[name]
    for nonsense in (None, "nonsense", 0.5, {}, [None]):
        with pytest.raises(InvalidDeclaration):
            event_from_json(changed(written, path, to=nonsense))


@pytest.mark.parametrize(("name", "path"), DAMAGED, ids=lambda part: str(part))
def test_a_missing_entry_raises_or_has_the_old_meaning(name, path):
    written, _ = FORMS[name]
    shorter = changed(written, path, cut=True)
    # a choice states as many weights as reports, and the best of nothing is none
    is_item = isinstance(path[-1], int) and name not in ("chosen report", "best of")
    # a share always states its cells
    may_be_absent = MAY_BE_ABSENT - ({"cells"} if name == "shared" else set())
    if path[-1] in may_be_absent or is_item:
        assert event_to_json(event_from_json(shorter)) == shorter
    else:
        with pytest.raises(InvalidDeclaration):
            event_from_json(shorter)


@pytest.mark.parametrize("name", FORMS)
def test_a_field_that_is_not_known_raises(name):
    written, _ = FORMS[name]
    parts = ("noise", "threshold_noise", "additive", "event", "design")
    inside = [
        path for path in places(written) if path[-1] in parts and path[-2:] != ("design", "design")
    ]
    for path in [*inside, ()]:
        with pytest.raises(InvalidDeclaration):
            event_from_json(changed(written, (*path, "later"), to="1"))


@pytest.mark.parametrize("value", [None, 1, "composed", [], [SUM], True, {}], ids=str)
def test_what_is_no_event_at_all_raises(value):
    with pytest.raises(InvalidDeclaration):
        event_from_json(value)


@pytest.mark.parametrize(
    "value",
    [
        FORMS["fixed"][0] | {"design": {"design": "fixed", "size": 5, "population": 4}},
        FORMS["fixed"][0] | {"design": {"design": "cluster", "size": 5, "population": 40}},
        FORMS["poisson"][0] | {"design": {"design": "poisson", "rate": "3/2"}},
        FORMS["exponential"][0] | {"norm": "L1"},
        FORMS["exponential"][0] | {"rate": "-1"},
        FORMS["noisy max"][0] | {"gap": 1},
        FORMS["response"][0] | {"categories": 1},
        FORMS["repeated"][0] | {"times": 0},
        FORMS["threshold"][0] | {"additive": FORMS["composed"][0]},
        FORMS["sparse vector"][0] | {"positives": 0},
        FORMS["with replacement"][0]
        | {"design": {"design": "with_replacement", "size": 0, "population": 4}},
        FORMS["continuous"][0] | {"norm": "L1"},
        FORMS["approximate"][0] | {"delta": "3/2"},
        FORMS["shuffled"][0] | {"event": SUM},
        FORMS["stream"][0] | {"noise": SUM},
        FORMS["stream"][0] | {"participations": 6},
    ],
    ids=str,
)
def test_an_event_that_cannot_be_is_not_read(value):
    with pytest.raises(InvalidDeclaration):
        event_from_json(value)


@pytest.mark.parametrize("value", [object(), None, LAPLACE, NOISE])
def test_what_is_no_event_is_not_written(value):
    with pytest.raises(InvalidDeclaration, match="does not know"):
        event_to_json(value)
