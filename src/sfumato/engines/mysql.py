# SPDX-License-Identifier: Apache-2.0
"""Reads tables of a MySQL or MariaDB server, batch by batch; a ``served.Reader``.

All tables of one server are read in one transaction, REPEATABLE READ and READ ONLY, with one
consistent snapshot. The server sends each value as bytes, which are decoded here so that no value
can fail: an invalid date (0000-00-00) or invalid UTF-8 is a missing value. Error messages of the
server are not passed on.
"""

import datetime
import os
import ssl
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from sfumato.engines.served import BATCH, Cells, Fetch, Served, ServerFailed
from sfumato.errors import InvalidSource
from sfumato.metadata.server import Server
from sfumato.metadata.table import Table

if TYPE_CHECKING:
    import pymysql

_WORDS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "uuid")
_INSTANT = "TIMESTAMP WITH TIME ZONE"
# how a type is read, and its type in DuckDB
_READ = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "year"), ("{0}", "BIGINT")),
    "bigint": ("{0}", "BIGINT"),
    "bigint unsigned": ("{0}", "UBIGINT"),
    "bit": ("CAST({0} AS UNSIGNED)", "UBIGINT"),
    # a float alone is printed with six digits
    **dict.fromkeys(("float", "double"), ("{0} + 0E0", "DOUBLE")),
    "decimal": ("REGEXP_REPLACE(CAST({0} AS CHAR), '[.]0+$', '')", "VARCHAR"),
    **dict.fromkeys(_WORDS, ("{0}", "VARCHAR")),
    "date": ("{0}", "DATE"),
    "datetime": ("{0}", "TIMESTAMP"),
    "timestamp": ("{0}", _INSTANT),
}
_TABLE = (
    "SELECT TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES "
    "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s"
)
_COLUMNS = (
    "SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, EXTRA, GENERATION_EXPRESSION "
    "FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s "
    "ORDER BY ORDINAL_POSITION"
)
# other storage engines have no snapshots, or no rows of their own
_STORED = "BASE TABLE InnoDB"
_SETTINGS = (
    "SET SESSION sql_mode = ''",
    # instants are sent as times of the session
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION sql_select_limit = 18446744073709551615",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "SET SESSION TRANSACTION READ ONLY",
)
_SNAPSHOT = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
# the options of an address, as PyMySQL calls them
_PATHS = ("unix_socket", "read_default_file")
_TLS = ("ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_cert", "ssl_verify_identity")
_PLAIN = "ssl_disabled"
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_PASSWORD = "MYSQL_PWD"  # noqa: S105 - the name of a variable


def served(
    name: str,
    table: Table,
    relation: str = "",
) -> Served:
    """Looks a declared table up in the catalogue of its server; ``relation`` is ignored.

    Raises:
        InvalidSource: PyMySQL is missing, the server is not reached, or has no such table.
    """
    remote = Served(name, table, relation or _quoted(str(table.table)))
    server = remote.origin
    failed = False
    try:
        with _connected(server) as connection:
            remote = _described(connection, remote)
            if remote.kinds == _STORED:
                _rows(connection, f"SELECT 1 FROM {remote.relation} LIMIT 0")
    except ServerFailed:
        failed = True
    if failed:
        raise InvalidSource(
            f"Table {name!r}: {server!r} cannot be read.",
            allowed="a MySQL or MariaDB database that lets this user read the table; options: "
            f"{', '.join((*_PATHS, *_TLS, _PLAIN))}",
            remedy=f"Check address, user and rights; {_PASSWORD} or an option file "
            "(read_default_file) can hold the password.",
        )
    if remote.kinds != _STORED:
        raise InvalidSource(
            f"Table {name!r}: {server!r} has no table {table.table!r}.",
            allowed="a table of the storage engine InnoDB in the database of the address; "
            "the case of its letters counts",
            remedy="Views are not read: what is computed while it is read could fail on a row. "
            "Nor are other engines, which have no snapshot: ALTER TABLE ... ENGINE = InnoDB.",
        )
    return remote


@contextmanager
def snapshot(tables: Sequence[Served]) -> Iterator[Fetch]:
    """Opens one consistent snapshot of tables of a server; yields a function that fetches rows.

    Raises:
        ServerFailed: the server is gone, or a table has changed.
    """
    with _connected(tables[0].origin) as connection:
        _rows(connection, _SNAPSHOT)
        for table in tables:
            # a table that is named in a transaction keeps its definition until the end
            _rows(connection, f"SELECT 1 FROM {table.relation} LIMIT 0")
        if any(_described(connection, table) != table for table in tables):
            raise ServerFailed
        yield partial(_fetch, connection)


def _described(connection: "pymysql.Connection[Any]", table: Served) -> Served:
    """Returns a table as the catalogue of its server describes it now."""
    name = str(table.table.table)
    kinds = ""
    for table_name, how, engine in _rows(connection, _TABLE, name):
        # the server may compare names without case
        if table_name == name:
            kinds = f"{how} {engine}"
    columns = {}
    unread = {}
    for table_name, column, kind, full, extra, computed in _rows(connection, _COLUMNS, name):
        if table_name != name or column is None:
            continue
        if kind == "bigint" and "unsigned" in str(full):
            kind = "bigint unsigned"
        if computed and "STORED" not in str(extra):
            kind = "computed column"
        expression, local = _READ.get(str(kind), ("NULL", "INTERVAL"))
        columns[column] = expression.format(_quoted(column)), local
        if kind not in _READ:
            unread[column] = f"MySQL's {kind}"
    return replace(table, columns=columns, unread=unread, kinds=kinds)


