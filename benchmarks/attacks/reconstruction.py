# SPDX-License-Identifier: Apache-2.0
"""Random subset counts of one secret column, within one epsilon."""

from collections.abc import Callable, Sequence

from benchmarks.attacks import peers
from benchmarks.attacks.case import Case, Seen, judged

BITS, COUNTS = 64, 256


def _guessed(count: Callable[[Sequence[int]], float]) -> Seen:
    import numpy as np

    generator = np.random.default_rng(1)
    bits = generator.random(BITS) < 0.5
    subsets = generator.random((COUNTS, BITS)) < 0.5
    counts = [count(np.flatnonzero(chosen & bits).tolist()) for chosen in subsets]
    solved = np.linalg.lstsq(subsets.astype(float), np.array(counts, float), rcond=None)[0]
    share = float(((solved > 0.5) == bits).mean())
    return judged(holds=share <= 0.8, seen=f"{share:.0%} of {BITS} bits")


def _sfumato() -> Seen:
    import sfumato as sf
    from benchmarks.attacks.ours import session

    def count(chosen: Sequence[int]) -> float:
        text = f"SELECT COUNT(*) AS n FROM t WHERE x IN ({', '.join(map(str, chosen))})"
        return float(str(opened.query(text, epsilon=f"{1 / COUNTS}").rows[0][0]))

    with session({"x": list(range(BITS))}, epsilon=1, x=sf.Integer(0, BITS - 1)) as opened:
        return _guessed(count)


def _opendp() -> Seen:
    release = peers.opendp_count(float(COUNTS))
    return _guessed(lambda chosen: release(len(chosen)))


CASE = Case(
    "Reconstruction",
    f"{COUNTS} counts of random subsets of {BITS} secret bits, epsilon 1 in all",
    "least squares give the bits",
    "hardly more than a guess",
    "Dinur and Nissim (PODS 2003)",
    {
        "sfumato": _sfumato,
        "opendp": _opendp,
        "diffprivlib": lambda: _guessed(
            lambda chosen: peers.diffprivlib_count(len(chosen), 1 / COUNTS)
        ),
    },
)
