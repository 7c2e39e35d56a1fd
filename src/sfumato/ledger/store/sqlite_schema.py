# SPDX-License-Identifier: Apache-2.0
"""The tables of a ledger in SQLite, and the upgrades from older formats.

Format 1 had one chain for all datasets and no accounts below them. Its chain is kept as it was
written, under the name "", so that heads signed of it remain valid; each dataset begins its own
chain with an entry that names the old head.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

import apsw

from sfumato.accounting.budget_gates import NOTHING, Charge
from sfumato.ledger.account_path import UNSTATED, Scope
from sfumato.ledger.balance import Held, charge_from_json, charge_text, held_text
from sfumato.ledger.binding import binding_entries
from sfumato.ledger.journal import LEGACY, Entry, canonical_json, chained, genesis
from sfumato.ledger.names import folded
from sfumato.ledger.store.base import COMMITTED, FORFEITED, VOIDED, AccountRow
from sfumato.ledger.store.format import FORMAT
from sfumato.ledger.store.rows import ACCOUNTS, FAILED_INDEX, PUT_ACCOUNT, WENT_ON_INDEX
from sfumato.noise.entropy import token
from sfumato.privacy.event import Json

APPLICATION = 0x5F0A70  # "sfumato", so that another program's database is told apart

# since format 2
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE journal (chain TEXT NOT NULL, seq INTEGER NOT NULL, at TEXT NOT NULL, kind TEXT NOT NULL,
    body TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL, UNIQUE (chain, seq)) STRICT;
CREATE TABLE account (id TEXT PRIMARY KEY, parent TEXT NOT NULL, contract TEXT NOT NULL, "limit" TEXT NOT NULL,
    gates TEXT NOT NULL, spent TEXT NOT NULL, held TEXT NOT NULL, frozen TEXT NOT NULL, policy TEXT NOT NULL,
    earlier TEXT NOT NULL, seq INTEGER NOT NULL, head TEXT NOT NULL) STRICT;
CREATE TABLE charge (id TEXT NOT NULL UNIQUE, chain TEXT NOT NULL, seq INTEGER NOT NULL, dataset TEXT NOT NULL,
    account TEXT NOT NULL, analyst TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'executing', 'committed', 'forfeited', 'voided')),
    question TEXT NOT NULL, statement TEXT NOT NULL, shared TEXT NOT NULL, cost TEXT NOT NULL, source TEXT NOT NULL,
    reason TEXT NOT NULL, lease_until INTEGER NOT NULL, acknowledged INTEGER NOT NULL DEFAULT 0,
    UNIQUE (chain, seq)) STRICT;
CREATE INDEX charge_lease ON charge (lease_until) WHERE state IN ('reserved', 'executing');
CREATE INDEX charge_failed ON charge (dataset) WHERE state = 'forfeited' AND acknowledged = 0;
CREATE TABLE answer (question TEXT NOT NULL UNIQUE, statement TEXT NOT NULL, shared TEXT NOT NULL,
    charge TEXT NOT NULL UNIQUE REFERENCES charge (id), body BLOB NOT NULL) STRICT;
CREATE INDEX answer_statement ON answer (statement);
CREATE INDEX answer_shared ON answer (shared) WHERE shared <> '';
CREATE TABLE key (account TEXT NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL, charge TEXT NOT NULL,
    chain TEXT NOT NULL, seq INTEGER NOT NULL, UNIQUE (account, key), UNIQUE (chain, seq)) STRICT;
"""
# since format 3
_PARTS = """
CREATE TABLE part (part TEXT NOT NULL, charge TEXT NOT NULL REFERENCES charge (id), chain TEXT NOT NULL,
    seq INTEGER NOT NULL, UNIQUE (part, chain, seq)) STRICT;
CREATE INDEX part_seq ON part (chain, seq, part);
"""
# since format 4
_BINDING = """
ALTER TABLE account ADD COLUMN moved INTEGER NOT NULL DEFAULT 0;
ALTER TABLE answer ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
"""
# since format 5; a table's CHECK changes with the table alone
_INSTALMENTS = f"""
CREATE TABLE new_charge (id TEXT NOT NULL UNIQUE, chain TEXT NOT NULL, seq INTEGER NOT NULL, dataset TEXT NOT NULL,
    account TEXT NOT NULL, analyst TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'executing', 'suspended', 'committed', 'forfeited', 'voided')),
    question TEXT NOT NULL, statement TEXT NOT NULL, shared TEXT NOT NULL, cost TEXT NOT NULL, source TEXT NOT NULL,
    reason TEXT NOT NULL, lease_until INTEGER NOT NULL, acknowledged INTEGER NOT NULL DEFAULT 0,
    pieces TEXT NOT NULL DEFAULT '', failures INTEGER NOT NULL DEFAULT 0, UNIQUE (chain, seq)) STRICT;
INSERT INTO new_charge SELECT *, '', 0 FROM charge ORDER BY rowid;
DROP TABLE charge;
ALTER TABLE new_charge RENAME TO charge;
CREATE INDEX charge_lease ON charge (lease_until) WHERE state IN ('reserved', 'executing');
CREATE INDEX charge_failed ON charge (dataset) WHERE state = 'forfeited' AND acknowledged = 0;
CREATE INDEX charge_suspended ON charge (question) WHERE state = 'suspended';
CREATE TABLE instalment (charge TEXT NOT NULL REFERENCES charge (id), place INTEGER NOT NULL, body BLOB NOT NULL,
    chain TEXT NOT NULL, seq INTEGER NOT NULL, coding TEXT NOT NULL,
    UNIQUE (charge, place), UNIQUE (chain, seq)) STRICT;
ALTER TABLE answer ADD COLUMN coding TEXT NOT NULL DEFAULT '';
{FAILED_INDEX} {WENT_ON_INDEX}
"""
_OLD = ("journal", "account", "charge", "answer")


