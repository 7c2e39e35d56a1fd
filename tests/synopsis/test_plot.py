# SPDX-License-Identifier: Apache-2.0
"""Pictures of synopses are well-formed SVG that shows what was released."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import synopsis
from sfumato.errors import UnknownName, UnsupportedSql, WrongUse
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.cube import axis
from sfumato.plan.value import Value
from sfumato.show.svg import Figure
from sfumato.synopsis.estimate import Estimate
from sfumato.synopsis.plot import STEPS, TILES, Groups, bands, heat_map
from sfumato.synopsis.tables import Tables

COLUMNS = {"age": sf.Integer(0, 999), "sex": sf.Category("<F>", "M & m"), "b": sf.Boolean()}
TABLE = sf.Table(pa.table({"age": [3], "sex": ["<F>"], "b": [True]}), columns=COLUMNS)
WANTED = synopsis.ranges("age") * synopsis.cells("sex") + synopsis.cells("b")


def boxes(figure: Figure) -> int:
    ElementTree.fromstring(figure.svg)
    return len(re.findall("<title>", figure.svg))


@pytest.fixture
def session(tmp_path: Path) -> object:
    with sf.connect(
        {"t": TABLE}, dataset="d", budget=sf.Budget(100, "1e-6"), ledger=tmp_path / "l.db"
    ) as opened:
        yield opened


def test_a_column_has_a_step_for_each_value_or_range(session):
    one = synopsis.measure(session, "t", synopsis.cells("sex"), rho=1)
    assert boxes(one.plot()) == 2
    assert "&lt;F&gt;" in one.plot().svg
    many = synopsis.measure(session, "t", synopsis.ranges("age"), rho=1)
    assert boxes(many.plot()) == STEPS
    assert "995 to 999" in many.plot().svg


def test_two_columns_are_a_map(session):
    found = synopsis.measure(session, "t", WANTED, rho=1)
    assert isinstance(found, Tables)
    assert boxes(found.plot("age", "sex")) == TILES * 2
    assert boxes(found.plot("age")) == STEPS
    with pytest.raises(UnsupportedSql, match="age, b"):
        found.plot("age", "b")
    with pytest.raises(UnknownName, match="age, sex, b"):
        found.plot("name")
    with pytest.raises(WrongUse):
        found.plot("age", "age")


@pytest.mark.parametrize("cost", [{"rho": 1}, {"epsilon": 1}])
def test_every_strategy_has_a_picture_with_all_of_its_layers(session, cost):
    table = sf.Table("t.csv", columns={"age": sf.Integer(0, 99)})
    data = sf.synopsis.plan(Dataset("d", {"t": table}), "t", synopsis.ranges("age"), **cost)
    for strategy in data.candidates:
        figure = data.plot(strategy)
        ElementTree.fromstring(figure.svg)
        assert figure.svg.count("of cost") == len(strategy.shares)
    assert data.plot().svg == data.plot(data.candidates[0]).svg


def test_a_band_is_as_high_as_its_interval():
    rows = [Estimate(10.0, 5.0, 0.0, 20.0), Estimate(20.0, 2.5, 15.0, 25.0)]
    figure = bands("title", "rows", ["a", "b"], rows)
    heights = [float(each) for each in re.findall(r'height="([\d.]+)" fill', figure.svg)]
    assert heights[0] == pytest.approx(2 * heights[1], abs=0.2)


def test_a_map_is_darker_where_there_are_more_and_nothing_is_below_none():
    rows = [[Estimate(value, 1.0, value - 2, value + 2) for value in (-9.0, 0.0, 50.0, 100.0)]]
    figure = heat_map("title", ("a", "b"), (["x"], list("wxyz")), rows)
    none, zero, half, most, *_ = re.findall('fill="(#[0-9a-f]{6})"', figure.svg)
    assert none == zero == "#f3f6fa"
    assert most == "#1d4e89"
    assert zero > half > most
    assert "off by at most 2 (95%)" in figure.svg


def test_groups_have_all_cells_once():
    found = Groups.of(axis(Value.of(Column("v", sf.Integer(0, 9)))), 4)
    assert found.names == ["0 to 2", "3 to 5", "6 to 8", "9"]
    assert sum(found.queries).tolist() == [1.0] * 10 + [0.0]
