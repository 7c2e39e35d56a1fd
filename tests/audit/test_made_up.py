# SPDX-License-Identifier: Apache-2.0
"""Made-up rows are at the edges of what is declared, and a unit enters every table of its own."""

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit.made_up import SHAPES, World, frame_of, key_columns, with_source
from sfumato.errors import InvalidDeclaration
from sfumato.metadata.dataset import Dataset

COLUMNS = {
    "w": sf.Category("a", "b"),
    "n": sf.Integer(0, 10),
    "x": sf.Real(0, 1, step="0.25"),
    "d": sf.Date("2000-01-01", "2000-12-31"),
    "f": sf.Boolean(),
    "t": sf.Timestamp("2020-01-01", "2020-12-31"),
    "z": sf.Text(),
}
UNIT = sf.Unit("who", max_rows=2, max_groups=2)


def dataset(**tables):
    return Dataset("made-up", tables)


PEOPLE = sf.Table("nowhere.csv", columns=COLUMNS, unit=UNIT)


def test_rows_are_the_same_for_the_same_seed_and_reach_beyond_the_bounds():
    world = World(dataset(people=PEOPLE), 1)
    rows = world.rows(200)["people"]
    assert rows.equals(World(world.dataset, 1).rows(200)["people"])
    assert not rows.equals(World(world.dataset, 2).rows(200)["people"])
    numbers = set(rows["n"].to_pylist())
    assert {-1, 0, 10, 11, None} <= numbers
    assert {"a", "A", "a ", "not declared"} <= set(rows["w"].to_pylist())
    assert {"p0", "P0"} <= set(rows["who"].to_pylist())
    assert key_columns(PEOPLE) == ("who",)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_unit_enters_every_table_of_its_own(shape):
    other = sf.Table("x.csv", columns={"n": sf.Integer(0, 3)}, unit=sf.Unit("who"))
    apart = sf.Table("y.csv", columns={"n": sf.Integer(0, 3)}, unit=sf.Unit("house"))
    public = sf.Table("z.csv", columns={"n": sf.Integer(0, 3)}, public=True)
    world = World(dataset(people=PEOPLE, visits=other, homes=apart, codes=public), 1)
    base = world.rows(6)
    grown = {}
    for seed in range(8):
        more = world.with_unit(base, shape, seed)
        changed = frozenset(name for name in base if len(more[name]) > len(base[name]))
        grown[changed] = more
        assert all(more[name].slice(0, 6).equals(base[name]) for name in base)
    # the unit of two tables, or that of the third
    assert grown.keys() == {frozenset({"people", "visits"}), frozenset({"homes"})}
    added = grown[frozenset({"people", "visits"})]["people"].slice(6)
    assert set(added["who"].to_pylist()) == {"entering"} and len(added) == 12
    if shape == "full":
        assert len(set(added["w"].to_pylist())) == 1
    if shape == "extreme":
        assert set(added["n"].to_pylist()) <= {0, 10}
    if shape == "broken":
        assert None in added["n"].to_pylist()


def test_a_row_is_a_unit_where_none_is_declared():
    alone = sf.Table("x.csv", columns={"n": sf.Integer(0, 3)})
    world = World(dataset(one=alone, two=alone), 1)
    base = world.rows(4)
    for seed in range(6):
        grown = world.with_unit(base, "spread", seed)
        assert sum(len(frame) for frame in grown.values()) == 9


def test_what_is_not_made_up_is_refused():
    array = sf.Table("x.csv", columns={"p": sf.Array((2**10, 2**5), 0, 3)})
    via = sf.Table("x.csv", columns={"n": sf.Integer(0, 3)}, unit=sf.Unit("visit", via="people.id"))
    for table in (array, via):
        with pytest.raises(InvalidDeclaration):
            World(dataset(other=table), 1)