def _fetch(
    connection: "pymysql.Connection[Any]", table: Served, columns: Sequence[str]
) -> Generator[Cells]:
    read = ", ".join([*(table.columns[column][0] for column in columns), "1"])
    decoders = [_DECODERS[table.columns[column][1]] for column in columns]
    cursor = connection.cursor()
    try:
        cursor.execute(f"SELECT {read} FROM {table.relation}")
        while rows := cursor.fetchmany(BATCH):
            *wanted, one = zip(*rows, strict=True)
            cells: list[Sequence[object]] = list(map(_decoded, decoders, wanted))
            yield [*cells, one]
    finally:
        # otherwise PyMySQL reads the rest of the rows when it collects the cursor
        if cursor._result is not None:
            cursor._result.unbuffered_active = False


def count_respellings(table: Served, column: str) -> int:
    """Counts the values that the column's collation treats as equal to another, and we do not."""
    read, _ = table.columns[column]
    counts = f"COUNT(DISTINCT CAST({read} AS BINARY)) - COUNT(DISTINCT {_quoted(column)})"
    with _connected(table.origin) as connection:
        rows = _rows(connection, f"SELECT {counts} FROM {table.relation}")
    return int(rows[0][0])


def _decoded(
    decode: Callable[[bytes], object],
    cells: Sequence[bytes | None],
) -> list[object]:
    return [None if value is None else decode(value) for value in cells]


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _day(value: bytes) -> datetime.date | None:
    """Returns a day; None for one that the calendar does not have, such as 2024-02-00."""
    try:
        return datetime.date.fromisoformat(value.decode("ascii"))
    except ValueError:
        return None


def _moment(value: bytes) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(value.decode("ascii"))
    except ValueError:
        return None


def _instant(value: bytes) -> datetime.datetime | None:
    moment = _moment(value)
    return None if moment is None else moment.replace(tzinfo=datetime.UTC)


_DECODERS: Mapping[str, Callable[[bytes], object]] = {
    "BIGINT": int,
    "UBIGINT": int,
    "DOUBLE": float,
    "VARCHAR": _text,
    "DATE": _day,
    "TIMESTAMP": _moment,
    _INSTANT: _instant,
}


def _rows(
    connection: "pymysql.Connection[Any]", statement: str, *arguments: str
) -> list[list[Any]]:
    """Returns the rows of a small result: strings, and None for NULL."""
    cursor = connection.cursor()
    cursor.execute(statement, arguments or None)
    return [_decoded(_text, row) for row in cursor.fetchall()]


def _quoted(name: str) -> str:
    """Returns an identifier of MySQL; sql_mode cannot change what it means."""
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def _connected(server: object) -> "Iterator[pymysql.Connection[Any]]":
    """Opens a read-only connection."""
    try:
        import pymysql  # optional: the extra sfumato[mysql]
    except ImportError:
        raise InvalidSource(
            "A table of a MySQL or MariaDB server needs the package PyMySQL.",
            remedy="pip install 'sfumato[mysql]'",
        ) from None
    assert isinstance(server, Server), "asked of tables of servers only"
    failed = False
    try:
        settings = _settings(urlsplit(server.url))
        with closing(
            pymysql.connect(
                charset="utf8mb4",
                use_unicode=False,
                conv=pymysql.converters.encoders,
                cursorclass=pymysql.cursors.SSCursor,
                **settings,
            )
        ) as connection:
            for setting in _SETTINGS:
                _rows(connection, setting)
            yield connection
    except (pymysql.MySQLError, OSError, ValueError, RuntimeError):
        failed = True
    if failed:
        # outside the handler: a message of the server may quote a value
        raise ServerFailed


def _settings(address: SplitResult) -> dict[str, Any]:
    """Returns the arguments of PyMySQL that an address means.

    Raises:
        ServerFailed: it has an option that is not known.
    """
    password = address.password
    password = os.environ.get(_PASSWORD, "") if password is None else unquote(password)
    settings: dict[str, Any] = {
        "host": address.hostname,
        "port": address.port or 0,
        "user": unquote(address.username or "") or None,
        # as a string it could have letters of Latin-1 alone
        "password": password.encode(),
        "database": unquote(address.path.removeprefix("/")) or None,
    }
    options = dict(parse_qsl(address.query, keep_blank_values=True))
    if not set(options) <= {*_PATHS, *_TLS, _PLAIN}:
        raise ServerFailed
    settings |= {name: options[name] for name in _PATHS if name in options}
    tls = {name: options[name] for name in _TLS if name in options}
    if tls:
        settings["ssl"] = _context(tls)
    elif _PLAIN in options or "unix_socket" in options:
        # nobody listens between two processes of one machine
        settings["ssl_disabled"] = _is_true(options, _PLAIN)
    return settings


def _context(options: Mapping[str, str]) -> ssl.SSLContext:
    """Returns what is required of an encrypted connection: by default, all that can be verified.

    PyMySQL's own options would not verify a certificate, or the name in it, without others.
    """
    context = ssl.create_default_context(cafile=options.get("ssl_ca"))
    # a certificate that MySQL makes for itself is not strictly formed
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    is_verified = _is_true(options, "ssl_verify_cert")
    context.check_hostname = is_verified and _is_true(options, "ssl_verify_identity")
    context.verify_mode = ssl.CERT_REQUIRED if is_verified else ssl.CERT_NONE
    if "ssl_cert" in options:
        context.load_cert_chain(options["ssl_cert"], options.get("ssl_key"))
    return context


def _is_true(options: Mapping[str, str], name: str) -> bool:
    """Returns whether an option is true; it is if it is not given.

    Raises:
        ServerFailed: it is neither true nor false.
    """
    value = options.get(name, "true")
    if value not in _TRUTHS:
        raise ServerFailed
    return _TRUTHS[value]
