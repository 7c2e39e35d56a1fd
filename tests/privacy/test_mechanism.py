# SPDX-License-Identifier: Apache-2.0
"""Every mechanism keeps the promise: the same methods, with the same parameters."""

import inspect
from fractions import Fraction

import pytest

from sfumato.mechanisms import AdditiveMechanism, gaussian, laplace
from sfumato.privacy import Distance, Mechanism, Norm

PROMISED = [
    name
    for name, _ in inspect.getmembers(Mechanism, inspect.isfunction)
    if not name.startswith("_")
]
MECHANISMS = [
    laplace(Distance(Norm.L1, Fraction(3)), "0.5"),
    gaussian(Distance(Norm.L2, Fraction(4)), "0.01"),
]


def test_the_promise_is_of_an_event_a_draw_a_release_and_an_error():
    assert PROMISED == ["draw", "error", "event", "release"]


@pytest.mark.parametrize("name", PROMISED)
def test_a_mechanism_takes_what_is_promised(name):
    promised = inspect.signature(getattr(Mechanism, name)).parameters
    kept = inspect.signature(getattr(AdditiveMechanism, name)).parameters
    assert list(kept) == list(promised)
    assert [each.default is inspect.Parameter.empty for each in kept.values()] == [
        each.default is inspect.Parameter.empty for each in promised.values()
    ]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_a_mechanism_draws_before_it_reads(mechanism: Mechanism):
    drawn = mechanism.draw(3)
    released = mechanism.release([10, -5, 0], drawn)
    assert [value - exact for value, exact in zip(released, [10, -5, 0], strict=True)] == list(
        drawn
    )
    assert mechanism.error("0.95") > 0
