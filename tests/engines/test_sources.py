# SPDX-License-Identifier: Apache-2.0
"""Folders, patterns, partitions and database files: read as declared, or refused by their schemas
alone.
"""

import shutil
import warnings
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines import sources
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.sources import FilesLeftOut, files_of, holds, opened, opened_again
from sfumato.errors import EngineFailed, InvalidConfig, InvalidSource

# the folder of most tests has what a writer leaves
pytestmark = pytest.mark.filterwarnings("ignore::sfumato.engines.sources.FilesLeftOut")
COLUMNS = {"a": sf.Integer(0, 9), "b": sf.Text()}
CANARY = "canary-4711"


def write(path: Path, **columns) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def folder(tmp_path):
    """Three rows in two files, one of them deeper, beside what a writer leaves."""
    write(tmp_path / "data" / "one.parquet", a=[1, 2], b=["x", None])
    write(tmp_path / "data" / "deep" / "two.parquet", a=[4], b=["y"])
    (tmp_path / "data" / "_SUCCESS").touch()
    (tmp_path / "data" / ".one.parquet.crc").write_bytes(b"\0")
    write(tmp_path / "data" / "_temporary" / "three.parquet", other=[CANARY])
    return tmp_path / "data"


def everything(asker, source, columns=COLUMNS):
    """COUNT(*), COUNT of each column, and SUM of the first."""
    ask = asker(source, columns)
    return ask.duckdb(ask.counts())


def refused(asker, source, columns=COLUMNS):
    with pytest.raises(InvalidSource) as refusal:
        everything(asker, source, columns)
    assert CANARY not in str(refusal.value)
    return refusal.value


# --- folders and patterns ----------------------------------------------------------------------


def test_a_folder_is_all_its_files(asker, folder):
    assert everything(asker, folder) == everything(asker, str(folder)) == {(): (3, 3, 2, 7)}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.parquet", (2, 2, 1, 3)),
        ("o?e.parquet", (2, 2, 1, 3)),
        ("deep/[t]wo.parquet", (1, 1, 1, 4)),
    ],
)
def test_a_pattern_is_the_files_that_it_means(asker, folder, pattern, expected):
    assert everything(asker, folder / pattern) == {(): expected}


@pytest.mark.parametrize(
    ("name", "is_read"),
    [
        ("b.PARQUET", True),
        ("b.Parquet", True),
        ("deep/b.parquet", True),
        ("_b.parquet", False),
        (".b.parquet", False),
        ("_old/b.parquet", False),
        ("deep/.old/b.PARQUET", False),
    ],
)
def test_a_folder_and_a_pattern_of_all_its_files_agree(asker, tmp_path, name, is_read, caplog):
    folder = tmp_path / "_data.d"
    write(folder / "a.parquet", a=[1], b=["x"])
    file = write(folder / name, a=[4], b=["y"])
    expected = {(): (2, 2, 2, 5) if is_read else (1, 1, 1, 1)}
    for source in (folder, folder / "**" / "*.parquet", folder / "**" / "*.PARQUET"):
        caplog.clear()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            assert everything(asker, source) == expected, source
        said = [str(each.message) for each in warned if each.category is FilesLeftOut]
        # what is left out is said at opening; a name of a file is the owner's alone
        assert len(said) == (not is_read) and not any(file.name in each for each in said)
        assert (f"{file} is left out" in caplog.text) is not is_read
        assert caplog.text.count("is left out") == (not is_read)
        assert holds(source, file) is is_read


@pytest.mark.parametrize("pattern", ["_old/*.parquet", "_o*/b.parquet", "**/_old/*", "_old/_*"])
def test_a_pattern_that_spells_the_sign_of_a_writer_means_its_files(asker, tmp_path, pattern):
    name = "_b.parquet" if pattern.endswith("_*") else "b.parquet"
    file = write(tmp_path / "_old" / name, a=[4], b=["y"])
    assert everything(asker, tmp_path / pattern) == {(): (1, 1, 1, 4)}
    assert holds(tmp_path / pattern, file)


