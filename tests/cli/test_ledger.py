# SPDX-License-Identifier: Apache-2.0
"""``sfumato ledger``: verify and thaw."""

import json
import shutil
from dataclasses import replace

import apsw
import pytest

from sfumato.ledger import Ledger
from tests.contracts.charges import pure
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
    connection.execute(
        """UPDATE account SET spent = replace(spent, '"epsilon":"1', '"epsilon":"0')"""
    )
    connection.close()
    ran = shell.run("ledger", "verify")
    assert ran.code == 3
    assert ran.err.startswith(
        "LedgerCorrupt: The ledger does not say what happened:\naccount 'shop' is not the sum"
    )


def test_a_ledger_that_is_not_there_is_not_made(shell: Shell) -> None:
    for name in ("verify", "thaw"):
        ran = shell.run("ledger", name)
        assert (ran.code, ran.err.split(":")[0]) == (3, "LedgerMissing")
    assert not (shell.folder / "ledger.db").exists()


def test_thaw_counts_what_it_acknowledges(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    assert shell.run("ledger", "thaw").out == "0 failures acknowledged\n"
    connection = apsw.Connection(str(shell.folder / "ledger.db"))
    connection.execute("UPDATE charge SET state = 'forfeited', reason = 'engine'")
    connection.close()
    assert shell.run("ledger", "thaw").out == "1 failures acknowledged\n"


def test_a_head_kept_elsewhere_is_checked(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    shutil.copy(shell.folder / "ledger.db", shell.folder / "old.db")
    shell.run("query", COUNT, "--epsilon", "2")
    ran = shell.run("ledger", "head", "--output", "kept.json")
    key = ran.out.split()[-1]
    ran = shell.run("ledger", "verify", "--head", "kept.json")
    assert (ran.code, f"signed by {key}" in ran.out) == (0, True)
    shell.configure('ledger = "ledger.db"', 'ledger = "old.db"')
    ran = shell.run("ledger", "verify", "--head", "kept.json")
    assert (ran.code, "this is an older copy" in ran.err) == (3, True)


def test_verify_says_what_outside_of_the_folder_was_compared(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    remembered, nothing = "that this user charged on this machine", "nothing outside its folder"
    said = shell.run("ledger", "verify").out
    assert remembered in said and nothing not in said
    shell.run("ledger", "head", "--output", "kept.json")
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/state")
    said = shell.run("ledger", "verify").out
    assert nothing in said and remembered not in said
    said = shell.run("ledger", "verify", "--head", "kept.json", "--known", "pins").out
    assert nothing not in said and remembered not in said


def test_a_folder_that_was_restored_as_a_whole_is_refused_until_it_is_recovered(
    shell: Shell,
) -> None:
    def copy(source: str, target: str) -> None:
        for end in ("", ".head", ".key"):
            shutil.copy(shell.folder / f"{source}{end}", shell.folder / f"{target}{end}")

    shell.run("query", COUNT, "--epsilon", "1")
    copy("ledger.db", "older.db")
    shell.run("query", COUNT, "--epsilon", "2")
    copy("older.db", "ledger.db")
    again = shell.run("query", COUNT, "--epsilon", "3")
    assert (again.code, "recover --accept-loss" in again.err) == (3, True)
    assert "which this user charged" in shell.run("ledger", "verify").err
    recovered = shell.run("ledger", "recover", "--accept-loss", "--reason", "the disk died")
    assert "missing: entry" in recovered.out
    assert "is frozen" in shell.run("query", COUNT, "--epsilon", "3").err
    shell.run("ledger", "thaw")
    assert shell.run("query", COUNT, "--epsilon", "3").code == 0


def test_the_ledger_and_its_key_are_pinned_at_first_use(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    key = shell.run("ledger", "head", "--output", "kept.json").out.split()[-1]
    first = shell.run("ledger", "verify", "--head", "kept.json")
    assert (first.code, "pinned in" in first.out, f"key {key}" in first.out) == (0, True, True)
    assert "pinned" not in shell.run("ledger", "verify", "--head", "kept.json").out
    strange = shell.run(
        "ledger", "head", "--output", "strange.json", "--key", "strange.key"
    ).out.split()[-1]
    ran = shell.run("ledger", "verify", "--head", "strange.json")
    assert (ran.code, f"not by the pinned key {key}" in ran.err) == (3, True)
    # the owner says that there is a new key
    assert shell.run("ledger", "verify", "--head", "strange.json", "--key", strange).code == 0
    assert shell.run("ledger", "verify", "--head", "kept.json").code == 3
    assert shell.run("ledger", "verify", "--head", "kept.json", "--key", "nonsense").code == 2


def test_what_was_verified_is_kept_and_only_what_came_since_is_read(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    ran = shell.run("ledger", "verify", "--state", "verified")
    assert (ran.code, "Give a head" in ran.err) == (2, True)
    shell.run("ledger", "head", "--output", "kept.json")
    first = shell.run("ledger", "verify", "--head", "kept.json", "--state", "verified")
    assert (first.code, "not read again" in first.out, first.err) == (0, False, "")
    shell.run("query", COUNT, "--epsilon", "2")
    for _ in range(2):
        later = shell.run("ledger", "verify", "--state", "verified")
        assert (later.code, later.out.split(",")[1]) == (0, " 2 charges")
        assert (
            "since the verification of verified; entries before it were not read again" in later.out
        )
    # a verify without it leaves it as it is
    assert shell.run("ledger", "verify", "--head", "kept.json").code == 0
    connection = apsw.Connection(str(shell.folder / "ledger.db"))
    connection.execute("UPDATE charge SET state = 'voided'")
    connection.close()
    assert shell.run("ledger", "verify", "--state", "verified").code == 0
    assert shell.run("ledger", "verify").code == 3


def test_a_forged_state_is_refused_and_without_it_all_is_read(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    shell.run("ledger", "head", "--output", "kept.json")
    (shell.folder / "verified").write_text("forged")
    ran = shell.run("ledger", "verify", "--head", "kept.json", "--state", "verified")
    assert (ran.code, "is not what the last verification kept" in ran.err) == (2, True)
    (shell.folder / "verified").unlink()
    assert shell.run("ledger", "verify", "--head", "kept.json", "--state", "verified").code == 0


def test_a_state_replaces_nothing_else(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    shell.run("ledger", "head", "--output", "kept.json")
    for state in ("kept.json", "ledger.db", "pins.json"):
        ran = shell.run(
            "ledger", "verify", "--head", "kept.json", "--known", "pins.json", "--state", state
        )
        assert ran.code == 2, state


def test_another_ledger_at_the_place_is_refused(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    shell.run("ledger", "head", "--output", "kept.json")
    assert shell.run("ledger", "verify", "--head", "kept.json").code == 0
    for each in shell.folder.glob("ledger.db*"):
        each.unlink()
    shell.run("query", COUNT, "--epsilon", "1")
    ran = shell.run("ledger", "verify")
    assert (ran.code, "lies another ledger" in ran.err) == (3, True)
    assert shell.run("ledger", "verify", "--known", "other.json").code == 0


def test_who_looks_changes_nothing(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    before = {each: each.read_bytes() for each in shell.folder.glob("ledger.db*")}
    for name in ("verify", "log", "accounts", "report"):
        options = ("--output", "page.html") if name == "report" else ()
        assert shell.run("ledger", name, *options).code == 0
    assert {each: each.read_bytes() for each in shell.folder.glob("ledger.db*")} == before


def test_accounts_of_an_older_copy_are_refused(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    shutil.copy(shell.folder / "ledger.db", shell.folder / "old.db")
    shell.run("query", COUNT, "--epsilon", "2")
    shutil.copy(shell.folder / "old.db", shell.folder / "ledger.db")
    for name in ("accounts", "verify"):
        ran = shell.run("ledger", name)
        assert (ran.code, "this is an older copy" in ran.err) == (3, True), name
    assert shell.run("ledger", "log").code == 0


def test_an_altered_head_is_refused(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    shell.run("ledger", "head", "--output", "kept.json")
    kept = shell.folder / "kept.json"
    kept.write_text(kept.read_text().replace("[\n        4", "[\n        3"))
    assert shell.run("ledger", "verify", "--head", "kept.json").err.startswith(
        "LedgerCorrupt: This is no head"
    )
    assert shell.run("ledger", "verify", "--head", "none.json").code == 2


def test_a_head_can_be_signed_with_a_key_of_another_place(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    first = shell.run("ledger", "head", "--output", "kept.json", "--key", "my.key").out
    assert shell.run("ledger", "head", "--output", "kept.json", "--key", "my.key").out == first
    assert shell.run("ledger", "head", "--output", "kept.json").out != first


def test_the_log_tells_every_act(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    lines = shell.run("ledger", "log").out.splitlines()
    assert [line.split()[2] for line in lines] == ["account", "reserve", "execute", "commit"]
    assert [
        line.split()[1] for line in shell.run("ledger", "log", "--last", "2").out.splitlines()
    ] == ["3", "4"]
    forms = [
        json.loads(line) for line in shell.run("ledger", "log", "--format", "json").out.splitlines()
    ]
    assert forms[1]["cost"] == {"epsilon": "1000000000000", "rho": "500000000000", "delta": "0"}


def test_the_log_tells_what_was_asked_and_how_far_instalments_are(shell: Shell) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    ledger = Ledger.open(shell.folder / "ledger.db")
    dataset = ledger.accounts()[0].scope.dataset
    charge = ledger.reserve(
        replace(pure("0.1", dataset=dataset), kind="stream", line="people, daily")
    )
    fence = ledger.start(charge, 9)
    ledger.begin(charge, 4, fence=fence)
    ledger.append(charge, 2, b"", fence=fence)
    ledger.close()
    opened, started, begun, appended = shell.run("ledger", "log", "--last", "4").out.splitlines()
    assert opened.endswith(f"{charge}  stream: people, daily  epsilon 0.1, by shop/unstated/owner")
    assert started.endswith(charge)
    assert (begun.split()[-3:], appended.split()[2:]) == (
        ["up", "to", "4"],
        ["append", charge, "2"],
    )


def test_help_lists_every_command_of_the_group(shell: Shell) -> None:
    listed = shell.run("ledger", "--help").out
    for name in (
        "verify",
        "head",
        "log",
        "accounts",
        "allocate",
        "freeze",
        "thaw",
        "export",
        "import",
        "migrate",
    ):
        assert f"  {name}" in listed
    assert shell.run("ledger", "nonsense").code == 2


def test_every_command_signs_with_the_key_that_the_file_names(shell: Shell) -> None:
    (shell.folder / "keys").mkdir()
    shell.configure("[budget]", 'ledger_key = "keys/heads.pem"\n[budget]')
    shell.run("query", COUNT, "--epsilon", "1")
    signed = {
        shell.run("ledger", "head", "--output", "one.head").out.split()[-1],
        shell.run("ledger", "backup", "copy").out.split()[-1],
        shell.run("ledger", "export", "--output", "out.jsonl").out.split()[-1],
        shell.run("ledger", "rotate-key", "--output", "handover").out.split()[-1],
    }
    assert len(signed) == 1
    assert shell.run("ledger", "head", "--output", "two.head").out.split()[-1] not in signed
    assert shell.run("ledger", "migrate", "--to", "other.db").code == 0
    assert [each.name for each in shell.folder.rglob("*.key")] == []


def test_no_output_replaces_the_key_that_the_file_names(shell: Shell) -> None:
    shell.configure("[budget]", 'ledger_key = "heads.pem"\n[budget]')
    shell.run("query", COUNT, "--epsilon", "1")
    before = (shell.folder / "heads.pem").read_bytes()
    ran = shell.run("ledger", "head", "--output", "heads.pem")
    assert (ran.code, "the ledger's key" in ran.err) == (2, True)
    assert (shell.folder / "heads.pem").read_bytes() == before
