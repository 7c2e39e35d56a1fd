# SPDX-License-Identifier: Apache-2.0
"""The public table of a geography: what is read of it, and what is refused by name."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from sfumato.errors import InvalidDeclaration, InvalidSource, WrongUse
from sfumato.synopsis.geography.spine import Spine

ROWS = {
    "state": ["B", "A", "A", "B"],
    "county": ["b2", "a1", "a2", "b1"],
    "number": ["7", "1", "2", "6"],
}


def test_children_of_an_area_are_neighbours():
    spine = Spine("state > county", pa.table(ROWS))
    assert spine.codes == (("A", "B"), ("a1", "a2", "b1", "b2"))
    assert spine.tree.parents[0].tolist() == [0, 0, 1, 1]
    assert spine.columns == ("county",)
    assert spine.keys == (("a1", "a2", "b1", "b2"),)
    assert repr(spine) == "Spine('state > county': 2 > 4 areas)"


def test_codes_out_of_the_order_of_their_parents_are_sorted_below_them():
    table = {"region": ["S", "N", "S"], "state": ["A", "B", "C"], "county": ["x", "y", "z"]}
    spine = Spine("region > state > county", pa.table(table))
    assert spine.codes == (("N", "S"), ("B", "A", "C"), ("y", "x", "z"))
    assert [parents.tolist() for parents in spine.tree.parents] == [[0, 1, 1], [0, 1, 2]]


def test_files_frames_and_mappings_are_read_alike(tmp_path: Path):
    csv, parquet = tmp_path / "spine.csv", tmp_path / "spine.parquet"
    frame = pd.DataFrame(ROWS)
    frame.to_csv(csv, index=False)
    pa.parquet.write_table(pa.table(ROWS), parquet)
    wanted = Spine("state > county", pa.table(ROWS)).codes
    for source in (csv, str(csv), parquet, frame, ROWS):
        assert Spine("state > county", source).codes == wanted


def test_codes_of_a_csv_are_strings(tmp_path: Path):
    path = tmp_path / "spine.csv"
    path.write_text("state,county\n01,001\n01,002\n02,003\n")
    assert Spine("state > county", path).codes == (("01", "02"), ("001", "002", "003"))


def test_rows_of_one_area_may_be_repeated():
    twice = {name: values * 2 for name, values in ROWS.items()}
    assert Spine("state > county", twice).tree.sizes == (2, 4)


def test_the_place_may_be_another_column_or_several():
    one = Spine("state > county", ROWS, column="number")
    assert (one.columns, one.keys) == (("number",), (("1", "2", "6", "7"),))
    two = Spine("state > county", ROWS, column=["state", "number"])
    assert two.keys == (("A", "A", "B", "B"), ("1", "2", "6", "7"))
    named = Spine("state > county", ROWS, column="place")
    assert named.keys == (("a1", "a2", "b1", "b2"),)


@pytest.mark.parametrize(
    ("levels", "changed", "error", "said"),
    [
        ("county", {}, WrongUse, "one level"),
        ("state > state", {}, WrongUse, "each once"),
        ("state > ", {}, WrongUse, "names"),
        (7, {}, WrongUse, "levels=7"),
        ("state > tract", {}, InvalidDeclaration, "no column 'tract'"),
        ("state > county", {"county": ["a1", "a1", "b1", "b2"]}, InvalidDeclaration, "'a1' lies in 2"),
        ("state > county", {"state": [None, "A", "A", "B"]}, InvalidDeclaration, "has no state"),
        ("state > county", {"county": ["", "x", "y", "z"]}, InvalidDeclaration, "has no county"),
        ("state > county", {"state": ["A"] * 4, "county": ["x"] * 4}, InvalidDeclaration, "one area"),
    ],
)  # fmt: skip
def test_what_is_no_geography_is_refused_by_name(levels, changed, error, said):
    with pytest.raises(error, match=said):
        Spine(levels, pa.table({**ROWS, **changed}))


def test_keys_that_do_not_tell_areas_apart_are_refused():
    with pytest.raises(InvalidDeclaration, match="have the key"):
        Spine("state > county", {**ROWS, "number": ["1", "1", "2", "3"]}, column="number")
    twice = {name: [*values, values[0]] for name, values in ROWS.items()}
    twice["number"][-1] = "8"
    with pytest.raises(InvalidDeclaration, match="two values of 'number'"):
        Spine("state > county", twice, column="number")


def test_what_cannot_be_read_is_refused(tmp_path: Path):
    with pytest.raises(InvalidSource):
        Spine("state > county", tmp_path / "nowhere.csv")
    with pytest.raises(InvalidSource, match="without rows"):
        Spine("state > county", pa.table({name: pa.array([], pa.string()) for name in ROWS}))
    with pytest.raises(WrongUse, match="spine from"):
        Spine("state > county", 3)
    with pytest.raises(WrongUse, match="no level 'tract'"):
        Spine("state > county", ROWS).place("tract")
