# SPDX-License-Identifier: Apache-2.0
"""An address is shown without what opens the door."""

import pickle

import pytest

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
