# SPDX-License-Identifier: Apache-2.0
"""Words by the nearest of public pictures: against plain Python, on neighbours, with a mutant."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import mining as mn
from sfumato.errors import InvalidDeclaration, WrongUse
from sfumato.mining import unit_keys
from sfumato.mining.prototypes import codes_of
from sfumato.mining.unit_keys import Key, KeyCounts, NearReading, Reading, UnitKeys
from sfumato.plan.show import form
from sfumato.privacy.distance import Norm
from tests.mining.notes import counted, differences, vector
from tests.mining.scans import NOTE, SCAN, plan, rows

PROTOTYPES = ((-3, -3), (0, 1), (3, 3))
NEAR = NearReading(plan(), (NOTE,), SCAN, prototypes=PROTOTYPES)
SCANS: list[list[int] | None] = [[-3, -2], [1, 1], [3, 2], [2, 2], None]
MINE = [(scan, "eye", note) for scan in SCANS for note in ("red eye", "left", None)]
OTHERS = [*rows("b", ([0, 0], "eye", "red left"), ([3, 3], "ear", "eye")), *rows("c", MINE[0])]


def nearest(scan: list[int] | None) -> int | None:
    if scan is None:
        return None
    away = [sum((x - y) ** 2 for x, y in zip(scan, each, strict=True)) for each in PROTOTYPES]
    return away.index(min(away))


def test_the_group_of_a_row_is_its_nearest_prototype() -> None:
    for scan in itertools.product(range(-3, 4), repeat=2):
        found = counted(UnitKeys(NEAR, 9), rows("a", (list(scan), "eye", "red")))
        assert found == {(nearest(list(scan)), "red"): 1}
    assert counted(UnitKeys(NEAR, 9), rows("a", (None, "eye", "red"))) == {(None, "red"): 1}


@pytest.mark.parametrize("keep", [1, 2])
def test_a_unit_moves_so_many_keys_each_by_one(keep: int) -> None:
    statistic = UnitKeys(NEAR, keep)
    keys = tuple(itertools.product((0, 1, 2, None), ("red", "eye")))
    public = KeyCounts(NEAR, keep, keys)
    base, exact = counted(statistic, OTHERS), vector(public, OTHERS)
    for size in (1, 2):
        for some in itertools.combinations(MINE, size):
            whole = [*rows("a", *some), *OTHERS]
            moved = differences(counted(statistic, whole), base)
            assert len(moved) <= keep and set(moved) <= {1}
            away = np.abs(np.array(vector(public, whole)) - exact).sum()
            assert away <= public.distance(Norm.L1).value


def alone_and_together() -> tuple[dict[Key, int], dict[Key, int]]:
    """The counts of each unit alone, added up, and of all of them."""
    units = [rows(str(who), each) for who, each in enumerate(MINE)]
    apart: dict[Key, int] = {}
    for unit in units:
        for key, n in counted(UnitKeys(NEAR, 1), unit).items():
            apart[key] = apart.get(key, 0) + n
    return apart, counted(UnitKeys(NEAR, 1), [row for unit in units for row in unit])


def test_a_prototype_that_other_people_change_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for cells in (1 << 22, 3):
        monkeypatch.setattr(unit_keys, "_CELLS", cells)
        apart, together = alone_and_together()
        assert apart == together

    def centred(reading: Any, place: int, data: Any, begin: int, end: int) -> Any:
        # pictures as floats around the mean of all that were read
        codes = data.codes[begin:end, :2].astype(float)
        known = (codes > -9).all(axis=1)
        around = codes - (codes[known].mean(axis=0) if known.any() else 0)
        away = ((around[:, None] - np.array(PROTOTYPES)) ** 2).sum(axis=2)
        return np.where(known, away.argmin(axis=1), unit_keys.MISSING)

    monkeypatch.setattr(NearReading, "codes_of", centred)
    apart, together = alone_and_together()
    assert apart != together


@pytest.mark.parametrize(
    ("by", "prototypes"), [(1, PROTOTYPES), (None, PROTOTYPES), (SCAN, ()), (SCAN, ((1, 2, 3),))]
)
def test_what_is_no_prototype_is_refused(by: int | None, prototypes: Any) -> None:
    with pytest.raises(InvalidDeclaration):
        NearReading(plan(), (NOTE,), by, prototypes=prototypes)
    with pytest.raises(InvalidDeclaration, match="too many steps"):
        NearReading(plan(), (NOTE,), SCAN, prototypes=((2**26, 0),))


def test_a_reading_without_prototypes_has_the_form_of_before() -> None:
    assert "prototypes" not in form(Reading(plan(), (NOTE,), 1))
    assert form(NEAR) != form(NearReading(plan(), (NOTE,), SCAN, prototypes=PROTOTYPES[:2]))


KIND = sf.Array((1, 2), 0, 10, step="0.5")


def test_vectors_become_codes_within_the_bounds() -> None:
    assert codes_of([[[1, 2.2]], [[-5, 99]]], KIND) == ((2, 4), (0, 20))
    for other in ([], [[1]], [[1, np.nan]], "red", 3, [[1, 2], [1]], [[1, 2]] * 1001):
        with pytest.raises(WrongUse, match="prototypes="):
            codes_of(other, KIND)


def test_words_by_nearest_picture_and_by_nearest_mean(tmp_path: Path) -> None:
    count = 3000
    made: dict[str, list[Any]] = {
        "note": ["red eye" if who % 2 else "left ear" for who in range(count)],
        "scan": [[9, 1] if who % 2 else [1, 8] for who in range(count)],
        "ward": ["eye" if who % 2 else "ear" for who in range(count)],
    }
    columns: dict[str, Any] = {
        "note": sf.Text(tokens=sf.Tokens()),
        "scan": KIND,
        "ward": sf.Category("eye", "ear", "nose"),
    }
    with sf.connect(
        {"t": sf.Table(pa.table(made), columns=columns)},
        dataset="scans",
        budget=sf.Budget(100, "1e-5"),
        ledger=tmp_path / "l.db",
    ) as session:
        statement = "SELECT note, scan, ward FROM t"
        means: Any = mn.mine(session, mn.Means("scan", by="ward"), statement, rho=1)
        cost: dict[str, Any] = {"rho": 1, "delta": "1e-7"}
        for prototypes in (means, [[10, 0], [0, 10]]):
            recipe = mn.Terms("note", by="scan", prototypes=prototypes)
            found: Any = mn.mine(session, recipe, statement, **cost)
            shown = {(row["scan"], row["term"]) for row in found.to_dicts()}
            assert shown == {(0, "red"), (0, "eye"), (1, "left"), (1, "ear")}
            assert abs(found.groups[0] - count / 2) < 100
            assert found.compare(0, 1).to_dicts()[0]["differs"]
        with pytest.raises(WrongUse, match="array"):
            mn.mine(session, mn.Terms("note", by="scan"), statement, **cost)
        with pytest.raises(WrongUse, match="without an array"):
            mn.mine(session, mn.Terms("note", by="ward", prototypes=means), statement, **cost)
