# SPDX-License-Identifier: Apache-2.0
"""The oracle of least variance among those whose reports are small enough."""

import math

import pytest

import sfumato as sf
from sfumato.errors import InvalidDeclaration, InvalidNumber, TargetUnreachable
from sfumato.telemetry import report_task
from sfumato.telemetry.choose import candidates, chosen, spread
from sfumato.telemetry.oracles import bit, category, hashed, unary


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4])
def test_the_variances_are_those_of_the_literature(epsilon):
    odds = math.exp(epsilon)
    # Wang, Blocki, Li, Jha 2017; Acharya, Sun, Zhang 2019
    wanted = (odds + 62) / (odds - 1) ** 2
    assert math.isclose(spread(category(64, epsilon)), wanted, rel_tol=1e-9)
    assert math.isclose(spread(unary(64, epsilon)), 4 * odds / (odds - 1) ** 2, rel_tol=1e-9)
    assert math.isclose(spread(bit(64, epsilon)), ((odds + 1) / (odds - 1)) ** 2, rel_tol=1e-9)
    buckets = hashed(64, epsilon).buckets
    local = (odds + buckets - 1) ** 2 / ((odds - 1) ** 2 * (buckets - 1))
    assert math.isclose(spread(hashed(64, epsilon)), local, rel_tol=1e-6)


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", 1, 2, 4, 8])
@pytest.mark.parametrize("values", [2, 10, 100, 65_536])
@pytest.mark.parametrize("size", [4, 64, 10_000])
def test_the_first_has_the_least_variance_and_fits(epsilon, values, size):
    found = candidates(values, epsilon, size)
    assert all(one.oracle.size <= size for one in found)
    assert found[0].variance <= min(one.variance for one in found) * (1 + 1e-5)
    assert {one.oracle.values for one in found} == {values}


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", 1, 2, 4, 8])
@pytest.mark.parametrize("values", [2, 10, 100, 1000, 65_536])
@pytest.mark.parametrize("size", [4, 64])
def test_auto_takes_the_smallest_report_within_two_percent_of_the_least_error(
    epsilon, values, size
):
    taken = chosen(values, epsilon, size)
    errors = {each.oracle: math.sqrt(each.variance) for each in candidates(values, epsilon, size)}
    as_good = [each for each, error in errors.items() if error <= 1.02 * min(errors.values())]
    assert taken.oracle in as_good
    assert taken.oracle.size == min(each.size for each in as_good)
    task = report_task(
        "t", "?", range_of(values), epsilon=epsilon, report_bytes=size, start=0, periods=1
    )
    assert task.oracle == taken.oracle


def range_of(values):
    return sf.Integer(0, values - 1)


@pytest.mark.parametrize(("epsilon", "values"), [(4, 1 << 20), (1, 1 << 20), (0.5, 300_000)])
def test_the_chosen_one_is_near_unary_encoding(epsilon, values):
    unary_variance = 4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2
    assert candidates(values, epsilon)[0].variance <= 1.03 * unary_variance


def test_what_no_report_can_hold_is_refused():
    with pytest.raises(TargetUnreachable):
        candidates(1000, 1, report_bytes=1)
    with pytest.raises(InvalidNumber):
        candidates(1000, 0)
    with pytest.raises(InvalidDeclaration):
        candidates(1 << 31, 1)
    # the smallest epsilons are left to one bit
    assert {one.oracle.kind for one in candidates(1 << 20, "1e-9")} <= {"bit", "unary", "hashed"}
