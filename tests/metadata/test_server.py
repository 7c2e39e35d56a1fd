# SPDX-License-Identifier: Apache-2.0
"""An address is shown without what opens the door."""

import pickle

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import WrongUse
from sfumato.metadata.server import (
    SCHEMES,
    Server,
    StoredObject,
    is_object,
    path_of,
    scheme_of,
)

SHOWN = {
    "postgresql://ada:secret@db.example:5432/clinic?sslmode=require&password=secret": "postgresql://db.example/clinic",
    "postgres://db.example": "postgresql://db.example",
    "postgresql:///clinic?host=/run/secret": "postgresql:///clinic",
    "postgresql://ada:secret@/clinic?host=/run": "postgresql:///clinic",
    "postgresql://[secret": "postgresql://",
    "mysql://ada:secret@db.example:3307/clinic?ssl_ca=/secret": "mysql://db.example/clinic",
    "mariadb://ada:secret@db.example/clinic": "mysql://db.example/clinic",
    "postgresql://ada:se/cr@et@db.example/clinic": "postgresql://db.example/clinic",
}


@pytest.mark.parametrize("url", SHOWN)
def test_an_address_is_shown_without_user_password_and_options(url):
    server = Server(url)
    assert repr(server) == str(server) == f"{server}" == SHOWN[url]
    assert server.url == url


def test_an_address_is_not_pickled():
    with pytest.raises(WrongUse, match="not pickled"):
        pickle.dumps(Server("postgresql://db/clinic"))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_scheme_is_recognised_in_any_case(scheme):
    assert scheme_of(f" {scheme.upper()}://host/name") == scheme == scheme.lower()
    assert scheme_of(f"{scheme}:/host") == scheme


@pytest.mark.parametrize("path", ["a.csv", "/a:/b", "C:/a", "C://a", "://a", "1a://b", "a b://c"])
def test_a_path_has_no_scheme(path):
    assert scheme_of(path) == ""


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ("sqlite:///people.db", "people.db"),
        ("sqlite:////srv/a b.db", "/srv/a b.db"),
        ("sqlite:///:memory:", ":memory:"),
        ("sqlite:///people.db?mode=rw", None),
        ("sqlite:///a#b", None),
        ("sqlite://people.db", None),
        ("sqlite:///", None),
        ("SQLite:///people.db", None),
        ("people.db", None),
        (7, None),
    ],
)
def test_the_address_of_a_file_is_its_path(place, path):
    assert path_of(place) == path


@pytest.mark.parametrize(
    ("place", "known"),
    [
        ("s3://clinic/people.parquet", True),
        ("s3://clinic/a/b c=d.csv?endpoint=http://127.0.0.1:9000&region=x&anonymous=true", True),
        ("s3://clinic", False),
        ("s3://clinic/", False),
        ("s3:///people.parquet", False),
        ("s3://key:secret@clinic/people.parquet", False),
        ("s3://clinic/people.parquet?endpoint=http://key:secret@host", False),
        ("s3://clinic/people.parquet?secret_key=secret", False),
        ("s3://clinic/people.parquet#a", False),
        ("S3://clinic/people.parquet", False),
        ("clinic/people.parquet", False),
        (7, False),
    ],
)
def test_the_address_of_an_object_has_a_bucket_a_key_and_known_options(place, known):
    assert is_object(place) is known


def test_an_object_is_shown_without_options():
    stored = StoredObject("s3://clinic/a/b.csv?endpoint=http://127.0.0.1:9000&region=")
    assert repr(stored) == f"{stored}" == "s3://clinic/a/b.csv"
    assert stored.options == {"endpoint": "http://127.0.0.1:9000", "region": ""}
    assert stored.place == "s3://clinic/a/b.csv at http://127.0.0.1:9000"


SPELLED = st.sampled_from(["db", "d%62", ""])
HOSTS = st.sampled_from(["h", "H", "other", ""])
PORTS = st.sampled_from(["", ":5432", ":3306", ":99"])


@given(
    SPELLED, HOSTS, PORTS,
    st.dictionaries(
        st.sampled_from(["host", "port", "dbname", "sslmode"]),
        st.sampled_from(["h", "b", "99", "5432", "db", "require"]),
        max_size=3,
    ),
)  # fmt: skip
def test_what_libpq_takes_for_one_database_is_one_place(database, host, port, options):
    """libpq itself says to which host, port and database an address connects."""
    query = "&".join(f"{name}={value}" for name, value in options.items())
    url = f"postgresql://ada@{host}{port}/{database}?{query}"
    meant = psycopg.conninfo.conninfo_to_dict(url)
    where = meant.get("host", "").lower(), meant.get("port", "5432")
    expected = f"postgresql://{where[0]}:{where[1]}/{meant.get('dbname') or 'ada'}"
    assert Server(url).place == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("postgresql://h/db", "postgres://H:5432/d%62?sslmode=require"),
        ("postgresql://h/db", "postgresql://invented/db?host=h"),
        ("postgresql://h/db", "postgresql://h/invented?dbname=db"),
        ("postgresql://a/db?hostaddr=10.0.0.1", "postgresql://b/db?hostaddr=10.0.0.1"),
        ("postgresql://ada@h", "postgresql://ada@h/ada"),
        ("mysql://h/db", "mariadb://H:3306/d%62"),
        ("mysql://a/db?unix_socket=/tmp/x", "mysql://b/db?unix_socket=/tmp/x"),
    ],
)
def test_another_spelling_of_an_address_is_no_other_place(one, other):
    assert Server(one).place == Server(other).place


def test_variables_of_libpq_name_the_place_that_the_address_leaves_open(monkeypatch):
    monkeypatch.setenv("PGHOST", "h")
    monkeypatch.setenv("PGDATABASE", "db")
    assert Server("postgresql://ada@").place == Server("postgresql://h/db").place
    assert Server("postgresql:///?service=x").place != Server("postgresql://h/db").place


@pytest.mark.parametrize(
    "endpoint",
    ["http://h:80", "http://H", "http://h/", "http://h:80/"],
)
def test_another_spelling_of_an_endpoint_is_no_other_place(endpoint, monkeypatch):
    place = StoredObject("s3://c/a.csv?endpoint=http://h").place
    assert StoredObject(f"s3://c/a.csv?region=x&endpoint={endpoint}").place == place
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    assert StoredObject("s3://c/a.csv").place == place


@pytest.mark.parametrize(
    "options",
    [
        "endpoint=http://h/path", "endpoint=http://h?x=1", "endpoint=ftp://h", "endpoint=h", "endpoint=http://",
        "endpoint=https%3A//user%3Apw%40h", "endpoint=http://h:x",
    ],
)  # fmt: skip
def test_an_endpoint_that_is_more_than_a_host_is_refused(options):
    assert not is_object(f"s3://c/a.csv?{options}")


@pytest.mark.parametrize("key", ["/a.csv", "b//a.csv", "./a.csv", "b/../a.csv"])
def test_a_key_that_a_store_may_read_as_another_is_refused(key):
    assert not is_object(f"s3://c/{key}")
