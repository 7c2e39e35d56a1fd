# SPDX-License-Identifier: Apache-2.0
"""Each kind that a file declares is run by its name, and a fit ends at a checkpoint when stopped."""

from pathlib import Path

import pytest

import sfumato as sf
from sfumato import learning
from sfumato.config.load import RUN_BY_NAME, load, read_declarations
from sfumato.config.released import Result
from sfumato.config.runs import KINDS
from sfumato.errors import Cancelled
from tests.contracts.clinic import RUNS, written


def test_every_kind_of_a_file_can_be_run(tmp_path: Path) -> None:
    path = written(tmp_path, RUNS)
    sections = read_declarations(path).sections
    assert set(sections) == set(KINDS) == set(RUN_BY_NAME)
    with load(path) as session:
        for section, (name,) in sections.items():
            run = KINDS[section](str(path), name, session)
            cost, text = run.preview(session)
            assert cost.epsilon == "0.1" and text
            # a file has costs only where it says so
            assert session.budget.spent == "0"


def test_a_fit_that_is_stopped_ends_at_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, stop = written(tmp_path, RUNS), sf.Stop()

    def fit(*_: object, progress: object, **__: object) -> None:
        assert callable(progress)
        progress(1, 3)
        stop.stop()
        progress(2, 3)
        raise AssertionError("it went on")

    monkeypatch.setattr("sfumato.config.runs.fit_model", fit)
    with load(path) as session:
        run = KINDS["models"](str(path), "sexes", session)
        with pytest.raises(Cancelled) as cancelled:
            run.measure(session, stop)
        assert cancelled.value.paid


def test_a_model_is_the_file_that_is_loaded(tmp_path: Path) -> None:
    path = written(tmp_path, RUNS)
    with load(path) as session:
        result = KINDS["models"](str(path), "sexes", session).measure(session, None)
    assert isinstance(result, Result)
    (tmp_path / "model.json").write_bytes(result.body)
    assert learning.load(tmp_path / "model.json").charge == result.charges[0]
