# SPDX-License-Identifier: Apache-2.0
"""What the data says stays inside: no public object and no error shows a canary that is planted in
it.

Canaries stand in cells, in names of columns that nobody declared, of files, folders and tables,
in paths and in addresses. Every public object and what is reached from it is looked at in every
form in which it shows itself; every error with all that it was caused by.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.engines import declared
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.prepare import prepare
from sfumato.engines.prepared import Prepared
from sfumato.ledger.spend import Ledger
from sfumato.metadata.clip import Values
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.server import Server
from sfumato.metadata.table import Table
from sfumato.query.allowance import allowance
from sfumato.query.dataframe import Frame
from sfumato.query.marginals import marginals_task
from tests.attacks.canaries import CANARY, Bird, attempt, sightings
from tests.contracts.series import Middle

COLUMNS = {"age": sf.Integer(0, 99), "sex": sf.Category("F", "M"), "job": sf.Text()}
ROWS = {
    "who": [f"{CANARY} {place}" for place in range(4)],
    "age": [30, 40, 50, 60],
    "sex": ["F", "M", "F", CANARY],
    "job": [f"{CANARY} job"] * 4,
    CANARY: [f"{CANARY} in a column of its own"] * 4,
}
UNIT = sf.Unit("who", max_rows=2, max_groups=2)
QUESTION = "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM t WHERE job <> 'x' GROUP BY sex"


def table(source: object, **options: Any) -> sf.Table:
    return sf.Table(source, unit=UNIT, columns=COLUMNS, **options)


def parquet(folder: Path) -> Path:
    place = folder / "data.parquet"
    pq.write_table(pa.table(ROWS), place)
    return place


def csv(folder: Path) -> Path:
    place = folder / "data.csv"
    pd.DataFrame(ROWS).to_csv(place, index=False)
    return place


def hive(folder: Path) -> Path:
    place = folder / "hive" / f"name={CANARY}"
    place.mkdir(parents=True)
    pq.write_table(pa.table(ROWS), place / f"{CANARY}.parquet")
    return folder / "hive"


SOURCES: Mapping[str, Callable[[Path], object]] = {
    "arrow": lambda folder: pa.table(ROWS),
    "pandas": lambda folder: pd.DataFrame(ROWS),
    "polars": lambda folder: pl.DataFrame(ROWS),
    "a mapping": lambda folder: ROWS,
    "duckdb": lambda folder: duckdb.from_arrow(pa.table(ROWS)),
    "parquet": parquet,
    "csv": csv,
    "folder": hive,
}


def connected(folder: Path, source: object, **options: Any) -> sf.Session:
    budget = sf.Budget(1000, "1e-6")
    return sf.connect(
        {"t": table(source)}, dataset="d", budget=budget, ledger=folder / "l.db", **options
    )


def objects(session: sf.Session) -> dict[str, object]:
    """What a session gives out, and what it is made of."""
    frame = session.table("t").where(sf.col("age") > 3).agg(n=sf.count())
    return {
        "session": session,
        "dataset": session.dataset,
        "budget": session.budget,
        "preview": session.preview(QUESTION, epsilon=1),
        "plan": session.plan([QUESTION], epsilon=1),
        "answer": session.query(QUESTION, epsilon=1),
        "groups": session.query("SELECT COUNT(*) AS n FROM t", rho=1),
        "diagnosis": session.diagnose("SELECT AVG(age) FROM t", epsilon=1),
        "frame": frame,
        "frame's answer": frame.query(epsilon=1),
        "report": session.verify(),
        "engine": session._engine,
        "ledger": session._ledger,
    }


@pytest.mark.parametrize("kind", SOURCES)
def test_no_public_object_shows_what_is_in_the_data(tmp_path, kind):
    source = SOURCES[kind](tmp_path)
    found = sightings(table(source), "table") if kind not in _FRAMES else shown_by(table(source))
    with connected(tmp_path, source) as session:
        given, seen = attempt(lambda: objects(session))
        found += seen
        for name, thing in given.items():
            found += sightings(thing, name)
    assert found == []


# the owner's own table holds the frame; a session does not
_FRAMES = ("arrow", "pandas", "polars", "a mapping", "duckdb")


def shown_by(thing: sf.Table) -> list[str]:
    """Where the owner's table shows the frame that it holds."""
    return [each for each in sightings(thing, "table") if not each.startswith("table.source")]


