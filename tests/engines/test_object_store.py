# SPDX-License-Identifier: Apache-2.0
"""Objects of a store: copied once, read as files are, refused when they have changed."""

import io
import stat
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines import object_store as room
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.object_store import copied
from sfumato.errors import InvalidDeclaration, InvalidSource
from sfumato.metadata.server import StoredObject
from tests.contracts.conformance import EngineContract
from tests.contracts.object_store import KEY, SECRET, Store

AGE = {"age": sf.Integer(0, 120)}
SUM = "SELECT SUM(age) AS s FROM people"


@pytest.fixture
def store(monkeypatch):
    """A store that answers, and the keys of a reader in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with closing(Store()) as made:
        yield made


def parquet(cells):
    """An Arrow table as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    pq.write_table(cells, buffer)
    return buffer.getvalue()


def session(store, folder, name="clinic/people.parquet", **options):
    table = sf.Table(store.address(name), columns=AGE, **options)
    return sf.connect(
        {"people": table},
        dataset="d",
        budget=sf.Budget(100_000),
        ledger=folder / "l.db",
    )


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("clinic/people.parquet", parquet(pa.table({"age": [30, 200, None]})), {}),
        ("clinic/a b+c=ü/2024.csv", b"age,x\n30,a\n200,b\nunknown,c\n", {}),
        ("clinic/people.CSV", "age;x\n30;ä\n200;b\n".encode("latin-1"), {"encoding": "latin-1"}),
    ],
)
def test_an_object_is_read_as_a_file_is(store, tmp_path, name, content, options):
    from urllib.parse import quote

    store.objects[quote(name, safe="/")] = content
    given = {"delimiter": ";"} | options if options else {}
    with session(store, tmp_path, name, **given) as asked:
        assert asked.query(SUM, epsilon=10_000).rows == [[150]]
        assert asked.query(SUM.replace("SUM", "COUNT"), epsilon=10_000).rows == [[2]]


