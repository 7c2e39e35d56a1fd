# SPDX-License-Identifier: Apache-2.0
"""A value far beyond the bounds."""

from benchmarks.attacks import peers
from benchmarks.attacks.case import Case, Seen, judged

VALUES = [1.0] * 100 + [1e9]


def _bounded(total: float) -> Seen:
    return judged(holds=abs(total - 105) < 200, seen=f"{total:.4g} (105 without noise)")


def _sfumato() -> Seen:
    import sfumato as sf
    from benchmarks.attacks.ours import asked

    kind = sf.Real(0, 5, step="0.25")
    return _bounded(asked({"x": VALUES}, "SELECT SUM(x) AS s FROM t", {"epsilon": 1}, x=kind)[0][0])


def _opendp() -> Seen:
    dp = peers.opendp()
    raw = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    total = dp.t.make_clamp(*raw, (0, 5)) >> dp.t.then_sum() >> dp.m.then_laplace(scale=5.0)
    return _bounded(total([int(value) for value in VALUES]))


def _diffprivlib() -> Seen:
    from diffprivlib import tools  # type: ignore[import-not-found]

    return _bounded(float(tools.sum(VALUES, epsilon=1, bounds=(0, 5))))


def _pipelinedp() -> Seen:
    rows = [(row, "a", value) for row, value in enumerate(VALUES)]
    return _bounded(next(iter(peers.pipelinedp(rows, "SUM")))[1].sum)


def _python_dp() -> Seen:
    total = peers.pydp("BoundedSum", 1.0, "float", lower_bound=0.0, upper_bound=5.0)
    return _bounded(total.quick_result(VALUES))


def _smartnoise() -> Seen:
    reader = peers.smartnoise({"x": VALUES}, x={"type": "float", "lower": 0, "upper": 5})
    return _bounded(float(reader.execute("SELECT SUM(x) AS s FROM t")[1][0]))


CASE = Case(
    "Clipping",
    "SUM of a hundred ones and 10^9, bounds 0 to 5",
    "the value counts in full",
    "it counts 5",
    "opendp/smartnoise-sdk#622",
    {
        "sfumato": _sfumato,
        "opendp": _opendp,
        "diffprivlib": _diffprivlib,
        "pipelinedp": _pipelinedp,
        "python-dp": _python_dp,
        "smartnoise": _smartnoise,
    },
)
