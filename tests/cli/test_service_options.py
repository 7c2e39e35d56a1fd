# SPDX-License-Identifier: Apache-2.0
"""Passwords at the shell: from a file or a terminal, never from an argument."""

from pathlib import Path

import pytest

from sfumato.cli import service_options
from sfumato.cli.service_options import read_password
from sfumato.errors import WrongUse


def test_a_file_has_a_password_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("correct horse\n", encoding="utf-8")
    assert read_password(str(tmp_path / "file")) == "correct horse"
    with pytest.raises(WrongUse):
        read_password(str(tmp_path / "nowhere"))


def test_a_terminal_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_options.getpass, "getpass", lambda: "correct horse")
    with pytest.raises(WrongUse, match="no terminal"):
        read_password(None)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert read_password(None) == "correct horse"
