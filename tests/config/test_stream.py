# SPDX-License-Identifier: Apache-2.0
"""The declaration of a stream: what is planned; the commands are in tests/cli/test_stream."""

from pathlib import Path

import pytest

from sfumato.config.load import read_declarations
from sfumato.config.stream import read_stream
from sfumato.errors import InvalidConfig, UnknownName
from sfumato.synopsis import stream_plan
from sfumato.synopsis.stream_plan import StreamPlan, Windows, plan_stream

FILE = """
dataset = "rides"
ledger = "ledger.db"
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
rho = 0.5
participations = 30
window = 7
"""


def planned(folder: Path, text: str, name: str = "daily") -> StreamPlan:
    path = folder / "sfumato.toml"
    path.write_text(text, encoding="utf-8")
    return read_stream(read_declarations(path).dataset, str(path), name)


def test_a_stream_is_planned_as_it_is_declared(tmp_path: Path) -> None:
    declared = planned(tmp_path, FILE)
    dataset = read_declarations(tmp_path / "sfumato.toml").dataset
    expected = plan_stream(
        dataset, "trips", time="day", by=["line"], horizon=30, rho="0.5", participations=30,
        wanted=Windows(7),
    )  # fmt: skip
    assert repr(declared) == repr(expected)


def test_a_stream_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_plan, "MOST_TICKS", 4096)
    text = FILE.replace("horizon = 30", 'horizon = "none"').replace("participations = 30", "")
    declared = planned(tmp_path, text)
    dataset = read_declarations(tmp_path / "sfumato.toml").dataset
    expected = plan_stream(
        dataset, "trips", time="day", by=["line"], horizon=None, rho="0.5", wanted=Windows(7)
    )
    assert repr(declared) == repr(expected)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('time = "day"', "", "streams.daily: time is missing."),
        ("window = 7", "windw = 7", "streams.daily: unknown key 'windw'."),
        ("window = 7", 'window = "x"', "streams.daily: window = 'x'."),
        ("rho = 0.5", 'rho = "much"', "streams.daily: rho = 'much'."),
    ],
)
def test_a_wrong_stream_is_named(tmp_path: Path, old: str, new: str, problem: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        planned(tmp_path, FILE.replace(old, new))
    assert refused.value.problem == problem


def test_an_unknown_stream_names_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="daily"):
        planned(tmp_path, FILE, "hourly")