@pytest.mark.parametrize("source", [".", "**/*.parquet", "*/**/*.parquet", "deep*/**/x.parquet"])
def test_a_link_to_a_folder_is_refused_where_it_is_not_followed(asker, folder, source, caplog):
    write(folder.parent / "elsewhere" / "five.parquet", a=[5], b=["z"])
    (folder / "deep" / CANARY).symlink_to(folder.parent / "elsewhere")
    with pytest.raises(InvalidSource, match="a symbolic link to a folder") as refusal:
        asker(folder / source, COLUMNS).duckdb(asker(folder, COLUMNS).counts())
    assert CANARY not in str(refusal.value) and CANARY in caplog.text


def test_a_link_that_is_named_or_a_writers_is_followed_or_left(asker, folder):
    write(folder.parent / "elsewhere" / "five.parquet", a=[5], b=["z"])
    (folder / "_old").symlink_to(folder.parent / "elsewhere")
    asked = asker(folder, COLUMNS)
    assert asked.duckdb(asked.counts())[()] == (3, 3, 2, 7)
    (folder / "more").symlink_to(folder.parent / "elsewhere")
    asked = asker(folder / "mor*" / "five.parquet", COLUMNS)
    assert asked.duckdb(asked.counts())[()] == (1, 1, 1, 5)


@pytest.mark.parametrize(
    "name", ["nowhere", "nowhere/*.parquet", "*.nothing", "deep/**x/*.parquet", "deep**"]
)
def test_no_folder_and_no_file_are_told(asker, folder, name):
    assert "no file" in refused(asker, folder / name).problem


def test_a_folder_of_something_else_is_refused(asker, folder, caplog):
    (folder / "notes.csv").write_bytes(b"a,b\n1,x\n")
    assert "has a file that is no Parquet" in refused(asker, folder).problem
    assert "notes.csv" in caplog.text


def test_a_file_that_would_be_read_as_a_pattern_is_refused(asker, folder, caplog):
    # DuckDB would read one.parquet twice for it
    shutil.copy(folder / "one.parquet", folder / "on[e].parquet")
    assert "has * ? [ in its name" in refused(asker, folder).problem
    assert "on[e].parquet" in caplog.text


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"a": [1.5], "b": ["x"]}, "'a'"),
        ({"a": [1], "b": ["x"], "c": [CANARY]}, "'c'"),
        ({"a": [1]}, "'b'"),
        ({"a": pa.array([1], pa.int32()), "b": ["x"]}, "'a'"),
    ],
)
def test_files_of_two_schemas_are_refused(asker, folder, other, told, caplog):
    write(folder / "three.parquet", **other)
    refusal = refused(asker, folder)
    assert "differ in 1 of their columns" in refusal.problem and refusal.remedy
    assert f"differ in the columns {told}" in caplog.text and "three.parquet" in caplog.text


def test_the_order_of_the_columns_does_not_matter(asker, folder):
    write(folder / "three.parquet", b=["z"], a=[9])
    assert everything(asker, folder) == {(): (4, 4, 3, 16)}


def test_schemas_that_were_not_compared_are_noticed(asker, folder, monkeypatch):
    write(folder / "three.parquet", a=[1])
    monkeypatch.setattr(sources, "_schema", lambda *_: {"a": "BIGINT", "b": "VARCHAR"})
    with pytest.raises(EngineFailed):
        everything(asker, folder)


def test_a_file_without_rows_or_of_rows_without_values_is_read_like_the_others(asker, folder):
    write(folder / "three.parquet", a=pa.array([], pa.int64()), b=pa.array([], pa.string()))
    write(folder / "four.parquet", a=pa.array([None], pa.int64()), b=pa.array([None], pa.string()))
    assert everything(asker, folder) == {(): (4, 3, 2, 7)}


def test_a_damaged_file_of_many_is_named_to_the_owner(asker, folder, caplog):
    (folder / "three.parquet").write_bytes(b"PAR1" + CANARY.encode())
    assert "three.parquet" not in refused(asker, folder).problem
    assert "three.parquet" in caplog.text


def test_what_came_to_a_folder_later_is_not_read(asker, folder):
    ask = asker(folder, COLUMNS)
    with closing(DuckDB(ask.tables)) as engine:
        write(folder / "three.parquet", a=[9], b=["z"])
        assert engine.run(ask.counts(), "key")[0] == {(): (3,)}


