# SPDX-License-Identifier: Apache-2.0
"""Rows of arrays and frames: whatever is in them is read, and nothing of them is an error."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import LedgerBusy, UnknownName, WrongUse
from sfumato.learning import declared_rows
from sfumato.learning.declared_rows import Declared, read_column
from sfumato.learning.sklearn import Clusterer
from sfumato.query.connect import connect

UGLY = [None, float("nan"), float("inf"), -1e300, 10**400, "x", b"x", [], {}, pd.NaT, pd.NA]
KINDS = [
    sf.Integer(0, 99),
    sf.Real(0, 1),
    sf.Date("2000-01-01", "2020-01-01"),
    sf.Boolean(),
    sf.Category("a", "b"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_no_value_is_an_error(kind: Any) -> None:
    assert len(read_column(kind, UGLY)) == len(UGLY)


def test_short_floats_are_read_without_a_warning() -> None:
    halves = [np.float16(3), np.float16("nan"), np.float16("inf"), np.longdouble("1e4000")]
    assert read_column(sf.Integer(0, 99), halves) == [3, None, 2**52, 2**52]


VALUES = st.one_of(st.floats(), st.integers(), st.text(max_size=5), st.none(), st.booleans())


@given(st.lists(VALUES, max_size=5))
def test_each_value_is_read_by_itself(values: list[Any]) -> None:
    for kind in KINDS:
        alone = [read_column(kind, [value])[0] for value in values]
        assert read_column(kind, values) == alone


def test_values_are_those_of_the_declaration() -> None:
    assert read_column(sf.Category({"1": "male", "2": "female"}), [1.0, "female", 3]) == [
        "male",
        "female",
        None,
    ]
    days = [datetime.date(2001, 2, 3), np.datetime64("2001-02-03"), pd.Timestamp("2001-02-03 4:00")]
    assert read_column(sf.Date("2000-01-01", "2020-01-01"), days) == [days[0]] * 3


def test_texts_are_read_as_sources_are() -> None:
    assert read_column(sf.Integer(0, 99), ["10", " 7 ", "1e1", "1_0", "inf", "x"]) == [
        *(10, 7, 10),
        *(None, None, None),
    ]
    assert read_column(sf.Real(0, 1), ["0.5", np.str_(".25")]) == [0.5, 0.25]
    iso, written = sf.Date("2000-01-01", "2020-01-01"), "%d/%m/%Y"
    day = datetime.date(2001, 2, 3)
    assert read_column(iso, ["2001-02-03", "3/2/2001", "2001-02-30"]) == [day, None, None]
    other = sf.Date("2000-01-01", "2020-01-01", format=written)
    assert read_column(other, ["3/2/2001", "2001-02-03", "30/2/2001"]) == [day, None, None]


def test_whole_numbers_are_places_where_no_class_is_one() -> None:
    def reads(kind: Any, labels: Any) -> bool:
        return Declared("l.db", "d", {"age": sf.Integer(0, 9)}, kind).reads_places(labels)

    whole = np.array([0, 1])
    assert reads(sf.Category("no", "yes"), whole) and reads(sf.Boolean(true="y", false="n"), whole)
    assert not reads(sf.Category("no", "1"), whole) and not reads(sf.Boolean(), whole)
    # a label stands for itself
    assert not reads(sf.Category({"n": "no", "y": "1"}), whole)
    for other in (whole.astype(float), whole.astype(bool), whole.astype(object), ["no"]):
        assert not reads(sf.Category("no", "yes"), other)


def test_places_are_those_of_the_classes_in_ascending_order() -> None:
    rows = Declared("l.db", "d", {"age": sf.Integer(0, 9)}, sf.Category("yes", "no", "?"))
    for labels in (np.array([0, 1, 2, 3, -1]), [0, 1, 2, 3, -1]):
        assert rows._labels(labels, as_places=False) == ["?", "no", "yes", None, None]
    # each is read by itself: True is no place
    assert rows._labels([1, "yes", True, 1.0], as_places=False) == ["no", "yes", None, None]
    numbers = Declared("l.db", "d", {"age": sf.Integer(0, 9)}, sf.Integer(3, 4)).of_classes
    assert numbers._labels(np.array([3, 4, 0]), as_places=False) == ["3", "4", None]
    assert numbers._labels(np.array([0, 1, 3]), as_places=True) == ["3", "4", None]
    assert numbers._labels(["3", True], as_places=True) == [None, None]


def declared(folder: Path, **more: Any) -> Declared:
    columns = {"age": sf.Integer(0, 99), "label": sf.Boolean()}
    return Declared(folder / "l.db", "d", columns, sf.Boolean(), sf.Budget(1), **more)


def test_the_label_has_a_name_of_its_own(tmp_path: Path) -> None:
    assert declared(tmp_path).statement == 'SELECT "age", "label", "label_" FROM examples'


def test_the_password_of_a_ledger_is_not_shown() -> None:
    rows = Declared("postgresql://ann:secret@host/db", "d", {"age": sf.Integer(0, 9)})
    assert "postgresql://host/db" in repr(rows) and "age" in repr(rows)
    model = Clusterer(ln.KMeans(2), rows, epsilon=1)
    for face in (repr(rows), repr(model), str(model), model._repr_html_()):
        assert "secret" not in face


def test_a_frame_is_read_by_name_and_an_array_by_place(tmp_path: Path) -> None:
    given_frame = pd.DataFrame({"label": [1], "more": [0], "age": [5]})
    expected = {"age": [5], "label": ["True"]}
    assert declared(tmp_path).frame(given_frame) == expected
    assert declared(tmp_path).frame([[5, 1]]) == expected


def test_a_ledger_of_another_process_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    def busy(*tables: Any, **more: Any) -> Any:
        looks.append(more["version"])
        if len(looks) < 3:
            raise LedgerBusy("held")
        return connect(*tables, **more)

    monkeypatch.setattr(declared_rows, "connect", busy)
    monkeypatch.setattr(declared_rows, "_PAUSE", 0)
    with declared(tmp_path).session([[1, 1]], [True], "v") as session:
        assert session.budget.spent == "0" and looks == ["v"] * 3
    # no longer than is said
    looks.clear()
    with pytest.raises(LedgerBusy):
        declared(tmp_path, wait=0).session([[1, 1]], [True], "v")
    assert looks == ["v"]
    for wait in (-1, float("nan"), float("inf"), True, "1"):
        with pytest.raises(WrongUse, match="wait="):
            declared(tmp_path, wait=wait)


def test_what_is_refused(tmp_path: Path) -> None:
    rows = declared(tmp_path)
    with pytest.raises(WrongUse, match="rowsx3"):
        rows.frame([[1, 2, 3]])
    with pytest.raises(WrongUse, match="different numbers"):
        rows.session([[1, 1]], [True, False], "1")
    with pytest.raises(UnknownName):
        rows.frame({"age": [1]})
    with pytest.raises(UnknownName, match="unit"):
        declared(tmp_path, unit=sf.Unit("who", max_rows_total=1)).frame([[1, 1]])
    with pytest.raises(WrongUse, match="ledger"):
        Declared("", "d", {"age": sf.Integer(0, 9)})
    with pytest.raises(WrongUse, match="Text"):
        Declared("l.db", "d", {"name": sf.Text()})


@pytest.mark.parametrize(
    "ids",
    [
        pd.array(["a", pd.NA, "b"], "string"),
        pd.array([1, pd.NA, 2], "Int64"),
        pd.Series(["a", "\ud800", 10**5000], dtype=object),
        pd.Series([float("nan"), None, pd.NaT], dtype=object),
        # it refuses even to be compared
        pd.Series([Decimal("sNaN"), Decimal("NaN"), Decimal(7)], dtype=object),
    ],
)
def test_no_id_is_an_error(tmp_path: Path, ids: Any) -> None:
    frame = pd.DataFrame({"age": [1, 2, 3], "id": ids})
    unit = sf.Unit("id")
    known = Declared(
        tmp_path / "l.db", "c", {"age": sf.Integer(0, 9)}, sf.Boolean(), sf.Budget(1), unit
    )
    with known.session(frame, [True, False, 10**5000], "v") as session:
        assert session.budget.spent == "0"
