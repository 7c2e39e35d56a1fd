# SPDX-License-Identifier: Apache-2.0
"""Vectors: the cost in the norm of the noise, and int64 arrays that saturate as proved."""

from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.mechanisms.additive import laplace
from sfumato.mechanisms.vector import VectorMechanism, add_saturating, vector
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import Distance, Norm, Relation
from sfumato.testing import Replay, assert_at_most

# the room exports a function of the same name
module = import_module("sfumato.mechanisms.vector")

MOST = 2**61
AMOUNTS = st.fractions(min_value=Fraction(1, 1000), max_value=1000)
STEPS = st.fractions(min_value=1, max_value=1000)
EDGES = [
    0,
    1,
    MOST - 1,
    MOST,
    MOST + 1,
    2**62 - 1,
    2**62,
    2**62 + 1,
    2**63 - 1,
    2**63,
    2**64,
    10**30,
]
NUMBERS = st.one_of(
    st.sampled_from([*EDGES, *(-edge for edge in EDGES)]), st.integers(-(10**20), 10**20)
)


def one(norm, value=1, relation=Relation.ADD_REMOVE):
    return Distance(norm, Fraction(value), relation)


@given(STEPS, AMOUNTS, st.integers(1, 50), st.sampled_from(Relation))
def test_a_vector_costs_its_sensitivity_in_the_norm_of_its_noise(value, cost, cells, relation):
    for norm, paid in (
        (Norm.L1, "epsilon"),
        (Norm.L2, "rho"),
        (Norm.LINF, "epsilon"),
        (Norm.LINF, "rho"),
    ):
        distance = one(norm, value, relation)
        mechanism = vector(distance, cells, **{paid: cost})
        event = mechanism.event(distance)
        assert event.noise is mechanism.additive.noise
        assert getattr(account(event), paid) == cost
        assert event.distance.relation is relation
        each = cells if norm is Norm.LINF else 1
        if paid == "epsilon":
            assert event.noise == DiscreteLaplace(each * value / cost)
        else:
            squared = cells * value**2 if norm is Norm.LINF else value
            assert event.noise == DiscreteGaussian(sigma_squared=squared / (2 * cost))


def test_an_entrywise_bound_taken_for_one_of_the_vector_is_noticed(monkeypatch):
    monkeypatch.setattr(
        module, "_summed", lambda distance, cells, norm: Distance(norm, distance.value)
    )
    mechanism = vector(one(Norm.LINF), 10, epsilon=1)
    assert mechanism.additive.noise != DiscreteLaplace(10)


@pytest.mark.parametrize(("norm", "paid"), [(Norm.L1, "rho"), (Norm.L2, "epsilon")])
def test_the_cost_of_the_other_norm_is_refused(norm, paid):
    with pytest.raises(InvalidDeclaration, match=norm.value):
        vector(one(norm), 3, **{paid: 1})
    mechanism = vector(one(Norm.LINF), 3, **{paid: 1})
    with pytest.raises(InvalidDeclaration, match=norm.value):
        mechanism.event(one(norm))


def test_exactly_one_cost_is_given():
    for costs in ({}, {"epsilon": 1, "rho": 1}):
        with pytest.raises(InvalidDeclaration, match="epsilon"):
            vector(one(Norm.L1), 3, **costs)
    for paid in ("epsilon", "rho"):
        with pytest.raises(InvalidNumber, match=paid):
            vector(one(Norm.LINF), 3, **{paid: 0})


@pytest.mark.parametrize("cells", [0, -1, True, 2.0, "3", None])
def test_a_number_of_cells_that_is_none_is_refused(cells):
    for norm in (Norm.L1, Norm.LINF):
        with pytest.raises(InvalidDeclaration, match="cells"):
            vector(one(norm), cells, epsilon=1)
    with pytest.raises(InvalidDeclaration, match="cells"):
        VectorMechanism(laplace(one(Norm.L1), 1), cells)


def clamp(value):
    return min(max(value, -MOST), MOST)


def as_python(exact, noise):
    """The clamp of the clamped exact integer and the noise, in Python's integers."""
    return [clamp(clamp(a) + b) for a, b in zip(exact, noise, strict=True)]


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=20))
@example(
    [
        (MOST, 2**62),
        (-MOST, 2**62),
        (MOST, -(2**62)),
        (-MOST, -(10**30)),
        (MOST, 10**30),
        (-(2**63), -(2**63)),
    ]
)
def test_a_saturated_release_is_the_clamp_of_the_exact_one(pairs):
    exact, noise = [a for a, _ in pairs], [b for _, b in pairs]
    expected = as_python(exact, noise)
    found = add_saturating(exact, noise)
    assert found.dtype == np.int64 and found.tolist() == expected
    assert add_saturating(np.array(exact, object), np.array(noise, object)).tolist() == expected
    narrow = (
        [min(max(each, -(2**63)), 2**63 - 1) for each in exact],
        [min(max(each, -(2**63)), 2**63 - 1) for each in noise],
    )
    assert add_saturating(*(np.array(each, np.int64) for each in narrow)).tolist() == as_python(
        *narrow
    )


