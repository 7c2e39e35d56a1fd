# SPDX-License-Identifier: Apache-2.0
"""Tuning through a session: what it costs, what it hides, and bad input."""

import traceback
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import BudgetExceeded, EngineFailed, WrongUse
from sfumato.learning.recipe import Asked
from sfumato.learning.tune import Candidate, _divide_cost
from sfumato.noise import NegativeBinomial
from sfumato.query.curator import Curator
from tests.learning.rows import SELECT, connected, frame

TREES = (ln.DecisionTree(depth=1, bins=4), ln.NaiveBayes(bins=4))
BOTH = (*TREES, ln.Additive(bins=4, steps=3, checkpoints=2))
LIMIT = sf.Budget(3, "1e-5")


def tuned(session: sf.Session, recipes: Any = TREES, **cost: Any) -> ln.Tuned:
    return ln.tune(session, recipes, SELECT, label="ill", **cost)


@pytest.mark.parametrize(
    ("recipes", "cost", "spent"),
    [
        (TREES, {"epsilon": 2}, ("2", "2", "0")),
        (BOTH, {"rho": "0.1"}, ("unbounded", None, "0")),
        (BOTH[1:], {"epsilon": 1, "delta": "1e-6", "runs": 4}, ("1", None, "0.000001")),
    ],
)
def test_a_tuning_is_one_charge_and_one_stored_answer(
    tmp_path: Path, recipes: Any, cost: dict[str, Any], spent: tuple[str, str | None, str]
) -> None:
    with connected(tmp_path, frame(3000), LIMIT) as session:
        found = tuned(session, recipes, **cost)
        again = tuned(session, recipes, **cost)
        report = session.verify()
    assert again.charge == found.charge and report.charges == 1 and report.problems == ()
    assert (found.cost.epsilon, found.cost.delta) == (spent[0], spent[2])
    assert spent[1] is None or found.cost.rho == spent[1]
    assert found.recipe is recipes[found.place]
    assert found.model.charge == found.charge and found.model.cost == found.cost
    assert len(found.model.predict({"age": [20], "city": ["west"], "pay": [3]})) == 1
    assert again.model.fingerprint == found.model.fingerprint
    assert repr(found).startswith(f"recipe {found.place} is the best")


def counting(
    monkeypatch: pytest.MonkeyPatch, runs: int, place: Callable[[int], int]
) -> list[tuple[int, int]]:
    """The places and scores of all runs; so many of them, the places chosen here."""
    seen: list[tuple[int, int]] = []
    plain = Candidate.outcome

    def outcome(self: Candidate, *rest: Any) -> tuple[int, bytes]:
        score, body = plain(self, *rest)
        seen.append((len(seen), score))
        return score, body

    monkeypatch.setattr(Candidate, "outcome", outcome)
    monkeypatch.setattr(NegativeBinomial, "sample_one", lambda self: runs)
    monkeypatch.setattr("sfumato.query.curator.below", lambda count, _: place(len(seen)) % count)
    return seen


def test_the_best_of_all_runs_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = counting(monkeypatch, 6, lambda run: run)
    with connected(tmp_path, frame(3000), LIMIT) as session:
        found = tuned(session, epsilon=2)
    # of equal scores that of the later recipe
    best, score = max(seen, key=lambda each: (each[1], each[0] % 2))
    assert len(seen) == 6 and found.right - found.wrong == score and found.place == best % 2


def test_neither_the_number_of_runs_nor_a_loser_is_in_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    entries = {}
    for runs in (1, 7):
        folder = tmp_path / str(runs)
        folder.mkdir()
        counting(monkeypatch, runs, lambda run: 0)
        with connected(folder, frame(500), LIMIT) as session:
            found = tuned(session, epsilon=2)
            entries[runs] = (session.verify().entries, str(session.budget), found.cost)
    assert entries[1] == entries[7] and not caplog.records


def test_a_run_that_fails_is_a_charge_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcome(self: Candidate, curator: Curator, *rest: Any) -> tuple[int, bytes]:
        raise RuntimeError("row 17 is a canary")

    monkeypatch.setattr(Candidate, "outcome", outcome)
    with connected(tmp_path, frame(100), LIMIT) as session:
        with pytest.raises(EngineFailed) as failure:
            tuned(session, epsilon=1)
        assert "canary" not in str(failure.value) and session.budget.spent == "1"


