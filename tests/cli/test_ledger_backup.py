# SPDX-License-Identifier: Apache-2.0
"""``sfumato ledger backup|restore|accept-server``."""

import re

import psycopg
import pytest

from sfumato.ledger import Ledger
from tests.contracts.shell import COUNT, Shell


@pytest.fixture
def asked(shell: Shell) -> Shell:
    """A folder whose ledger has one answer."""
    assert shell.run("query", COUNT, "--epsilon", "1").code == 0
    return shell


def lost(shell: Shell) -> None:
    """The machine of the ledger is gone."""
    for path in shell.folder.glob("ledger.db*"):
        path.unlink()


def test_a_ledger_comes_back_from_a_backup_with_the_head_that_was_kept(asked: Shell) -> None:
    before = asked.run("query", COUNT, "--epsilon", "1", "--format", "json").out
    assert ": 5 entries, verified; head of " in asked.run("ledger", "backup", "copy").out
    assert asked.run("ledger", "head", "--output", "newest.head").code == 0
    lost(asked)
    ran = asked.run("ledger", "restore", "copy", "--head", "newest.head")
    assert ran.out == "restored and verified; it holds all that the heads know\n"
    assert asked.run("query", COUNT, "--epsilon", "1", "--format", "json").out == before
    assert asked.run("ledger", "verify", "--head", "newest.head").code == 0


def test_a_backup_is_made_while_the_ledger_is_in_use(asked: Shell) -> None:
    ledger = Ledger.open(asked.folder / "ledger.db")
    assert asked.run("ledger", "backup", "copy").code == 0
    assert ledger.balance("shop").spent.epsilon == 10**12
    ledger.close()


def test_an_older_backup_comes_back_frozen(asked: Shell) -> None:
    asked.run("ledger", "backup", "copy")
    asked.run("query", COUNT, "--epsilon", "2")
    asked.run("ledger", "head", "--output", "newest.head")
    lost(asked)
    for heads in ((), ("--head", "newest.head")):
        ran = asked.run("ledger", "restore", "copy", *heads)
        assert (ran.code, ran.err.split(":")[0]) == (3, "LedgerIncomplete")
    ran = asked.run("ledger", "restore", "copy", "--head", "newest.head", "--accept-loss")
    assert ran.out.startswith("lost: the chain of 'shop' ends before entry")
    assert "AccountFrozen" in asked.run("query", COUNT, "--epsilon", "3").err
    assert asked.run("ledger", "thaw").code == 0
    assert asked.run("query", COUNT, "--epsilon", "3").code == 0


def test_verify_says_of_a_backup_what_makes_a_ledger_of_it(asked: Shell) -> None:
    asked.run("ledger", "backup", "copy")
    declared = asked.folder / "sfumato.toml"
    declared.write_text(declared.read_text().replace("ledger.db", "copy"))
    found = asked.run("ledger", "verify")
    assert found.code == 3
    assert "it is a backup" in found.err
    assert "sfumato ledger restore" in found.err


def test_a_backup_goes_over_nothing_that_is_declared(asked: Shell) -> None:
    for target in ("people.csv", "ledger.db", "sfumato.toml", "nowhere/copy"):
        assert asked.run("ledger", "backup", target).code == 2
    assert asked.run("ledger", "restore", "copy").code == 2


def test_a_ledger_on_a_server_needs_a_key(asked: Shell, database: str) -> None:
    asked.configure('ledger = "ledger.db"', f'ledger = "{database}"')
    assert asked.run("query", COUNT, "--epsilon", "1").code == 0
    assert "--key" in asked.run("ledger", "backup", "copy").err
    assert asked.run("ledger", "backup", "copy", "--key", "key").code == 0
    assert (
        asked.run("ledger", "accept-server").out == "accepted; it holds all that the heads know\n"
    )


def test_a_ledger_in_a_file_has_no_server(asked: Shell) -> None:
    assert asked.run("ledger", "accept-server").code == 2


