# SPDX-License-Identifier: Apache-2.0
"""An address is shown without what opens the door."""

import pickle

import pytest

from sfumato.errors import WrongUse
from sfumato.metadata.server import SCHEMES, Server, scheme_of

SHOWN = {
    "postgresql://ada:secret@db.example:5432/clinic?sslmode=require&password=secret": "postgresql://db.example/clinic",
    "postgres://db.example": "postgresql://db.example",
    "postgresql:///clinic?host=/run/secret": "postgresql:///clinic",
    "postgresql://[secret": "postgresql://",
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
