# SPDX-License-Identifier: Apache-2.0
"""Clipping.

Given: SUM of a hundred ones and 10^9, bounds 0 to 5; of a training, the gradient of such a row.
Broken: the value counts in full.
Right: it counts 5.
Source: opendp/smartnoise-sdk#622.
"""

from benchmarks.attacks.case import Case, Seen, judged
from benchmarks.attacks.opacus import trained
from benchmarks.attacks.questions import sums


def _bounded(total: float) -> Seen:
    return judged(holds=abs(total - 105) < 200, seen=f"{total:.4g} (105 without noise)")


def _opacus() -> Seen:
    return _bounded(trained([1.0] * 100 + [1e9], clip=5.0, noise=0.2))


_SYSTEMS = ("sfumato", "opendp", "diffprivlib", "pipelinedp", "python-dp", "smartnoise", "tumult")
CASE = Case(
    __doc__,
    {**sums(_bounded, [1] * 100 + [10**9], 5, *_SYSTEMS), "opacus": _opacus},
)
