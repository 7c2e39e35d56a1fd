# SPDX-License-Identifier: Apache-2.0
"""Preparing writes what a session may read, for its owner alone, whole or not at all."""

import json
import stat

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.prepare import drop, prepare
from sfumato.engines.prepared import MANIFEST, Prepared
from sfumato.errors import InvalidDeclaration, InvalidSource, MissingDeclaration, WrongUse
from sfumato.metadata.dataset import Dataset

COLUMNS = {"ward": sf.Category("A", "B")}


@pytest.fixture
def visits(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("person,ward\np,A\np,B\nq,A\n")
    return path


def table(source, *limits, **named):
    return sf.Table(source, unit=sf.Unit("person", *limits, **named), columns=COLUMNS)


def made(source, folder, **options):
    tables = {"visits": table(source, 2)}
    return tables, prepare(tables, dataset="clinic", folder=folder, **options)


def kept(tables, folder):
    return Prepared.open(folder, Dataset("clinic", tables)).kept


@pytest.mark.parametrize(
    ("limits", "rows"),
    [
        ((2, 3, 4), 4),
        ((2, 3, None), 6),
        ((2, None, None), 2),
        ((None, None, 5), 5),
        ((2**31, 2**31, None), 2**31 - 1),
    ],
)
def test_as_many_rows_are_kept_as_the_limits_allow(visits, tmp_path, limits, rows):
    tables = {"visits": table(visits, *limits)}
    folder = prepare(tables, dataset="clinic", folder=tmp_path / "layouts")
    assert kept(tables, folder) == {"visits": rows}


def test_the_owner_may_say_how_many(visits, tmp_path):
    tables, folder = made(visits, tmp_path / "layouts", rows=1)
    assert kept(tables, folder) == {"visits": 1}
    (file,) = folder.glob("*.parquet")
    assert pq.read_table(file).num_rows == 2


def test_limits_that_say_nothing_are_asked_for(visits, tmp_path):
    for limits, words in (
        ((None, 3, None), "no max_rows, so"),
        ((sf.AUTO, sf.AUTO, None), "sf.AUTO"),
    ):
        tables = {"visits": table(visits, *limits)}
        with pytest.raises(MissingDeclaration, match=words):
            prepare(tables, dataset="clinic", folder=tmp_path / "layouts")
        assert not (tmp_path / "layouts").exists()
        assert kept(
            tables, prepare(tables, dataset="clinic", folder=tmp_path / "layouts", rows=3)
        ) == {"visits": 3}
        assert drop(tmp_path / "layouts")


@pytest.mark.parametrize("rows", [0, -1, 2**31, True, 1.0, "9"])
def test_a_number_of_rows_that_is_none_is_refused(visits, tmp_path, rows):
    with pytest.raises(InvalidDeclaration, match="rows="):
        made(visits, tmp_path / "layouts", rows=rows)


def test_only_private_tables_in_files_are_prepared(visits, tmp_path):
    frame = pa.table({"person": ["p"], "ward": ["A"]})
    others = {
        "rows": sf.Table(visits, columns=COLUMNS),
        "wards": sf.Table(visits, columns=COLUMNS, public=True),
        "frame": table(frame, 2),
        "beyond": sf.Table(visits, unit=sf.Unit("person", 2, via="frame.person"), columns=COLUMNS),
    }
    with pytest.raises(WrongUse, match="No table to prepare"):
        prepare(others, dataset="clinic", folder=tmp_path / "layouts")
    assert not (tmp_path / "layouts").exists()
    tables = {**others, "visits": table(visits, 2)}
    assert kept(tables, prepare(tables, dataset="clinic", folder=tmp_path / "layouts")) == {
        "visits": 2
    }


# --- the folder ------------------------------------------------------------------------------


def rights(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_nobody_else_can_read_a_layout(visits, tmp_path):
    folder = tmp_path / "layouts"
    folder.mkdir(mode=0o755)
    made(visits, folder)
    assert rights(folder) == 0o700
    files = list(folder.iterdir())
    assert len(files) == 2 and {rights(each) for each in files} == {0o600}


def test_a_folder_with_other_things_is_left_alone(visits, tmp_path):
    tmp_path.chmod(0o755)
    with pytest.raises(WrongUse, match="holds other things: visits"):
        made(visits, tmp_path)
    assert rights(tmp_path) == 0o755
    with pytest.raises(InvalidSource, match="cannot be made"):
        made(visits, tmp_path / "no" / "such")
    with pytest.raises(InvalidSource, match="cannot be made"):
        made(visits, visits)


@pytest.mark.parametrize("source", ["data", "data/**/*.parquet"])
def test_a_folder_within_the_data_is_refused(tmp_path, source):
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table({"person": ["p"], "ward": ["A"]}), tmp_path / "data" / "x.parquet")
    with pytest.raises(WrongUse, match="lies in the data of table 'visits'"):
        made(tmp_path / source, tmp_path / "data" / "layouts")
    assert not (tmp_path / "data" / "layouts").exists()
    # names that no source is read from, and a pattern that goes no deeper
    made(tmp_path / source, tmp_path / "_layouts")
    made(tmp_path / "data" / "*.parquet", tmp_path / "data" / "layouts")


def test_preparing_again_replaces_what_there_was(visits, tmp_path):
    tables, folder = made(visits, tmp_path / "layouts")
    before = {each.name for each in folder.glob("*.parquet")}
    (folder / "sfumato-left.parquet").write_bytes(b"left by a crash")
    (folder / "sfumato-spilled").mkdir()
    made(visits, folder, rows=1)
    after = {each.name for each in folder.iterdir()} - {MANIFEST}
    assert len(after) == 1 and not after & before
    assert kept(tables, folder) == {"visits": 1}
    (folder / MANIFEST).write_text("no manifest any more")
    made(visits, folder)
    assert kept(tables, folder) == {"visits": 2}


def test_what_fails_leaves_the_old_layout_and_nothing_else(visits, tmp_path, monkeypatch):
    tables, folder = made(visits, tmp_path / "layouts")
    before = sorted(each.name for each in folder.iterdir())
    monkeypatch.setattr(
        "sfumato.engines.duckdb.layout_statements",
        lambda *_: ["SELECT 1", "SELECT error('a value')"],
    )
    with pytest.raises(InvalidSource, match="could not be prepared") as failure:
        made(visits, folder)
    assert "a value" not in str(failure.value) and failure.value.__context__ is None
    assert sorted(each.name for each in folder.iterdir()) == before
    assert kept(tables, folder) == {"visits": 2}


def test_data_that_changes_meanwhile_is_no_layout(visits, tmp_path, monkeypatch):
    honest = DuckDB.write_layout

    def written(engine, *arguments):
        found = honest(engine, *arguments)
        visits.write_text("person,ward\np,A\n")
        return found

    monkeypatch.setattr(DuckDB, "write_layout", written)
    with pytest.raises(InvalidSource, match="changed while it was prepared"):
        made(visits, tmp_path / "layouts")
    assert list((tmp_path / "layouts").iterdir()) == []


def test_dropping_deletes_every_layout_and_nothing_else(visits, tmp_path):
    folder = tmp_path / "layouts"
    assert not drop(folder) and not drop(tmp_path)
    made(visits, folder)
    (folder / "sfumato-spilled").mkdir()
    assert drop(folder) and not folder.exists()
    made(visits, folder)
    (folder / "note.txt").write_text("mine")
    assert drop(folder)
    assert [each.name for each in folder.iterdir()] == ["note.txt"]
    assert visits.exists()


def test_a_folder_that_cannot_be_changed_is_refused_in_words(visits, tmp_path):
    _, folder = made(visits, tmp_path / "layouts")
    (folder / MANIFEST).unlink()
    # a folder is where the manifest goes: whoever runs the tests, it is neither written nor deleted
    # as a file
    (folder / MANIFEST).mkdir()
    before = sorted(folder.iterdir())
    for act in (lambda: made(visits, folder), lambda: drop(folder)):
        with pytest.raises(InvalidSource, match="cannot be made or changed"):
            act()
        assert set(folder.iterdir()) <= set(before)


def test_the_owner_is_told_of_each_table(visits, tmp_path):
    lines = []
    made(visits, tmp_path / "layouts", report=lines.append)
    (line,) = lines
    assert line.startswith("table visits: at most 2 rows of a unit, ")


def test_a_limit_of_memory_is_one_of_the_engine(visits, tmp_path):
    tables, folder = made(
        visits, tmp_path / "layouts", engine=sf.Local(memory_limit="500MB", threads=1)
    )
    assert kept(tables, folder) == {"visits": 2}
    # interrupted every 50 ms, and longer under way than that
    visits.write_text("person,ward\n" + "".join(f"{each},A\n" for each in range(300_000)))
    with pytest.raises(InvalidSource, match="could not be prepared"):
        made(visits, folder, engine=sf.Local(time_limit=1e-9))
    assert [each.name for each in folder.glob("*.parquet")] == [
        json.loads((folder / MANIFEST).read_text())["tables"]["visits"]["file"]
    ]
