# SPDX-License-Identifier: Apache-2.0
"""A small survey with a spine: six counties in two states, by age and sex."""

from pathlib import Path

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.metadata.dataset import Dataset
from sfumato.query.session import Session
from sfumato.synopsis.geography.spine import Spine
from tests.synopsis.geography.trees import simple_spine

COUNTIES = [f"c{number}" for number in range(6)]
SPINE: Spine = simple_spine()
GROUPS = "CASE WHEN age < 15 THEN 'young' WHEN age < 65 THEN 'adult' ELSE 'old' END"
COLUMNS = {
    "county": sf.Category(*COUNTIES),
    "age": sf.Integer(0, 99, missing="?"),
    "sex": sf.Category("F", "M"),
    "job": sf.Text(),
}
TABLES = {"nation": [["age_group", "sex"], []], "state": ["age_group", "sex"], "county": ["sex"]}
ASKED = {"tables": TABLES, "recodes": {"age_group": GROUPS}}


def rows(size: int = 3000, seed: int = 1) -> pa.Table:
    """Rows of made-up persons."""
    draws = np.random.default_rng(seed)
    return pa.table(
        {
            "county": [COUNTIES[place] for place in draws.choice(6, size, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1])],
            "age": [str(age) for age in draws.integers(0, 99, size)],
            "sex": [("F", "M")[one] for one in draws.integers(0, 2, size)],
            "job": ["clerk"] * size,
        }
    )  # fmt: skip


def declared(frame: pa.Table | None = None) -> dict[str, sf.Table]:
    return {"people": sf.Table(rows() if frame is None else frame, columns=COLUMNS)}


DATA = Dataset("survey", declared())


def opened(folder: Path, frame: pa.Table | None = None, **options: object) -> Session:
    """A session over the survey with a large budget."""
    return sf.connect(
        declared(frame), dataset="survey", budget=sf.Budget(10**6, "1e-6"),
        ledger=folder / "l.db", **options,
    )  # fmt: skip


def truth(frame: pa.Table, level: str) -> dict[tuple[str, ...], int]:
    """The number of persons by area and sex, in plain Python."""
    found: dict[tuple[str, ...], int] = {}
    for county, sex in zip(frame["county"].to_pylist(), frame["sex"].to_pylist(), strict=True):
        state = f"s{int(county[1:]) // 3}"
        area = {"nation": "all", "state": state, "county": county}[level]
        found[area, sex] = found.get((area, sex), 0) + 1
    return found
