# SPDX-License-Identifier: Apache-2.0
"""What a source holds is what is declared of it, at opening and before each charge.

Decided by no row.
"""

import shutil
import threading
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines import declared, duckdb
from sfumato.engines.declared import owner_columns
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.sources import Opened
from sfumato.errors import EngineFailed, InvalidDeclaration, InvalidSource
from tests.contracts.charges import charges

COLUMNS = {"a": sf.Integer(0, 9), "b": sf.Category("x", "y")}
CANARY = "canary-4711"
ASKED = "SELECT COUNT(*) AS n, SUM(a) AS s FROM t WHERE b = 'x' AND a > 1"


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def one(tmp_path):
    return write(tmp_path / "data" / "one.parquet", a=[1, 2, 3], b=["x", "x", "y"])


def connect(tmp_path, source, columns=COLUMNS, **others):
    tables = {"t": sf.Table(source, columns=columns), **others}
    return sf.connect(tables, dataset="d", budget=sf.Budget(10**6), ledger=tmp_path / "ledger.db")


def answer(session, sql=ASKED):
    # each question has a price of its own: none is answered from the ledger
    asked = 10**4 + len(charges(session._ledger))
    return [round(each) for each in session.query(sql, epsilon=asked).rows[0]]


def refused(session, sql=ASKED):
    """The refusal of a question, for which nothing is charged, not even reserved."""
    before, left = charges(session._ledger), session.budget.left
    with pytest.raises((InvalidSource, InvalidDeclaration)) as refusal:
        answer(session, sql)
    assert charges(session._ledger) == before and session.budget.left == left
    assert session.verify().problems == ()
    assert (
        "has changed since" in refusal.value.problem
        and "Open the session again" in refusal.value.remedy
    )
    assert CANARY not in str(refusal.value)
    return refusal.value


# --- what does not fit -----------------------------------------------------------------------


# without the values and the fields that are inside
PLAIN = {"mood[]": "ENUM", "STRUCT(a mood)": "STRUCT"}


WORDS = sf.Category("no", "yes")


@pytest.mark.parametrize("physical", [pa.bool_(), pa.int64(), pa.uint8()])
@pytest.mark.parametrize("rows", [[], [None], [1, 0]])
def test_a_type_that_holds_none_of_the_words_is_refused_whatever_the_rows_are(
    tmp_path, physical, rows
):
    source = pa.table({"a": pa.array(rows, pa.int64()).cast(physical)})
    with pytest.raises(InvalidDeclaration, match="no such value") as refusal:
        connect(tmp_path, source, {"a": WORDS})
    assert "sf.Boolean()" in refusal.value.remedy and not (tmp_path / "ledger.db").exists()


@pytest.mark.parametrize("physical", [pa.float64(), pa.string()])
def test_text_and_floats_are_never_refused(tmp_path, physical):
    # pandas makes floats of integers where one is missing: a refusal would tell one row
    source = pa.table({"a": pa.array([None], physical)})
    connect(tmp_path, source, {"a": WORDS}).close()


def test_words_that_a_type_can_hold_are_answered(tmp_path):
    source = pa.table({"a": [True, False, True], "b": [1, 0, 1], "c": [1, 2, 2]})
    columns = {
        "a": sf.Category({"true": "yes", "false": "no"}),
        "b": sf.Boolean(),
        "c": sf.Category({"1": "male", "2": "female"}),
    }
    with connect(tmp_path, source, columns) as session:
        assert answer(session, "SELECT COUNT(*) FROM t WHERE a = 'yes' AND b AND c = 'male'") == [1]


@pytest.mark.parametrize(
    "kind", [sf.Integer(0, 9), sf.Text(), sf.Date("2020-01-01", "2020-12-31"), sf.Category("x")]
)
@pytest.mark.parametrize("physical", ["DECIMAL(9,2)[]", "mood[]", "STRUCT(a mood)"])
def test_a_list_is_no_value_whatever_it_is_of(tmp_path, physical, kind):
    path = tmp_path / "lists.duckdb"
    with duckdb.duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TYPE mood AS ENUM ('{CANARY}', 'it''s)')")
        connection.execute(f"CREATE TABLE t (a {physical})")
    with pytest.raises(InvalidDeclaration, match="and the data holds") as refusal:
        DuckDB({"t": sf.Table(path, table="t", columns={"a": kind})})
    assert CANARY not in str(refusal.value)
    assert refusal.value.problem.endswith(f"holds {PLAIN.get(physical, physical)}.")


