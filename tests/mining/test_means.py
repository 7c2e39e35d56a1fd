# SPDX-License-Identifier: Apache-2.0
"""Means of arrays by group and by term, against the means that were made."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import mining as mn
from sfumato.errors import (
    InvalidNumber,
    MissingDeclaration,
    SfumatoError,
    UnknownName,
    WrongUse,
)

ROWS = "SELECT scan, ward, note FROM notes"
# the mean pictures of eyes and of ears, 2 x 3
EYE, EAR = [9, 1, 5, 2, 8, 4], [2, 6, 5, 9, 1, 3]


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[sf.Session]:
    """A session over 6,000 scans: of every three, one is of an ear; a tenth have no ward."""
    rng = np.random.default_rng(5)
    made: dict[str, list[Any]] = {"who": [], "scan": [], "ward": [], "note": []}
    for who in range(6000):
        is_ear = who % 3 == 0
        scan = np.array(EAR if is_ear else EYE) + rng.integers(-1, 2, 6)
        made["who"].append(who)
        made["scan"].append(scan.tolist())
        made["ward"].append(None if who % 10 == 9 else "ear" if is_ear else "eye")
        made["note"].append("left ear" if is_ear else "the red eye, eye")
    columns = {
        "scan": sf.Array((2, 3), 0, 10),
        "ward": sf.Category("eye", "ear"),
        "note": sf.Text(tokens=sf.Tokens()),
    }
    table = sf.Table(pa.table(made), unit=sf.Unit("who", max_rows_total=1), columns=columns)
    with sf.connect(
        {"notes": table}, dataset="c", budget=sf.Budget(99, "1e-3"), ledger=tmp_path / "l.db"
    ) as opened:
        yield opened


def test_means_of_groups_are_those_that_were_made(clinic: sf.Session) -> None:
    recipe = mn.Means("scan", by="ward", length=20)
    found = mn.mine(clinic, recipe, ROWS, rho=5)
    assert found.columns == ("ward", "n", "low", "high", "error", "mean")
    assert isinstance(found, mn.FoundMeans) and list(found.counts) == ["eye", "ear", None]
    assert found["eye"].shape == (2, 3)
    for group, mean, people in (("eye", EYE, 3600), ("ear", EAR, 1800)):
        assert np.abs(found[group].reshape(-1) - mean).max() < 0.15
        assert abs(found.counts[group] - people) < 60
        assert 0 < found.error[group] < 0.2
        assert found.nearest(mean) == group
    again = mn.load(clinic, found.charge)
    assert again.recalled and again.to_dicts() == found.to_dicts()
    assert "6 numbers" in repr(found) and found.plot().svg.count("<image") == 3
    assert found.to_arrow().column("mean").to_pylist()[0] == found["eye"].reshape(-1).tolist()
    with pytest.raises(UnknownName):
        found["nose"]
    with pytest.raises(WrongUse):
        found.nearest([1, 2])


def test_terms_are_groups_of_the_rows_that_have_them(clinic: sf.Session) -> None:
    recipe = mn.Means("scan", by="note", only=["eye", "ear", "zebra"], length=20)
    found = mn.mine(clinic, recipe, ROWS, epsilon=8, delta="1e-6")
    assert np.abs(found["eye"].reshape(-1) - EYE).max() < 0.2
    assert np.abs(found["ear"].reshape(-1) - EAR).max() < 0.2
    assert abs(found.counts["zebra"]) < 60 and found.error["zebra"] > 2 * found.error["ear"]


def test_without_groups_there_is_one_mean(clinic: sf.Session) -> None:
    found = mn.mine(clinic, mn.Means("scan"), "SELECT scan FROM notes", rho=5)
    whole = (2 * np.array(EYE) + EAR) / 3
    assert np.abs(found["all"].reshape(-1) - whole).max() < 0.3
    assert len(found) == 1


def test_a_short_length_weighs_long_pictures_less_and_darkens_none(clinic: sf.Session) -> None:
    """Half of what the pictures of ears are long: sums are halved, and so is what divides them."""
    found = mn.mine(clinic, mn.Means("scan", by="ward", length=4), ROWS, rho=5)
    assert found.counts["ear"] < 1500
    assert np.abs(found["ear"].reshape(-1) - EAR).max() < 0.3


def test_a_preview_is_free(clinic: sf.Session) -> None:
    shown = mn.preview(clinic, mn.Means("scan", by="ward"), ROWS, rho=1)
    assert [name for name, *_ in shown.releases] == ["overall mean", "means"]
    assert "nothing was charged" in repr(shown)


def test_groups_without_people_are_the_overall_mean() -> None:
    facts: dict[str, Any] = {
        "title": "t", "by": None, "labels": ["all"], "origin": [4, 8], "sums": [[400, 400, 0]],
        "noise": {"law": "gaussian", "scale": "4"}, "weight": 8, "unit": "1/4", "ends": ["0", "9"],
        "shape": [2], "levels": [], "notes": [],
    }  # fmt: skip
    found = mn.FoundMeans(facts)
    assert found["all"].tolist() == [1, 2] and found.error["all"] == 1
    with pytest.raises(WrongUse):
        found.nearest([1, 2])
    assert found.plot().svg.count("<image") == 0
    # ten people, whose sums of offsets are 40 and 400 quarters: the second is clipped
    found = mn.FoundMeans(facts | {"sums": [[40, 400, 80]]})
    assert found["all"].tolist() == [2, 9] and found.counts == {"all": 10}


@pytest.mark.parametrize(
    ("recipe", "cost", "error"),
    [
        (lambda: mn.Means("ward"), {"rho": 1}, WrongUse),
        (lambda: mn.Means("scan", by="note"), {"rho": 1}, WrongUse),
        (lambda: mn.Means("scan", by="scan"), {"rho": 1}, WrongUse),
        (lambda: mn.Means("scan", by="ward", only=["eye"]), {"rho": 1}, WrongUse),
        (lambda: mn.Means("scan", by="note", only=["red eye"]), {"rho": 1}, WrongUse),
        (lambda: mn.Means("scan", by="note", only=["red", "red"]), {"rho": 1}, WrongUse),
        (lambda: mn.Means("scan", only=["red"]), {"rho": 1}, WrongUse),
        (lambda: mn.Means("scan", length=0), {"rho": 1}, InvalidNumber),
        (lambda: mn.Means("scan", length=10**12), {"rho": 1}, WrongUse),
        (lambda: mn.Means("scan"), {"epsilon": 1}, MissingDeclaration),
        (lambda: mn.Means("nothing"), {"rho": 1}, WrongUse),
    ],
)
def test_what_cannot_be_averaged_is_refused_free(
    clinic: sf.Session, recipe: Any, cost: Any, error: type[SfumatoError]
) -> None:
    with pytest.raises(error):
        mn.mine(clinic, recipe(), ROWS, **cost)
    assert "rho 0 of" in repr(clinic.budget)
