# SPDX-License-Identifier: Apache-2.0
"""One fit of another library, in an environment and a process of its own.

``python -m benchmarks.synthesizers NAME EPSILON DELTA FOLDER`` reads train.npz and sizes.json of
a folder, writes rows.npz there, and prints CPU seconds and peak megabytes. All columns are
integers from 0 to size - 1, and declared so where a library takes declarations. What a library
gives outside of them is the last value of its column.
"""

import json
import resource
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Sizes = dict[str, int]
# A library may give a frame of pandas or of polars.
Columns = Mapping[str, Any]


def opendp(train: Columns, sizes: Sizes, epsilon: float, delta: float, algorithm: str) -> Columns:
    """OpenDP's contingency tables, with all keys declared."""
    import opendp.prelude as dp  # type: ignore[import-not-found]
    import polars as pl

    dp.enable_features("contrib")
    algorithms: Any = dp.mbi
    chosen = {
        "MST": algorithms.MST,
        "AIM": algorithms.AIM,
        "AIM-1MB": lambda: algorithms.AIM(max_size=1.0),
    }[algorithm]()
    # a float that is a hair below, which its compositor accepts
    rho = round(_rho(epsilon, delta) * 0.999999, 9)
    context = dp.Context.compositor(
        data=pl.DataFrame(dict(train)).lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho, delta=0.0),
    )
    keys = {name: list(range(size)) for name, size in sizes.items()}
    query = context.query(rho=rho, delta=0.0)
    table = query.contingency_table(keys=keys, algorithm=chosen).release()
    found: Columns = table.synthesize(_rows(train))
    return found


def dpmm(train: Columns, sizes: Sizes, epsilon: float, delta: float, algorithm: str) -> Columns:
    """dpmm without its binning: the columns are integers."""
    import pandas as pd
    from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline  # type: ignore[import-not-found]

    chosen = {
        "MST": MSTPipeline,
        "PrivBayes": PrivBayesPipeline,
        "AIM": AIMPipeline,
        "AIM-1MB": AIMPipeline,
    }[algorithm]
    limits = {"AIM": 80, "AIM-1MB": 1}
    model = chosen(
        epsilon=epsilon,
        delta=delta,
        n_jobs=1,
        max_model_size=limits.get(algorithm),
        disable_processing=True,
    )
    frame = pd.DataFrame(dict(train))
    model.fit(frame, domain=dict(sizes))
    found: Columns = model.generate(n_records=len(frame))
    return found


def smartnoise(
    train: Columns, sizes: Sizes, epsilon: float, delta: float, algorithm: str
) -> Columns:
    """smartnoise-synth; the values of its columns are those of the data, as it takes them."""
    import pandas as pd
    from snsynth import Synthesizer  # type: ignore[import-not-found]

    options = {"AIM-1MB": {"max_model_size": 1}}.get(algorithm, {})
    model = Synthesizer.create(
        algorithm.partition("-")[0].lower(), epsilon=epsilon, delta=delta, **options
    )
    frame = pd.DataFrame(dict(train))
    model.fit(frame, categorical_columns=list(sizes), preprocessor_eps=0.0)
    found: Columns = model.sample(len(frame))
    return found


LIBRARIES: dict[str, Callable[[Columns, Sizes, float, float, str], Columns]] = {
    "opendp": opendp,
    "dpmm": dpmm,
    "smartnoise": smartnoise,
}


def _rows(train: Columns) -> int:
    return len(next(iter(train.values())))


def _rho(epsilon: float, delta: float) -> float:
    """The rho that is worth epsilon with delta, by the bound of Canonne, Kamath and Steinke (2020).

    Other than ours it is computed in floats; all but the last digits agree.
    """
    low, high = 0.0, epsilon + 1
    alphas = 1 + np.geomspace(1e-3, 1e6, 200_000)
    logs = np.log(1 / (alphas * delta)) / (alphas - 1) + np.log1p(-1 / alphas)
    for _ in range(60):
        middle = (low + high) / 2
        if float((middle * alphas + logs).min()) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def main() -> None:
    """One fit, and what it took."""
    warnings.simplefilter("ignore")
    name, epsilon, delta, place = sys.argv[1:]
    library, _, algorithm = name.partition(" ")
    folder = Path(place)
    train = dict(np.load(folder / "train.npz"))
    sizes: Sizes = json.loads((folder / "sizes.json").read_text("utf-8"))
    found = LIBRARIES[library](train, sizes, float(epsilon), float(delta), algorithm)
    columns: dict[str, Any] = {}
    for column, size in sizes.items():
        values = np.asarray(found[column], dtype=np.float64)
        inside = (values >= 0) & (values < size)
        columns[column] = np.where(inside, values, size - 1).astype(np.int64)
    np.savez(folder / "rows.npz", **columns)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(each.ru_utime + each.ru_stime for each in used)
    print(json.dumps({"cpu": seconds, "peak": max(each.ru_maxrss for each in used) / 1000}))


if __name__ == "__main__":
    main()