def test_the_connection_reads_the_listed_files_and_nothing_else(asker, folder):
    write(folder.parent / "beside.parquet", a=[1])
    with closing(DuckDB(asker(folder, COLUMNS).tables)) as engine:
        for path in (
            folder.parent / "beside.parquet",
            folder / "_temporary" / "three.parquet",
            folder / "*.parquet",
        ):
            with pytest.raises(duckdb.PermissionException):
                engine._connection.execute(f"SELECT * FROM read_parquet('{path}')")


# --- partitions --------------------------------------------------------------------------------


PARTITIONED = {"a": sf.Integer(0, 9), "year": sf.Integer(2000, 2030), "place": sf.Text()}


@pytest.fixture
def partitioned(tmp_path):
    write(tmp_path / "data" / "year=2024" / "place=a%20b" / "one.parquet", a=[1, 2])
    write(tmp_path / "data" / "year=2025" / "place=007" / "two.parquet", a=[4])
    write(
        tmp_path / "data" / "year=__HIVE_DEFAULT_PARTITION__" / "place=c" / "three.parquet", a=[8]
    )
    return tmp_path / "data"


def test_the_folders_of_a_partition_are_columns_of_text(asker, partitioned):
    assert everything(asker, partitioned, PARTITIONED) == {(): (4, 4, 3, 4, 15)}
    columns = {"year": sf.Category("2024", "2025"), "place": sf.Category("a b", "007")}
    assert everything(asker, partitioned, {"a": sf.Integer(0, 9), **columns})[()][:4] == (
        4,
        4,
        3,
        3,
    )
    assert everything(asker, partitioned / "year=2024" / "**" / "*.parquet", PARTITIONED) == {
        (): (2, 2, 2, 2, 3)
    }


def test_a_partition_gives_its_own_groups(partitioned, tmp_path):
    with session(sf.Table(partitioned, columns=PARTITIONED), tmp_path) as asked:
        answer = asked.query(
            "SELECT year, COUNT(*) AS n FROM t WHERE place <> 'zzz' GROUP BY year", epsilon=1000
        )
        assert {row[0]: round(row[1]) for row in answer.rows if round(row[1])} == {2024: 2, 2025: 1}


def test_folders_with_other_keys_are_refused(asker, partitioned):
    write(partitioned / "year=2026" / "four.parquet", a=[1])
    assert "key=value folders" in refused(asker, partitioned, PARTITIONED).problem


def test_a_value_of_a_folder_has_no_equals_sign_but_an_encoded_one(asker, tmp_path):
    write(tmp_path / "data" / "place=a%3Db c" / "x.parquet", a=[1])
    columns = {"place": sf.Category("a=b c")}
    ask = asker(tmp_path / "data", columns)
    assert ask.duckdb(ask.counts()) == {(): (1, 1, 0)}
    write(tmp_path / "data" / "place=a=b" / "x.parquet", a=[1])
    refusal = refused(asker, tmp_path / "data", columns)
    assert "has a folder with = in its value" in refusal.problem and "%3D" in refusal.remedy


@pytest.mark.parametrize("key", ["a", "A", "year", "YEAR"])
def test_a_key_that_is_also_a_column_is_refused(asker, tmp_path, key):
    # DuckDB would show what the folder says in place of what the rows hold
    write(tmp_path / f"{key}=9" / "one.parquet", a=[1, 2], year=[2024, 2025])
    assert "also the name of a column" in refused(asker, tmp_path, {"a": sf.Integer(0, 9)}).problem


def test_a_declaration_file_can_name_a_table(shop, tmp_path):
    config = tmp_path / "sfumato.toml"
    head = 'dataset = "d"\nledger = "l.db"\n[budget]\nepsilon = "1000"\n'
    config.write_text(f'{head}[tables.users]\nsource = "it\'s.duckdb"\ntable = "users"\n', "utf-8")
    with sf.load(config) as asked:
        assert round(asked.query("SELECT COUNT(*) AS n FROM users", epsilon=500).rows[0][0]) == 1
    config.write_text(f'{head}[tables.users]\nsource = "it\'s.duckdb"\ntable = ""\n', "utf-8")
    with pytest.raises(InvalidConfig, match="table="):
        sf.load(config)


