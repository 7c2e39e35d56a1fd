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
    array = sf.Table("x.csv", columns={"p": sf.Array((2,), 0, 3)})
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
