# SPDX-License-Identifier: Apache-2.0
"""An event survives its JSON form; what is not known is refused."""

import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import AdditiveNoise, Composed, Distance, Norm, event
from sfumato.privacy.event import event_from_json, event_to_json

AMOUNTS = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12)
NOISES = st.builds(DiscreteLaplace, AMOUNTS) | st.builds(lambda s: DiscreteGaussian(sigma_squared=s), AMOUNTS)
ADDITIVE = st.builds(AdditiveNoise, NOISES, st.builds(Distance, st.sampled_from((Norm.L1, Norm.L2)), AMOUNTS))
EVENTS = st.recursive(ADDITIVE, lambda inner: st.lists(inner, max_size=4).map(lambda e: Composed(tuple(e))))


def plain() -> dict:
    """The JSON of a simple event, to be damaged."""
    return {
        "kind": "additive_noise",
        "version": 1,
        "noise": {"law": "discrete_laplace", "scale": "5/2"},
        "norm": "L1",
        "sensitivity": "1",
    }


@given(EVENTS)
@settings(deadline=None)
def test_an_event_survives_its_json_form(original):
    assert event_from_json(json.loads(json.dumps(event_to_json(original)))) == original


def test_the_round_trip_notices_a_form_that_rounds(monkeypatch):
    monkeypatch.setattr(
        event, "_noise_to_json", lambda noise: {"law": "discrete_laplace", "scale": str(float(noise.scale))}
    )
    original = AdditiveNoise(DiscreteLaplace("1/3"), Distance(Norm.L1, Fraction(1)))
    assert event_from_json(event_to_json(original)) != original


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "sparse_vector"},
        {"kind": None},
        {"kind": ["additive_noise"]},
        {"version": 0},
        {"version": 2},
        {"version": "1"},
        {"version": None},
        {"norm": "Linf"},
        {"norm": None},
        {"norm": []},
        {"noise": {"law": "laplace", "scale": "1"}},
        {"noise": {"law": "discrete_laplace"}},
        {"noise": {"law": "discrete_gaussian", "scale": "1"}},
        {"noise": {"law": "discrete_laplace", "scale": "wide"}},
        {"noise": {"law": "discrete_laplace", "scale": "1/0"}},
        {"noise": "discrete_laplace"},
        {"noise": None},
        {"sensitivity": "nan"},
        {"sensitivity": None},
    ],
    ids=str,
)
def test_an_unknown_event_raises(change):
    with pytest.raises(InvalidDeclaration) as caught:
        event_from_json(plain() | change)
    assert "additive_noise, composed" in caught.value.allowed or "composed, additive_noise" in caught.value.allowed


@pytest.mark.parametrize("missing", ["kind", "version", "noise", "norm", "sensitivity"])
def test_an_event_with_a_part_missing_raises(missing):
    form = plain()
    del form[missing]
    with pytest.raises(InvalidDeclaration):
        event_from_json(form)


@pytest.mark.parametrize("form", [None, 1, "composed", [], [plain()], True, {}], ids=str)
def test_what_is_no_event_at_all_raises(form):
    with pytest.raises(InvalidDeclaration):
        event_from_json(form)


@pytest.mark.parametrize("events", [None, "additive_noise", {}, [{}], [plain() | {"version": 2}]], ids=str)
def test_an_unknown_part_of_a_composition_raises(events):
    with pytest.raises(InvalidDeclaration):
        event_from_json({"kind": "composed", "version": 1, "events": events})


def test_the_forms_of_version_one_are_for_ever():
    laplace = AdditiveNoise(DiscreteLaplace("5/2"), Distance(Norm.L1, Fraction(1)))
    gaussian = AdditiveNoise(DiscreteGaussian(sigma_squared="7/3"), Distance(Norm.L2, Fraction(25)))
    forms = [
        plain(),
        plain() | {"noise": {"law": "discrete_gaussian", "sigma_squared": "7/3"}, "norm": "L2", "sensitivity": "25"},
    ]
    assert [event_to_json(laplace), event_to_json(gaussian)] == forms
    assert event_to_json(Composed((laplace, gaussian))) == {"kind": "composed", "version": 1, "events": forms}
    assert event_from_json({"kind": "composed", "version": 1, "events": forms}) == Composed((laplace, gaussian))
