# SPDX-License-Identifier: Apache-2.0
"""The SQL that two stores share.

What it does is in the shared suite, and here how it is written.
"""

import re
from collections.abc import Iterator
from typing import Any

from sfumato.ledger.journal import chained, genesis
from sfumato.ledger.store import rows as module
from sfumato.ledger.store.base import (
    AccountRow,
    AnswerRow,
    ChargeRow,
    InstalmentRow,
    KeyRow,
    PartRow,
    Rows,
)
from sfumato.ledger.store.rows import Cell, SqlRows

ACCOUNT = AccountRow("d", "", "c", "l", "g", "s", "h", "", "{}", "[]", 1, "head", "d")
CHARGE = ChargeRow("c1", "d", 2, "d", "d/p", "a", "reserved", "q", "s", "", "{}", "", "", 5)


class Recorder(SqlRows):
    """Rows that remember the statements and answer nothing."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, tuple[Cell, ...]]] = []

    def _run(self, sql: str, values: tuple[Cell, ...] = ()) -> None:
        self.sent.append((sql, values))

    def _all(self, sql: str, values: tuple[Cell, ...] = ()) -> list[tuple[Any, ...]]:
        self.sent.append((sql, values))
        return [(0,) * 6] if "count(*)" in sql else []

    def keep(self, name: str, body: bytes) -> None:
        raise AssertionError(name)

    def _kept(self, name: str, size: int) -> bytes:
        raise AssertionError(name)

    def _stream(self, sql: str, values: tuple[Cell, ...] = ()) -> Iterator[tuple[Any, ...]]:
        self.sent.append((sql, values))
        yield from ()


def everything() -> list[tuple[str, tuple[Cell, ...]]]:
    """Every statement, with its values."""
    rows = Recorder()
    for put, row in (
        (rows.put_account, ACCOUNT),
        (rows.put_charge, CHARGE),
        (rows.put_answer, AnswerRow("q", "s", "", "c1", b"x")),
        (rows.put_instalment, InstalmentRow("c1", 1, b"x", "d", 3)),
        (rows.put_key, KeyRow("d/p", "k", "r", "c1", "d", 2)),
        (rows.put_parts, [PartRow("p", "c1", "d", 2), PartRow("r", "c1", "d", 2)]),
        (rows.append, chained("d", 1, "now", "thaw", {}, genesis("d"))),
    ):
        put(row)  # type: ignore[operator]
    for ask in (
        rows.account,
        rows.charge,
        rows.under_way,
        rows.failures,
        rows.answer,
        rows.twins,
        rows.acts,
    ):
        ask("x")
    rows.first_answer("x", "y")
    rows.failed("x", "y")
    rows.instalments("x", 0, 1)
    rows.shared_answer("x")
    rows.shared_answer("x", "y")
    rows.released("x", "y")
    rows.last_entry("x")
    rows.key("x", "y")
    rows.entry("x", 1)
    rows.chains()
    rows.counts()
    rows.overdue(None, 1)
    rows.overdue(5, 1)
    rows.overdue(5, 1, "d")
    for stream in (
        rows.accounts(),
        rows.entries("x"),
        rows.history(),
        rows.keys(),
        rows.parts(),
        rows.all_instalments(),
    ):
        assert list(stream) == []
    return rows.sent


def test_every_method_of_rows_is_there() -> None:
    promised = {name for name in vars(Rows) if not name.startswith("_")}
    assert promised - set(dir(SqlRows)) == {"now", "lock"}


def test_a_statement_has_a_place_for_each_value_and_nothing_that_a_driver_takes_for_one() -> None:
    for sql, values in everything():
        assert sql.count("?") == len(values), sql
        assert "%" not in sql
        assert not re.search(r":\w|\$\d", sql), sql


def test_a_charge_put_again_takes_what_its_life_changes_and_an_account_all_but_two() -> None:
    assert re.findall(r"(\w+) = excluded", module.PUT_CHARGE) == [
        *("state", "reason", "lease_until", "acknowledged", "pieces", "failures")
    ]
    changed = re.findall(r'"?(\w+)"? = excluded', module.PUT_ACCOUNT)
    assert {"id", "parent", *changed} == set(AccountRow._fields)
    assert not {"id", "parent"} & set(changed)


def test_nothing_is_ever_deleted() -> None:
    assert not [
        sql for sql, _ in everything() if re.search(r"DELETE|TRUNCATE|DROP", sql, re.IGNORECASE)
    ]
