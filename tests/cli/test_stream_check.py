# SPDX-License-Identifier: Apache-2.0
"""``sfumato check --data`` of a stream: what its limits leave out, and which would not."""

import json
from pathlib import Path

import pytest

from sfumato.cli.main import run

FILE = """
dataset = "visits"
ledger = "l.db"
[budget]
epsilon = 5
delta = "1e-6"
[tables.v]
source = "v.csv"
unit = {column = "id"}
columns.day = {type = "date", lower = "2026-01-01", upper = "2026-01-30"}
[streams.s]
table = "v"
time = "day"
horizon = 3
rho = 1
participations = 2
rows = 2
separation = 1
"""
# p: 3 rows in the first ten days, 1 in the second, 2 in the third; q: one row
DAYS = ["p,2026-01-01", "p,2026-01-02", "p,2026-01-10", "p,2026-01-11", "p,2026-01-21"]
DAYS += ["p,2026-01-30", "q,2026-01-30"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sfumato.toml").write_text(FILE)
    (tmp_path / "v.csv").write_text("\n".join(["id,day", *DAYS]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_rows_beyond_the_limits_are_counted_and_limits_are_advised(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", "--data"]) == 0
    checked = capsys.readouterr().out
    # one row of the first ten days, and both of the third tick
    assert "stream s: participations=2 and rows=2 leave out 42.9% (3) of the rows" in checked
    assert "a tick is taken to be 10 days" in checked
    assert "participations = 3, rows = 3 would leave out none" in checked
    assert run(["check", "--data", "--json"]) == 0
    (stream,) = json.loads(capsys.readouterr().out)["streams"]
    assert stream == {
        "stream": "s",
        "tick": "10 days",
        "rows": 7,
        "left_out": 3,
        "advised": {"participations": 3, "rows": 3},
    }


def test_limits_that_leave_nothing_out_get_no_advice(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FILE.replace("participations = 2\nrows = 2", "participations = 3\nrows = 3")
    (folder / "sfumato.toml").write_text(text)
    assert run(["check", "--data"]) == 0
    checked = capsys.readouterr().out
    assert "participations=3 and rows=3 leave out none of the rows" in checked
    assert "would leave out" not in checked
