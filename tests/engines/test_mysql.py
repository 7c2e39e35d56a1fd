# SPDX-License-Identifier: Apache-2.0
"""Tables of a real MariaDB: the integers of the reference, one snapshot, and not a word of what
the server says.
"""

import datetime
import ipaddress
import signal
import sys
from collections import Counter
from contextlib import closing
from dataclasses import replace
from itertools import count
from urllib.parse import quote as escaped

import pyarrow as pa
import pymysql
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import duckdb as duckdb_room
from sfumato.engines import mysql as room
from sfumato.engines import remote
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.mysql import served, snapshot
from sfumato.engines.remote import fill
from sfumato.engines.served import ServerFailed
from sfumato.errors import EngineFailed, InvalidDeclaration, InvalidSource
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountRows
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Scan, Union
from sfumato.plan.scalar import Field
from sfumato.plan.value import GroupKey, Value
from tests.contracts import world
from tests.contracts.conformance import EngineContract
from tests.contracts.effort import examples
from tests.contracts.world import plan

TYPES = {pa.int64(): "BIGINT", pa.float64(): "DOUBLE", pa.bool_(): "BOOLEAN"}
FEW = settings(max_examples=examples(0.04), suppress_health_check=list(HealthCheck))
# MariaDB stores neither NaN nor infinities: what a column declared on 0.25 to 2 steps reads
LIMITS = {float("inf"): 1e308, float("-inf"): -1e308}


@pytest.fixture
def run(mariadb, clinic):
    """Runs statements in an empty database."""

    def execute(*statements):
        mariadb.execute("USE clinic", "SET sql_mode = ''", *statements)

    return execute


@pytest.fixture
def url(clinic):
    return clinic


class InMariaDB(EngineContract):
    """The suite of every engine, its tables in the server.

    Doubles without NaN and infinities, which MariaDB does not have.
    """

    def __init__(self, server, url):
        self.server, self.url, self.names = server, url, count()

    def open_engine(self, tables):
        made = {}
        for name, table in tables.items():
            called = f"t{next(self.names)}"
            self.stored(called, table.source)
            made[name] = replace(table, source=self.url, table=called)
        return DuckDB(made)

    def stored(self, name, cells):
        """An Arrow table, in the database."""
        columns = ", ".join(
            f"`{each.name}` {TYPES.get(each.type, 'LONGTEXT COLLATE utf8mb4_bin')}"
            for each in cells.schema
        )
        rows = [
            [None if value != value else LIMITS.get(value, value) for value in row.values()]
            for row in cells.to_pylist()
        ]
        with pymysql.connect(
            unix_socket=str(self.server.socket), user="root", database="clinic", autocommit=True
        ) as root:
            cursor = root.cursor()
            cursor.execute(f"CREATE TABLE {name} ({columns})")
            places = ", ".join(["%s"] * len(cells.schema))
            cursor.executemany(f"INSERT INTO {name} VALUES ({places})", rows)


@pytest.mark.parametrize(
    "name",
    [
        "test_the_values_at_the_edges_mean_what_they_mean_to_the_reference",
        "test_the_engine_gives_the_rows_of_the_reference_at_the_edges",
    ],
)
def test_the_engine_gives_the_integers_of_the_reference_at_the_edges(mariadb, clinic, name):
    getattr(InMariaDB(mariadb, clinic), name)()


@FEW
@given(st.data(), world.data(), st.text(max_size=3))
def test_the_engine_gives_the_integers_of_the_reference(mariadb, clinic, data, rows, key):
    asked = EngineContract.test_the_engine_gives_the_integers_of_the_reference
    asked.hypothesis.inner_test(InMariaDB(mariadb, mariadb.emptied()), data, rows, key)


# --- what a value means ----------------------------------------------------------------------

