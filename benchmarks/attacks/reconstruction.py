# SPDX-License-Identifier: Apache-2.0
"""Reconstruction.

Given: 256 counts of random subsets of 64 secret bits, epsilon 1 in all.
Broken: least squares give the bits.
Right: hardly more than a guess.
Source: Dinur and Nissim (PODS 2003).
"""

from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.attacks.case import Case, Seen, judged
from benchmarks.attacks.questions import ALL, COUNTS, session

BITS, TIMES = 64, 256


def _guessed(count: Callable[[Sequence[int]], float]) -> Seen:
    import numpy as np

    generator = np.random.default_rng(1)
    bits = generator.random(BITS) < 0.5
    subsets = generator.random((TIMES, BITS)) < 0.5
    counts = [count(np.flatnonzero(chosen & bits).tolist()) for chosen in subsets]
    solved = np.linalg.lstsq(subsets.astype(float), np.array(counts, float), rcond=None)[0]
    share = float(((solved > 0.5) == bits).mean())
    return judged(holds=share <= 0.8, seen=f"{share:.0%} of {BITS} bits")


def _sfumato() -> Seen:
    import sfumato as sf

    def count(chosen: Sequence[int]) -> float:
        text = f"{ALL} WHERE x IN ({', '.join(map(str, chosen))})"
        return float(str(opened.query(text, epsilon=f"{1 / TIMES}").rows[0][0]))

    with session({"x": list(range(BITS))}, epsilon=1, x=sf.Integer(0, BITS - 1)) as opened:
        return _guessed(count)


def _counted(system: str) -> Seen:
    return _guessed(lambda chosen: COUNTS[system](len(chosen), 1 / TIMES))


_OTHERS = ("opendp", "diffprivlib")
CASE = Case(__doc__, {"sfumato": _sfumato, **{name: partial(_counted, name) for name in _OTHERS}})
