# SPDX-License-Identifier: Apache-2.0
"""``sfumato study``: previews, questions and models of a study, in the shell."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sfumato.cli.main import run
from tests.contracts.federation import NAMES, coordinating, serving, write_study

BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A study that runs."""
    found = tmp_path_factory.mktemp("study")
    path = write_study(found)
    (found / "models.toml").write_text(
        '[models.risk]\nrecipe = "Additive"\nsteps = 3\nlabel = "responded"\n'
        'data = "SELECT age, responded FROM patients"\n'
    )
    with coordinating(path), serving(path, *NAMES):
        yield found


def ran(
    folder: Path,
    capture: pytest.CaptureFixture[str],
    command: str,
    *arguments: str,
) -> tuple[int, str]:
    """The exit code and the output of a command of the analyst."""
    key = ("--key", str(folder / "analyst.pem"))
    code = run(["study", command, str(folder / "study.toml"), *arguments, *key])
    said = capture.readouterr()
    return code, said.out + said.err


def test_a_study_is_shown_with_what_was_heard(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = ran(folder, capsys, "check")
    assert code == 0 and "3 sites, 3 or more a step, 1 may collude" in said
    ends = time.monotonic() + 20
    while "anne: heard" not in said and time.monotonic() < ends:
        # a site that has just begun is not heard yet
        time.sleep(0.05)
        _, said = ran(folder, capsys, "check")
    assert "anne: heard" in said


def test_a_question_is_previewed_and_asked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = ran(folder, capsys, "preview", BY_SEX, "--rho", "0.1")
    assert code == 0 and "would cost each site rho" in said
    code, said = ran(folder, capsys, "query", BY_SEX, "--rho", "0.1", "--format", "json")
    assert code == 0 and [row[0] for row in json.loads(said)["rows"]] == ["F", "M"]


def test_a_model_of_a_file_is_fitted_and_saved(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = ("--models", str(folder / "models.toml"))
    saved = folder / "risk.json"
    code, said = ran(folder, capsys, "fit", "risk", *models, "--rho", "0.01", "-o", str(saved))
    assert code == 0 and "additive of age" in said and saved.exists()


def test_refusals_have_their_exit_codes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = ran(folder, capsys, "query", "SELECT MEDIAN(age) FROM patients", "--rho", "0.1")
    assert code == 1 and "UnsupportedSql" in said
    code, said = ran(folder, capsys, "query", BY_SEX, "--rho", "50")
    assert code == 2 and "at most about" in said
    code, said = ran(folder, capsys, "query", "SELECT SUM(age) AS s FROM patients", "--rho", "1.4")
    assert code == 1 and "StudyRefused" in said


def test_the_coordinator_listens_where_the_study_says(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[dict[str, Any]] = []
    server = SimpleNamespace(run=lambda app, **options: calls.append(options))
    monkeypatch.setitem(sys.modules, "uvicorn", server)
    study, rounds = folder / "study.toml", str(folder / "other rounds")
    assert run(["study", "serve", str(study), "--folder", rounds]) == 0
    assert calls[0]["host"] == "127.0.0.1" and f":{calls[0]['port']}" in study.read_text()
    assert "adding for trial" in capsys.readouterr().out
    secure = folder / "secure.toml"
    secure.write_text(study.read_text().replace("http://127.0.0.1", "https://sum.example"))
    assert run(["study", "serve", str(secure), "--folder", rounds]) == 2
    assert (
        run(["study", "serve", str(secure), "--folder", rounds, "--host", "::1", "--port", "1"])
        == 0
    )
    assert calls[1]["port"] == 1
