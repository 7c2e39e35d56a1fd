# SPDX-License-Identifier: Apache-2.0
"""``sfumato ledger export|import|migrate|report``."""

import shutil
import stat
import time
from pathlib import Path

import psycopg
import pytest

from tests.contracts.other_process import held
from tests.contracts.shell import COUNT, Shell

OLD = Path(__file__).parents[1] / "ledger" / "data" / "format-1.sqlite"


@pytest.fixture
def asked(shell: Shell) -> Shell:
    """A folder whose ledger has one answer, and an export of it."""
    shell.run("query", COUNT, "--epsilon", "1")
    assert shell.run("ledger", "export", "--output", "out.jsonl").out.startswith(
        "7 lines, signed by "
    )
    return shell


def test_an_export_read_in_elsewhere_answers_the_same(asked: Shell) -> None:
    before = asked.run("query", COUNT, "--epsilon", "1", "--format", "json").out
    asked.configure('ledger = "ledger.db"', 'ledger = "other.db"')
    assert asked.run("ledger", "import", "out.jsonl").out == "4 entries, verified\n"
    assert asked.run("query", COUNT, "--epsilon", "1", "--format", "json").out == before
    assert asked.run("ledger", "verify").code == 0


def test_an_export_is_for_its_owner_alone(asked: Shell) -> None:
    assert stat.S_IMODE((asked.folder / "out.jsonl").stat().st_mode) == 0o600


def test_an_edited_export_is_refused_and_no_fresh_budget_is_left(asked: Shell) -> None:
    text = (asked.folder / "out.jsonl").read_text()
    asked.write("out.jsonl", text.replace("1000000000000", "1000000000001"))
    asked.configure('ledger = "ledger.db"', 'ledger = "other.db"')
    ran = asked.run("ledger", "import", "out.jsonl")
    assert (ran.code, ran.err.split(":")[0]) == (3, "LedgerCorrupt")
    assert not (asked.folder / "other.db").exists()


def test_a_ledger_that_holds_something_takes_no_import(asked: Shell) -> None:
    ran = asked.run("ledger", "import", "out.jsonl")
    assert (ran.code, "is not empty" in ran.err) == (2, True)
    assert asked.run("ledger", "verify").code == 0


def test_what_is_not_there_is_not_imported(asked: Shell) -> None:
    assert asked.run("ledger", "import", "none.jsonl").code == 2
    assert asked.run("ledger", "import", "people.csv").code == 2


def test_an_export_needs_its_folder(asked: Shell) -> None:
    assert asked.run("ledger", "export", "--output", "nowhere/out.jsonl").code == 2


def test_a_truncated_export_is_refused_and_no_fresh_budget_is_left(asked: Shell) -> None:
    lines = (asked.folder / "out.jsonl").read_text().splitlines(keepends=True)
    asked.write("out.jsonl", "".join(lines[:-1]))
    asked.configure('ledger = "ledger.db"', 'ledger = "other.db"')
    ran = asked.run("ledger", "import", "out.jsonl")
    assert (ran.code, "has no closing line" in ran.err) == (3, True)
    assert not (asked.folder / "other.db").exists()


def test_an_import_is_compared_with_a_head_that_was_kept(asked: Shell) -> None:
    asked.run("query", COUNT, "--epsilon", "2")
    assert asked.run("ledger", "head", "--output", "kept.head").code == 0
    asked.configure('ledger = "ledger.db"', 'ledger = "other.db"')
    ran = asked.run("ledger", "import", "out.jsonl", "--head", "kept.head")
    assert (ran.code, "this is an older copy" in ran.err) == (3, True)


def test_migrate_moves_to_another_place_and_leaves_nothing_that_charges(asked: Shell) -> None:
    before = asked.run("query", COUNT, "--epsilon", "1", "--format", "json").out
    ran = asked.run("ledger", "migrate", "--to", "copy.db")
    assert (
        "7 entries moved and verified to 'copy.db'; name that as ledger in sfumato.toml" in ran.out
    )
    ran = asked.run("query", COUNT, "--epsilon", "0.5")
    assert (ran.code, "LedgerMoved" in ran.err) == (3, True)
    assert asked.run("ledger", "verify").code == 0
    asked.configure('ledger = "ledger.db"', 'ledger = "copy.db"')
    assert asked.run("ledger", "verify").code == 0
    assert asked.run("query", COUNT, "--epsilon", "1", "--format", "json").out == before


def test_recover_freezes_until_the_owner_has_decided(asked: Shell) -> None:
    old = (asked.folder / "ledger.db").read_bytes()
    asked.run("query", COUNT, "--epsilon", "2")
    asked.write("ledger.db", "")
    (asked.folder / "ledger.db").write_bytes(old)
    ran = asked.run("query", COUNT, "--epsilon", "3")
    assert (ran.code, "sfumato ledger recover --accept-loss" in ran.err) == (3, True)
    assert asked.run("ledger", "recover", "--reason", "the disk died").code == 2
    ran = asked.run("ledger", "recover", "--accept-loss", "--reason", "the disk died")
    assert (ran.code, "forgets what was spent" in ran.out) == (0, True)
    assert "is frozen" in asked.run("query", COUNT, "--epsilon", "3").err
    assert asked.run("ledger", "thaw").code == 0
    assert asked.run("query", COUNT, "--epsilon", "3").code == 0
    assert "recover" in asked.run("ledger", "log").out