WHOLE, HALVES = sf.Integer(0, 9), sf.Real(0, 8, step="0.5")
DAYS = sf.Date("1970-01-01", "1970-01-31")
# of each type: a declaration, and values with the codes that they have; None is missing
VALUES = {
    "tinyint unsigned": (WHOLE, {"0": 0, "255": 9, "NULL": None}),
    "int(5) zerofill": (WHOLE, {"7": 7, "42": 9}),
    "bigint": (WHOLE, {"-9223372036854775808": 0, "9223372036854775807": 9, "3": 3}),
    "bigint unsigned": (WHOLE, {"18446744073709551615": 9, "9223372036854775808": 9, "3": 3}),
    "year": (sf.Integer(1990, 2030), {"2001": 2001, "1901": 1990, "0": 1990}),
    "bit(64)": (WHOLE, {"b'101'": 5, "18446744073709551615": 9, "0": 0}),
    "bit(1)": (sf.Boolean(), {"1": 1, "0": 0, "NULL": None}),
    "boolean": (sf.Boolean(), {"true": 1, "false": 0, "7": None}),
    "float": (HALVES, {"0.5": 1, "3e38": 16, "-1e-45": 0, "7.0000005": 14}),
    "double": (HALVES, {"1e308": 16, "-1e308": 0, "4e-320": 0, "2.5": 5, "NULL": None}),
    "decimal(65,30)": (HALVES, {f"-{'9' * 35}": 0, "2.500000000000000000000000000001": 5}),
    "decimal(9,2)": (sf.Category("2", "3.50"), {"2.00": 0, "3.5": 1, "2.01": None}),
    "date": (
        DAYS,
        {
            "'0000-00-00'": None,
            "'1970-00-03'": None,
            "'0000-01-01'": None,
            "'0001-01-01'": 0,
            "'9999-12-31'": 30,
            "'1970-01-03'": 2,
            "NULL": None,
        },
    ),
    "datetime(6)": (
        DAYS,
        {"'0000-00-00'": None, "'1970-01-03 23:59:59.999999'": 2, "'9999-12-31 23:59:59'": 30},
    ),
    "varchar(9)": (WHOLE, {"'7'": 7, "' 8 '": 8, "'x'": None, "''": None, "'空'": None}),
    "char(4)": (sf.Category("7", "8"), {"'8 '": 1, "'9'": None}),
    "varchar(9) charset latin1": (sf.Category("é", "e"), {"'é'": 0, "'e'": 1}),
    "enum('sad','unsigned')": (sf.Category("sad", "unsigned"), {"'sad'": 0, "'unsigned'": 1}),
    "set('a','b')": (sf.Category("a,b", "a"), {"'b,a'": 0, "'a'": 1, "'b'": None}),
    "uuid": (sf.Category("00000000-0000-0000-0000-000000000001"), {"1": None, "NULL": None}),
}


NOON = sf.Timestamp("2024-07-01 12:00:00", "2024-07-01 12:00:09", zone="Europe/London")
START = 1719831600  # noon of London's summer, in seconds since 1970


def codes(url, kind):
    """How many values of the column v of the table t have each code."""
    column = Column("v", kind)
    bounded = plan(
        Scan("t", "", (column,)),
        CountRows(),
        keys=(GroupKey(Value.of(column), None, missing=True),),
    )
    with closing(DuckDB({"t": sf.Table(url, columns={"v": kind}, table="t")})) as engine:
        (counts,) = engine.run(bounded, "key")
        # and nothing of it stays
        assert engine._connection.execute('SELECT count(*) FROM "server t"').fetchone() == (0,)
    return {group[0]: count for group, (count,) in counts.items()}


def made(run, kind, values):
    listed = ", ".join(f"({each})" for each in values)
    run(f"CREATE TABLE t (v {kind} NULL)", f"INSERT IGNORE INTO t VALUES {listed}")


@pytest.mark.parametrize("kind", VALUES)
def test_every_value_has_a_declared_meaning(run, url, kind):
    declared, values = VALUES[kind]
    made(run, kind, values)
    assert codes(url, declared) == Counter(values.values())


# a column, and how many of the spellings its comparison calls equal to another one
EQUAL = {
    "varchar(9) COLLATE utf8mb4_nopad_bin": 0,
    # blanks at the end do not count
    "varchar(9) COLLATE utf8mb4_bin": 1,
    "varchar(9) COLLATE utf8mb4_general_ci": 4,
    "text COLLATE utf8mb4_unicode_ci": 4,
    "varchar(9) CHARACTER SET latin1": 4,
}