# --- ids whose collation calls several spellings equal ----------------------------------------


def hospital(tmp_path, collated, collation="NOCASE"):
    """The tables of a DuckDB file without rows, of which one column has a collation."""
    path = tmp_path / f"{collated}.duckdb"
    kinds = dict.fromkeys(("patients.pid", "visits.id", "visits.pid", "notes.visit"), "VARCHAR")
    kinds[collated] += f" COLLATE {collation}"
    with duckdb.duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE patients (pid {kinds['patients.pid']})")
        visits = f"id {kinds['visits.id']}, pid {kinds['visits.pid']}"
        connection.execute(f"CREATE TABLE visits ({visits}, ward VARCHAR COLLATE {collation})")
        connection.execute(f"CREATE TABLE notes (visit {kinds['notes.visit']})")

    columns = {"visits": {"ward": sf.Text()}}

    def tables(*apart):
        units = {
            "patients": sf.Unit("pid", spellings_apart="patients" in apart),
            "visits": sf.Unit("pid", spellings_apart="visits" in apart),
            "notes": sf.Unit("visit", via="visits.pid", key="id", spellings_apart="notes" in apart),
        }
        return {
            name: sf.Table(path, unit=unit, table=name, columns=columns.get(name, {}))
            for name, unit in units.items()
        }

    return tables


# the column with the collation, and the table whose unit it is part of
NAMING = {
    "patients.pid": "patients",
    "visits.pid": "visits",
    "visits.id": "notes",
    "notes.visit": "notes",
}


@pytest.mark.parametrize("collated", NAMING)
def test_an_id_with_a_collation_is_refused_unless_spellings_are_declared_apart(tmp_path, collated):
    tables = hospital(tmp_path, collated)
    table, _, column = collated.partition(".")
    declared_apart = NAMING[collated]
    for others in ((), set(tables()) - {declared_apart}):
        with pytest.raises(InvalidDeclaration, match="COLLATE") as refusal:
            DuckDB(tables(*others))
        assert f"Column {column!r} of table {table!r} names units" in refusal.value.problem
        assert "spellings_apart=True" in refusal.value.remedy
    DuckDB(tables(declared_apart)).close()


@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "NFC", "de", "NOCASE.NOACCENT.de"])
def test_every_collation_of_an_id_is_seen_without_a_row(tmp_path, collation):
    with pytest.raises(InvalidDeclaration, match="COLLATE"):
        DuckDB(hospital(tmp_path, "patients.pid", collation)())


@pytest.mark.parametrize("physical", ["VARCHAR", "VARCHAR COLLATE C", "ENUM ('a', 'A')", "BIGINT"])
def test_an_id_that_is_equal_by_code_points_needs_no_declaration(tmp_path, physical):
    path = tmp_path / "ids.duckdb"
    with duckdb.duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t (who {physical})")
    DuckDB({"t": sf.Table(path, unit=sf.Unit("who"), table="t")}).close()


def test_a_collation_that_is_not_looked_for_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(declared, "_require_code_points", lambda *_: None)
    DuckDB(hospital(tmp_path, "patients.pid")()).close()


# --- what does not fit any more --------------------------------------------------------------


def _cut(path):
    path.write_bytes(path.read_bytes()[:-9])


def _in_a_folder_of_its_name(path):
    path.unlink()
    write(path / "one.parquet", a=[1], b=["x"])


