# SPDX-License-Identifier: Apache-2.0
"""Numbers and declarations that were once accepted, mistaken or endless."""

import pickle
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accounting import Charge, Gates
from sfumato.errors import (
    EngineFailed,
    InvalidDeclaration,
    InvalidNumber,
    SfumatoError,
    SqlSyntaxError,
)
from sfumato.exact.rational import to_fraction
from sfumato.exact.rounding import exp_down, exp_up
from sfumato.metadata import Boolean, Category, Dataset, Integer, Real, Table
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import Budget
from sfumato.privacy.event import event_from_json

LAPLACE = {"law": "discrete_laplace", "scale": "1"}
EVENT = {"kind": "additive_noise", "version": 1, "noise": LAPLACE, "norm": "L1", "sensitivity": "1"}


@pytest.mark.parametrize(
    "value", [10**5000, Fraction(1, 10**401), "1e400/1e-400"], ids=["long", "small", "ratio"]
)
def test_a_number_that_would_fill_a_page_is_refused(value):
    with pytest.raises(InvalidNumber):
        Budget(value)


def test_a_huge_bound_is_refused_without_being_printed():
    with pytest.raises(SfumatoError):
        Integer(10**5000, 0)


def test_a_numpy_float_is_its_shortest_decimal_too():
    assert to_fraction("x", np.float64(0.1)) == Fraction(1, 10)


@pytest.mark.parametrize("noise", [DiscreteLaplace("1e-6"), DiscreteGaussian("1e-4")])
def test_vanishing_noise_has_a_half_width_at_once(noise):
    assert noise.half_width(0.95) == 0


def test_exp_far_below_zero_is_bounded_at_once():
    assert 0 <= exp_down(Fraction(-(10**10))) <= exp_up(Fraction(-(10**10))) <= Fraction(1, 10**400)


@pytest.mark.parametrize("scale", ["1e6", "1e50", "1e60"])
def test_the_variance_of_a_huge_scale_is_twice_its_square(scale):
    found, square = DiscreteLaplace(scale).variance, float(scale) ** 2
    assert 1.99 * square < found.lower <= found.upper < 2.01 * square


def test_a_tail_below_every_float_is_not_overstated():
    assert DiscreteGaussian(2000).tail(80_000).lower == 0.0


@pytest.mark.parametrize(
    "change",
    [
        {"noise": {**LAPLACE, "scale": "-1"}},
        {"noise": {**LAPLACE, "scale": "1e99999999"}},
        {"version": True},
        {"version": 1.0},
    ],
    ids=["negative", "bomb", "true", "float"],
)
def test_a_damaged_event_is_refused(change):
    with pytest.raises(InvalidDeclaration):
        event_from_json({**EVENT, **change})


@pytest.mark.parametrize(
    "declare",
    [
        lambda: Integer(0, 1, missing=5),
        lambda: Boolean(true=1),
        lambda: Category({1.5: "a"}),
        lambda: Category({None: "a"}),
        lambda: Real("1.5", "2.5", step=1),
        lambda: Real(0, "1e390"),
        lambda: Table("x", columns=["a"]),
        lambda: Table("x", columns={1: Integer(0, 1)}),
        lambda: Dataset("x", {1: Table("a")}),
        lambda: Dataset("x", {"a": Table("a")}, version=2),
        lambda: Dataset("x", {"a": Table("a"), "A": Table("b")}),
    ],
)
def test_a_wrong_declaration_is_refused_as_one(declare):
    with pytest.raises(InvalidDeclaration):
        declare()


def test_a_category_may_have_one_value():
    assert Category("a").size == 1


def test_a_dataset_does_not_change_with_the_mapping_it_was_made_of():
    tables = {"a": Table("a")}
    dataset = Dataset("x", tables)
    tables["b"] = Table("b")
    assert list(dataset.tables) == ["a"]


def test_what_is_left_of_an_exhausted_account_is_nothing():
    assert Gates.of(Budget(1)).share(Charge(1, 1, 0), Charge(10**12, 0, 0)) is None


@pytest.mark.parametrize(
    "error", [SqlSyntaxError("a", line=1, column=2, remedy="b"), EngineFailed()]
)
def test_an_error_crosses_a_process_whole(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (type(error), str(error))
