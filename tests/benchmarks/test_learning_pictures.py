# SPDX-License-Identifier: Apache-2.0
"""The rows of the digits of MNIST. Nothing is fitted."""

import json

import pytest

from benchmarks import learning_pictures
from benchmarks.learning_pictures import document, rows

FITS = [
    {"accuracy": right, "CPU s": 60.0, "wall s": wall, "peak GB": 2.0}
    for right, wall in ((97.4, 290.0), (97.6, 320.0))
]


def test_accuracy_has_a_bar_by_epsilon_and_time_has_one():
    told = {row.metric: row for row in rows("1", FITS)}
    assert told["accuracy"].bar == ">= 97.5" and told["accuracy"].holds
    assert told["wall s"].bar == "<= 300" and told["wall s"].holds is False
    assert told["CPU s"].bar is None and told["CPU s"].holds is None
    assert {row.runs for row in told.values()} == {2}
    above = {row.metric: row for row in rows("3", FITS)}
    assert above["accuracy"].bar == ">= 98.2" and above["accuracy"].holds is False


def test_results_are_json_with_a_line_for_each_row():
    text = document(list(rows("1", FITS)), {"cores": 2}, {"torch": "2"})
    stored = json.loads(text)
    assert stored["machine"] == {"cores": 2} and len(stored["rows"]) == 4
    assert stored["rows"][0]["ours"]["mean"] == 97.5


def test_without_the_pictures_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(learning_pictures, "mnist", lambda: None)
    learning_pictures.main([])
    assert "left out" in capsys.readouterr().out