GONE = {
    "deleted": (lambda path: path.unlink(), InvalidSource, "no file"),
    "cut": (_cut, InvalidSource, "cannot be read"),
    "garbage": (
        lambda path: path.write_bytes(CANARY.encode() * 9),
        InvalidSource,
        "cannot be read",
    ),
    "empty": (lambda path: path.write_bytes(b""), InvalidSource, "cannot be read"),
    "a folder": (_in_a_folder_of_its_name, InvalidSource, "no file"),
    "a column less": (lambda path: write(path, a=[1]), InvalidDeclaration, "no column 'b'"),
    "a column renamed": (
        lambda path: write(path, A=[1], b=["x"]),
        InvalidDeclaration,
        "no column 'a'",
    ),
    "a column twice": (lambda path: write(path, a=[1], b=["x"], B=["x"]), InvalidSource, "twice"),
    "another type": (lambda path: write(path, a=[b"1"], b=["x"]), InvalidDeclaration, "holds BLOB"),
    "a list": (lambda path: write(path, a=[[1]], b=[CANARY]), InvalidDeclaration, "holds BIGINT"),
}


@pytest.mark.parametrize("name", GONE)
def test_what_is_not_as_declared_any_more_is_refused_before_the_charge(one, tmp_path, name):
    change, kind, words = GONE[name]
    with connect(tmp_path, one) as session:
        assert answer(session) == [1, 2]
        change(one)
        found = refused(session)
        assert type(found) is kind and words in found.problem
        # as long as it is so; then it is read again
        assert type(refused(session)) is kind
        if one.is_dir():
            shutil.rmtree(one)
        write(one, a=[7, 0], b=["x", "x"])
        assert answer(session) == [1, 7]


@pytest.mark.parametrize("name", ["deleted", "cut", "a column less", "another type"])
@pytest.mark.parametrize("source", ["data", "data/*.parquet"])
def test_one_file_of_many_is_looked_at_like_one(one, tmp_path, name, source):
    write(tmp_path / "data" / "two.parquet", a=[4], b=["x"])
    with connect(tmp_path, tmp_path / source) as session:
        assert answer(session) == [2, 6]
        GONE[name][0](one)
        assert "/data" in refused(session).problem


def test_without_the_look_it_would_be_charged(one, tmp_path, monkeypatch):
    monkeypatch.setattr(Opened, "has_changed", False)
    with connect(tmp_path, one) as session:
        write(one, a=[1])
        with pytest.raises(EngineFailed):
            answer(session)
        assert session.budget.left < 10**6


def test_files_that_change_together_may_all_change(one, tmp_path):
    two = write(tmp_path / "data" / "two.parquet", a=[4], b=["x"])
    with connect(tmp_path, tmp_path / "data") as session:
        write(one, a=["2", "3"], b=["x", "x"])
        assert "differ in 1 of their columns" in refused(session).problem
        write(two, a=["5"], b=["x"])
        assert answer(session) == [3, 10]


# --- what fits is read as it is --------------------------------------------------------------

FITS = {
    "other rows": ({"a": [5, 6, 9], "b": ["x", "x", "y"]}, [2, 11]),
    "no rows": ({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())}, [0, 0]),
    "text": ({"a": ["5", "oops", "6"], "b": ["x", "x", "x"]}, [2, 11]),
    "fractions": ({"a": [4.6, float("nan")], "b": ["x", "x"]}, [1, 5]),
    "numbers that are too long": (
        {"a": pa.array([2**64 - 1, 3], pa.uint64()), "b": ["x", "x"]},
        [2, 12],
    ),
    "nothing": ({"a": pa.nulls(2), "b": ["x", "x"]}, [0, 0]),
    "more columns, in another order": ({"c": [0], "b": ["x"], "a": [8]}, [1, 8]),
}


@pytest.mark.parametrize("name", FITS)
def test_what_fits_is_answered_with_the_types_that_are_there(one, tmp_path, name):
    columns, expected = FITS[name]
    with connect(tmp_path, one) as session:
        shown = session.preview(ASKED, epsilon=1).statement
        assert answer(session) == [1, 2]
        write(one, **columns)
        assert answer(session) == expected
        # and of declarations alone is made what is shown (RULES 22)
        assert session.preview(ASKED, epsilon=1).statement == shown


def test_types_that_were_kept_would_be_noticed(one, tmp_path, monkeypatch):
    with connect(tmp_path, one) as session:
        kept = session._engine._sources["t"]
        monkeypatch.setattr(
            duckdb, "held_again", lambda connection, tables, name, item: (item, kept)
        )
        write(one, a=["5", "oops", "6"], b=["x", "x", "x"])
        with pytest.raises(EngineFailed):
            answer(session)


