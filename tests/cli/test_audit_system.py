# SPDX-License-Identifier: Apache-2.0
"""``sfumato audit system``: tries declarations with made-up rows; reads and charges nothing."""

import importlib
import json

import pytest

from sfumato.audit import System
from tests.contracts.shell import BY_SEX, COUNT, Shell

COMMAND = importlib.import_module("sfumato.cli.audit_system")
FOUND = System(3, (COUNT,), (), 1, 1, (), ("neighbours: moved 2, claimed 1",))


@pytest.mark.long
def test_declarations_are_tried_and_nothing_is_read(shell: Shell) -> None:
    shell.write("mine.sql", f"{COUNT};\n{BY_SEX};\nSELECT * FROM people;\n")
    # no declared source is opened: there is none
    (shell.folder / "people.csv").unlink()
    arguments = ("audit", "system", "--statements", "mine.sql", "--rounds", "1")
    ran = shell.run(*arguments)
    assert ran.code == 0, ran.err
    assert "not refuted: 1 pairs" in ran.out and "not tried" in ran.out
    assert "duckdb, NOCASE values" in ran.out and not (shell.folder / "ledger.db").exists()
    form = json.loads(shell.run(*arguments, "--format", "json").out)
    assert list(form) == [
        "verdict",
        "seed",
        "statements",
        "refused",
        "steps",
        "pairs",
        "questions",
        "cells",
        "forms",
        "findings",
    ]
    assert form["verdict"] == "UNDECIDED" and form["findings"] == []


def test_a_finding_gives_exit_3(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(COMMAND, "system", lambda *given, **named: FOUND)
    ran = shell.run("audit", "system")
    assert ran.code == 3 and "moved 2, claimed 1" in ran.out and "seed 3" in ran.out


def test_statements_of_the_ledger_are_tried_too(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []

    def kept(dataset: object, statements: list[str], **named: object) -> System:
        given.extend(statements)
        return System(1, tuple(statements), (), 1, 1, (), ())

    monkeypatch.setattr(COMMAND, "system", kept)
    assert shell.run("audit", "system", "--asked").code == 3
    shell.run("query", BY_SEX, "--epsilon", "1")
    shell.write("mine.sql", COUNT)
    ran = shell.run("audit", "system", "--statements", "mine.sql", "--asked")
    assert ran.code == 0 and given == [COUNT, BY_SEX]


def test_a_ledger_without_statements_is_refused(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.run("query", COUNT, "--epsilon", "1")
    monkeypatch.setattr(COMMAND, "asked_statements", lambda *given: [])
    assert shell.run("audit", "system", "--asked").code == 2


@pytest.mark.parametrize("text", [None, " ;\n;"])
def test_a_file_without_statements_is_refused(shell: Shell, text: str | None) -> None:
    if text is not None:
        shell.write("mine.sql", text)
    assert shell.run("audit", "system", "--statements", "mine.sql").code == 2