# --- what goes wrong later ---------------------------------------------------------------------


def session(table, tmp_path):
    return sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(10**4), ledger=tmp_path / "ledger.db"
    )


def _with_a_damaged_page(path):
    whole = bytearray(path.read_bytes())
    start = pq.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
    whole[start : start + 16] = b"\xff" * 16
    path.write_bytes(whole)


def test_a_page_that_was_damaged_between_queries_costs_and_tells_nothing(folder, tmp_path):
    with session(sf.Table(folder, columns=COLUMNS), tmp_path) as asked:
        assert round(asked.query("SELECT SUM(a) AS s FROM t", epsilon=1000).rows[0][0]) == 7
        _with_a_damaged_page(folder / "one.parquet")
        with pytest.raises(EngineFailed) as failure:
            asked.query("SELECT SUM(a) AS s, COUNT(b) AS n FROM t WHERE b = 'x'", epsilon=500)
        assert str(failure.value) == str(EngineFailed())
        assert asked.budget.left == Fraction(8500)
        assert asked.verify().problems == ()


def test_a_database_that_was_replaced_stays_the_one_that_was_opened(shop, tmp_path):
    with session(sf.Table(shop, table="users", columns={}), tmp_path) as asked:
        shop.unlink()
        assert round(asked.query("SELECT COUNT(*) AS n FROM t", epsilon=1000).rows[0][0]) == 1


def test_a_file_is_opened_as_itself(tmp_path):
    path = write(tmp_path / "year=2024" / "one.parquet", a=[1])
    with duckdb.connect() as connection:
        found = opened(connection, "t", sf.Table(path))
        assert found.paths == (path,)
        assert connection.execute(f"SELECT * FROM {found.sql}").fetchall() == [(1,)]


@pytest.mark.parametrize("read", ["from_file", "_from_files"])
def test_what_changes_while_it_is_opened_has_changed(folder, monkeypatch, read):
    source = folder / "one.parquet" if read == "from_file" else folder
    honest = getattr(sources, read)

    def slow(*arguments):
        found = honest(*arguments)
        write(folder / "one.parquet", a=[1, 2, 3], b=["x", "y", "z"])
        return found

    with duckdb.connect() as connection:
        assert not opened(connection, "t", sf.Table(source)).has_changed
        monkeypatch.setattr(sources, read, slow)
        found = opened(connection, "t", sf.Table(source))
        assert found.has_changed
        assert opened_again(connection, "t", found).has_changed
        monkeypatch.undo()
        again = opened_again(connection, "t", found)
        assert not again.has_changed
        assert (again.sql, again.place, again.paths) == (found.sql, source, found.paths)


def test_frames_and_databases_do_not_change(shop):
    with duckdb.connect() as connection:
        for table in (sf.Table(pa.table({"a": [1]})), sf.Table(shop, table="users")):
            found = opened(connection, "t", table)
            shop.touch()
            assert not found.has_changed


# --- what an output would replace --------------------------------------------------------------


def test_a_source_holds_what_it_reads_under_every_name(folder, tmp_path):
    one = folder / "one.parquet"
    (tmp_path / "soft.parquet").symlink_to(one)
    (tmp_path / "hard.parquet").hardlink_to(one)
    (tmp_path / "door").symlink_to(folder)
    for place in (folder, folder / "*.parquet", folder / "**" / "one*", tmp_path / "door", one):
        for path in (
            one,
            folder / "deep" / ".." / "one.parquet",
            *tmp_path.glob("*.parquet"),
            tmp_path / "door" / one.name,
        ):
            assert holds(place, path), (place, path)
        assert not holds(place, tmp_path / "one.parquet")


