# SPDX-License-Identifier: Apache-2.0
"""Attacks on mining and models of texts: a secret in a note, one person's basket, path, face and
note.
"""

import logging
import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato import mining as mn
from sfumato.learning import features
from sfumato.learning.examples import Targets
from sfumato.mechanisms.additive import gaussian, laplace
from sfumato.mechanisms.threshold import threshold_gaussian
from sfumato.mining import group_sums, unit_keys
from sfumato.mining.baskets import BasketCounts
from sfumato.mining.unit_keys import Reading, UnitKeys
from sfumato.privacy.distance import Norm
from sfumato.testing import assert_at_most
from tests.attacks.canaries import CANARY, sightings
from tests.learning import bags
from tests.mining import scans
from tests.mining.notes import counted, plan, rows, together, vector

ITEMS = tuple((0, word) for word in "abcde")
OTHERS = together(*(rows(f"other{place}", "a b", "c") for place in range(4)))
PERSON = rows("victim", "a b c d e")
DRAWS = 4000


def test_a_secret_five_hundred_times_in_a_note_is_seen_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Outputs, previews, objects, logs and all files beside the data: all recipes, and a model."""
    caplog.set_level(logging.DEBUG)
    notes = ["red eye"] * 400 + [f"red {CANARY} " * 500]
    frame = pa.table({"who": range(401), "note": notes, "day": [1] * 401, "scan": [[0, 1]] * 401})
    columns = {
        "note": sf.Text(tokens=sf.Tokens()), "day": sf.Integer(0, 9), "scan": sf.Array(2, 0, 1)
    }  # fmt: skip
    table = sf.Table(frame, unit=sf.Unit("who", max_rows_total=1), columns=columns)
    asked: Sequence[tuple[Any, str]] = (
        (mn.Terms("note", grams=3), "note"),
        (mn.Terms("note", only=["red"]), "note"),
        (mn.Itemsets(size=2), "note"),
        (mn.Paths("note", order="day"), "note, day"),
        (mn.Means("scan", by="note", only=["red"]), "note, scan"),
        (mn.Terms("note", by="scan", prototypes=[[0, 0], [1, 1]]), "note, scan"),
    )
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(99, "1e-3"), ledger=tmp_path / "l.db"
    ) as session:
        model = ln.fit(
            session, ln.LogisticRegression(steps=3), "SELECT note, day FROM t", label="day", rho=1
        )
        assert sightings(model, "model") == []
        model.save(tmp_path / "day.sfm")
        for recipe, names in asked:
            cost = {"rho": 1} if getattr(recipe, "only", None) else {"rho": 1, "delta": "1e-9"}
            found = mn.mine(session, recipe, f"SELECT {names} FROM t", **cost)
            planned = mn.preview(session, recipe, f"SELECT {names} FROM t", **cost)
            for thing, name in ((found, "found"), (planned, "preview")):
                assert sightings(thing, name) == []
            assert CANARY not in found.to_arrow().to_pandas().to_csv() + str(found.facts)
        assert "red" in repr(
            mn.mine(session, asked[0][0], "SELECT note FROM t", rho=1, delta="1e-9")
        )
    printed = capsys.readouterr()
    assert CANARY not in caplog.text + printed.out + printed.err
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or CANARY.encode() not in path.read_bytes()


def right_guesses(statistic: BasketCounts, epsilon: float) -> int:
    """How often the likelihood tells whether the person is there, of 2 DRAWS tries."""
    distance = statistic.distance(Norm.L1)
    noise = laplace(distance, epsilon).noise
    worlds = [np.array(vector(statistic, table)) for table in (OTHERS, [*PERSON, *OTHERS])]
    right = 0
    for there, exact in enumerate(worlds):
        for _ in range(DRAWS):
            seen = exact + noise.sample(len(exact))
            nearer = np.abs(seen - worlds[0]).sum() - np.abs(seen - worlds[1]).sum()
            right += int((nearer > 0) == bool(there))
    return right


def baskets(keep: int) -> BasketCounts:
    return BasketCounts(Reading(plan(), (0,)), keep, 99, 2, ITEMS, tuple(combinations(range(5), 2)))


@pytest.mark.parametrize("keep", [2, 4])
def test_a_basket_is_recognised_no_more_often_than_epsilon_says(keep: int) -> None:
    """At epsilon 1 nobody is right more often than e / (1 + e)."""
    most = math.e / (1 + math.e)
    assert_at_most(right_guesses(baskets(keep), 1), 2 * DRAWS, most, notices=0.9)


def test_a_basket_that_is_not_cut_would_be_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack works where the guarantee is broken."""
    honest = unit_keys._cut
    monkeypatch.setattr(
        unit_keys, "_cut", lambda unit, key, hashed, keep: honest(unit, key, hashed, 99)
    )
    assert right_guesses(baskets(2), 1) > 0.9 * 2 * DRAWS