def test_a_sum_that_wraps_around_is_noticed():
    with np.errstate(over="ignore"):
        wrapped = np.array([2**62], np.int64) + np.array([2**62], np.int64)
    assert wrapped.tolist() != add_saturating([2**62], [2**62]).tolist() == [MOST]


def test_saturation_at_the_output_bound_alone_is_noticed(monkeypatch):
    clamped = module._clamped
    monkeypatch.setattr(module, "_clamped", lambda values, limit: clamped(values, MOST))
    # -2^61 + 2^62 is 2^61; noise cut at 2^61 would give 0
    assert add_saturating([-MOST], [2**62]).tolist() == [0] != as_python([-MOST], [2**62])


@given(NUMBERS, NUMBERS)
def test_clamping_brings_no_neighbours_further_apart(a, b):
    assert abs(clamp(a) - clamp(b)) <= abs(a - b)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u8", "?", "O"])
def test_arrays_of_every_integer_dtype_are_exact(dtype):
    values = np.array([[0, 1], [1, 1]], dtype)
    assert add_saturating(values, values).tolist() == [[0, 2], [2, 2]]
    assert add_saturating(np.array([2**64 - 1], np.uint64), [-1]).tolist() == [MOST - 1]


@pytest.mark.parametrize("wrong", [[0.5], np.array([1.0]), [None], ["1"], np.array([1 + 2j])])
def test_what_is_no_integer_is_refused(wrong):
    with pytest.raises(InvalidDeclaration, match="integers"):
        add_saturating(wrong, [1])
    with pytest.raises(InvalidDeclaration, match="integers"):
        add_saturating([1], wrong)


def test_noise_of_another_shape_is_refused():
    mechanism = vector(one(Norm.L1), 3, epsilon=1)
    with pytest.raises(InvalidDeclaration, match="shape"):
        mechanism.release([1, 2, 3], drawn=[1, 2])
    with pytest.raises(InvalidDeclaration, match="shape"):
        # one draw for three cells would be broadcast by numpy
        add_saturating(np.array([1, 2, 3]), np.array([[5], [6], [7]]))
    for wrong in ([1, 2], [1, 2, 3, 4], []):
        with pytest.raises(InvalidDeclaration, match="3"):
            mechanism.release(wrong)


@pytest.mark.parametrize("paid", ["epsilon", "rho"])
def test_each_cell_gets_its_own_draw_of_the_noise_of_the_event(paid):
    mechanism = vector(one(Norm.LINF), 40, **{paid: "0.01"})
    drawn = mechanism.draw(Replay(4))
    assert drawn.tolist() == mechanism.event(one(Norm.LINF)).noise.sample(40, Replay(4)).tolist()
    assert len(set(drawn.tolist())) > 30
    assert mechanism.release([10] * 40, entropy=Replay(4)).tolist() == (drawn + 10).tolist()
    assert mechanism.release([10] * 40, drawn=drawn).tolist() == (drawn + 10).tolist()
    assert mechanism.release([10] * 40).tolist() != mechanism.release([10] * 40).tolist()


def test_noise_beyond_int64_saturates():
    mechanism = vector(one(Norm.L1, 2**70), 50, epsilon=1)
    assert mechanism.draw().dtype == object
    released = mechanism.release([0] * 50)
    assert released.dtype == np.int64 and set(np.abs(released).tolist()) >= {MOST}


def beyond(mechanism, half_width):
    entropy = Replay(6)
    missed = sum(bool((abs(mechanism.draw(entropy)) > half_width).any()) for _ in range(3000))
    assert_at_most(missed, 3000, 0.1, notices=0.22)


def test_the_error_holds_for_all_cells_at_once():
    mechanism = vector(one(Norm.L1), 20, epsilon="0.1")
    beyond(mechanism, mechanism.error("0.9"))


def test_the_error_of_one_cell_is_noticed():
    mechanism = vector(one(Norm.L1), 20, epsilon="0.1")
    with pytest.raises(AssertionError, match="was stated"):
        beyond(mechanism, mechanism.additive.error("0.9"))
