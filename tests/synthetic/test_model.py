# SPDX-License-Identifier: Apache-2.0
"""Rows, answers with intervals, copies and files of a model."""

import json

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import sfumato as sf
from sfumato import synthetic as sy
from sfumato.errors import UnsupportedSql, WrongUse
from sfumato.testing import Replay
from tests.synthetic.towns import emptied, session, town


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model with little noise."""
    constraints = [sy.implies("age < 18", "job = 'none'")]
    with session(tmp_path_factory.mktemp("town")) as opened:
        found = sy.fit(opened, ["people"], rho=50, constraints=constraints)
        yield found


@pytest.fixture
def server(database):
    """The address of an empty database."""
    return emptied(database)


def test_rows_have_the_declared_types_and_nearly_the_counts(model):
    rows, real = model.sample()["people"], town()
    assert rows.schema.types == [real.schema.field(name).type for name in rows.column_names]
    assert abs(len(rows) - 4000) < 20
    for name in ("job", "rich"):
        for value in set(real[name].to_pylist()):
            true = real[name].to_pylist().count(value)
            assert abs(rows[name].to_pylist().count(value) - true) < 40
    assert np.mean(rows["age"].to_numpy()) == pytest.approx(np.mean(real["age"].to_numpy()), abs=1)


def test_columns_go_together_as_they_do(model):
    sql = "SELECT job, avg(pay) FROM t GROUP BY job ORDER BY job"
    with duckdb.connect() as public:
        found = {}
        for name, table in (("rows", model.sample()["people"]), ("real", town())):
            public.register("t", table)
            found[name] = dict(public.execute(sql).fetchall())
    for job, pay in found["real"].items():
        assert found["rows"][job] == pytest.approx(pay, abs=1500)


def test_constraints_are_never_violated(model):
    for seed in range(5):
        rows = model.sample(3000, entropy=Replay(seed))["people"]
        jobs = np.array(rows["job"].to_pylist(), object)
        assert set(jobs[rows["age"].to_numpy() < 18]) == {"none"}


def test_rows_of_replayed_entropy_are_bit_identical(model):
    one, same, other = (model.sample(500, entropy=Replay(seed)) for seed in (1, 1, 2))
    assert one["people"].equals(same["people"]) and not one["people"].equals(other["people"])


def test_as_many_rows_as_wanted(model):
    assert len(model.sample(0)["people"]) == 0 and len(model.sample(7)["people"]) == 7
    for rows in (-1, 10**12, 2.5, "3"):
        with pytest.raises(WrongUse):
            model.sample(rows)


def test_a_category_that_is_not_declared_never_occurs(tmp_path):
    """Nurses are in the data and not declared: they count as missing."""
    columns = {"job": sf.Category("none", "smith", "clerk", "king")}
    with session(tmp_path, columns=columns) as opened:
        found = sy.fit(opened, "people", rho="0.01")
        jobs = found.sample(5000)["people"]["job"].to_pylist()
        assert set(jobs) <= {*columns["job"].values, None} and jobs.count(None) > 1000


def test_answers_have_intervals_that_hold_the_truth(model):
    statement = "SELECT job, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY job"
    # coverage at 95% is measured in make prove; here a false alarm has a chance of 1e-9 a number
    found = model.query(statement, "0.9999999999")
    assert found.column_names == ["job", "n", "n_low", "n_high", "a", "a_low", "a_high"]
    real = town()
    for row in found.to_pylist():
        of_job = np.array(real["job"].to_pylist()) == row["job"]
        if row["job"] is None:
            # a missing job is declared, so it may occur
            assert row["n_low"] <= 1
            continue
        assert row["n_low"] - 1 <= of_job.sum() <= row["n_high"] + 1
        assert row["n_low"] <= row["n"] <= row["n_high"]
        # noise on the 82 ages that no one without a job has adds up
        assert row["a"] == pytest.approx(real["age"].to_numpy()[of_job].mean(), abs=2)


def test_what_was_not_synthesised_is_not_answered(model):
    with pytest.raises(sf.SfumatoError):
        model.query("SELECT COUNT(shoe) FROM people")
    with pytest.raises(UnsupportedSql):
        model.query("SELECT * FROM people")


def test_a_statement_without_an_answer_makes_no_copies(model, monkeypatch):
    monkeypatch.setattr(model, "_copied", lambda copies: pytest.fail("copies were made"))
    for sql in ("SELECT AVG(age) AS a FROM people GROUP BY job", "SELECT COUNT(shoe) FROM people"):
        with pytest.raises(sf.SfumatoError):
            model.query(sql)


def test_copies_differ_and_are_made_once(model):
    one, other = model.samples(2)
    assert not one["people"].equals(other["people"])
    assert len(model._copies) >= 2
    before = list(model._copies)
    model.samples(2)
    assert model._copies[:2] == before[:2]
    for copies in (1, 2000, "3"):
        with pytest.raises(WrongUse):
            model.samples(copies)


def test_files_say_what_they_are(model, tmp_path):
    written = model.save(tmp_path / "out", rows=100)
    assert [path.name for path in written] == ["people.parquet", "people.csv", "people.csv.json"]
    metadata = parquet.read_table(written[0]).schema.metadata
    assert metadata[b"synthetic"] == b"true"
    assert metadata[b"charge_id"].decode() == model.charge_id
    assert json.loads(written[2].read_text())["guarantee"] == str(model.cost)
    assert len(written[1].read_text().splitlines()) == 101


def test_a_model_shows_no_rows(model):
    assert "pairs of columns measured" in repr(model) and "nurse" not in repr(model)


def test_rows_that_are_written_come_in_parts(model, tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.synthetic.sampler.AT_ONCE", 400)
    model.save(tmp_path, rows=1000)
    rows = parquet.read_table(tmp_path / "people.parquet")
    assert (
        len(rows) == 1000 and parquet.ParquetFile(tmp_path / "people.parquet").num_row_groups == 3
    )
    assert rows.schema.metadata[b"charge_id"] == model.charge_id.encode()
    young = rows.filter(pa.compute.less(rows["age"], 18))
    assert set(young["job"].to_pylist()) == {"none"}


def test_frames_and_databases_say_what_they_are(model, tmp_path):
    frame = model.to_pandas(30)["people"]
    assert len(frame) == 30 and frame.attrs["synthetic"] == "true"
    model.to_duckdb(tmp_path / "rows.duckdb", 0)
    with duckdb.connect(tmp_path / "rows.duckdb") as found:
        assert found.execute("SELECT COUNT(*) FROM people").fetchone() == (0,)
        (comment,) = found.execute("SELECT comment FROM duckdb_tables()").fetchone()
    assert json.loads(comment)["charge_id"] == model.charge_id


def test_a_server_gets_the_rows(model, server):
    model.to_postgres(server, 25)
    with psycopg.connect(server) as found:
        assert found.execute("SELECT COUNT(*) FROM people").fetchone() == (25,)
