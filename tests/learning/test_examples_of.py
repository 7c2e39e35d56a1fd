# SPDX-License-Identifier: Apache-2.0
"""Examples are planned from a SELECT and declarations alone."""

from dataclasses import replace

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import UnknownName, WrongUse
from sfumato.learning.examples import Label
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import linear
from sfumato.metadata.column import ColumnType
from sfumato.metadata.dataset import Dataset
from tests.learning.rows import COLUMNS, frame

MORE = {**COLUMNS, "born": sf.Date("1900-01-01", "2020-12-31")}
PEOPLE = sf.Table(frame(5), unit=sf.Unit("who", max_rows_total=7), columns=MORE)
TOWN = Dataset("town", {"people": PEOPLE})


def test_every_column_but_the_label_is_a_feature() -> None:
    found = Examples.of(TOWN, "SELECT who, age, ILL, city FROM people", "ill")
    assert [value.name for value in found.values] == ["age", "city"]
    assert found.place == 1 and found.places == (0, 2) and found.label == Label(1, 0, 1)
    assert found.classes == ("False", "True") and found.plan.most == 7
    assert [part.name for part in found.features(linear).parts] == ["age", "city"]
    assert [column.name for column in found.columns] == ["age", "city"]


def test_expressions_and_sub_queries_are_features() -> None:
    statement = "SELECT AVG(pay) AS mean, MAX(age) > 50 AS old FROM people GROUP BY who"
    found = Examples.of(TOWN, statement, "old")
    assert [value.name for value in found.values] == ["mean"] and found.plan.most == 1


def test_a_number_is_a_label_with_bounds() -> None:
    found = Examples.of(TOWN, "SELECT age, pay FROM people", "pay")
    assert found.classes == () and found.bounds == (0.0, 100.0)


def test_other_labels_are_refused() -> None:
    with pytest.raises(WrongUse, match="Date"):
        Examples.of(TOWN, "SELECT age, born FROM people", "born")
    with pytest.raises(UnknownName):
        Examples.of(TOWN, "SELECT age FROM people", "ill")


SHAPES = pa.table({"p": [[0, 1], [1, 1], [0, 0], None], "x": [5, 6, 7, 8], "up": [1, 0, 1, 1]})


def shapes(frame: pa.Table, columns: dict[str, ColumnType]) -> Dataset:
    return Dataset("shapes", {"t": sf.Table(frame, columns=columns)})


def test_an_array_is_a_feature_for_each_number() -> None:
    """The features are those of single columns with the same numbers."""
    columns = {"p": sf.Array(2, 0, 3), "x": sf.Integer(0, 9), "up": sf.Boolean()}
    listed = Examples.of(shapes(SHAPES, columns), "SELECT x, up, p FROM t", "up")
    apart = {
        "x": sf.Integer(0, 9),
        "up": sf.Boolean(),
        "a": sf.Integer(0, 3),
        "b": sf.Integer(0, 3),
    }
    single = Examples.of(shapes(SHAPES, apart), "SELECT x, up, a, b FROM t", "up")
    assert (
        (listed.places, listed.label) == (single.places, single.label) == ((0, 2, 3), single.label)
    )
    names = [part.name for part in listed.features(linear).parts]
    assert names == ["x", "p[0]", "p[1]"]
    ours, wanted = listed.features(linear), single.features(linear)
    assert [replace(part, name="") for part in ours.parts] == [
        replace(part, name="") for part in wanted.parts
    ]
    first = Examples.of(shapes(SHAPES, columns), "SELECT p, up, x FROM t", "up")
    assert (first.places, first.label.place) == ((0, 1, 3), 2)