@pytest.mark.parametrize(
    ("place", "inside", "outside"),
    [
        (
            "data",
            ["new.csv", "deep/new.parquet"],
            ["../new.parquet", "_new.parquet", ".deep/new.parquet"],
        ),
        ("data/*.parquet", ["new.parquet"], ["new.csv", "deep/new.parquet", "_new.parquet"]),
        ("data/**/*.parquet", ["new.parquet", "deep/new.parquet"], ["new.csv", "../new.parquet"]),
        ("data/**/t[wx]o.parquet", ["txo.parquet", "deep/txo.parquet"], ["tyo.parquet"]),
        ("da*/d*/*", ["deep/new"], ["new", "deep/two.parquet/new"]),
        ("data/one.parquet", ["../data/one.parquet"], ["two.parquet"]),
    ],
)
def test_a_source_holds_what_it_would_read_once_it_is_there(
    folder, tmp_path, place, inside, outside
):
    source = tmp_path / place
    assert all(holds(source, folder / each) for each in inside)
    assert not any(holds(source, folder / each) for each in outside)
    for each in (each for each in inside if "new" in each):
        # what is said of a file that is not there is what its being there makes true
        (folder / each).touch()
        assert (folder / each).resolve() in [found.resolve() for found in files_of(source)]


# --- CSV in another encoding ----------------------------------------------------------------------

GBK = '姓名,收入\n张三,"1.000,5"\n李四,2\n'.encode("gbk") + b"\xff,3\n\xd5\xc5\xc8\xfd,\x80\n"


def of_gbk(path):
    """A table of names and amounts in GBK, with one of each that does not decode."""
    path.write_bytes(GBK)
    columns = {"姓名": sf.Text(), "收入": sf.Real(0, 2000)}
    return sf.Table(path, columns=columns, encoding="gbk", decimal=",", thousands=".")


def test_what_does_not_decode_is_missing_in_every_question(tmp_path):
    statement = """SELECT COUNT(*) AS n, COUNT("姓名") AS names, COUNT("收入") AS amounts,
        SUM("收入") AS total FROM t WHERE "姓名" = '张三' OR "姓名" IS NULL"""
    with session(of_gbk(tmp_path / "data.csv"), tmp_path) as asked:
        (row,) = asked.query(statement, epsilon=9000).rows
    assert row[:3] == pytest.approx([3, 2, 2], abs=0.4)
    # noise of scale 0.9: this far off once in 10^9
    assert float(row[3]) == pytest.approx(1003.5, abs=20)


def test_the_copy_of_a_csv_is_deleted_with_its_engine(tmp_path):
    engine = DuckDB({"t": of_gbk(tmp_path / "data.csv")})
    (copy,) = Path(engine._spill).glob("decoded-*.csv")
    assert copy.stat().st_mode & 0o777 == 0o600
    assert copy.parent.stat().st_mode & 0o777 == 0o700
    engine.close()
    assert not copy.parent.exists()


def test_a_csv_that_has_changed_since_it_was_copied_is_refused(tmp_path):
    with session(of_gbk(tmp_path / "data.csv"), tmp_path) as asked:
        (tmp_path / "data.csv").write_bytes(GBK + b"x,1\n")
        with pytest.raises(InvalidSource, match="is not the file that was checked"):
            asked.query("SELECT COUNT(*) AS n FROM t", epsilon=1)
        assert asked.budget.left == 10_000


def test_what_is_missing_does_not_depend_on_the_other_rows(tmp_path):
    # whatever else the column has, a field that does not decode is NULL for every test
    rows = b"x,b\n" + b"Na,1\n" * 5 + b"N\xff,1\n" * 3 + b"Nb,0\n" * 2
    (tmp_path / "data.csv").write_bytes(rows)
    columns = {"x": sf.Text(missing="Nb"), "b": sf.Integer(0, 1)}
    table = sf.Table(tmp_path / "data.csv", columns=columns, encoding="gbk")
    expected = {
        "x LIKE 'N%'": 5,
        "NOT x LIKE 'N%'": 0,
        "x IS NULL": 5,
        "x IN ('Na', 'Nb')": 5,
        "x <> 'q'": 5,
    }
    with session(table, tmp_path) as asked:
        for test, count in expected.items():
            answer = asked.query(f"SELECT COUNT(*) AS n FROM t WHERE {test}", epsilon=1000)
            assert round(answer.rows[0][0]) == count
