# SPDX-License-Identifier: Apache-2.0
"""Noise that can be drawn again."""

import random
from collections.abc import Callable

from benchmarks.attacks import peers
from benchmarks.attacks.case import Case, Seen, judged

_UNSEEDED = "no seed is taken, and that of random changes nothing"


def _repeated(release: Callable[[], object], seen: str) -> Seen:
    answers = set()
    for _ in range(6):
        random.seed(1)
        answers.add(str(release()))
    return judged(holds=len(answers) > 1, seen=seen)


def _sfumato() -> Seen:
    import sfumato as sf
    from benchmarks.attacks.ours import asked

    rows, text, price = {"x": [1] * 9}, "SELECT COUNT(*) AS n FROM t", {"epsilon": "0.01"}
    return _repeated(lambda: asked(rows, text, price, x=sf.Integer(0, 5)), _UNSEEDED)


def _opendp() -> Seen:
    release = peers.opendp_count(100.0)
    return _repeated(lambda: release(9), _UNSEEDED)


CASE = Case(
    "Seeds",
    "a fixed seed, where one is taken, and the seed of Python's random",
    "the noise repeats: whoever knows the seed subtracts it",
    "no seed outside of tests",
    "Garfinkel and Leclerc (WPES 2020)",
    {
        "sfumato": _sfumato,
        "opendp": _opendp,
        "diffprivlib": lambda: _repeated(
            lambda: peers.diffprivlib_count(9, 0.01, random_state=1), "random_state=1 repeats"
        ),
        "python-dp": lambda: _repeated(
            lambda: peers.pydp("Count", 0.01).quick_result([1] * 9), _UNSEEDED
        ),
    },
    {"diffprivlib": "https://github.com/IBM/differential-privacy-library/pull/72"},
)
