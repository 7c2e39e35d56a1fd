# SPDX-License-Identifier: Apache-2.0
"""The number of examples of a property test: 25 for a change, 500 in ``make prove``."""

from hypothesis import HealthCheck, settings

CHANGE = "change"
LONG = "long"

# a busy machine is no failure
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(CHANGE, _PATIENT, max_examples=25)
settings.register_profile(LONG, _PATIENT, max_examples=500)


def examples(times: float) -> int:
    """Returns the profile's number of examples times a factor.

    The factor is above 1 for a quick test whose cases are many, and below 1 for a slow test.
    """
    return max(1, round(times * settings.default.max_examples))
