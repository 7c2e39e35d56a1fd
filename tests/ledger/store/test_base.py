# SPDX-License-Identifier: Apache-2.0
"""The protocol of a store, and the states of a charge."""

import inspect

import pytest

from sfumato.ledger.store import base
from sfumato.ledger.store.base import Rows, Store
from sfumato.ledger.store.sqlite import SQLite
from sfumato.ledger.store.sqlite_rows import SQLiteRows

PROMISES = [(Store, SQLite), (Rows, SQLiteRows)]


def methods(protocol: type) -> list[str]:
    """What a protocol asks for."""
    return [name for name in vars(protocol) if not name.startswith("_")]


def test_the_states_of_a_charge_are_five_different_words() -> None:
    states = (base.RESERVED, base.EXECUTING, base.COMMITTED, base.FORFEITED, base.VOIDED)
    assert states == ("reserved", "executing", "committed", "forfeited", "voided")


def test_the_protocols_have_no_way_to_take_anything_back() -> None:
    names = methods(Store) + methods(Rows)
    assert len(names) >= 30
    words = ("delete", "remove", "drop", "clear", "truncate", "refund", "reset")
    assert not [name for name in names if any(word in name for word in words)]


@pytest.mark.parametrize(("protocol", "store"), PROMISES)
def test_the_embedded_store_takes_what_the_protocol_says(protocol: type, store: type) -> None:
    for name in methods(protocol):
        promised = getattr(protocol, name)
        if inspect.isfunction(promised):
            taken = list(inspect.signature(getattr(store, name)).parameters)
            assert taken == list(inspect.signature(promised).parameters), name
