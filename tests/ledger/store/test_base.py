# SPDX-License-Identifier: Apache-2.0
"""The protocol of a store, and the states of a charge."""

import inspect

from sfumato.ledger.store import base
from sfumato.ledger.store.base import Store
from sfumato.ledger.store.sqlite import SQLite

METHODS = [name for name in vars(Store) if not name.startswith("_")]


def test_the_states_of_a_charge_are_five_different_words() -> None:
    states = (base.RESERVED, base.EXECUTING, base.COMMITTED, base.FORFEITED, base.VOIDED)
    assert states == ("reserved", "executing", "committed", "forfeited", "voided")


def test_the_protocol_has_no_way_to_take_anything_back() -> None:
    assert len(METHODS) >= 17
    words = ("delete", "remove", "drop", "clear", "truncate", "refund", "reset")
    assert not [name for name in METHODS if any(word in name for word in words)]


def test_the_embedded_store_takes_what_the_protocol_says() -> None:
    for name in METHODS:
        promised = list(inspect.signature(getattr(Store, name)).parameters)
        assert list(inspect.signature(getattr(SQLite, name)).parameters) == promised, name