def losing(monkeypatch: pytest.MonkeyPatch, error: BaseException | type[Warning] | None) -> None:
    """Every run of a tree ends so, after it has released all."""
    plain = Candidate._scored

    def scored(self: Candidate, *rest: Any) -> tuple[int, bytes]:
        found = plain(self, *rest)
        is_tree = "Growth" in self.planned.form
        if is_tree and isinstance(error, BaseException):
            raise error
        if is_tree and error is not None:
            warnings.warn("a secret run", error, stacklevel=1)
            np.log(np.zeros(1))
        return found

    monkeypatch.setattr(Candidate, "_scored", scored)


@pytest.mark.parametrize(
    "error", [None, WrongUse("rows are mixed"), MemoryError(), LookupError("x"), UserWarning]
)
def test_a_losing_run_leaves_no_trace(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    error: Any,
) -> None:
    losing(monkeypatch, error)
    counting(monkeypatch, 3, lambda run: run)
    with connected(tmp_path, frame(500), LIMIT) as session:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            found = tuned(session, epsilon=2)
        report = session.verify()
    assert found.place == 1 or not isinstance(error, Exception)
    assert (report.charges, report.entries, report.problems) == (1, 4, ())
    assert not caplog.records and not warned and capfd.readouterr() == ("", "")
    assert len(list(tmp_path.iterdir())) == 4


def test_a_tuning_without_a_model_is_a_stored_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    losing(monkeypatch, WrongUse("rows are mixed by layer 3"))
    with connected(tmp_path, frame(100), LIMIT) as session:
        for _ in range(2):
            with pytest.raises(WrongUse, match="made no model: charge") as refused:
                tuned(session, TREES[:1], epsilon=1)
            assert "layer 3" not in str(refused.value) and session.budget.spent == "1"
        assert session.verify().problems == () and not caplog.records


def test_an_interrupt_says_nothing_of_the_run_that_it_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losing(monkeypatch, KeyboardInterrupt())
    with connected(tmp_path, frame(100), LIMIT) as session:
        with pytest.raises(KeyboardInterrupt) as interrupt:
            tuned(session, TREES[:1], epsilon=1)
        assert session.budget.spent == "1"
    frames = [frame.name for frame in traceback.extract_tb(interrupt.value.__traceback__)]
    assert frames[-1] == "_take" and not {"scored", "outcome", "_outcome"} & set(frames)


def test_what_cannot_be_tuned_is_refused_free(tmp_path: Path) -> None:
    with connected(tmp_path, frame(100), sf.Budget(1)) as session:
        for recipes in ((), "trees", [3], ln.NaiveBayes()):
            with pytest.raises(WrongUse, match="recipes="):
                tuned(session, recipes, epsilon=1)
        for wrong in ({"epsilon": 1, "runs": 1}, {}, {"epsilon": 1, "rho": 1}):
            with pytest.raises(WrongUse):
                tuned(session, **wrong)
        with pytest.raises(WrongUse, match="pure epsilon"):
            tuned(session, BOTH, epsilon=1)
        with pytest.raises(WrongUse, match="number"):
            ln.tune(session, TREES, SELECT, label="pay", epsilon=1)
        with pytest.raises(WrongUse, match="KMeans"):
            tuned(session, [ln.KMeans(2)], epsilon=1)
        with pytest.raises(BudgetExceeded):
            tuned(session, epsilon="1.1")
        assert session.budget.spent == "0"


def test_another_list_or_number_of_runs_is_another_answer(tmp_path: Path) -> None:
    with connected(tmp_path, frame(300), LIMIT) as session:
        charges = {
            tuned(session, epsilon="0.5").charge,
            tuned(session, TREES[::-1], epsilon="0.5").charge,
            tuned(session, epsilon="0.5", runs=5).charge,
        }
        assert len(charges) == 3 and Fraction(session.budget.spent) == Fraction(3, 2)


def test_a_score_has_an_eighth_of_a_run() -> None:
    fit, score = _divide_cost(Asked(epsilon="0.8"))
    assert (fit.epsilon, score.epsilon) == (Fraction(7, 10), Fraction(1, 10))
