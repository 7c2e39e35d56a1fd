# SPDX-License-Identifier: Apache-2.0
"""``sfumato user``: people, whether the service runs or not."""

from pathlib import Path

import pytest

from sfumato.cli.main import run
from sfumato.service.opening import Directory, Service
from sfumato.service.settings import read_settings
from tests.contracts.clinic import written

PASSWORD = "correct horse"


def test_people_are_added_listed_and_disabled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(written(tmp_path))
    for name, more in (("olga", ["--owner"]), ("ian", ["--auditor"]), ("ann", [])):
        assert run(["user", "add", name, *more, "-c", path]) == 0
        assert "/setup/sfi_" in capsys.readouterr().out
    assert run(["user", "disable", "ann", "-c", path]) == 0
    assert run(["user", "list", "-c", path]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ann  analyst  disabled", "ian  auditor", "olga  owner",
    ]  # fmt: skip
    assert run(["user", "add", "ann", "-c", path]) == 2
    assert "given before" in capsys.readouterr().err
    assert run(["user", "add", "x", "--owner", "--auditor", "-c", path]) == 2


def test_it_works_beside_a_running_service(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path)
    with Service(read_settings(path)) as service:
        assert run(["user", "add", "ann", "-c", str(path)]) == 0
        secret = capsys.readouterr().out.split("/setup/")[1].split()[0]
        assert service.people.accept(secret, PASSWORD).name == "ann"


def test_a_password_comes_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, file = str(written(tmp_path)), tmp_path / "password"
    file.write_text(f"{PASSWORD}\n", encoding="utf-8")
    assert run(["user", "add", "ann", "--password-file", str(file), "-c", path]) == 0
    with Directory(tmp_path / "service.db") as opened:
        assert opened.people.sign_in("ann", PASSWORD, "here").name == "ann"
    file.write_text("another horse", encoding="utf-8")
    assert run(["user", "password", "ann", "--password-file", str(file), "-c", path]) == 0
    assert run(["user", "reset", "ann", "-c", path]) == 0
    # one that is too short adds nobody
    file.write_text("short", encoding="utf-8")
    assert run(["user", "add", "bob", "--password-file", str(file), "-c", path]) == 2
    with Directory(tmp_path / "service.db") as opened:
        assert opened.people.find("bob") is None
    capsys.readouterr()
