# SPDX-License-Identifier: Apache-2.0
"""Rows with NaN."""

import math

from benchmarks.attacks import peers
from benchmarks.attacks.case import Case, Seen, judged

VALUES = [1.0, float("nan"), 2.0] * 20


def _hidden(number: float) -> Seen:
    return judged(holds=math.isfinite(number), seen=f"{number:.4g}")


def _sfumato() -> Seen:
    import sfumato as sf
    from benchmarks.attacks.ours import asked

    kind = sf.Real(0, 5, step="0.25")
    return _hidden(asked({"x": VALUES}, "SELECT SUM(x) AS s FROM t", {"epsilon": 1}, x=kind)[0][0])


def _opendp() -> Seen:
    dp = peers.opendp()
    raw = dp.vector_domain(dp.atom_domain(T=float, nan=True)), dp.symmetric_distance()
    total = (
        dp.t.make_impute_constant(*raw, 0.0)
        >> dp.t.then_clamp((0.0, 5.0))
        >> dp.t.then_resize(len(VALUES), 0.0)
        >> dp.t.then_sum()
        >> dp.m.then_laplace(scale=5.0)
    )
    return _hidden(total(VALUES))


def _diffprivlib() -> Seen:
    from diffprivlib import tools  # type: ignore[import-not-found]

    return _hidden(float(tools.sum(VALUES, epsilon=1, bounds=(0, 5))))


def _python_dp() -> Seen:
    total = peers.pydp("BoundedSum", 1.0, "float", lower_bound=0.0, upper_bound=5.0)
    return _hidden(total.quick_result(VALUES))


def _smartnoise() -> Seen:
    reader = peers.smartnoise({"x": VALUES}, x={"type": "float", "lower": 0, "upper": 5})
    return _hidden(float(reader.execute("SELECT SUM(x) AS s FROM t")[1][0]))


CASE = Case(
    "NaN",
    "a sum over rows of which some are NaN",
    "the answer is NaN: that such a row is there is seen",
    "a number, by one path for all rows",
    "the thread beside it",
    {
        "sfumato": _sfumato,
        "opendp": _opendp,
        "diffprivlib": _diffprivlib,
        "python-dp": _python_dp,
        "smartnoise": _smartnoise,
    },
    {"diffprivlib": "https://github.com/IBM/differential-privacy-library/issues/80"},
)
