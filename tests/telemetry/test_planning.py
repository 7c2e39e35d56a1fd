# SPDX-License-Identifier: Apache-2.0
"""The least epsilon for an error, against the formula of one oracle."""

import math

import pytest

from sfumato.errors import TargetUnreachable, WrongUse
from sfumato.telemetry import plan
from sfumato.telemetry.choose import candidates


@pytest.mark.parametrize("error", [500, 2000, 20_000])
def test_the_plan_keeps_the_error_and_a_thousandth_less_does_not(error):
    found = plan([f"v{number}" for number in range(999)], 10**6, error=error)
    assert found.error <= error
    variance = candidates(1000, float(found.epsilon) - 0.001)[0].variance
    assert 1.959963985 * math.sqrt(10**6 * variance) > error


def test_more_devices_need_more_for_the_same_error():
    few, many = (plan(["a", "b"], devices, error=300) for devices in (10_000, 1_000_000))
    assert few.epsilon < many.epsilon
    assert "300 of 10,000 devices" in str(few)


def test_an_error_that_cannot_be_kept_is_refused():
    with pytest.raises(TargetUnreachable, match="Ask more devices"):
        plan(["a", "b"], 10**9, error="1e-3")
    for devices in (0, 1.5, None, True):
        with pytest.raises(WrongUse):
            plan(["a"], devices, error=10)
