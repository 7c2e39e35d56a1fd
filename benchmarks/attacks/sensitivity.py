# SPDX-License-Identifier: Apache-2.0
"""Sensitivity.

Given: how far one unit moves the exact numbers, beside the claim.
Broken: it moves them further, so the noise is too small.
Right: at most as far.
Source: Casacuberta et al. (CCS 2022).
"""

import math
from collections.abc import Mapping

from benchmarks.attacks.case import Case, Seen, judged
from benchmarks.attacks.questions import opendp


def _sfumato() -> Seen:
    import sfumato as sf
    from sfumato.audit import system
    from sfumato.metadata.column import ColumnType
    from sfumato.metadata.dataset import Dataset

    unit = sf.Unit("who", max_rows=3, max_groups=2)
    columns: Mapping[str, ColumnType] = {
        "w": sf.Category("a", "b"),
        "x": sf.Integer(0, 100),
        "d": sf.Integer(-50, 1000),
    }
    dataset = Dataset("attacked", {"t": sf.Table("none.csv", columns=columns, unit=unit)})
    result = system(dataset, rounds=8, forms=[])
    return judged(holds=not result.findings, seen=f"{result.steps} steps of made-up neighbours")


def _opendp() -> Seen:
    dp = opendp()
    domain, metric = dp.vector_domain(dp.atom_domain(T=int), size=4), dp.l2_distance(T=int)
    tree = dp.t.make_b_ary_tree(domain, metric, leaf_count=4, branching_factor=4)
    moved = math.dist(tree([0] * 4), tree([1] * 4))
    seen = f"a tree of sums in L2: claimed {tree.map(2)}, moved {moved:.3f}"
    return judged(holds=moved <= tree.map(2), seen=seen)


def _diffprivlib() -> Seen:
    import numpy as np
    from diffprivlib.models import linear_regression  # type: ignore[import-not-found]

    stated: list[float] = []
    folded = linear_regression.LaplaceFolded

    def noted(**options: float) -> object:
        stated.append(float(options["sensitivity"]))
        return folded(**options)

    linear_regression.LaplaceFolded = noted
    rows, bounds = np.random.default_rng(1).random((100, 1)) * 1000, (0, 1000)
    linear_regression.LinearRegression(
        epsilon=1, bounds_X=bounds, bounds_y=bounds, fit_intercept=False
    ).fit(rows, rows[:, 0])
    seen = f"a regression: claimed {min(stated):g}, possible {1000**2:g}"
    return judged(holds=min(stated) >= 1000**2, seen=seen)


CASE = Case(
    __doc__,
    {"sfumato": _sfumato, "opendp": _opendp, "diffprivlib": _diffprivlib},
    {
        "opendp": "https://github.com/opendp/opendp/issues/2924",
        "diffprivlib": "https://github.com/IBM/differential-privacy-library/issues/105",
    },
)
