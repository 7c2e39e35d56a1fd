# SPDX-License-Identifier: Apache-2.0
"""A folder with a sfumato.toml, and commands run in it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from sfumato.cli.main import run

CONFIG = """\
dataset = "shop"
ledger = "ledger.db"
[budget]
epsilon = "1000000"
delta = "1e-6"
[tables.people]
source = "people.csv"
size = 40
columns.age = {type = "integer", lower = 0, upper = 99}
columns.sex = {type = "category", values = {F = "female", M = "male"}}
columns.born = {type = "date", lower = "1960-01-01", upper = "1960-01-03"}
columns.job = {type = "text"}
"""
COUNT = "SELECT COUNT(*) AS n FROM people"
BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command gave."""

    code: int
    out: str
    err: str


class Shell:
    """Commands in a folder of their own. No command may ever show a traceback."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capture = capture
        rows = [f"{20 + n // 2},{'FM'[n % 2]},1960-01-0{1 + n % 3},clerk" for n in range(40)]
        self.write("people.csv", "\n".join(["age,sex,born,job", *rows]))
        self.write("sfumato.toml", CONFIG)

    def write(self, name: str, text: str) -> Path:
        """A file of the folder."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def configure(self, old: str, new: str) -> None:
        """Edits the configuration."""
        path = self.folder / "sfumato.toml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    def run(self, *arguments: object) -> Ran:
        """One command line."""
        self._capture.readouterr()
        code = run([str(each) for each in arguments])
        out, err = self._capture.readouterr()
        assert "Traceback" not in out + err
        assert code in (0, 1, 2, 3)
        assert (code == 0) == (err == "")
        return Ran(code, out, err)


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    """A declared folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Shell(tmp_path, capsys)
