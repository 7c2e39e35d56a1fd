# SPDX-License-Identifier: Apache-2.0
"""``sfumato serve``: it checks, names the first start, and ends in order."""

from pathlib import Path
from typing import Any

import pytest

from sfumato.cli import serve as module
from sfumato.cli.main import run
from sfumato.service.people import Role
from tests.contracts.clinic import TOML, written


def test_check_opens_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    assert run(["serve", "--check", "-c", str(path)]) == 0
    assert "would serve clinic at http://127.0.0.1:8440" in capsys.readouterr().out
    assert not (tmp_path / "ledger.db").exists() and not (tmp_path / "service.db").exists()
    path.write_text(TOML.replace("[budget]", "[budget]\nclosed = false"), encoding="utf-8")
    assert run(["serve", "--check", "-c", str(path)]) == 2


def test_the_first_start_is_named_until_there_is_somebody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    people: list[str] = []

    def serve(service: Any, ready: Any) -> None:
        ready()
        people.extend(person.name for person in service.people.everybody())
        if not people:
            service.people.add("olga", Role.OWNER, by="test")

    monkeypatch.setattr(module, "serve", serve)
    path = written(tmp_path)
    assert run(["serve", "-c", str(path)]) == 0
    said = capsys.readouterr().out
    assert "serving clinic at" in said and "first start: http://127.0.0.1:8440/setup/sfi_" in said
    assert run(["serve", "-c", str(path)]) == 0
    assert "first start" not in capsys.readouterr().out and people == ["olga"]