def test_a_lone_path_is_shown_with_less_than_delta() -> None:
    """What one person alone did is in the exact counts once, and passes with at most delta."""
    table = together(*(rows(f"p{place}", ("", "eye", 1), ("", "ear", 2)) for place in range(3)))
    lone = rows("victim", ("", "ear", 1), ("", "eye", 2))
    known = (((0, 0), (0, 1)),)
    statistic = UnitKeys(Reading(plan(), (1,), None, 2), 2, known)
    exact = counted(statistic, [*table, *lone])
    assert exact == {(0, 0, 1): 3, (0, 1, 0): 1}
    delta = "1e-4"
    mechanism = threshold_gaussian(statistic.groups, 1, delta, sf.AddRemove)
    assert mechanism.shown(1).upper <= float(delta)
    shown = sum((0, 1, 0) in mechanism.release(exact) for _ in range(DRAWS))
    assert_at_most(shown, DRAWS, float(delta), notices=0.2)


FACE = scans.rows("victim", ([3, -3], "eye", "red"), ([3, -3], "ear", "red"))
FACES = [*scans.rows("b", ([1, 1], "eye", "red")), *scans.rows("c", ([-3, 2], "ear", "eye"))]


def recognised_faces() -> int:
    """How often the nearer of two sums tells whether a face is in them, of 2 DRAWS tries."""
    statistic = scans.statistic(scans.WARD)
    noise = gaussian(statistic.distance(Norm.L2), "0.5").noise
    worlds = [scans.sums(statistic, table) for table in (FACES, [*FACE, *FACES])]
    right = 0
    for there, exact in enumerate(worlds):
        seen = exact + noise.sample(DRAWS * len(exact)).reshape(DRAWS, -1)
        away = [((seen - world) ** 2).sum(axis=1) for world in worlds]
        right += int(((away[0] > away[1]) == bool(there)).sum())
    return right


def test_a_face_in_a_mean_is_recognised_no_more_often_than_rho_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At rho 1/2 sums differ by a standard deviation: nobody is right more often than Phi(1/2)."""
    most = (1 + math.erf(0.5 / math.sqrt(2))) / 2
    assert_at_most(recognised_faces(), 2 * DRAWS, most, notices=0.78)
    monkeypatch.setattr(group_sums, "clipped", lambda vectors, bound, norm, owners: 9 * vectors)
    assert recognised_faces() > 0.9 * 2 * DRAWS, "the attack works where nothing is cut"


NOTE = {"who": "a", "note": "eye 眼 red", "y": True, "more": "left"}


def recognised_notes() -> int:
    """How often the nearer of two sums of a model tells whether a note is in it, of 2 DRAWS."""
    statistic = bags.sums(Targets(), Norm.L2, 1, sf.AddRemove)
    noise = gaussian(statistic.distance(Norm.L2), "0.5").noise
    worlds = [bags.exact(statistic, table) for table in (bags.REST, [NOTE, *bags.REST])]
    right = 0
    for there, exact in enumerate(worlds):
        seen = exact + noise.sample(DRAWS * len(exact)).reshape(DRAWS, -1)
        away = [((seen - world) ** 2).sum(axis=1) for world in worlds]
        right += int(((away[0] > away[1]) == bool(there)).sum())
    return right


def test_a_note_in_a_text_model_is_recognised_no_more_often_than_rho_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At rho 1/2 sums differ by a standard deviation: nobody is right more often than Phi(1/2)."""
    most = (1 + math.erf(0.5 / math.sqrt(2))) / 2
    assert_at_most(recognised_notes(), 2 * DRAWS, most, notices=0.78)
    monkeypatch.setattr(features, "_weight", lambda count: 255)
    assert recognised_notes() > 0.9 * 2 * DRAWS, "the attack works where long texts weigh more"
