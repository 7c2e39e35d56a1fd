# SPDX-License-Identifier: Apache-2.0
"""The task of terms and paths: each level is a step of the event, and its parts were released."""

from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import mining as mn
from sfumato.accounting.account import account
from sfumato.errors import EngineFailed
from sfumato.mining.keys_task import KeysTask
from sfumato.mining.recipe import Asked, threshold
from sfumato.privacy.event import AdditiveNoise, Thresholded
from sfumato.query.pipeline import compile_rows
from sfumato.sql.row_list import row_list


def task(session: sf.Session, recipe: mn.Terms, delta: str | None = "1e-6") -> KeysTask:
    statement = "SELECT note, ward FROM notes"
    plan = compile_rows(row_list(statement, session.dataset), session.dataset)
    return recipe.planned(plan, Asked(None, 1, delta))


def test_levels_are_thresholds_and_groups_are_noise(session: sf.Session) -> None:
    planned = task(session, mn.Terms("note", by="ward", grams=3))
    kinds = [type(step) for step in planned.event.events]  # type: ignore[union-attr]
    assert kinds == [Thresholded] * 3 + [AdditiveNoise]
    assert planned.cells == (3,) and planned.line == "Terms of note by ward"
    declared = task(session, mn.Terms("note", only=["red"]), None)
    assert type(declared.event) is AdditiveNoise and declared.cells == (1,)
    assert planned.form != task(session, mn.Terms("note", by="ward", grams=2)).form


def test_each_level_is_made_of_the_keys_that_were_released_before(session: sf.Session) -> None:
    asked: list[Any] = []

    class Scripted:
        charge = "0" * 32

        def threshold(self, counted: Any, mechanism: Any) -> dict[Any, int]:
            asked.append(counted)
            return {(0, *("red" for _ in range(len(counted.parts) + 1))): 9}

        def measure(self, statistic: Any, mechanism: Any) -> Any:
            return np.full(len(statistic.keys), 100)

    planned = task(session, mn.Terms("note", by="ward", grams=3))
    planned.run(Scripted())  # type: ignore[arg-type]
    assert [counted.parts for counted in asked] == [
        (),
        (((0, "red"),),),
        (((0, "red"),), ((0, "red", "red"),)),
    ]


def test_a_person_has_no_more_keys_than_its_rows_can_hold(session: sf.Session) -> None:
    plan = compile_rows(row_list("SELECT ward, day FROM notes", session.dataset), session.dataset)
    planned = mn.Paths("ward", order="day").planned(plan, Asked(None, 1, "1e-6"))
    assert planned.keep == 2


def test_the_deltas_of_the_levels_add_up_to_the_stated_one(
    session: sf.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = task(session, mn.Terms("note", grams=3))
    assert 0.3e-6 < account(planned.event).delta <= 1e-6
    # the mutant: each level spends the whole delta
    whole = property(lambda self: threshold(self.keep, self._share(), "1e-6", sf.AddRemove))
    monkeypatch.setattr(KeysTask, "threshold", whole)
    assert account(planned.event).delta > 1e-6


def test_a_level_without_a_delta_in_the_event_releases_nothing(
    session: sf.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: two levels are read, and the event pays for one."""
    honest = KeysTask.event
    fewer = property(lambda self: honest.fget(self).events[0])  # type: ignore[attr-defined]
    monkeypatch.setattr(KeysTask, "event", fewer)
    with pytest.raises(EngineFailed):
        mn.mine(session, mn.Terms("note", grams=2), "SELECT note FROM notes", rho=1, delta="1e-6")