def test_a_new_key_is_followed_by_whoever_has_pinned_the_old_one(asked: Shell) -> None:
    known = ("--known", "known.json")
    asked.run("ledger", "head", "--output", "1.head")
    assert asked.run("ledger", "verify", "--head", "1.head", *known).code == 0
    assert asked.run("ledger", "rotate-key", "--output", "handover").code == 0
    asked.run("ledger", "head", "--output", "2.head")
    assert asked.run("ledger", "verify", "--head", "2.head", *known).code == 3
    assert asked.run("ledger", "follow-key", "handover", *known).code == 0
    assert asked.run("ledger", "verify", "--head", "2.head", *known).code == 0
    # a second time it is by a key that is pinned no more
    assert asked.run("ledger", "follow-key", "handover", *known).code == 3
    assert asked.run("ledger", "follow-key", "none", *known).code == 2
    assert asked.run("ledger", "follow-key", "handover", "--known", "new.json").code == 2


def test_a_restore_compares_with_the_declared_heads_and_replaces_them(asked: Shell) -> None:
    assert asked.run("ledger", "backup", "copy").code == 0
    (asked.folder / "heads").mkdir()
    asked.configure("[budget]", f'ledger_heads = ["file://{asked.folder}/heads/shop"]\n[budget]')
    assert asked.run("query", COUNT, "--epsilon", "2").code == 0
    for each in asked.folder.glob("ledger.db*"):
        each.unlink()
    refused = asked.run("ledger", "restore", "copy")
    assert (refused.code, "ends before entry" in refused.err) == (3, True)
    assert asked.run("ledger", "restore", "copy", "--accept-loss").code == 0
    # not refused for being behind its heads any more, but frozen
    assert asked.run("query", COUNT, "--epsilon", "3").err.startswith("AccountFrozen")
    assert asked.run("ledger", "thaw").code == 0
    assert asked.run("query", COUNT, "--epsilon", "3").code == 0


def test_a_server_that_was_set_back_is_accepted_against_the_declared_heads(
    asked: Shell, database: str
) -> None:
    asked.configure('ledger = "ledger.db"', f'ledger = "{database}"')
    (asked.folder / "heads").mkdir()
    asked.configure(
        "[budget]",
        f'ledger_key = "k"\nledger_heads = ["file://{asked.folder}/heads/shop"]\n[budget]',
    )
    assert asked.run("query", COUNT, "--epsilon", "2").code == 0
    ahead = (asked.folder / "heads" / "shop").read_text()
    with psycopg.connect(database, autocommit=True) as server:
        server.execute("DROP SCHEMA sfumato CASCADE")
    (asked.folder / "heads" / "shop").unlink()
    assert asked.run("query", COUNT, "--epsilon", "1").code == 0
    (asked.folder / "heads" / "shop").write_text(ahead)
    refused = asked.run("query", COUNT, "--epsilon", "3")
    assert (refused.code, "sfumato ledger accept-server --accept-loss" in refused.err) == (3, True)
    assert asked.run("ledger", "accept-server").code == 3
    assert asked.run("ledger", "accept-server", "--accept-loss").code == 0
    assert asked.run("query", COUNT, "--epsilon", "3").err.startswith("AccountFrozen")
    assert asked.run("ledger", "thaw").code == 0
    assert asked.run("query", COUNT, "--epsilon", "3").code == 0


def test_who_opens_a_backup_is_told_the_command_that_restores_it(asked: Shell) -> None:
    assert asked.run("ledger", "backup", "copy").code == 0
    asked.configure('ledger = "ledger.db"', 'ledger = "copy"')
    ran = asked.run("query", COUNT, "--epsilon", "3")
    (command,) = re.findall(r"sfumato (ledger restore \S+) --head FILE", ran.err)
    asked.configure('ledger = "copy"', 'ledger = "other.db"')
    assert asked.run(*command.split(), "--head", "copy.head").code == 0
    assert asked.run("query", COUNT, "--epsilon", "3").code == 0