def test_a_prepared_layout_shows_nothing(tmp_path):
    tables = {"t": table(parquet(tmp_path))}
    place = prepare(tables, dataset="d", folder=tmp_path / "layouts")
    found = sightings(Prepared.open(place, Dataset("d", tables)), "layouts")
    with connected(tmp_path, tmp_path / "data.parquet", prepared=place) as session:
        for name, thing in objects(session).items():
            found += sightings(thing, name)
    assert found == []


def test_no_public_name_shows_anything():
    assert [each for name in sf.__all__ for each in sightings(getattr(sf, name), name)] == []


# --- places with passwords -----------------------------------------------------------------------

ADDRESSES = [
    f"postgresql://ada:{CANARY}@127.0.0.1:1/clinic",
    f"postgres://ada:{CANARY}@127.0.0.1:1/clinic?password={CANARY}",
    f"postgresql://ada:{CANARY}[@127.0.0.1:1/clinic",
    f"postgresql://ada:a/{CANARY}@b@127.0.0.1:1/clinic",
    f" postgresql://ada:{CANARY}@127.0.0.1/clinic",
    f"POSTGRESQL://ada:{CANARY}@127.0.0.1/clinic",
    f"postgresql+psycopg://ada:{CANARY}@127.0.0.1/clinic",
    f"host=127.0.0.1 port=1 user=ada password={CANARY}",
    f"s3a://key:{CANARY}@bucket/people.parquet",
    f"https://store.example/people.parquet?sig=1&token={CANARY}",
    f"mysql://ada:{CANARY}@127.0.0.1:1/clinic",
    f"mariadb://ada:{CANARY}@127.0.0.1:1/clinic?password={CANARY}",
    f"mysql://ada:a/{CANARY}@b@127.0.0.1:1/clinic",
    f"mysql+pymysql://ada:{CANARY}@127.0.0.1/clinic",
    f"s3://ada:{CANARY}@bucket/people.parquet",
    f"s3://bucket/people.parquet?secret_key={CANARY}",
    f"s3://bucket/people.parquet?endpoint=http://ada:{CANARY}@127.0.0.1:1",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_password_of_an_address_is_echoed(tmp_path, address, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = []
    for name in (None, "people"):
        made, seen = attempt(partial(sf.Table, address, columns=COLUMNS, table=name))
        found += seen
        if made is not None:
            found += shown_by(made)
            found += attempt(lambda made=made: DuckDB({"t": made}))[1]
            found += attempt(lambda made=made: sf.connect({"t": made}, dataset="d", ledger="l.db"))[
                1
            ]
    people = table(pa.table(ROWS))
    for place in (address, Path(address)):
        found += attempt(lambda place=place: sf.connect({"t": people}, dataset="d", ledger=place))[
            1
        ]
        found += attempt(lambda place=place: Ledger.open(place, create=False))[1]
    found += attempt(
        lambda: sf.connect({"t": people}, dataset="d", ledger="l.db", prepared=address)
    )[1]
    found += attempt(lambda: sf.load(address))[1]
    text = f'dataset = "d"\nledger = "{address}"\n[budget]\nepsilon = 1\n[tables.t]\nsource = "{address}"\n'
    (tmp_path / "sfumato.toml").write_text(text, encoding="utf-8")
    found += attempt(lambda: sf.load("sfumato.toml"))[1]
    assert found == []
    assert not [each for each in tmp_path.rglob("*") if CANARY in str(each)]


def test_settings_of_spark_and_addresses_are_not_shown():
    spark = sf.Spark(
        f"k8s://https://ada:{CANARY}@host", options={"spark.hadoop.fs.s3a.secret.key": CANARY}
    )
    server = Server(f"postgresql://ada:{CANARY}@db/clinic")
    for thing in (spark, server, table(f"postgresql://ada:{CANARY}@db/clinic", table="people")):
        assert [
            each
            for each in sightings(thing, "it")
            if ".url" not in each and "." not in each.split(" by ")[0]
        ] == []


# --- errors --------------------------------------------------------------------------------------


def text_file(folder: Path, content: bytes, name: str = "people.csv") -> Path:
    place = folder / name
    place.write_bytes(content)
    return place


def database(folder: Path) -> Path:
    place = folder / "people.duckdb"
    with duckdb.connect(str(place)) as connection:
        connection.execute(f"CREATE TYPE mood AS ENUM ('{CANARY}')")
        connection.execute(f"CREATE TABLE {CANARY} (a int)")
        connection.execute(
            f"CREATE TABLE odd (age STRUCT({CANARY} int), sex mood[], job MAP(mood, int))"
        )
        connection.execute(f'CREATE TABLE one (age int, sex varchar, "{CANARY}" int)')
    return place


def folder_of(folder: Path, **sources: Any) -> Path:
    place = folder / "many"
    for name, cells in sources.items():
        path = place / name.replace("__", "/").replace("EQUALS", "=")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(cells), f"{path}.parquet")
    return place


UGLY: Mapping[str, Callable[[Path], object]] = {
    "no header": lambda folder: text_file(folder, f"{CANARY} Ann,{CANARY} 12,HIV+\nBob,2,x\n".encode()),
    "no header, one name twice": lambda folder: text_file(folder, f"{CANARY},{CANARY},x\n1,2,3\n".encode()),
    "another separator": lambda folder: text_file(folder, f"{CANARY};age;sex\n1;2;3\n".encode()),
    "not UTF-8": lambda folder: text_file(folder, f"{CANARY},age\n".encode() + b"\xff\xfe\n"),
    "not UTF-8 in the first line": lambda folder: text_file(folder, f"{CANARY}".encode() + b"\xff,age\n1,2\n"),
    "a nameless column": lambda folder: text_file(folder, f"{CANARY},\n1,2\n".encode()),
    "a long line": lambda folder: text_file(folder, f"age,sex\n{CANARY},1,2,3\n".encode()),
    "a quote": lambda folder: text_file(folder, f'age,sex\n"{CANARY},1\n'.encode()),
    "no Parquet": lambda folder: text_file(folder, b"PAR1" + CANARY.encode(), "people.parquet"),
    "no database": lambda folder: (text_file(folder, CANARY.encode() * 999, "people.duckdb"), "people"),
    "no such table": lambda folder: (database(folder), "people"),
    "odd types": lambda folder: (database(folder), "odd"),
    "a column less": lambda folder: (database(folder), "one"),
    "a file of another kind": lambda folder: text_file(folder_of(folder, a=ROWS), b"", f"{CANARY}.csv").parent,
    "two schemas": lambda folder: folder_of(folder, **{"a": ROWS, CANARY: {"age": [1], CANARY: [CANARY]}}),
    "two keys": lambda folder: folder_of(folder, **{"aEQUALS1__a": ROWS, f"{CANARY}EQUALS1__b": ROWS}),
    "a key that is a column": lambda folder: folder_of(folder, **{f"{CANARY}EQUALS1__a": ROWS}),
    "a value with =": lambda folder: folder_of(folder, **{f"aEQUALSEQUALS{CANARY}__a": ROWS}),
    "a damaged file of many": lambda folder: text_file(folder_of(folder, a=ROWS), CANARY.encode(), f"{CANARY}.parquet").parent,
    "a frame of several types": lambda folder: pd.DataFrame({CANARY: [1, CANARY], "age": [1, 2]}),
    "a frame with one name twice": lambda folder: pd.DataFrame([[1, CANARY]], columns=[CANARY, CANARY]),
    "an Arrow table with one name twice": lambda folder: pa.Table.from_arrays([[1], [2]], names=[CANARY, CANARY.upper()]),
    "rows of several lengths": lambda folder: {"age": [1, 2], CANARY: [CANARY]},
    "what is no frame": lambda folder: Bird(),
    "an Arrow table of structures": lambda folder: pa.table({"age": [{CANARY: CANARY}], "sex": [[CANARY]], "job": ["x"]}),
    "an enumeration": lambda folder: pa.table({"age": pa.array([CANARY]).dictionary_encode(), "job": [b"x"]}),
}  # fmt: skip


@pytest.mark.parametrize("kind", UGLY)
def test_no_error_of_a_source_shows_what_is_in_it(tmp_path, kind):
    source = UGLY[kind](tmp_path)
    place, name = source if isinstance(source, tuple) else (source, None)
    declared = table(place, table=name)

    def opened() -> None:
        with sf.connect(
            {"t": declared}, dataset="d", budget=sf.Budget(1), ledger=tmp_path / "l.db"
        ):
            raise AssertionError("it is refused")

    with pytest.raises(sf.SfumatoError):
        opened()
    assert attempt(opened)[1] == []


@pytest.mark.parametrize("kind", ["no header", "a column less", "two schemas"])
def test_an_error_while_a_session_is_open_shows_nothing(tmp_path, kind):
    place = tmp_path / "live.parquet"
    pq.write_table(pa.table(ROWS), place)
    changes = {
        "no header": lambda: place.write_bytes(CANARY.encode()),
        "a column less": lambda: pq.write_table(pa.table({CANARY: [CANARY]}), place),
        "two schemas": lambda: pq.write_table(pa.table({**ROWS, "age": [{CANARY: 1}] * 4}), place),
    }
    with connected(tmp_path, place) as session:
        changes[kind]()
        for ask in (session.query, session.preview, session.diagnose):
            assert attempt(lambda ask=ask: ask(QUESTION, epsilon=1))[1] == []


# --- what is handed in by mistake ----------------------------------------------------------------

FRAME = Frame("t", lambda *_, **__: None, lambda *_, **__: None)  # type: ignore[arg-type, return-value]


class MiddleOfT(Middle):
    """The middle of the ages of ``t``."""

    table = "t"


def session_calls(
    session: sf.Session,
) -> dict[str, tuple[Callable[..., object], dict[str, object]]]:
    """Each method of a session, with arguments that are right."""
    cost = {"epsilon": 1, "rho": None, "delta": None}
    price = {**cost, "error": None, "max_epsilon": None, "values": Values.TABLE}
    ways = {"key": None, "stop": None, "time_limit": None}
    task = marginals_task(session.dataset, "t", [("age",)], allowance(epsilon=1))
    return {
        "query": (
            session.query,
            {"sql": QUESTION, "parameters": None, **ways, **price},
        ),
        "asking_as": (session.asking_as, {"analyst": "a", "purpose": "p"}),
        "preview": (session.preview, {"sql": QUESTION, "parameters": None, **price}),
        "plan": (
            session.plan,
            {
                "questions": {"a": QUESTION},
                **cost,
                "error": None,
                "max_epsilon": None,
                "weights": {"a": 1},
                "sizes": None,
            },
        ),
        "diagnose": (
            session.diagnose,
            {"sql": QUESTION, "parameters": None, "epsilon": 1, "rho": None},
        ),
        "advise": (
            session.advise,
            {"sql": QUESTION, "parameters": None, **cost, "rows": None, "beyond": None},
        ),
        "check_data": (session.check_data, {"report": None}),
        "table": (session.table, {"name": "t"}),
        "marginals": (session.marginals, {"table": "t", "cliques": [("age",)], **cost, **ways}),
        "plan_marginals": (
            session.plan_marginals,
            {"table": "t", "cliques": [("age",)], **cost, "error": None, "max_epsilon": None},
        ),
        "dummy": (session.dummy, {"table": "t", "rows": 5, "seed": 0}),
        "ask": (session.ask, {"task": task, **ways}),
        "price": (session.price, {"task": task}),
        "hold": (session.hold, {"asked": task, "stop": None, "time_limit": None}),
        "balances": (session.balances, {}),
        "stored": (session.stored, {"charge_id": "0" * 32}),
        "open_series": (
            session.open_series,
            {"series": MiddleOfT(declared=session.dataset), "stop": None, "time_limit": None},
        ),
        "paid_series": (session.paid_series, {"series": MiddleOfT(declared=session.dataset)}),
        "require_paid": (
            session.require_paid,
            {"series": MiddleOfT(declared=session.dataset), "charge": "0" * 32},
        ),
        "has_series": (session.has_series, {"series": MiddleOfT(declared=session.dataset)}),
    }


def calls(folder: Path) -> dict[str, tuple[Callable[..., object], dict[str, object]]]:
    """Each public function and class, with arguments that are right."""
    bounds: dict[str, object] = {"lower": 0, "upper": 9, "clip": None, "missing": None}
    declared = {"t": table(pa.table(ROWS))}
    options = dict.fromkeys(("unit", "size", "table"), None)
    limits = dict.fromkeys(("max_rows", "max_groups", "max_rows_total", "via", "key", "name"), None)
    where = {
        "ledger": folder / "m.db",
        "budget": sf.Budget(1),
        "relation": sf.AddRemove,
        "version": "1",
    }
    who = {"analyst": "a", "purpose": "p", "prepared": None, "engine": None}
    return {
        "Table": (sf.Table, {"source": "x.csv", "columns": COLUMNS, "public": False, **options}),
        "Unit": (sf.Unit, {"column": "who", **limits}),
        "Unit via": (sf.Unit, {"column": "who", **limits, "via": "t.who"}),
        "Budget": (sf.Budget, {"epsilon": 1, "delta": 0}),
        "Integer": (sf.Integer, bounds),
        "Real": (sf.Real, {**bounds, "step": 1}),
        "Array": (sf.Array, {"shape": (2, 3), "lower": 0, "upper": 9, "step": 1}),
        "Date": (
            sf.Date,
            {"lower": "2000-01-01", "upper": "2001-01-01", "format": None, "missing": None},
        ),
        "Timestamp": (
            sf.Timestamp,
            {
                "lower": "2000-01-01",
                "upper": "2001-01-01",
                "zone": "UTC",
                "step": 1,
                "missing": None,
            },
        ),
        "Boolean": (sf.Boolean, {"true": "1", "false": "0", "missing": None}),
        "Category": (partial(sf.Category, "a"), {"missing": None}),
        "Category's values": (lambda value: sf.Category(value), {"value": "a"}),
        "Text": (sf.Text, {"missing": None, "tokens": None}),
        "Tokens": (sf.Tokens, {"stop": (), "dictionary": (), "longest": 9, "most": 9}),
        "Edge": (sf.Edge, {"first": "who", "second": "whom"}),
        "Node": (sf.Node, {"first": "who", "second": "whom", "of": "people"}),
        "remote": (
            sf.remote,
            {"address": "http://127.0.0.1:9", "dataset": "d", "purpose": "p", "token": "sfu_x"},
        ),
        "Local": (
            sf.Local,
            {"memory_limit": None, "threads": None, "time_limit": 1, "lanes": 1, "progress": None},
        ),
        "Spark": (sf.Spark, {"master": "local[1]", "options": {}, "time_limit": 1}),
        "OnAverage": (sf.OnAverage, {"error": 1}),
        "col": (sf.col, {"name": "age"}),
        "connect": (sf.connect, {"tables": declared, "dataset": "d", **where, **who}),
        "load": (sf.load, {"path": str(folder / "none.toml"), "analyst": "a", "engine": None}),
        "prepare": (sf.prepare, {"tables": declared, "dataset": "d", "folder": folder / "layouts"}),
        "Dataset": (
            Dataset,
            {"name": "d", "tables": declared, "relation": sf.AddRemove, "version": "1"},
        ),
        "where": (FRAME.where, {}),
        "a test": (lambda test: FRAME.where(test), {"test": sf.col("age") > 3}),
        "a key": (lambda key: FRAME.group_by(key), {"key": "sex"}),
        "a column": (lambda column: FRAME.agg(column), {"column": sf.count()}),
        "a named column": (lambda column: FRAME.agg(n=column), {"column": sf.count()}),
        "join": (FRAME.join, {"table": "u", "on": "who", "how": "inner"}),
        "session.table": (FRAME.query, {}),
    }


# a frame of each kind, and what prints itself
BIRDS: list[object] = [
    pd.DataFrame(ROWS),
    pa.table(ROWS),
    pl.DataFrame(ROWS),
    Bird(),
    [CANARY] * 3,
    {CANARY: CANARY},
]


def handed(name: str, call: Callable[..., object], right: Mapping[str, object]) -> list[str]:
    """Where a canary is seen when a frame is given for each argument in turn."""
    found = []
    for argument in right:
        for bird in BIRDS[:4] if argument in DECLARED else BIRDS:
            result, seen = attempt(
                lambda argument=argument, bird=bird: call(**{**right, argument: bird})
            )
            found += [f"{name}({argument}={type(bird).__name__}): {each}" for each in seen]
            if isinstance(result, sf.Session):
                result.close()
    return found


# where any text or mapping is right, it is a declaration of the caller's
DECLARED = (
    "missing",
    "true",
    "false",
    "value",
    "column",
    "options",
    "columns",
    "parameters",
    "tables",
    "questions",
)


def test_nothing_that_is_handed_in_by_mistake_is_echoed(tmp_path):
    found = [
        line
        for name, (call, right) in calls(tmp_path).items()
        for line in handed(name, call, right)
    ]
    with connected(tmp_path, pa.table(ROWS)) as session:
        found += [
            line
            for name, (call, right) in session_calls(session).items()
            for line in handed(name, call, right)
        ]
    assert found == []


def test_every_public_name_is_tried(tmp_path):
    classes = (sf.Answer, sf.Preview, sf.Session, sf.SfumatoError)
    public = {
        name
        for name in sf.__all__
        if callable(getattr(sf, name)) and getattr(sf, name) not in classes
    }
    arguments = {name for name in public if inspect.signature(getattr(sf, name)).parameters}
    assert arguments <= set(calls(tmp_path))
    methods = {
        name
        for name, _ in inspect.getmembers(sf.Session, inspect.isfunction)
        if not name.startswith("_")
    }
    with connected(tmp_path, pa.table(ROWS)) as session:
        assert methods - {"verify", "close"} <= set(session_calls(session))


# --- each check notices what it is for -----------------------------------------------------------


def test_a_table_that_prints_its_frame_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(Table, "__repr__", lambda table: f"Table({table.source!r})")
    assert shown_by(table(pd.DataFrame(ROWS)))


def test_a_session_that_holds_the_frame_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(Dataset, "described", property(lambda dataset: dataset))
    with connected(tmp_path, pd.DataFrame(ROWS)) as session:
        assert [each for each in sightings(session, "session") if "source" in each]


def test_an_error_that_lists_the_columns_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(
        declared,
        "no_column",
        lambda table, column, columns: errors.InvalidDeclaration("", allowed=", ".join(columns)),
    )
    assert attempt(lambda: connected(tmp_path, UGLY["no header"](tmp_path)))[1]


def test_an_error_that_quotes_what_it_was_given_is_seen(monkeypatch):
    from sfumato.metadata import table as room

    monkeypatch.setattr(room, "shown", repr)
    assert handed("Table", sf.Table, {"source": "x.csv", "unit": None})


def test_an_address_as_it_was_given_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(errors, "without_secrets", lambda place: place)
    assert attempt(lambda: DuckDB({"t": table(ADDRESSES[7])}))[1]


def test_the_context_of_an_error_is_seen():
    def fails() -> None:
        try:
            raise ValueError(CANARY)
        except ValueError:
            raise errors.WrongUse("no") from None

    assert attempt(fails)[1]