def create(connection: apsw.Connection) -> None:
    """Creates an empty ledger atomically."""
    connection.execute(f"BEGIN; {_TABLES} PRAGMA application_id = {APPLICATION}")
    connection.execute("INSERT INTO meta VALUES ('identity', ?)", (token(),))
    upgrade(connection, 2)
    connection.execute("COMMIT")


def upgrade(connection: apsw.Connection, version: int) -> None:
    """Upgrades an older format inside the caller's transaction; nothing is lost.

    Raises:
        LookupError: there never was such a format.
    """
    for version_before in range(version, FORMAT):
        _STEPS[version_before](connection)
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def _from_2(connection: apsw.Connection) -> None:
    """Format 2 to format 3."""
    connection.execute(_PARTS)


def _from_3(connection: apsw.Connection) -> None:
    """Format 3 to format 4."""
    _fold_names(connection)
    # last, since it binds the accounts as they are after the other steps
    _bind(connection)


def _from_4(connection: apsw.Connection) -> None:
    """Format 4 to format 5."""
    connection.execute(_INSTALMENTS)


def _fold_names(connection: apsw.Connection) -> None:
    """Fills the column ``folded``, by which accounts are found regardless of how names are spelled."""
    connection.execute("ALTER TABLE account ADD COLUMN folded TEXT NOT NULL DEFAULT ''")
    for (account_id,) in list(connection.execute("SELECT id FROM account")):
        connection.execute(
            "UPDATE account SET folded = ? WHERE id = ?", (folded(account_id), account_id)
        )
    connection.execute("CREATE INDEX account_folded ON account (folded)")


def _bind(connection: apsw.Connection) -> None:
    """Binds each account and each answer to an entry of its chain."""
    connection.execute(_BINDING + FAILED_INDEX)
    for seq, body in connection.execute(
        "SELECT seq, body FROM journal WHERE kind IN ('commit', 'share')"
    ):
        connection.execute(
            "UPDATE answer SET seq = ? WHERE charge = ?", (seq, json.loads(body)["charge"])
        )
    accounts = map(AccountRow._make, connection.execute(f"{ACCOUNTS} ORDER BY id").fetchall())
    for entry, after in binding_entries(accounts):
        connection.execute("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?)", entry)
        connection.executemany(PUT_ACCOUNT, after)


