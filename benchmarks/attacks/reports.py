# SPDX-License-Identifier: Apache-2.0
"""Reports over time.

Given: the same value from one device, 28 times, epsilon 1 each.
Broken: 28 draws of noise for the price of one: their mean is exact.
Right: one permanent answer, or all that a life costs is charged.
Source: Tang et al., Privacy Loss in Apple's Implementation (2017).
"""

from benchmarks.attacks.case import Case, Seen, judged

PERIODS = 28


def _sfumato() -> Seen:
    from sfumato import telemetry

    lives = {}
    for memory in (0, PERIODS):
        task = telemetry.report_task(
            "e", "?", ["a", "b"], epsilon=1, start=1_800_000_000, periods=PERIODS, memory=memory
        )
        lives[memory] = float(task.life_epsilon)
    fresh, permanent = lives[0], lives[PERIODS]
    seen = f"charged for life: {permanent:g} of one permanent answer, {fresh:g} of fresh ones"
    return judged(holds=permanent <= 1 and fresh >= PERIODS, seen=seen)


CASE = Case(
    __doc__,
    {"sfumato": _sfumato},
    not_expressed=("opendp", "diffprivlib", "pipelinedp", "python-dp", "smartnoise", "tumult"),
)