def test_the_copy_is_private_made_once_and_deleted(store, tmp_path, monkeypatch):
    monkeypatch.setattr(room, "_CHUNK", 1000)
    content = parquet(pa.table({"age": list(range(120)) * 100}))
    store.objects["clinic/people.parquet"] = content
    with session(store, tmp_path) as asked:
        (copy,) = Path(asked._engine._spill).glob("*.parquet")
        assert copy.read_bytes() == content
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
        read = [each for each in store.asked if each[0] == "GET"]
        assert len(read) == -(-len(content) // 1000)
        asked.query(SUM, epsilon=1)
        assert [each for each in store.asked if each[0] == "GET"] == read
    assert not copy.exists()


CHANGES = {
    "content": lambda store: store.objects.update(
        {"clinic/people.parquet": parquet(pa.table({"age": [40]}))}
    ),
    "gone": lambda store: store.objects.clear(),
    "away": lambda store: store.close(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_object_that_has_changed_is_refused_for_nothing(store, tmp_path, monkeypatch, change):
    monkeypatch.setattr(room, "_CONNECT", 0.5)
    store.objects["clinic/people.parquet"] = parquet(pa.table({"age": [30]}))
    with session(store, tmp_path) as asked:
        before = asked.budget.left
        CHANGES[change](store)
        with pytest.raises(InvalidSource, match="is not the object that was copied"):
            asked.query(SUM, epsilon=1)
        assert asked.budget.left == before


def test_a_tag_that_is_not_compared_is_noticed(store, tmp_path, monkeypatch):
    store.objects["clinic/people.parquet"] = parquet(pa.table({"age": [30]}))
    monkeypatch.setattr(room, "_tag", lambda system, source: ())
    with session(store, tmp_path) as asked:
        CHANGES["content"](store)
        assert asked.query(SUM, epsilon=10_000).rows == [[30]]


def test_an_object_that_changes_while_it_is_copied_is_refused(store, tmp_path):
    store.objects["clinic/people.parquet"] = parquet(pa.table({"age": [30]}))

    def change(method):
        if method == "GET":
            CHANGES["content"](store)

    store.before = change
    with pytest.raises(InvalidSource, match="changed while it was copied"):
        session(store, tmp_path)


def test_an_object_of_which_a_part_is_lost_on_the_way_is_refused(store, tmp_path):
    store.objects["clinic/people.csv"] = b"age\n" + b"30\n" * 100
    store.lost = 3
    with pytest.raises(InvalidSource, match="cannot be read"):
        session(store, tmp_path, "clinic/people.csv")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("clinic/none.parquet", None, "s3://clinic/none.parquet cannot be read"),
        ("clinic/people.json", b"{}", "s3://clinic/people.json is neither .parquet nor .csv"),
        ("clinic/people.csv", b"age\n1,2\n", "'people.csv' is not well-formed CSV"),
        ("clinic/people.parquet", b"canary-4711", "s3://clinic/people.parquet.? cannot be read"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_address(
    store, tmp_path, caplog, name, content, problem
):
    if content is not None:
        store.objects[name] = content
    with pytest.raises(InvalidSource, match=problem) as refused:
        session(store, tmp_path, name)
    text = f"{refused.value} {refused.value.__cause__}"
    assert "sfumato-rows" not in text
    assert "4711" not in text + caplog.text


def test_keys_are_of_the_environment_and_not_shown(store, tmp_path, monkeypatch, caplog):
    store.objects["clinic/people.parquet"] = parquet(pa.table({"age": [30]}))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    with pytest.raises(InvalidSource, match="AWS_ACCESS_KEY_ID") as refused:
        session(store, tmp_path)
    assert refused.value.__context__ is None
    assert SECRET not in f"{refused.value}{caplog.text}"
    store.public = True
    table = sf.Table(store.address("clinic/people.parquet") + "&anonymous=true", columns=AGE)
    DuckDB({"people": table}).close()


def test_an_endpoint_may_be_of_the_environment(store, tmp_path, monkeypatch):
    store.objects["clinic/people.parquet"] = parquet(pa.table({"age": [30]}))
    monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
    DuckDB({"people": sf.Table("s3://clinic/people.parquet", columns=AGE)}).close()
    assert store.asked


@pytest.mark.parametrize("options", ["endpoint=127.0.0.1:1", "anonymous=maybe", "endpoint=ftp://a"])
def test_an_option_that_means_nothing_is_refused(tmp_path, options):
    with pytest.raises(InvalidSource, match="cannot be read") as refused:
        copied("people", StoredObject(f"s3://clinic/people.csv?{options}"), tmp_path)
    assert "endpoint=https://host:port" in refused.value.allowed


def test_an_object_has_no_layout_and_no_table(tmp_path):
    with pytest.raises(InvalidDeclaration, match="of a source that is no path"):
        sf.Table("s3://clinic/people.parquet", table="people")
    table = sf.Table("s3://clinic/people.parquet", unit=sf.Unit("id", max_rows=1), columns=AGE)
    with pytest.raises(sf.errors.WrongUse, match="No table to prepare"):
        sf.prepare({"people": table}, dataset="d", folder=tmp_path / "layout")


class TestConformance:
    """One question of the suite of every engine, its tables in the store."""

    def test_the_values_at_the_edges_mean_what_they_mean_to_the_reference(self, store):
        class Engine(EngineContract):
            def open_engine(self, tables):
                made = {}
                for name, table in tables.items():
                    store.objects[f"world/{name}.parquet"] = parquet(table.source)
                    made[name] = sf.Table(
                        store.address(f"world/{name}.parquet"),
                        table.unit,
                        table.columns,
                        public=table.public,
                    )
                return DuckDB(made)

        Engine().test_the_values_at_the_edges_mean_what_they_mean_to_the_reference()