def _from_1(connection: apsw.Connection) -> None:
    """Format 1 to format 2."""
    for name in _OLD:
        connection.execute(f"ALTER TABLE {name} RENAME TO old_{name}")
    connection.execute("DROP INDEX charge_state; DROP INDEX answer_statement")
    connection.execute(_TABLES)
    connection.execute("INSERT INTO meta VALUES ('identity', ?)", (token(),))
    connection.execute("INSERT INTO journal SELECT ?, * FROM old_journal ORDER BY seq", (LEGACY,))
    entries = connection.execute("SELECT * FROM journal ORDER BY seq DESC LIMIT 1")
    last = [Entry(*row) for row in entries]
    opened = _opening_entries(connection)
    paid = _charges(connection, opened)
    for dataset, contract, gates, spent in list(
        connection.execute("SELECT * FROM old_account ORDER BY dataset")
    ):
        _account(connection, last[0], (dataset, contract, gates, spent), paid.get(dataset, []))
    connection.execute(
        "INSERT INTO answer SELECT question, statement, '', charge, body FROM old_answer ORDER BY "
        "rowid"
    )
    for name in ("answer", "charge", "account", "journal"):
        connection.execute(f"DROP TABLE old_{name}")


def _opening_entries(connection: apsw.Connection) -> dict[str, int]:
    """The entry that reserved each charge."""
    reserved = connection.execute("SELECT seq, body FROM journal WHERE kind = 'reserve'")
    return {json.loads(body)["charge"]: seq for seq, body in reserved}


def _charges(
    connection: apsw.Connection, opened: dict[str, int]
) -> dict[str, list[tuple[str, str, Charge]]]:
    """Converts the charges; returns each analyst's states and costs, by dataset."""
    paid: dict[str, list[tuple[str, str, Charge]]] = {}
    rows = connection.execute(
        "SELECT id, dataset, analyst, state, question, statement, cost, reason, acknowledged FROM "
        "old_charge "
        "ORDER BY rowid"
    )
    for charge, dataset, analyst, state, question, statement, cost, reason, acknowledged in list(
        rows
    ):
        scope = Scope(dataset, UNSTATED, analyst)
        connection.execute(
            "INSERT INTO charge VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', ?, '', ?, 0, ?)",
            (
                *(charge, LEGACY, opened[charge], scope.root, scope.id, analyst, state),
                *(question, statement, cost, reason, acknowledged),
            ),
        )
        paid.setdefault(dataset, []).append((scope.id, state, charge_from_json(json.loads(cost))))
    return paid


def _account(
    connection: apsw.Connection,
    last: Entry,
    old: tuple[Any, ...],
    paid: Iterable[tuple[str, str, Charge]],
) -> None:
    """Creates a dataset's account, those of its analysts, and the first entry of its own chain."""
    dataset, contract, gates, spent = old
    root = Scope(dataset).id
    form = json.loads(contract)
    limit = canonical_json({"epsilon": form["epsilon"], "delta": form["delta"]})
    body: dict[str, Json] = {"continues": last.seq, "head": last.hash}
    entry = chained(root, 1, last.at, "continue", body, genesis(root))
    connection.execute("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?)", _cells(entry))
    insert = "INSERT INTO account VALUES (?, ?, ?, ?, ?, ?, ?, '', ?, '[]', ?, ?)"
    for account, (done, held) in _sums(root, paid).items():
        parent, reserved = Scope.of(account).parent, held_text(held)
        if account == root:
            # what the old row said is kept even if it is wrong, so that verify still finds it
            owned = (contract, limit, gates, spent, reserved, "{}", 1, entry.hash)
        else:
            owned = ("", "", "", charge_text(done), reserved, "", 0, "")
        connection.execute(insert, (account, parent, *owned))


def _sums(root: str, paid: Iterable[tuple[str, str, Charge]]) -> dict[str, tuple[Charge, Held]]:
    """The spent and the reserved sum of a dataset's account and of those below it that paid."""
    sums: dict[str, tuple[Charge, Held]] = {root: (NOTHING, Held())}
    for account, state, cost in paid:
        for account_id in Scope.of(account).lineage:
            spent, reserved = sums.get(account_id, (NOTHING, Held()))
            if state in (COMMITTED, FORFEITED):
                spent = spent + cost
            elif state != VOIDED:
                reserved = reserved.plus(cost)
            sums[account_id] = (spent, reserved)
    return sums


def _cells(entry: Entry) -> tuple[str | int, ...]:
    return entry.chain, entry.seq, entry.at, entry.kind, entry.body, entry.previous, entry.hash


# by format, the step to the next one; a new ledger takes those after format 2
_STEPS: dict[int, Callable[[apsw.Connection], None]] = {
    1: _from_1,
    2: _from_2,
    3: _from_3,
    4: _from_4,
}