@pytest.mark.parametrize("kind", EQUAL)
def test_a_collation_of_the_server_joins_no_spellings(run, url, kind):
    words = ["ab", "AB", "aB", "ab ", "é", "e"]
    made(run, kind, [*map(repr, words), "NULL"])
    assert codes(url, sf.Text()) == Counter([*words, None])
    table = served("t", sf.Table(url, unit=sf.Unit("v"), table="t"))
    assert room.count_respellings(table, "v") == EQUAL[kind]


def test_an_instant_is_the_same_whatever_zone_the_server_is_set_to(run, url):
    run("SET GLOBAL time_zone = '+05:30'")
    try:
        run(
            "SET time_zone = '+01:00'",
            "CREATE TABLE t (v timestamp(6) NULL)",
            "INSERT INTO t VALUES ('2024-07-01 12:00:03.999999'), ('2024-07-01 11:59:59'),"
            " ('2038-01-19 04:14:07'), (0), (NULL)",
        )
        assert codes(url, NOON) == {START: 1, START + 3: 1, START + 9: 1, None: 2}
    finally:
        run("SET GLOBAL time_zone = DEFAULT")
    with pytest.raises(InvalidDeclaration, match="TIMESTAMP WITH TIME ZONE"):
        DuckDB({"t": sf.Table(url, columns={"v": DAYS}, table="t")})


def test_a_time_without_a_zone_is_local_time_of_the_declared_zone(run, url):
    made(run, "datetime(6)", ["'2024-07-01 12:00:03.999999'", "'0000-00-00'", "NULL"])
    assert codes(url, NOON) == {START + 3: 1, None: 2}


@pytest.mark.parametrize("kind", ["date", "datetime(6)"])
def test_a_day_that_is_not_decoded_totally_is_noticed(run, url, monkeypatch, kind):
    local = {"date": "DATE", "datetime(6)": "TIMESTAMP"}[kind]
    read = {"DATE": datetime.date, "TIMESTAMP": datetime.datetime}[local].fromisoformat
    monkeypatch.setitem(room._DECODERS, local, lambda value: read(value.decode()))
    made(run, kind, VALUES[kind][1])
    with pytest.raises(EngineFailed):
        codes(url, DAYS)


@pytest.mark.parametrize(
    ("kind", "value", "decoded"),
    [
        ("DATE", b"2024-02-29", datetime.date(2024, 2, 29)),
        ("DATE", b"2023-02-29", None),
        ("DATE", b"\xff", None),
        ("TIMESTAMP", b"2024-02-29 24:00:00", None),
        ("VARCHAR", b"\xc3\xa9\x00", "é\x00"),
        ("VARCHAR", b"\xe9", None),
    ],
)
def test_bytes_of_any_kind_are_decoded(kind, value, decoded):
    assert room._DECODERS[kind](value) == decoded


@given(st.binary(), st.sampled_from(["DATE", "TIMESTAMP", room._INSTANT, "VARCHAR"]))
def test_no_bytes_make_a_decoder_fail(value, kind):
    room._DECODERS[kind](value)


def test_strings_in_any_order_of_letters_are_compared_exactly(run, url):
    made(run, "varchar(9) collate utf8mb4_general_ci", ["'a'", "'A'", "'á'"])
    assert codes(url, sf.Category("a", "A")) == {0: 1, 1: 1, None: 1}


def test_many_rows_come_in_batches(run, url, monkeypatch):
    monkeypatch.setattr(room, "BATCH", 3)
    made(run, "int", range(1, 11))
    assert codes(url, sf.Integer(1, 9)) == Counter([*range(1, 10), 9])


def test_no_row_without_a_column_is_forgotten(run, url):
    made(run, "int", range(10))
    with closing(DuckDB({"t": sf.Table(url, table="t")})) as engine:
        assert engine.run(plan(Scan("t"), CountRows()), "key") == ({(): (10,)},)


def test_names_are_quoted(run, url):
    run('CREATE TABLE `a``b %s` (`v``" %s` int)', "INSERT INTO `a``b %s` VALUES (7)")
    column = Column('v`" %s', WHOLE)
    table = sf.Table(url, columns={column.name: WHOLE}, table="a`b %s")
    bounded = plan(Scan("t", "", (column,)), CountRows(), keys=(GroupKey(Value.of(column), None),))
    with closing(DuckDB({"t": table})) as engine:
        assert engine.run(bounded, "key") == ({(7,): (1,)},)


