# SPDX-License-Identifier: Apache-2.0
"""A folder of layouts is used as it was written, for the data that it was written of, or not at
all.
"""

import json
import os
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import duckdb as duckdb_room
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.prepare import prepare
from sfumato.engines.prepared import (
    FORMAT,
    MANIFEST,
    Layout,
    Prepared,
    declaration,
    engine_version,
    fingerprint,
    read_manifest,
)
from sfumato.errors import EngineFailed, InvalidSource
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountRows
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Scan
from tests.contracts.layouts import plan

WARD = sf.Category("A", "B")


@pytest.fixture
def clinic(tmp_path):
    """Declared tables over files, prepared in ``layouts``."""
    patients, visits = tmp_path / "patients.csv", tmp_path / "visits.parquet"
    patients.write_text("id,name\n1,ann\n2,bob\n")
    pq.write_table(pa.table({"patient": ["1", "1", "2"], "ward": ["A", "B", "A"]}), visits)
    tables = {
        "patients": sf.Table(patients, unit=sf.Unit("name", max_rows=3), columns={"id": sf.Text()}),
        "visits": sf.Table(
            visits,
            unit=sf.Unit("patient", via="patients.name", key="id", max_rows=3),
            columns={"ward": WARD},
        ),
    }
    prepare(tables, dataset="clinic", folder=tmp_path / "layouts")
    return tables


def opened(tmp_path, tables, name="clinic"):
    return Prepared.open(tmp_path / "layouts", Dataset(name, tables))


def rewrite(tmp_path, **changes):
    manifest = tmp_path / "layouts" / MANIFEST
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **changes}))


def refused(tmp_path, tables, words, name="clinic"):
    with pytest.raises(InvalidSource, match=words) as refusal:
        opened(tmp_path, tables, name)
    assert "sfumato prepare" in str(refusal.value)


def test_what_was_written_is_opened(tmp_path, clinic):
    prepared = opened(tmp_path, clinic)
    assert prepared.kept == {"patients": 3, "visits": 3}
    assert all(prepared.is_current(table) for table in clinic)
    assert prepared.source("visits").coded
    assert str(prepared.path("visits")) in prepared.source("visits").sql
    layout = prepared.layouts["visits"]
    assert set(layout.sources) == {str(tmp_path / "visits.parquet"), str(tmp_path / "patients.csv")}
    assert Layout(**layout.to_json()) == layout


# --- stale -----------------------------------------------------------------------------------


def touched(path):
    """The same content, written a moment later."""
    facts = path.stat()
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))


def rewritten(path):
    """Other content of the same size and time."""
    facts, content = path.stat(), path.read_bytes()
    pq.write_table(pa.table({"patient": ["1", "1", "3"], "ward": ["A", "B", "A"]}), path)
    assert path.stat().st_size == len(content)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


