# SPDX-License-Identifier: Apache-2.0
"""The rows of the demo of learning, and their declarations."""

import gzip
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from sfumato.metadata.column import Array, Category, ColumnType, Integer
from sfumato.metadata.table import Table

PEOPLE = Path(__file__).parent / "people"
_OCCUPATIONS = (
    "Adm-clerical",
    "Armed-Forces",
    "Craft-repair",
    "Exec-managerial",
    "Farming-fishing",
    "Handlers-cleaners",
    "Machine-op-inspct",
    "Other-service",
    "Priv-house-serv",
    "Prof-specialty",
    "Protective-serv",
    "Sales",
    "Tech-support",
    "Transport-moving",
)
_MARITAL = (
    "Divorced",
    "Married-AF-spouse",
    "Married-civ-spouse",
    "Married-spouse-absent",
    "Never-married",
    "Separated",
    "Widowed",
)
# From the questionnaire of the census, not from the rows.
COLUMNS: Mapping[str, ColumnType] = {
    "age": Integer(17, 90),
    "education": Integer(1, 16),
    "hours": Integer(0, 99),
    "gain": Integer(0, 100_000, clip=(0, 20_000)),
    "marital": Category(*_MARITAL),
    "occupation": Category(*_OCCUPATIONS, missing="?"),
    "sex": Category("Female", "Male"),
    "income": Category("<=50K", ">50K"),
}
FEATURES = ", ".join(COLUMNS)
_SIDE, _INK = 8, 16


def adult(split: str) -> pa.Table:
    """Returns the rows of the Adult data in one of its published splits, "train" or "test"."""
    rows = parquet.read_table(PEOPLE / "adult.parquet")
    return rows.filter(pc.equal(rows["split"], split)).drop_columns(["split"])


def persons() -> Table:
    """The training rows as a private table; each row is one person."""
    return Table(adult("train"), columns=COLUMNS)


def digits() -> tuple[Table, pa.Table]:
    """Returns images of handwritten digits: a private table for training, and every fourth image as
    test rows.
    """
    with gzip.open(PEOPLE / "digits.csv.gz", "rt", encoding="ascii") as file:
        values = np.loadtxt(file, delimiter=",")
    is_test = np.arange(len(values)) % 4 == 0
    columns: dict[str, ColumnType] = {
        "picture": Array((_SIDE, _SIDE), 0, _INK),
        "digit": Category(*map(str, range(10))),
    }
    return Table(_pictures(values[~is_test]), columns=columns), _pictures(values[is_test])


def _pictures(rows: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> pa.Table:
    """Arrow rows of a picture and its digit."""
    pixels = pa.array(rows[:, :-1].ravel())
    pictures = pa.FixedSizeListArray.from_arrays(pixels, _SIDE * _SIDE)
    return pa.table({"picture": pictures, "digit": [str(int(digit)) for digit in rows[:, -1]]})
