# SPDX-License-Identifier: Apache-2.0
"""An address is shown without what opens the door."""

import pickle

import pytest

from sfumato.errors import WrongUse
from sfumato.metadata.server import Server

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