def test_a_limit_of_the_server_hides_no_row(run, url):
    made(run, "int", range(10))
    run("SET GLOBAL sql_select_limit = 3, GLOBAL sql_mode = 'ANSI_QUOTES,PAD_CHAR_TO_FULL_LENGTH'")
    try:
        assert codes(url, WHOLE) == Counter(range(10))
    finally:
        run("SET GLOBAL sql_select_limit = DEFAULT, GLOBAL sql_mode = DEFAULT")


# --- one moment ------------------------------------------------------------------------------


def both(url):
    """The rows of two tables, in one question."""
    column = Column("v", sf.Integer(0, 9))
    tables = {
        name: sf.Table(url, unit=sf.Unit("v"), columns={"v": column.type}, table=name)
        for name in ("t", "u")
    }
    owner = owner_of(Dataset("d", tables), "t")
    one, other = (
        Scan(name, f"{name}.", (Column(f"{name}.v", column.type),), owner) for name in ("t", "u")
    )
    read = tuple((Field(each.columns[0]),) for each in (one, other))
    with closing(DuckDB(tables)) as engine:
        ((_, (number,)),) = engine.run(
            plan(Union((one, other), read, (column,)), CountRows()), "key"
        )[0].items()
    return number


def test_all_tables_of_a_question_are_of_one_moment(run, url, monkeypatch):
    run("CREATE TABLE t AS SELECT 1 AS v", "CREATE TABLE u AS SELECT 2 AS v")
    honest = remote._copy

    def slow(*arguments):
        # somebody writes before the first table is read, and before the second
        run("INSERT INTO t VALUES (1)", "INSERT INTO u VALUES (2)")
        honest(*arguments)

    monkeypatch.setattr(remote, "_copy", slow)
    assert both(url) == 2
    # three rows of each by now; without a snapshot the second table has two rows more, the first
    # one
    monkeypatch.setattr(room, "_SNAPSHOT", "SET autocommit = 1")
    assert both(url) == (3 + 1) + (3 + 2)


def test_nothing_changes_the_shape_of_a_table_while_it_is_read(run, url):
    made(run, "int", [1])
    with (
        snapshot([served("t", sf.Table(url, table="t"))]),
        pytest.raises(pymysql.err.OperationalError, match="Lock wait"),
    ):
        run("SET lock_wait_timeout = 0", "ALTER TABLE t MODIFY v text")


def test_nothing_can_be_written(run, url):
    made(run, "int", [1])
    table = sf.Table(url, table="t")
    with pytest.raises(ServerFailed), room._connected(table.source) as connection:
        room._rows(connection, "INSERT INTO t VALUES (2)")
    assert codes(url, WHOLE) == {1: 1}


# --- what is refused, and what fails ---------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW t AS SELECT 1 AS v",
        "CREATE TABLE T (v int)",
        "CREATE TABLE other (v int)",
        "CREATE SEQUENCE t",
        "CREATE TABLE t (v int) ENGINE = MyISAM",
        "CREATE TABLE t (v int) ENGINE = MEMORY",
        "CREATE TABLE t (v int) WITH SYSTEM VERSIONING",
    ],
)
def test_what_has_no_snapshot_of_stored_rows_is_refused(run, url, statement):
    run(statement)
    with pytest.raises(InvalidSource, match="has no table"):
        DuckDB({"t": sf.Table(url, table="t")})


@pytest.mark.parametrize(
    ("kind", "called"),
    [
        ("time", "time"),
        ("blob", "blob"),
        ("varbinary(9)", "varbinary"),
        ("varchar(9) charset binary", "varbinary"),
        ("point", "point"),
        ("inet6", "inet6"),
        ("int AS (w * 2)", "computed column"),
    ],
)
def test_a_type_that_no_declaration_fits_is_refused_where_it_is_declared(run, url, kind, called):
    run(f"CREATE TABLE t (w int, v {kind}, x int AS (w * 2) STORED)")
    known = dict.fromkeys("wx", WHOLE)
    DuckDB({"t": sf.Table(url, columns=known, table="t")}).close()
    with pytest.raises(
        InvalidDeclaration, match=f"is declared as Text.., and the data holds MySQL's {called}\\."
    ):
        DuckDB({"t": sf.Table(url, columns={"v": sf.Text()}, table="t")})
    with pytest.raises(InvalidDeclaration, match="has no column 'z'") as refusal:
        DuckDB({"t": sf.Table(url, columns={"z": sf.Text()}, table="t")})
    assert "'w'" not in str(refusal.value)