def test_an_older_copy_of_the_folder_is_not_exported(asked: Shell) -> None:
    """It is refused as old; imported under another identity, it would charge again."""
    old = {path.name: path.read_bytes() for path in asked.folder.glob("ledger.db*")}
    asked.run("query", COUNT, "--epsilon", "2")
    assert asked.run("ledger", "export", "--output", "new.jsonl").code == 0
    for name, content in old.items():
        (asked.folder / name).write_bytes(content)
    ran = asked.run("ledger", "export", "--output", "old.jsonl")
    assert (ran.code, "this user charged on this machine" in ran.err) == (3, True)
    assert not (asked.folder / "old.jsonl").exists()


def test_an_older_file_behind_the_head_beside_it_is_not_exported(
    asked: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = (asked.folder / "ledger.db").read_bytes()
    asked.run("query", COUNT, "--epsilon", "2")
    (asked.folder / "ledger.db").write_bytes(old)
    # a user who remembers nothing
    monkeypatch.setenv("XDG_STATE_HOME", str(asked.folder / "somebody else"))
    ran = asked.run("ledger", "export", "--output", "old.jsonl")
    assert (ran.code, "forgets what was spent" in ran.err) == (3, True)


def test_tables_that_replaced_others_are_not_exported(asked: Shell, database: str) -> None:
    asked.configure('ledger = "ledger.db"', f'ledger = "{database}"')
    assert asked.run("query", COUNT, "--epsilon", "1").code == 0
    export = ("ledger", "export", "--output", "server.jsonl", "--key", "key")
    assert asked.run(*export).code == 0
    (asked.folder / "server.jsonl").unlink()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE sfumato.meta SET value = '1/1' WHERE name = 'tables'")
    ran = asked.run(*export)
    assert (ran.code, "a dump was restored" in ran.err) == (3, True)
    assert not (asked.folder / "server.jsonl").exists()


@pytest.mark.parametrize("place", ["ledger.db", "./ledger.db", "link.db", "hard.db"])
def test_migrate_to_the_ledger_itself_says_so(asked: Shell, place: str) -> None:
    (asked.folder / "link.db").symlink_to("ledger.db")
    (asked.folder / "hard.db").hardlink_to(asked.folder / "ledger.db")
    ran = asked.run("ledger", "migrate", "--to", place)
    assert (ran.code, ran.out) == (2, "")
    assert f"WrongUse: {place!r} is declared in 'sfumato.toml': it is the ledger." in ran.err
    (asked.folder / "hard.db").unlink()
    assert asked.run("ledger", "verify").code == 0


@pytest.mark.parametrize(
    "words",
    [("migrate", "--to", "copy.db"), ("recover", "--accept-loss", "--reason", "the disk died")],
)
def test_a_ledger_that_is_in_use_is_waited_for(asked: Shell, words: tuple[str, ...]) -> None:
    with held(asked.folder / "ledger.db") as other:
        start = time.monotonic()
        ran = asked.run("ledger", *words, "--wait", "0.3")
        assert (ran.code, f"is in use by process {other.pid}" in ran.err) == (3, True)
        assert time.monotonic() - start >= 0.3


def test_migrate_needs_the_folder_of_its_target(asked: Shell) -> None:
    ran = asked.run("ledger", "migrate", "--to", "nowhere/copy.db")
    assert (ran.code, "No folder for 'nowhere/copy.db'" in ran.err) == (2, True)


def test_migrate_brings_an_old_format_forward(shell: Shell) -> None:
    shutil.copy(OLD, shell.folder / "ledger.db")
    assert "has the newest format" in shell.run("ledger", "migrate").out
    ran = shell.run("ledger", "verify")
    assert ran.out.startswith("40 entries, 11 charges, head ")


@pytest.mark.parametrize(
    ("language", "says"), [("en", "What was told about"), ("zh", "发布了什么")]
)
def test_a_report_is_one_file_in_a_language(asked: Shell, language: str, says: str) -> None:
    assert (
        asked.run("ledger", "report", "--output", "r.html", "--language", language).out
        == "r.html\n"
    )
    html = (asked.folder / "r.html").read_text(encoding="utf-8")
    assert says in html
    assert COUNT in html


def test_a_report_in_another_language_is_wrong_use(asked: Shell) -> None:
    assert asked.run("ledger", "report", "--output", "r.html", "--language", "fr").code == 2


def test_the_report_is_in_the_language_of_the_shell(asked):
    asked.run("--language", "zh", "ledger", "report", "--output", "r.html")
    assert 'lang="zh' in (asked.folder / "r.html").read_text(encoding="utf-8")
