# SPDX-License-Identifier: Apache-2.0
"""Frames are read with the codes of the declarations."""

import datetime
import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines.value_codes import DATE_PATTERN, NUMBER_PATTERN
from sfumato.errors import UnknownName, WrongUse
from sfumato.learning import frames
from sfumato.learning.frames import (
    ColumnReport,
    FrameColumn,
    codes_of,
    column_of,
    rounding_note,
    unread_values,
)
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
        (sf.Integer(0, 9), [3, 2.6, None, math.nan, "4"], [3, 3, MISSING, MISSING, 4]),
        (
            sf.Integer(0, 9),
            ["1_0", "inf", " 7 ", "2.5e0", "\u0663", b"1"],
            [*[MISSING] * 2, 7, 2, *[MISSING] * 2],
        ),
        (
            sf.Integer(0, 99, missing=["99", "N"]),
            [99, 99.0, "99", "N", 98, True],
            [*[MISSING] * 4, 98, 1],
        ),
        (sf.Boolean(), [1, 0, 1.0, "false", 2], [1, 0, 1, 0, MISSING]),
        (
            sf.Boolean(true="1", false="2", missing="9"),
            [1, "2", 9, 0, "True"],
            [1, 0, MISSING, MISSING, 1],
        ),
        (sf.Category({"1": "F", "2": "M"}), [1, "2", "F", 3, 2.0], [0, 1, 0, MISSING, 1]),
        (sf.Category("true", "no"), [True, np.True_, "True", False], [0, 0, MISSING, MISSING]),
        # a label stands for itself
        (sf.Category({"1": "2", "2": "1"}), ["1", 2], [1, 0]),
        (sf.Real(0, 1, step="1/4"), [0.5, math.inf, -math.inf], [2, 2**53, -(2**53)]),
        (
            sf.Date("2000-01-01", "2001-01-01"),
            [datetime.date(1970, 1, 3), None, "1970-01-03", "1970-1-3", "1970-02-30"],
            [2, MISSING, 2, MISSING, MISSING],
        ),
    ],
)
def test_values_have_their_codes(kind: Any, values: list[Any], codes: list[int]) -> None:
    assert column(kind).codes(values).tolist() == codes
    stored = FrameColumn.from_json(json.loads(json.dumps(column(kind).to_json())))
    assert stored == column(kind) and stored.codes(values).tolist() == codes


def test_texts_are_numbers_and_dates_as_the_engines_read_them() -> None:
    assert (frames._NUMBER, frames._DAY) == (NUMBER_PATTERN, DATE_PATTERN)


def test_a_file_of_an_earlier_model_has_no_words() -> None:
    form = column(sf.Boolean(missing="N")).to_json()
    del form["words"], form["missing"]
    earlier = FrameColumn.from_json(form)
    assert earlier == column(sf.Boolean())
    assert earlier.codes([True, 1, "false", "N"]).tolist() == [1, 1, 0, MISSING]


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


AGE, SEX = column(sf.Integer(0, 99)), FrameColumn.of(Value.of(Column("sex", sf.Category("F", "M"))))
PIXELS = FrameColumn("pixels", 0, length=2)
BOTH = (AGE, SEX)


def read(frame: Any, columns: Any = BOTH) -> list[list[int]]:
    return [each.tolist() for each in codes_of(frame, columns)]


def test_one_row_is_a_mapping_of_values() -> None:
    assert read({"x": 3, "sex": "M"}) == [[3], [1]]
    assert read({"x": None, "sex": np.str_("F"), "more": [1, 2]}) == [[MISSING], [0]]
    assert (
        read({"pixels": [1, 2]}, (PIXELS,)) == read({"pixels": [[1, 2]]}, (PIXELS,)) == [[1], [2]]
    )
    assert read({"pixels": np.array([1, 2]), "x": np.int64(7)}, (PIXELS, AGE)) == [[1], [2], [7]]


def test_an_empty_frame_gives_nothing() -> None:
    empty: Any = pd.DataFrame({"x": [], "sex": []})
    assert read(empty) == read({"x": [], "sex": []}) == read(pa.table(empty)) == [[], []]
    assert read({"pixels": []}, (PIXELS,)) == [[], []]


def test_columns_of_unequal_length_are_refused() -> None:
    for frame in ({"x": [1, 2], "sex": ["F"]}, {"x": [1, 2], "sex": ["F"] * 3}):
        with pytest.raises(WrongUse, match=r"unequal length: 'x' has 2 values, and 'sex' [13]"):
            read(frame)
    with pytest.raises(UnknownName, match="sex"):
        read({"x": 1})


@pytest.mark.parametrize("values", [np.array([True]), np.array([1]), pa.array([0]), pd.Series([1])])
def test_a_type_that_holds_no_declared_value_is_refused(values: Any) -> None:
    with pytest.raises(WrongUse, match="none of its declared values"):
        read({"x": [1], "sex": values})


def test_what_is_unknown_and_missing_is_counted_by_column() -> None:
    frame = pd.DataFrame({"x": ["1", "?", "", None], "sex": ["F", "f", "M", None]})
    assert unread_values(frame, BOTH) == (ColumnReport("x", 4, 2, 1), ColumnReport("sex", 4, 1, 1))
    lists = {"pixels": [[1, 2], [1], None]}
    assert unread_values(lists, (PIXELS,)) == (ColumnReport("pixels", 3, 1, 1),)


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        (sf.Integer(0, 5), "1"),
        (sf.Real(0, 5, step="0.25"), "0.25"),
        (sf.Real(0, 5), None),
        (sf.Array(2, 0, 255), "1"),
        (sf.Array(2, 0, 1, step="1/1048576"), None),
        (sf.Date("2000-01-01", "2000-12-31"), None),
        (sf.Boolean(), None),
        (sf.Category("a", "b"), None),
    ],
)
def test_a_model_names_the_steps_to_which_fractions_are_rounded(
    kind: Any, step: str | None
) -> None:
    said = "" if step is None else f"\nfractions are rounded to steps: x of {step}"
    read = column(kind)
    # of a model that was saved as well, and of an earlier file nothing is known
    assert rounding_note([read]) == rounding_note([FrameColumn.from_json(read.to_json())]) == said
    earlier = {name: value for name, value in read.to_json().items() if name != "is_coarse"}
    assert rounding_note([FrameColumn.from_json(earlier)]) == ""