def test_a_file_is_looked_at_once_for_each_change(one, tmp_path, monkeypatch):
    seen = []

    def counted(connection, tables, name, item, honest=declared.held_again):
        seen.append(name)
        return honest(connection, tables, name, item)

    monkeypatch.setattr(duckdb, "held_again", counted)
    with connect(tmp_path, one) as session:
        for rows in ([3], [4], [5]):
            write(one, a=rows, b=["x"])
            assert answer(session) == answer(session) == [1, *rows]
    assert seen == ["t"] * 3


def test_a_partition_is_replaced_and_what_is_new_is_not_read(tmp_path):
    for year in (2024, 2025):
        write(tmp_path / "data" / f"year={year}" / "one.parquet", a=[year - 2020])
    columns = {"a": sf.Integer(0, 9), "year": sf.Category("2024", "2025", "2026")}
    with connect(tmp_path, tmp_path / "data", columns) as session:
        write(tmp_path / "data" / "year=2025" / "one.parquet", a=[1, 1])
        write(tmp_path / "data" / "year=2025" / "two.parquet", a=[9])
        write(tmp_path / "data" / "year=2026" / "one.parquet", a=[9])
        rows = session.query("SELECT year, SUM(a) AS s FROM t GROUP BY year", epsilon=10**4).rows
        assert [(year, round(total)) for year, total in rows] == [
            ("2024", 4),
            ("2025", 2),
            ("2026", 0),
        ]


