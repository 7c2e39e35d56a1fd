# SPDX-License-Identifier: Apache-2.0
"""``sfumato report``: the documents in a folder, their answers and what is refused."""

import json

import pytest

from tests.contracts.shell import COUNT, Shell


@pytest.fixture
def asked(shell: Shell) -> Shell:
    """A folder whose ledger has one answer, and whose data nobody can read any more."""
    shell.configure('epsilon = "1000000"', 'epsilon = "2"')
    shell.run("query", COUNT, "--epsilon", "1", "--purpose", "teaching")
    (shell.folder / "people.csv").unlink()
    return shell


@pytest.mark.parametrize("kind", ["pipia", "dpia", "release"])
@pytest.mark.parametrize(("form", "begins"), [("html", "<!doctype"), ("md", "# "), ("json", "{")])
def test_a_document_needs_no_row(asked: Shell, kind: str, form: str, begins: str) -> None:
    ran = asked.run("report", kind, "-o", "out", "--format", form)
    assert ran.code == 0 and ran.out.startswith("out\nA row is the unit in people")
    assert (asked.folder / "out").read_text("utf-8").startswith(begins)


def test_nothing_is_charged(asked: Shell) -> None:
    before = asked.run("budget").out
    asked.run("report", "release", "-o", "out")
    assert asked.run("budget").out == before


def test_the_language_of_the_shell(asked: Shell) -> None:
    asked.run("--language", "zh", "report", "pipia", "-o", "out", "--answers", "a.toml")
    assert 'lang="zh' in (asked.folder / "out").read_text("utf-8")
    assert "属于第五十五条的哪种情形" in (asked.folder / "a.toml").read_text("utf-8")


def test_answers_are_written_once_and_then_read(asked: Shell) -> None:
    made = asked.run("report", "registry", "-o", "out.json", "--answers", "a.toml")
    assert made.out.startswith("out.json\na.toml\n")
    text = (asked.folder / "a.toml").read_text("utf-8")
    asked.write("a.toml", text.replace('\nname = ""', '\nname = "Shop"'))
    asked.run("report", "registry", "-o", "out.json", "--answers", "a.toml")
    record = json.loads((asked.folder / "out.json").read_text("utf-8"))
    assert record["deployment"]["basic"]["name"] == "Shop"
    assert 'name = "Shop"' in (asked.folder / "a.toml").read_text("utf-8")
    assert asked.run("report", "dpia", "-o", "out", "--answers", "a.toml").code == 2


def test_a_saved_audit(asked: Shell) -> None:
    saved = {"verdict": "VIOLATED", "pairs": 3, "forms": []}
    asked.write("audit.json", json.dumps(saved))
    ran = asked.run("report", "dpia", "-o", "out", "--audit", "audit.json")
    assert "The saved audit says VIOLATED." in ran.out
    assert asked.run("report", "dpia", "-o", "out", "--audit", "sfumato.toml").code == 2
    assert asked.run("report", "dpia", "-o", "out", "--audit", "nowhere.json").code == 2
    assert asked.run("report", "dpia", "-o", "audit.json", "--audit", "audit.json").code == 2
    assert json.loads((asked.folder / "audit.json").read_text()) == saved


@pytest.mark.parametrize("output", ["sfumato.toml", "ledger.db", "nowhere/out"])
def test_no_declared_file_is_overwritten(asked: Shell, output: str) -> None:
    assert asked.run("report", "pipia", "-o", output).code == 2
    assert asked.run("report", "pipia", "-o", "out", "--answers", output).code == 2


def test_the_registry_has_one_format(asked: Shell) -> None:
    assert asked.run("report", "registry", "-o", "out", "--format", "md").code == 2


def test_other_declarations_than_the_ledgers(asked: Shell) -> None:
    asked.configure("size = 40", "size = 40\npublic = true")
    ran = asked.run("report", "release", "-o", "out")
    assert ran.code != 0 and "ContractMismatch" in ran.err
    assert not (asked.folder / "out").exists()
