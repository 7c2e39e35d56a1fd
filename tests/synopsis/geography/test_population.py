# SPDX-License-Identifier: Apache-2.0
"""Whom a census counts: places, axes and recodes, and what is not declared."""

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import (
    InvalidDeclaration,
    MissingDeclaration,
    SqlSyntaxError,
    UnknownName,
    UnsupportedSql,
    WrongUse,
)
from sfumato.metadata.dataset import Dataset
from sfumato.synopsis.geography.population import population
from sfumato.synopsis.geography.spine import Spine
from tests.synopsis.geography.surveys import COLUMNS, DATA, GROUPS, SPINE


def test_axes_are_columns_or_recodes():
    found = population(DATA, "people", SPINE, ["age_group", "sex", "age"], {"age_group": GROUPS})
    group, sex, age = found.axes
    assert group.labels == ("young", "adult", "old")
    assert (sex.name, sex.labels, sex.size) == ("sex", ("F", "M"), 2)
    # missing values are a cell where missing= declares them
    assert age.labels == (*range(100), None)
    assert age.size == 101
    assert found.cube.cube.names == ("county", "age_group", "sex", "age")
    assert found.areas.tolist() == [0, 1, 2, 3, 4, 5, -1]


def test_a_recode_has_the_cells_that_it_can_take():
    steps = {"steps": "CASE WHEN age < 15 THEN 3 WHEN age < 65 THEN 7 END"}
    (found,) = population(DATA, "people", SPINE, ["steps"], steps).axes
    # whole numbers from 3 to 7, of which two occur, and NULL behind them
    assert (found.labels, found.places, found.size) == ((3, 7, None), (0, 4, 5), 3)
    for name, expression in (("sex", "age"), ("both", "age, sex")):
        with pytest.raises(WrongUse, match="recode"):
            population(DATA, "people", SPINE, [name], {name: expression})


def test_whole_numbers_and_labels_name_areas():
    table = pa.table({"state": ["A", "A", "B"], "county": ["001", "003", "002"]})
    spine = Spine("state > county", table)
    data = Dataset("d", {"t": sf.Table("t.csv", columns={"county": sf.Integer(0, 4)})})
    # numbers between the declared bounds that are no area are counted nowhere
    assert population(data, "t", spine, [], {}).areas.tolist() == [-1, 0, 2, 1, -1, -1]
    labels = {"001": "Adams", "002": "Baker", "003": "Clark"}
    data = Dataset("d", {"t": sf.Table("t.csv", columns={"county": sf.Category(labels)})})
    assert population(data, "t", spine, [], {}).areas.tolist() == [0, 2, 1, -1]


def test_several_columns_together_are_a_place():
    table = pa.table({"state": ["A", "A", "B"], "number": ["1", "2", "1"], "county": list("xyz")})
    spine = Spine("state > county", table, column=["state", "number"])
    columns = {"state": sf.Category("A", "B"), "number": sf.Integer(1, 2)}
    data = Dataset("d", {"t": sf.Table("t.csv", columns=columns)})
    found = population(data, "t", spine, [], {})
    # B has no county 2, and missing values are the last of each column
    assert found.areas.reshape(3, 3).tolist() == [[0, 1, -1], [2, -1, -1], [-1, -1, -1]]


@pytest.mark.parametrize(
    ("axes", "recodes", "error", "said"),
    [
        (["height"], {}, UnknownName, "no axis 'height'"),
        (["job"], {}, MissingDeclaration, "job"),
        (["big"], {"big": "age > height"}, UnknownName, "height"),
        (["big"], {"big": "age >"}, SqlSyntaxError, "SQL"),
        (["big"], {"big": "COUNT(*)"}, UnsupportedSql, "."),
    ],
)
def test_an_axis_without_declared_values_is_refused(axes, recodes, error, said):
    with pytest.raises(error, match=said):
        population(DATA, "people", SPINE, axes, recodes)


def test_an_area_that_nobody_declared_is_named_and_so_is_a_value_without_an_area():
    table = {"state": ["A", "B"], "county": ["c0", "c9"]}
    with pytest.raises(InvalidDeclaration, match="'c9' of the spine is no declared value"):
        population(DATA, "people", Spine("state > county", table), [], {})
    table = {"state": ["A", "B"], "county": ["c0", "c1"]}
    with pytest.raises(InvalidDeclaration, match="'c2' is declared, and is in no area"):
        population(DATA, "people", Spine("state > county", table), [], {})
    with pytest.raises(UnknownName, match="No table 'cats'"):
        population(DATA, "cats", SPINE, [], {})


def test_too_many_cells_are_refused_with_their_sizes():
    wide = {**COLUMNS, "income": sf.Integer(0, 99_999)}
    data = Dataset("d", {"people": sf.Table("t.csv", columns=wide)})
    with pytest.raises(WrongUse, match="A census of") as refusal:
        population(data, "people", SPINE, ["income", "age"], {})
    assert "income 100,001" in str(refusal.value)