def test_the_path_is_the_one_that_was_opened(one, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with connect(tmp_path, "data/one.parquet") as session:
        monkeypatch.chdir(tmp_path / "data")
        write(one, a=[7], b=["x"])
        assert answer(session) == [1, 7]


# --- CSV -------------------------------------------------------------------------------------

CSV = {
    "other rows": b"a,b\n9,x\n",
    "another order": b"b,a\nx,9\n",
    "a quote that is never closed": b'a,b\n1,"x\n2,' + CANARY.encode(),
    "a line that is cut": b"a,b\n1\n",
    "no header": b"",
}


def test_csv_that_has_changed_is_refused_whatever_its_rows_are(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b"a,b\n1,x\n2,x\n")
    said = set()
    with connect(tmp_path, path) as session:
        assert answer(session) == [1, 2]
        for content in CSV.values():
            path.write_bytes(content)
            said.add(str(refused(session)))
        path.unlink()
        said.add(str(refused(session)))
    assert len(said) == 1 and "data.csv" in said.pop()
    path.write_bytes(CSV["other rows"])
    with connect(tmp_path, path) as session:
        assert answer(session) == [1, 9]


# --- which tables ----------------------------------------------------------------------------


@pytest.fixture
def clinic(tmp_path):
    """Visits, whose patients are in another table, and a public table of wards."""
    visits = write(tmp_path / "visits.parquet", patient=[1, 1, 2], ward=["A", "B", "A"])
    patients = write(tmp_path / "patients.parquet", id=[1, 2], name=["ann", "bob"])
    wards = write(tmp_path / "wards.parquet", ward=["A", "B"], floor=[1, 2])
    kind = sf.Category("A", "B")
    return {
        "patients": sf.Table(patients, unit=sf.Unit("name", max_rows=9), columns={}),
        "visits": sf.Table(
            visits,
            unit=sf.Unit("patient", via="patients.name", key="id", max_rows=9),
            columns={"ward": kind},
        ),
        "wards": sf.Table(wards, public=True, columns={"ward": kind, "floor": sf.Integer(0, 9)}),
    }


JOINED = "SELECT SUM(w.floor) AS s FROM visits AS v JOIN wards AS w ON v.ward = w.ward"


def asked(clinic, tmp_path, **options):
    return sf.connect(
        clinic, dataset="d", budget=sf.Budget(10**6), ledger=tmp_path / "ledger.db", **options
    )


def test_the_columns_that_lead_to_units(clinic):
    assert owner_columns(clinic, "visits") == ["patient"]
    assert owner_columns(clinic, "patients") == ["name", "id"]
    assert owner_columns(clinic, "wards") == []


@pytest.mark.parametrize(
    ("table", "columns", "words"),
    [
        ("visits", {"ward": ["A"]}, "no column 'patient'"),
        ("visits", {"patient": [[1]], "ward": ["A"]}, "Column 'patient'"),
        ("patients", {"name": ["ann"]}, "no column 'id'"),
        ("patients", {"id": [1]}, "no column 'name'"),
        ("wards", {"ward": ["A"]}, "no column 'floor'"),
    ],
)
def test_what_leads_to_the_units_and_what_is_joined_is_looked_at(
    clinic, tmp_path, table, columns, words
):
    with asked(clinic, tmp_path) as session:
        assert answer(session, JOINED) == [4]
        write(tmp_path / f"{table}.parquet", **columns)
        assert words in refused(session, JOINED).problem


def test_what_leads_to_the_units_is_read_as_it_is(clinic, tmp_path):
    with asked(clinic, tmp_path) as session:
        assert answer(session, JOINED) == [4]
        write(tmp_path / "patients.parquet", id=["1"], name=["ann"])
        assert answer(session, JOINED) == [3]


def test_what_a_question_does_not_read_is_not_looked_at(clinic, tmp_path):
    with asked(clinic, tmp_path) as session:
        (tmp_path / "visits.parquet").unlink()
        (tmp_path / "wards.parquet").unlink()
        assert answer(session, "SELECT COUNT(*) AS n FROM patients") == [2]


def test_beside_a_layout_only_what_is_public_is_read(clinic, tmp_path):
    layouts = sf.prepare(clinic, dataset="d", folder=tmp_path / "layouts")
    with asked(clinic, tmp_path, prepared=layouts) as session:
        # the same files at the same paths, as far as the layout is concerned
        for name in ("visits", "patients"):
            path = tmp_path / f"{name}.parquet"
            shutil.copy2(path, tmp_path / "copy")
            (tmp_path / "copy").replace(path)
            assert session._engine._opened[name].has_changed
        assert answer(session, JOINED) == [4]
        assert all(session._engine._opened[name].has_changed for name in ("visits", "patients"))
        write(tmp_path / "wards.parquet", ward=["A", "B"], floor=["5", "6"])
        assert answer(session, JOINED) == [16]
        write(tmp_path / "wards.parquet", ward=["A", "B"])
        assert "no column 'floor'" in refused(session, JOINED).problem


# --- several threads -------------------------------------------------------------------------


def test_threads_that_ask_at_once_all_read_what_is_there(asker, one):
    ask = asker(one, COLUMNS)
    plan, found, start = ask.counts(), [], threading.Barrier(4)
    with closing(DuckDB(ask.tables)) as engine:

        def run():
            start.wait()
            found.append(engine.run(plan, "key"))

        for rows in (["7"], [7], [7.0]):
            write(one, a=rows, b=["x"])
            threads = [threading.Thread(target=run) for _ in range(4)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
    assert len(found) == 12 and found == [({(): (1,)}, {(): (1,)}, {(): (1,)}, {(): (7,)})] * 12


def test_a_table_without_times_needs_no_second_look_at_its_footer(tmp_path, monkeypatch):
    pq.write_table(pa.table({"age": [1]}), tmp_path / "plain.parquet")
    pq.write_table(pa.table({"at": pa.array([0], pa.timestamp("ms"))}), tmp_path / "times.parquet")
    looked, real = [], declared._of_milliseconds
    monkeypatch.setattr(
        declared, "_of_milliseconds", lambda *given: (looked.append(1), real(*given))[1]
    )
    kinds = {
        "plain": {"age": sf.Integer(0, 9)},
        "times": {"at": sf.Timestamp("1970-01-01", "1970-12-31")},
    }
    for name, expected in (("plain", 0), ("times", 1)):
        table = sf.Table(tmp_path / f"{name}.parquet", columns=kinds[name])
        try:
            DuckDB({name: table}).close()
        except InvalidDeclaration:
            assert name == "times"
        assert len(looked) == expected
