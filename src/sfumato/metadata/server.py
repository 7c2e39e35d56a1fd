# SPDX-License-Identifier: Apache-2.0
"""Addresses of databases and of objects in S3 stores, shown without their passwords."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from sfumato.errors import WrongUse, without_secrets

SERVERS = ("postgresql://", "postgres://")
_ESCAPES = "in a password % is written %25, @ %40, / %2F"
POSTGRES = f'"postgresql://user@host/database"; {_ESCAPES}'
MYSQL = f'"mysql://user@host/database"; {_ESCAPES}'
SQLITE = '"sqlite:///people.db", or "sqlite:////srv/people.db" for a path from the root'
S3 = '"s3://bucket/key.parquet?endpoint=https://host&region=name"; keys from the environment'
_S3_OPTIONS = ("endpoint", "region", "anonymous")
# Each scheme of an address that ``sf.Table`` accepts, and how its addresses are written.
SCHEMES = {
    "postgresql": POSTGRES,
    "postgres": POSTGRES,
    "mysql": MYSQL,
    "mariadb": MYSQL,
    "sqlite": SQLITE,
    "s3": S3,
}
# Two names of a kind of server are one place; the usual port of each kind.
_KINDS = {"postgres": "postgresql", "mariadb": "mysql"}
_PORTS = {"postgresql": 5432, "mysql": 3306}
_WEB_PORTS = {"http": 80, "https": 443}
# The variables in which Amazon's tools look for another store.
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
# Two letters at least: "C:/data" is a path. pathlib reduces "://" to ":/".
_SCHEME = re.compile(r"\s*([a-z][a-z0-9+.-]+):/", re.IGNORECASE)


def is_address(place: object) -> bool:
    """Whether a string is the address of a server, of any kind, rather than a path.

    >>> is_address("PostgreSQL://db/clinic"), is_address("host=db password=x")
    (True, True)
    >>> is_address("data/people.csv")
    False
    """
    text = str(place)
    return (isinstance(place, str) and "://" in text) or without_secrets(text) != text


def scheme_of(place: object) -> str:
    """Returns the scheme of an address in lower case; empty if it has none.

    >>> scheme_of("S3://bucket/people.parquet"), scheme_of("C:/data/people.csv")
    ('s3', '')
    """
    found = _SCHEME.match(str(place))
    return found[1].lower() if found else ""


def is_postgres(place: object) -> bool:
    """Whether a string is a PostgreSQL address whose user and password are delimited unambiguously.

    >>> is_postgres("postgresql://ada:p%40ss@db/clinic")
    True
    >>> is_postgres("postgresql://ada:p@s/s@db/clinic")
    False
    """
    return is_server(place) and str(place).startswith(SERVERS)


def is_server(place: object) -> bool:
    """Whether a string is the address of a server whose user and password are delimited
    unambiguously.

    >>> is_server("mysql://ada:p%40ss@db/clinic"), is_server("mysql://ada:p@ss@db/clinic")
    (True, False)
    """
    if not isinstance(place, str):
        return False
    scheme, colon, rest = place.partition("://")
    user = rest.rpartition("@")[0]
    is_known = bool(colon) and _KINDS.get(scheme, scheme) in _PORTS
    return is_known and not set("/?#@") & set(user)


def path_of(place: object) -> str | None:
    """Returns the path in the address of an SQLite file, as SQLAlchemy writes it; else None.

    >>> path_of("sqlite:///people.db"), path_of("sqlite:////srv/people.db"), path_of("people.db")
    ('people.db', '/srv/people.db', None)
    """
    if not isinstance(place, str) or not place.startswith("sqlite:///"):
        return None
    path = place.removeprefix("sqlite:///")
    if not path or set("?#") & set(path):
        return None
    return path


def is_object(place: object) -> bool:
    """Whether a string is the address of an object in an S3 store, without credentials in it.

    >>> is_object("s3://clinic/2024/people.parquet?region=eu-west-1"), is_object("s3://clinic")
    (True, False)
    """
    if not isinstance(place, str) or not place.startswith("s3://") or set("@#") & set(place):
        return False
    stored = StoredObject(place)
    try:
        _origin(stored.options.get("endpoint", "https://store.example"))
    except ValueError:
        return False
    bucket, *key = stored.name.split("/")
    # some stores take a//b and a/./b for a/b
    is_plain = bool(bucket and key) and not {"", ".", ".."} & set(key)
    return is_plain and set(stored.options) <= set(_S3_OPTIONS)


def _origin(endpoint: str) -> str:
    """The scheme, host and port of an endpoint, in one spelling (else ValueError).

    >>> _origin("HTTPS://Store.example:443/"), _origin("http://127.0.0.1:9000")
    ('https://store.example', 'http://127.0.0.1:9000')
    """
    parts = urlsplit(endpoint)
    usual = _WEB_PORTS.get(parts.scheme)
    more = parts.username or parts.password or parts.query or parts.fragment
    if (
        usual is None
        or not parts.hostname
        or more
        or parts.path not in ("", "/")
        or "@" in endpoint
    ):
        raise ValueError("no plain address of a host")
    host = parts.hostname
    if ":" in host:
        host = f"[{host}]"
    if parts.port not in (None, usual):
        host = f"{host}:{parts.port}"
    return f"{parts.scheme}://{host}"


@dataclass(frozen=True, slots=True, repr=False)
class StoredObject:
    """The address of an object in an S3 store; its ``repr`` leaves out the options.

    >>> StoredObject("s3://clinic/2024/people.parquet?region=eu-west-1")
    s3://clinic/2024/people.parquet
    """

    url: str = field(repr=False)

    @property
    def name(self) -> str:
        """The bucket and key of the object, without options."""
        return self.url.removeprefix("s3://").partition("?")[0]

    @property
    def options(self) -> dict[str, str]:
        """The options of the address, by name."""
        return dict(parse_qsl(self.url.partition("?")[2], keep_blank_values=True))

    @property
    def endpoint(self) -> str | None:
        """The address of the store, from the option or the environment; None means Amazon's.

        Raises:
            ValueError: the endpoint is not the plain address of a host.
        """
        named = [self.options.get("endpoint"), *map(os.environ.get, _ENDPOINTS)]
        for given in filter(None, named):
            return _origin(given)
        return None

    @property
    def place(self) -> str:
        """A canonical name of the object: bucket and key, and the store if it is not Amazon's.

        >>> StoredObject("s3://clinic/a.csv?endpoint=https://Store.example:443&region=x").place
        's3://clinic/a.csv at https://store.example'
        """
        try:
            endpoint = self.endpoint
        except ValueError:
            return repr(self)
        return f"{self!r} at {endpoint}" if endpoint else repr(self)

    def __repr__(self) -> str:
        return f"s3://{self.name}"


def _libpq(parts: SplitResult, options: Mapping[str, str]) -> str:
    """The host, port and database of libpq: options win over the address, that over variables."""
    environ = os.environ
    host = options.get("hostaddr") or options.get("host") or parts.hostname
    if host is None and "service" in options:
        host = f"service {options['service']}"
    host = host or environ.get("PGHOSTADDR") or environ.get("PGHOST") or ""
    port = options.get("port") or parts.port or environ.get("PGPORT") or _PORTS["postgresql"]
    user = options.get("user") or unquote(parts.username or "") or environ.get("PGUSER", "")
    database = options.get("dbname") or unquote(parts.path.removeprefix("/"))
    database = database or environ.get("PGDATABASE") or user
    return f"{unquote(host).lower()}:{port}/{database}"


def _mysql(parts: SplitResult, options: Mapping[str, str]) -> str:
    """The host, port and database of MySQL; a socket of this machine wins over the host."""
    database = unquote(parts.path.removeprefix("/"))
    socket = options.get("unix_socket")
    if socket:
        return f"{socket}/{database}"
    return f"{parts.hostname or ''}:{parts.port or _PORTS['mysql']}/{database}"


@dataclass(frozen=True, slots=True, repr=False)
class Server:
    """The address of a server; its ``repr`` leaves out user, password and options.

    >>> Server("postgresql://ada:secret@db.example:5432/clinic?sslmode=require")
    postgresql://db.example/clinic
    """

    url: str = field(repr=False)

    @property
    def scheme(self) -> str:
        """The kind of server: "postgresql" or "mysql"."""
        scheme = scheme_of(self.url)
        return _KINDS.get(scheme, scheme)

    @property
    def place(self) -> str:
        """A canonical name of the database: host, port and database, however the address is
        written.

        Options that the driver prefers to the main part of the address count, as do the environment
        variables that it reads. So one database has one place, except for other names of its host.

        >>> Server("postgresql://ada:secret@db.example/clinic?sslmode=require").place
        'postgresql://db.example:5432/clinic'
        """
        try:
            parts = urlsplit(self.url)
            options = dict(parse_qsl(parts.query))
            where = {"mysql": _mysql}.get(self.scheme, _libpq)(parts, options)
        except ValueError:
            return repr(self)
        return f"{self.scheme}://{where}"

    def __repr__(self) -> str:
        try:
            parts = urlsplit(without_secrets(self.url))
            return f"{self.scheme}://{parts.hostname or ''}{parts.path}"
        except ValueError:
            return f"{self.scheme}://"

    def __reduce__(self) -> NoReturn:
        raise WrongUse(
            "The address of a server is not pickled: it may hold a password.",
            remedy="Give the address again where it is used.",
        )