CHANGES = {
    "the data is gone": lambda folder: (folder / "visits.parquet").unlink(),
    "the data was written again": lambda folder: touched(folder / "visits.parquet"),
    "the data is as long and as old": lambda folder: rewritten(folder / "visits.parquet"),
    "the data has grown": lambda folder: (folder / "patients.csv").write_text(
        "id,name\n1,ann\n2,bob\n3,eve\n"
    ),
    "the way to the unit was written again": lambda folder: touched(folder / "patients.csv"),
    "the layout is gone": lambda folder: next(
        (folder / "layouts").glob("*visits*.parquet")
    ).unlink(),
    "the layout was written again": lambda folder: touched(
        next((folder / "layouts").glob("*visits*.parquet"))
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_stale_layout_is_refused(tmp_path, clinic, change):
    before = opened(tmp_path, clinic)
    CHANGES[change](tmp_path)
    refused(tmp_path, clinic, "is stale: the data, or the layout itself, has changed since")
    assert not before.is_current("visits")
    with pytest.raises(InvalidSource, match="stale"):
        before.require_current("visits")


def of(clinic, name, **changes):
    """The tables with one declared otherwise."""
    table = clinic[name]
    facts = {"unit": table.unit, "columns": table.columns, **changes}
    return {**clinic, name: sf.Table(table.source, **facts)}


def test_other_declarations_are_refused(tmp_path, clinic):
    words = "was written under other declarations"
    for columns in (
        {"ward": sf.Category("A", "B", "C")},
        {"ward": sf.Category("A", "B", missing="N")},
        {},
    ):
        refused(tmp_path, of(clinic, "visits", columns=columns), words)
    refused(tmp_path, of(clinic, "visits", unit=sf.Unit("patient", max_rows=3)), words)
    by_id = sf.Unit("id", max_rows=3)
    refused(
        tmp_path,
        {"patients": sf.Table(clinic["patients"].source, unit=by_id, columns={"id": sf.Text()})},
        words,
    )
    refused(tmp_path, {"patients": clinic["patients"]}, words)
    other = tmp_path / "other.parquet"
    other.write_bytes((tmp_path / "visits.parquet").read_bytes())
    unit, columns = clinic["visits"].unit, clinic["visits"].columns
    refused(tmp_path, {**clinic, "visits": sf.Table(other, unit=unit, columns=columns)}, words)
    # other limits are none of a layout's business: a question counts as many rows as they allow
    wider = of(clinic, "patients", unit=sf.Unit("name", max_rows=9))
    assert opened(tmp_path, wider).kept == {"patients": 3, "visits": 3}


def test_another_reading_of_texts_is_another_declaration():
    def declared(**reading):
        visits = sf.Table("visits.csv", unit=sf.Unit("patient", via="patients.id"), **reading)
        patients = sf.Table("patients.csv", unit=sf.Unit("id"))
        return declaration(Dataset("clinic", {"visits": visits, "patients": patients}), "visits")

    forms = [declared(), declared(encoding="gbk"), declared(decimal=",")]
    assert all(forms.count(form) == 1 for form in forms)
    assert "reading" not in forms[0]


def test_another_version_or_dataset_is_refused(tmp_path, clinic):
    refused(tmp_path, clinic, "was written for dataset 'clinic', this is 'other'", name="other")
    assert engine_version() == f"duckdb {duckdb.__version__}"
    rewrite(tmp_path, engine="duckdb 1.0.0")
    refused(tmp_path, clinic, "was written for engine 'duckdb 1.0.0'")
    rewrite(tmp_path, format=FORMAT + 1)
    refused(tmp_path, clinic, "was written for format")


@pytest.mark.parametrize("content", ["", "[]", "{", "\udcff"])
def test_a_manifest_that_is_none_is_refused(tmp_path, clinic, content):
    (tmp_path / "layouts" / MANIFEST).write_text(content, errors="surrogateescape")
    refused(tmp_path, clinic, "cannot be read")


@pytest.mark.parametrize(
    "tables", [None, {"visits": None}, {"visits": {}}, {"visits": {"file": "../secret"}}]
)
def test_a_manifest_with_holes_is_refused(tmp_path, clinic, tables):
    rewrite(tmp_path, tables=tables)
    refused(tmp_path, clinic, "cannot be read")


def test_a_manifest_names_files_of_its_own_folder_only(tmp_path, clinic):
    form = read_manifest(tmp_path / "layouts")
    form["tables"]["visits"]["file"] = "../visits.parquet"
    rewrite(tmp_path, tables=form["tables"])
    refused(tmp_path, clinic, "cannot be read")


def test_no_layout_is_refused(tmp_path):
    refused(tmp_path, {"t": sf.Table("t.csv")}, "No prepared layout")
    assert read_manifest(tmp_path) is None


# --- fingerprints ----------------------------------------------------------------------------


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_a_changed_file_has_another_fingerprint(tmp_path_factory, one, other):
    path = tmp_path_factory.mktemp("files") / "data"
    found = []
    for content in (one, other):
        # of one size and one time, files differ by what Parquet says at its end
        path.write_bytes(b"PAR1" + content + len(content).to_bytes(4, "little") + b"PAR1")
        os.utime(path, ns=(0, 0))
        found.append(fingerprint(path))
    assert (found[0] == found[1]) is (one == other)


def test_a_file_that_ends_like_parquet_and_is_none_has_a_fingerprint(tmp_path):
    for content in (b"", b"PAR1", b"PAR1" + (2**31).to_bytes(4, "little") + b"PAR1"):
        path = tmp_path / "data"
        path.write_bytes(content)
        assert fingerprint(path)


def test_a_folder_is_the_data_in_it(tmp_path):
    assert fingerprint(tmp_path) is None and fingerprint(tmp_path / "no.csv") is None
    (tmp_path / "_ledger.db").write_bytes(b"1")
    assert fingerprint(tmp_path) is None
    (tmp_path / "a.parquet").write_bytes(b"1")
    once = fingerprint(tmp_path)
    assert fingerprint(tmp_path / "*.parquet") == once
    (tmp_path / "b.parquet").write_bytes(b"1")
    assert fingerprint(tmp_path) != once
    assert fingerprint(tmp_path / "a*") == fingerprint(Path(tmp_path, "a.parquet")) == once


# --- the engine ------------------------------------------------------------------------------


def counted(tables):
    """A count of visits, of the layout."""
    return plan(
        Scan("visits", "", (), owner_of(Dataset("clinic", tables), "visits")), CountRows(), kept=3
    )


def test_a_stale_layout_has_no_statement(tmp_path, clinic):
    asked = counted(clinic)
    with closing(DuckDB(clinic, prepared=opened(tmp_path, clinic))) as engine:
        assert "visits prepared" in engine.statement(asked)
        assert engine.run(asked, "key") == ({(): (3,)},)
        touched(tmp_path / "visits.parquet")
        with pytest.raises(InvalidSource, match="stale"):
            engine.statement(asked)


@pytest.mark.parametrize("file", ["visits.parquet", "patients.csv", "layouts/*visits*.parquet"])
def test_data_that_changes_while_it_is_read_fails_the_run(
    tmp_path, clinic, monkeypatch, caplog, file
):
    with closing(DuckDB(clinic, prepared=opened(tmp_path, clinic))) as engine:
        honest = duckdb_room._rows

        def rows(*given):
            found = honest(*given)
            touched(next(tmp_path.glob(file)))
            return found

        monkeypatch.setattr(duckdb_room, "_rows", rows)
        with pytest.raises(EngineFailed) as failure:
            engine.run(counted(clinic), "key")
    assert str(failure.value) == str(EngineFailed())
    assert "table visits, or its prepared layout, changed while it was read" in caplog.text


def test_a_plan_of_a_layout_needs_an_engine_that_has_it(clinic):
    with closing(DuckDB(clinic)) as engine, pytest.raises(TypeError, match="without"):
        engine.run(counted(clinic), "key")


def test_another_table_of_the_same_database_is_refused(tmp_path):
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(path) as made:
        for name in ("visits", "stays"):
            made.execute(f"CREATE TABLE {name} AS SELECT 'p' AS person, 'A' AS ward")
    unit = sf.Unit("person", max_rows=2)
    visits, stays = (
        {"visits": sf.Table(path, unit=unit, columns={"ward": WARD}, table=name)}
        for name in ("visits", "stays")
    )
    prepare(visits, dataset="clinic", folder=tmp_path / "layouts")
    assert opened(tmp_path, visits).kept == {"visits": 2}
    refused(tmp_path, stays, "was written under other declarations")


def test_a_folder_of_files_can_be_prepared(tmp_path):
    folder = tmp_path / "visits"
    folder.mkdir()
    for name in ("one", "two"):
        pq.write_table(pa.table({"person": [name], "ward": ["A"]}), folder / f"{name}.parquet")
    tables = {
        "visits": sf.Table(folder, unit=sf.Unit("person", max_rows=2), columns={"ward": WARD})
    }
    prepare(tables, dataset="clinic", folder=tmp_path / "layouts")
    (folder / "_SUCCESS").write_bytes(b"")
    assert opened(tmp_path, tables).is_current("visits")
    pq.write_table(pa.table({"person": ["three"], "ward": ["A"]}), folder / "three.parquet")
    refused(tmp_path, tables, "stale")
