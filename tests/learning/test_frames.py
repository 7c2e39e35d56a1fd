# SPDX-License-Identifier: Apache-2.0
"""Frames are read with the codes of the declarations."""

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import UnknownName
from sfumato.learning.frames import FrameColumn, column_of
from sfumato.metadata.column import Column
from sfumato.plan.rows import MISSING
from sfumato.plan.value import Value


def column(kind: Any) -> FrameColumn:
    return FrameColumn.of(Value.of(Column("x", kind)))


@pytest.mark.parametrize(
    ("kind", "values", "codes"),
    [
        (sf.Category("a", "b"), ["b", "a", "c", None], [1, 0, MISSING, MISSING]),
        (sf.Boolean(), [True, False, None, "True"], [1, 0, MISSING, 1]),
        (sf.Integer(0, 9), [3, 2.6, None, math.nan, "4"], [3, 3, MISSING, MISSING, MISSING]),
        (sf.Real(0, 1, step="1/4"), [0.5, math.inf, -math.inf], [2, 2**53, -(2**53)]),
        (
            sf.Date("2000-01-01", "2001-01-01"),
            [datetime.date(1970, 1, 3), None, "2000-01-01"],
            [2, MISSING, MISSING],
        ),
    ],
)
def test_values_have_their_codes(kind: Any, values: list[Any], codes: list[int]) -> None:
    assert column(kind).codes(values).tolist() == codes
    assert FrameColumn.from_json(column(kind).to_json()) == column(kind)


ODD: list[Any] = [
    *(None, pd.NA, pd.NaT, math.nan, Decimal("sNaN"), "x", b"x", "\ud800", 1 + 2j, object(), float),
    *([], [1], {}, np.array([1, 2, 3]), np.datetime64("NaT")),
]
HUGE: list[Any] = [10**5000, math.inf, Decimal("1e400"), Fraction(10**400, 3)]


@pytest.mark.parametrize("read", [FrameColumn("x", 0), FrameColumn("x", 0, ("a", "b"))])
def test_no_value_is_an_error(read: FrameColumn) -> None:
    assert read.codes(ODD).tolist() == [MISSING] * len(ODD)
    end = MISSING if read.texts else 2**53
    assert read.codes(HUGE).tolist() == [end] * len(HUGE)
    assert FrameColumn("x", 0).codes([-(10**5000)]).tolist() == [-(2**53)]


def test_what_is_no_date_and_no_list_is_missing() -> None:
    dates = FrameColumn("x", 0, is_date=True)
    assert dates.codes([*ODD, *HUGE]).tolist() == [MISSING] * len([*ODD, *HUGE])
    lists = FrameColumn("x", 0, length=2)
    assert lists.features([*ODD, *HUGE])[0].tolist() == [MISSING] * len([*ODD, *HUGE])


def test_frames_of_several_kinds() -> None:
    rows = {"x": [1, 2]}
    assert column_of(rows, "x") == column_of(pa.table(rows), "x") == [1, 2]

    class Frame(dict[str, Any]):
        """As pandas and polars: columns with a method that lists them."""

    class Listed:
        def to_list(self) -> list[int]:
            return [1, 2]

    assert column_of(Frame(x=Listed()), "x") == [1, 2]
    for absent in ({}, pa.table({"y": [1]}), [1, 2]):
        with pytest.raises(UnknownName, match="'x'"):
            column_of(absent, "x")
    assert FrameColumn("x", 0, step=Fraction(1, 3)).codes([1]).tolist() == [3]


def test_a_column_of_lists_has_a_feature_for_each_number() -> None:
    column = FrameColumn.of(Value.of(Column("p", sf.Array(2, 0, 9, step="0.5"))))
    assert FrameColumn.from_json(column.to_json()) == column
    values = [[1, 2.5], (0, 9), None, [1], [1, None], [1, 2, 3], np.array([4.0, 0.5])]
    first, second = column.features(values)
    assert first.tolist() == [2, 0, MISSING, MISSING, MISSING, MISSING, 8]
    assert second.tolist() == [5, 18, MISSING, MISSING, MISSING, MISSING, 1]
    assert [codes.tolist() for codes in column.features([])] == [[], []]
    assert FrameColumn("x", 0).features([1, 2])[0].tolist() == [1, 2]
