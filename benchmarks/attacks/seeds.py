# SPDX-License-Identifier: Apache-2.0
"""Seeds.

Given: a fixed seed, where one is taken, and the seed of Python's random and of torch.
Broken: the noise repeats: whoever knows the seed subtracts it.
Right: no seed outside of tests.
Source: Garfinkel and Leclerc (WPES 2020).
"""

import random
from collections.abc import Callable
from functools import partial

from benchmarks.attacks.case import Case, Seen, judged
from benchmarks.attacks.opacus import trained
from benchmarks.attacks.questions import ALL, COUNTS, asked, diffprivlib_count

_UNSEEDED = "no seed is taken, and that of random changes nothing"


def _repeated(release: Callable[[], object], seen: str) -> Seen:
    answers = set()
    for _ in range(6):
        random.seed(1)
        answers.add(str(release()))
    return judged(holds=len(answers) > 1, seen=seen)


def _sfumato() -> Seen:
    import sfumato as sf

    rows, price = {"x": [1] * 9}, {"epsilon": "0.01"}
    return _repeated(lambda: asked(rows, ALL, price, x=sf.Integer(0, 5)), _UNSEEDED)


def _counted(system: str) -> Seen:
    return _repeated(lambda: COUNTS[system](9, 0.01), _UNSEEDED)


def _diffprivlib() -> Seen:
    return _repeated(lambda: diffprivlib_count(9, 0.01, random_state=1), "random_state=1 repeats")


def _opacus() -> Seen:
    return _repeated(
        lambda: trained([1.0], clip=1.0, noise=100.0, seed=1), "torch.manual_seed(1) repeats"
    )


_UNSEEDABLE = ("opendp", "python-dp")
CASE = Case(
    __doc__,
    {
        "sfumato": _sfumato,
        "diffprivlib": _diffprivlib,
        "opacus": _opacus,
        **{name: partial(_counted, name) for name in _UNSEEDABLE},
    },
    {
        "diffprivlib": "https://github.com/IBM/differential-privacy-library/pull/72",
        "opacus": "https://github.com/meta-pytorch/opacus/pull/223",
    },
)
