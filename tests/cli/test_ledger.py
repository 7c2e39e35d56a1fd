# SPDX-License-Identifier: Apache-2.0
"""``sfumato ledger``: verify and thaw."""

import apsw

from tests.contracts.shell import COUNT, Shell


def test_a_sound_ledger_verifies(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    ran = shell.run("ledger", "verify")
    assert ran.code == 0
    assert ran.out.startswith("4 entries, 1 charges, head ")
    assert "sound: the chain is whole" in ran.out


def test_a_tampered_ledger_is_a_failure_that_names_what_is_wrong(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    connection = apsw.Connection(str(shell.folder / "ledger.db"))
    connection.execute("""UPDATE account SET spent = replace(spent, '"epsilon":"1', '"epsilon":"0')""")
    connection.close()
    ran = shell.run("ledger", "verify")
    assert ran.code == 3
    assert ran.err.startswith("LedgerCorrupt: The ledger does not say what happened:\naccount 'shop' is not the sum")


def test_a_ledger_that_is_not_there_is_not_made(shell: Shell) -> None:
    for name in ("verify", "thaw"):
        ran = shell.run("ledger", name)
        assert (ran.code, ran.err.split(":")[0]) == (3, "LedgerUnavailable")
    assert not (shell.folder / "ledger.db").exists()


def test_thaw_counts_what_it_acknowledges(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    assert shell.run("ledger", "thaw").out == "0 failures acknowledged\n"
    connection = apsw.Connection(str(shell.folder / "ledger.db"))
    connection.execute("UPDATE charge SET state = 'forfeited', reason = 'engine'")
    connection.close()
    assert shell.run("ledger", "thaw").out == "1 failures acknowledged\n"
