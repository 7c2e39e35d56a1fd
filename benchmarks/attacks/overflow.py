# SPDX-License-Identifier: Apache-2.0
"""A sum beyond the range of the stored integers."""

from benchmarks.attacks import peers
from benchmarks.attacks.case import Case, Seen, judged

LARGE, ROWS = 2**30, 100


def _near(total: float) -> Seen:
    exact = LARGE * ROWS
    return judged(holds=abs(total - exact) < 40 * LARGE, seen=f"{total:.4g} of {exact:.4g}")


def _sfumato() -> Seen:
    import pyarrow as pa

    import sfumato as sf
    from benchmarks.attacks.ours import asked

    rows, text = {"x": pa.array([LARGE] * ROWS, pa.int32())}, "SELECT SUM(x) AS s FROM t"
    return _near(asked(rows, text, {"epsilon": 1}, x=sf.Integer(0, LARGE))[0][0])


def _opendp() -> Seen:
    dp = peers.opendp()
    domain = dp.vector_domain(dp.atom_domain(bounds=(0, LARGE), T="i64"))
    total = dp.t.make_sum(domain, dp.symmetric_distance())
    return _near((total >> dp.m.then_laplace(scale=float(LARGE)))([LARGE] * ROWS))


def _diffprivlib() -> Seen:
    import numpy as np
    from diffprivlib import tools  # type: ignore[import-not-found]

    return _near(float(tools.sum(np.full(ROWS, LARGE), epsilon=1, bounds=(0, LARGE))))


def _pipelinedp() -> Seen:
    rows = [(row, "a", LARGE) for row in range(ROWS)]
    return _near(next(iter(peers.pipelinedp(rows, "SUM", LARGE)))[1].sum)


def _python_dp() -> Seen:
    total = peers.pydp("BoundedSum", 1.0, lower_bound=0, upper_bound=LARGE)
    return _near(total.quick_result([LARGE] * ROWS))


CASE = Case(
    "Overflow",
    f"SUM of {ROWS} values of 2^30",
    "the sum wraps: an answer about nothing (its noise wraps too, so the guarantee holds)",
    "a wider sum, or one that saturates",
    "Casacuberta et al. (CCS 2022)",
    {
        "sfumato": _sfumato,
        "opendp": _opendp,
        "diffprivlib": _diffprivlib,
        "pipelinedp": _pipelinedp,
        "python-dp": _python_dp,
    },
    {"python-dp": "https://github.com/google/differential-privacy/issues/40"},
)
