# SPDX-License-Identifier: Apache-2.0
"""Sfumato's models, each fitted in a session of its own, with a ledger of its own."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from benchmarks.systems import Make, groups, pictures
from benchmarks.systems.persons import EDGES, LABEL, Numbers, persons, works
from sfumato import learning as ln
from sfumato.learning.recipe import Fitted, Recipe
from sfumato.metadata.column import ColumnType

PACKAGES = ("sfumato", "numpy")
_DELTA = "1e-5"
_CLASSES = ("low", "high")


def fitted(
    recipe: Recipe[Fitted],
    rows: pa.Table,
    columns: Mapping[str, ColumnType],
    **asked: Any,
) -> Fitted:
    """A model of all columns of some rows; each row is a unit."""
    listed = ", ".join(f'"{name}"' for name in rows.column_names)
    with tempfile.TemporaryDirectory() as folder:
        tables = {"data": sf.Table(rows, columns=columns)}
        budget, ledger = sf.Budget(1000, "0.5"), Path(folder) / "ledger.db"
        with sf.connect(tables, dataset="bench", budget=budget, ledger=ledger) as session:
            return ln.fit(session, recipe, f"SELECT {listed} FROM data", **asked)


def rows_of(split: str) -> pa.Table:
    """Adult: numbers as integers, other columns and the label as words."""
    found = persons(split)
    columns: dict[str, Any] = {}
    for name, codes in found.codes.items():
        columns[name] = codes if name in EDGES else codes.astype(str)
    return pa.table(columns | {LABEL: np.array(_CLASSES)[found.rich.astype(int)]})


def declared() -> dict[str, ColumnType]:
    """What is declared of Adult."""
    columns: dict[str, ColumnType] = {}
    for name, size in persons("train").sizes.items():
        words = sf.Category(*map(str, range(size)))
        columns[name] = sf.Integer(0, size - 1) if name in EDGES else words
    return columns | {LABEL: sf.Category(*_CLASSES)}


def _classifier(recipe: Recipe[Any], delta: str | None = None) -> Any:
    """A fit at an epsilon: the chances of the test rows."""

    def fit(epsilon: float) -> Numbers:
        asked: dict[str, Any] = {"epsilon": str(epsilon), "delta": delta}
        model = fitted(recipe, rows_of("train"), declared(), label=LABEL, **asked)
        chances = model.predict_proba(rows_of("test"))
        return np.asarray(chances)[:, model.classes.index("high")]

    return fit


def _centers(epsilon: float, points: Numbers) -> Numbers:
    """Centers of points, whose numbers are declared in steps of a millionth."""
    names = [f"x{place}" for place in range(points.shape[1])]
    columns: dict[str, ColumnType] = {name: sf.Real(-1, 1, step="0.000001") for name in names}
    rows = pa.table(dict(zip(names, points.T, strict=True)))
    return fitted(ln.KMeans(groups.CLUSTERS), rows, columns, epsilon=str(epsilon)).centers


def _directions(count: int, epsilon: float) -> Numbers:
    """Directions of pictures; all numbers have the same bounds, so the box turns none."""
    lists = pa.FixedSizeListArray.from_arrays(
        pa.array(pictures.pixels().ravel()), pictures.pixels().shape[1]
    )
    rows, columns = pa.table({"picture": lists}), {"picture": sf.Array(pictures.SHAPE, 0, 255)}
    return fitted(ln.PCA(count), rows, columns, epsilon=str(epsilon), delta=_DELTA).axes


WORKS: dict[str, Make] = {
    **groups.works({"KMeans": _centers}),
    **pictures.works({"PCA": _directions}),
    **works(
        {
            "Additive": _classifier(ln.Additive(edges=EDGES), _DELTA),
            "Additive, equal bins": _classifier(ln.Additive(), _DELTA),
            "LogisticRegression": _classifier(ln.LogisticRegression(), _DELTA),
            "DecisionTree": _classifier(ln.DecisionTree()),
            "DecisionTree, delta": _classifier(ln.DecisionTree(), _DELTA),
        }
    ),
}
