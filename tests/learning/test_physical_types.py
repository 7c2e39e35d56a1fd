# SPDX-License-Identifier: Apache-2.0
"""The type of a column is known without a look at its values."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.errors import WrongUse
from sfumato.learning.physical_types import family_of, require_word

BOOLEAN: Any = [
    np.array([], bool),
    pd.Series([], dtype="bool"),
    pd.array([None], "boolean"),
    pd.Series([None], dtype=pd.ArrowDtype(pa.bool_())),
    pa.array([None], pa.bool_()),
    pa.chunked_array([[True]]),
    pl.Series([None], dtype=pl.Boolean),
]
WHOLE: Any = [
    np.array([], np.int8),
    np.array([], np.uint64),
    pd.array([None], "Int64"),
    pd.Series([None], dtype=pd.ArrowDtype(pa.uint8())),
    pa.array([None], pa.int64()),
    pl.Series([None], dtype=pl.UInt32),
]
OTHER: Any = [
    [1, 2],
    (True,),
    np.array([1], dtype=object),
    np.array([1.0]),
    np.array(["1"]),
    pd.Series(["1"]),
    pd.Series([1, 2]).astype("category"),
    pa.array([1.0]),
    pa.array(["1"]),
    pl.Series([1.0]),
    pl.Series(["1"]),
    pl.Series([None]),
]


@pytest.mark.parametrize(
    ("columns", "family"), [(BOOLEAN, "boolean"), (WHOLE, "whole"), (OTHER, "")]
)
def test_types_have_their_families(columns: list[Any], family: str) -> None:
    assert [family_of(each) for each in columns] == [family] * len(columns)


@pytest.mark.parametrize("values", [*BOOLEAN, *WHOLE])
def test_a_type_is_refused_whatever_the_values_are(values: Any) -> None:
    with pytest.raises(WrongUse, match=r"'a' has (truth values|whole numbers)") as refusal:
        require_word("a", ["no", "yes"], values)
    assert refusal.value.allowed == "no, yes"


def test_words_that_such_a_value_may_have_are_read() -> None:
    for words in (["true", "no"], ["True", "no"]):
        require_word("a", words, BOOLEAN[0])
    require_word("a", ["no", "-1"], WHOLE[0])
    for values in OTHER:
        require_word("a", ["no", "yes"], values)
