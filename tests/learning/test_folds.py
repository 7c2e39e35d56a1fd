# SPDX-License-Identifier: Apache-2.0
"""Folds: what one person's rows are decides their fold, and no other row's."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import WrongUse
from sfumato.learning.declared_rows import Declared
from sfumato.learning.folds import Folds

RANDOM = np.random.default_rng(5)
X = np.stack([RANDOM.integers(0, 100, 1500), RANDOM.uniform(0, 10, 1500)], axis=1)
COLUMNS: Any = {"age": sf.Integer(0, 99), "pay": sf.Real(0, 10)}


def test_the_number_of_folds_is_stated() -> None:
    assert Folds(Declared("l.db", "town", COLUMNS), 7).get_n_splits(X) == 7
    with pytest.raises(WrongUse, match="n_splits"):
        Folds(Declared("l.db", "town", COLUMNS), 1)


def test_one_row_more_moves_no_other_to_another_fold() -> None:
    rows = Declared("l.db", "town", COLUMNS)
    less = {tuple(X[place]) for _, test in [next(Folds(rows).split(X[1:]))] for place in test + 1}
    all_of_them = {tuple(X[place]) for place in next(Folds(rows).split(X))[1]}
    assert all_of_them - less <= {tuple(X[0])} and less <= all_of_them
    persons = Declared("l.db", "town", COLUMNS, unit=sf.Unit("who", max_rows_total=9))
    frame = pd.DataFrame({"age": X[:, 0], "pay": X[:, 1], "who": np.arange(1500) // 3})
    # a unit that is written in several ways is one, as for a session
    alike = {"age": [1] * 4, "pay": [2] * 4, "who": [7, 7.0, "7", np.float32(7)]}
    assert {len(held) for _, held in Folds(persons, 50).split(alike)} == {0, 4}
    for kept, held in Folds(persons, 4).split(frame):
        assert not set(frame["who"][kept]) & set(frame["who"][held])