def test_dates_and_times_with_a_format_are_written_in_it():
    written = sf.Table(
        "x.csv",
        columns={
            "d": sf.Date("2000-01-02", "2000-12-31", format="%d.%m.%Y"),
            "t": sf.Timestamp("2000-01-02", "2000-12-31", format="%Y-%m-%d %H:%M"),
        },
    )
    made = World(dataset(alone=written), 1).rows(40)["alone"]
    assert {"02.01.2000", "31.12.2000", "01.01.2000"} <= set(made["d"].to_pylist())
    assert {"2000-01-02 00:00", "2000-12-31 23:59"} <= set(made["t"].to_pylist())


def test_a_table_reads_another_source_with_nothing_of_its_own():
    original = sf.Table("x.csv", columns={"n": sf.Integer(0, 3)}, delimiter=";", encoding="gbk")
    frame = pa.table({"n": [1]})
    other = with_source(original, frame)
    assert other.source is frame and other.delimiter is None and other.encoding is None
    assert with_source(original, "y.db", table="t").table == "t"
    spelled = sf.Table("x.csv", columns={"f": sf.Boolean(true="yes", false="no")})
    assert frame_of({"f": ["yes"]}, spelled).schema.field("f").type == pa.string()


def test_arrays_are_of_the_ends_beyond_them_and_of_another_length():
    columns = {"p": sf.Array((2, 2), 0, 3), "q": sf.Array(2, 0, 1, step="0.5")}
    made = World(dataset(alone=sf.Table("x.csv", columns=columns)), 1).rows(200)["alone"]
    pictures = made["p"].to_pylist()
    for expected in ([0] * 4, [3] * 4, [-1] * 4, [4] * 4, None):
        assert expected in pictures
    assert {len(picture) for picture in pictures if picture is not None} == {4, 5}
    assert any(None in picture for picture in pictures if picture is not None)
    assert [1.0, 1.0] in made["q"].to_pylist()


def graph(unit):
    people = sf.Table("x.csv", unit=sf.Unit("id", max_rows_total=1, name="person"))
    return dataset(people=people, ties=sf.Table("y.csv", unit=unit))


@pytest.mark.parametrize("shape", SHAPES)
def test_an_edge_that_enters_was_none_before(shape):
    world = World(graph(sf.Edge("a", "b")), 1)
    base = world.rows(200)
    seen = {frozenset(row.values()) for row in base["ties"].to_pylist()}
    # all others of ten names, and of a name with itself
    assert len(seen) == 55 - len(SHAPES)
    grown = [world.with_unit(base, shape, seed)["ties"].slice(600) for seed in range(8)]
    entered = {frozenset(row.values()) for frame in grown for row in frame.to_pylist()}
    assert len(entered) == 1 and not entered & seen


@pytest.mark.parametrize("shape", SHAPES)
def test_a_person_enters_with_all_edges(shape):
    world = World(graph(sf.Node("a", "b", of="people")), 1)
    base = world.rows(20)
    grown = world.with_unit(base, shape, 3)
    assert set(grown["people"]["id"].slice(20).to_pylist()) == {"entering"}
    ends = [tuple(row.values()) for row in grown["ties"].slice(60).to_pylist()]
    assert all("entering" in pair for pair in ends) and len(set(map(frozenset, ends))) > 2
    assert any(None in pair for pair in ends) is (shape == "broken")
    assert not any("entering" in row.values() for row in base["ties"].to_pylist())


def test_ids_of_edges_of_a_declared_type_are_refused():
    ids = {"a": sf.Integer(0, 3), "b": sf.Integer(0, 3)}
    for table in (
        sf.Table("y.csv", unit=sf.Edge("a", "b"), columns=ids),
        sf.Table("y.csv", unit=sf.Node("a", "b", of="people"), columns=ids),
    ):
        people = sf.Table("x.csv", unit=sf.Unit("id", max_rows_total=1))
        with pytest.raises(InvalidDeclaration):
            World(dataset(people=people, ties=table), 1)