def test_a_password_may_have_any_letter_and_come_from_the_environment(run, mariadb, monkeypatch):
    password = "p@ss/wörd%?#空"
    made(run, "int", [7])
    run(
        "CREATE OR REPLACE USER ada@localhost IDENTIFIED BY 'p@ss/wörd%?#空'",
        "GRANT SELECT ON clinic.* TO ada@localhost",
    )
    assert codes(mariadb.url(f"ada:{escaped(password, safe='')}"), WHOLE) == {7: 1}
    with pytest.raises(InvalidSource, match="MYSQL_PWD"):
        codes(mariadb.url("ada"), WHOLE)
    monkeypatch.setenv("MYSQL_PWD", password)
    assert codes(mariadb.url("ada"), WHOLE) == {7: 1}


@pytest.mark.parametrize(
    "address",
    [
        "mysql://ada:secret@127.0.0.1:1/clinic",
        "mariadb://ada:secret@127.0.0.1:1/clinic?ssl_ca=/none/secret.pem",
        "mysql://ada:secret@127.0.0.1:1/clinic?password=secret",
        "mysql://ada:secret@127.0.0.1:secret/clinic",
        "mysql://ada:secret@127.0.0.1:1/clinic?ssl_verify_cert=secret",
    ],
)
def test_a_password_is_never_shown(address, caplog):
    table = sf.Table(address, table="t", columns={"v": WHOLE})
    with pytest.raises(InvalidSource, match="cannot be read") as refusal:
        DuckDB({"t": table})
    for shown in (
        repr(table),
        str(table.source),
        str(refusal.value),
        repr(refusal.value.__context__),
        caplog.text,
    ):
        assert "secret" not in shown
    assert "mysql://127.0.0.1/clinic" in str(refusal.value)


def test_without_pymysql_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymysql", None)
    with pytest.raises(InvalidSource, match=r"sfumato\[mysql\]"):
        served("t", sf.Table("mysql:///clinic", table="t"))


def test_spark_and_layouts_refuse_it(tmp_path):
    table = sf.Table("mysql://db/clinic", table="t", unit=sf.Unit("v", max_rows=1))
    with pytest.raises(sf.errors.WrongUse, match="No table to prepare"):
        sf.prepare({"t": table}, dataset="d", folder=tmp_path / "layout")


CANARY = "canary-4711"
TROUBLE = {
    "gone": ["DROP TABLE t"],
    "another type": ["ALTER TABLE t MODIFY v varchar(99)", f"INSERT INTO t VALUES ('{CANARY}')"],
    "another engine": ["ALTER TABLE t ENGINE = MyISAM"],
}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_before_the_charge_costs_nothing(run, url, tmp_path, trouble):
    made(run, "date", ["'1970-01-01'"])
    table = sf.Table(url, columns={"v": sf.Date("1970-01-01", "1970-01-31")}, table="t")
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(1), ledger=tmp_path / "l.db"
    ) as session:
        run(*TROUBLE[trouble] if trouble != "another type" else ["ALTER TABLE t MODIFY v int"])
        with pytest.raises((InvalidSource, InvalidDeclaration), match="has changed since"):
            session.query("SELECT COUNT(v) AS n FROM t", epsilon=1)
        assert session.budget.left == 1


