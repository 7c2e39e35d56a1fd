# SPDX-License-Identifier: Apache-2.0
"""``sfumato stream``: planned free, opened once, advanced, shown, and refused with a remedy."""

import json
from pathlib import Path

import pytest

from sfumato.cli.main import run

FILE = """
dataset = "city"
ledger = "ledger.db"
[budget]
epsilon = "1000000"
delta = "1e-6"
[tables.trips]
source = "trips.csv"
unit = {column = "rider"}
columns.day = {type = "date", lower = "2026-11-01", upper = "2026-12-31"}
columns.line = {type = "category", values = ["A", "B"]}
[streams.daily]
table = "trips"
time = "day"
by = ["line"]
horizon = 30
rho = 20000
participations = 30
[streams.weekly]
table = "trips"
time = "day"
horizon = 30
rho = 1
window = 7
[streams.endless]
table = "trips"
time = "day"
horizon = "none"
epsilon = 1
[streams.sometime]
table = "trips"
time = "day"
horizon = "some day"
epsilon = 1
[streams.wrong]
table = "trips"
tables = "trips"
"""
LIMITS = "rows of a unit (rider) beyond 1 a tick and 30 ticks are left out; how many these are is private"
ROWS = ["p,2026-11-01,A", "q,2026-11-01,B", "p,2026-11-02,A", "r,2026-11-02,A"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sfumato.toml").write_text(FILE)
    (tmp_path / "trips.csv").write_text("\n".join(["rider,day,line", *ROWS]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_stream_is_planned_opened_advanced_and_shown(here, capsys):
    assert run(["stream", "plan", "weekly"]) == 0
    planned = capsys.readouterr().out
    assert "windows of 7 ticks over 30 ticks" in planned
    assert "rows of a unit (rider) beyond 1 a tick and 1 ticks are left out" in planned
    assert "rows = 1" in planned and "+- 10.583" in planned
    assert "left now    epsilon " in planned and "left after  " in planned
    assert run(["stream", "plan", "endless"]) == 0
    assert "2,097,152 ticks (no end known" in capsys.readouterr().out
    assert run(["stream", "advance", "daily", "2026-11-01"]) == 2
    assert "sfumato stream open daily" in capsys.readouterr().err
    assert run(["stream", "open", "daily"]) == 0
    opened = capsys.readouterr().out
    assert "0 of 30 ticks" in opened
    assert run(["stream", "advance", "daily", "2026-11-01"]) == 0
    assert run(["stream", "advance", "daily", "2026-11-02", "--format", "json"]) == 0
    out = capsys.readouterr().out
    advanced = json.loads(out[out.index("{\n") :])
    counts = {row["line"]: row["n"] for row in advanced["counts"]}
    assert advanced["limits"] == LIMITS
    assert [round(counts[line]) for line in ("A", "B", None)] == [3, 1, 0]
    for options in (["--window", "1"], ["--first", "2026-11-02", "--last", "2026-11-02"]):
        assert run(["stream", "show", "daily", *options, "--format", "json"]) == 0
        assert round(json.loads(capsys.readouterr().out)["counts"][0]["n"]) == 2
    assert run(["stream", "show", "daily", "--at", "2026-11-01", "--output", "all.csv"]) == 0
    assert len((here / "all.csv").read_text().splitlines()) == 1 + 2 * 3
    # opened again, it is free
    assert run(["stream", "open", "daily"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == opened.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (["plan", "hourly"], 1, "daily, weekly, endless, sometime, wrong"),
        (["plan", "sometime"], 2, "horizon='some day'"),
        (["plan", "wrong"], 2, "streams.wrong: unknown key 'tables'"),
        (["show", "daily"], 2, "is not open"),
        (["show", "daily", "--first", "2026-11-01"], 2, "Not one range"),
        (["open"], 2, "NAME"),
    ],
)
def test_what_is_wrong_is_refused(here, capsys, arguments, code, message):
    assert run(["stream", *arguments]) == code
    assert message in capsys.readouterr().err