@pytest.mark.parametrize("trouble", [*TROUBLE, "killed connection", "killed server"])
def test_trouble_in_the_middle_is_one_message_and_the_cost_stays_spent(
    run, url, mariadb, tmp_path, monkeypatch, caplog, trouble
):
    made(run, "int", range(1000))
    monkeypatch.setattr(room, "BATCH", 10)
    table = sf.Table(url, columns={"v": WHOLE}, table="t")
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(1), ledger=tmp_path / "l.db"
    ) as session:
        place = (duckdb_room, "fill") if trouble in TROUBLE else (remote, "_copy")
        honest = getattr(*place)

        def late(*arguments):
            if trouble == "killed server":
                mariadb.stop(signal.SIGKILL)
            elif trouble == "killed connection":
                kill_others(run)
            else:
                run(*TROUBLE[trouble])
            honest(*arguments)

        monkeypatch.setattr(*place, late)
        with pytest.raises(EngineFailed) as failure:
            session.query("SELECT SUM(v) AS s FROM t", epsilon=1)
        assert session.budget.left == 0
    if trouble == "killed server":
        mariadb.start()
    assert str(failure.value) == str(EngineFailed())
    assert failure.value.__context__ is None
    assert CANARY not in caplog.text
    assert "ServerFailed" in caplog.text


def kill_others(run):
    others = "(SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID())"
    run(f"BEGIN NOT ATOMIC FOR it IN {others} DO KILL HARD it.id; END FOR; END")


@pytest.mark.parametrize("trouble", ["stopped", "killed server"])
def test_a_result_that_is_not_read_to_its_end_is_left(run, url, mariadb, trouble):
    # more than any buffer on the way
    run("CREATE TABLE t (v longtext)")
    run("INSERT INTO t SELECT REPEAT('x', 100000) FROM seq_1_to_500")
    table = served("t", sf.Table(url, table="t"))
    seen = []

    def going():
        seen.append(len(seen))
        if trouble == "killed server" and len(seen) == 2:
            mariadb.stop(signal.SIGKILL)
        return trouble == "killed server" or len(seen) < 2

    with closing(duckdb_room.duckdb.connect()) as connection:
        try:
            with pytest.raises(ServerFailed), pytest.MonkeyPatch.context() as patch:
                patch.setattr(room, "BATCH", 10)
                fill(connection, [(table, ["v"])], going)
        finally:
            if trouble == "killed server":
                mariadb.start()
    assert len(seen) < 40


# --- TLS -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "clinic")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder


def test_a_certificate_that_is_given_is_compared_with_that_of_the_server(run, mariadb, certificate):
    made(run, "int", [7])
    run("CREATE OR REPLACE USER eve@'127.0.0.1' REQUIRE SSL", "GRANT ALL ON *.* TO eve@'127.0.0.1'")
    for file in ("cert.pem", "key.pem"):
        (mariadb.folder / file).write_bytes((certificate / file).read_bytes())
    mariadb.stop()
    mariadb.start(
        **{"ssl-cert": str(mariadb.folder / "cert.pem"), "ssl-key": str(mariadb.folder / "key.pem")}
    )
    try:
        address = f"mysql://eve@127.0.0.1:{mariadb.port}/clinic"
        # by default it is encrypted where the server can
        assert codes(address, WHOLE) == {7: 1}
        assert codes(f"{address}?ssl_ca={certificate / 'cert.pem'}", WHOLE) == {7: 1}
        other = address.replace("127.0.0.1", "localhost")
        for refused in (
            f"{address}?ssl_disabled=true",
            f"{address}?ssl_verify_cert=true",
            f"{address}?ssl_verify_identity=true",
            f"{other}?ssl_ca={certificate / 'cert.pem'}",
            f"{address}?ssl_ca={certificate / 'none.pem'}",
        ):
            with pytest.raises(InvalidSource, match="cannot be read"):
                codes(refused, WHOLE)
        for given in (
            f"ssl_ca={certificate / 'cert.pem'}&ssl_verify_identity=false",
            "ssl_verify_cert=false",
        ):
            assert codes(f"{other}?{given}", WHOLE) == {7: 1}
        # a server without a certificate is refused where one is asked for
        mariadb.stop()
        mariadb.start()
        plain = f"mysql://root@127.0.0.1:{mariadb.port}/clinic"
        assert codes(plain, WHOLE) == {7: 1}
        with pytest.raises(InvalidSource, match="cannot be read"):
            codes(f"{plain}?ssl_verify_cert=false", WHOLE)
    finally:
        mariadb.stop()
        mariadb.start()
