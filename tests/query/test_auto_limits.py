# SPDX-License-Identifier: Apache-2.0
"""Limits that are learnt privately: what is asked, what it costs, what comes out."""

import math
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import MissingDeclaration, WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.plan.relation import PerUnit
from sfumato.query.auto_limits import (
    SHARE,
    automatic,
    declared_groups,
    learnt_limit,
    units_needed,
    unused_name,
    with_limits,
)
from sfumato.query.price import Price
from sfumato.query.session import Session
from sfumato.sql.lower import understand

BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
ALL = "SELECT COUNT(*) AS n FROM visits"
# 2,000 patients: 1,960 with three visits in two wards, 40 with twenty in four
OWNERS = [f"p{n}" for n in range(1960) for _ in range(3)] + [
    f"q{n}" for n in range(40) for _ in range(20)
]
WARDS = ["a", "a", "b"] * 1960 + ["a", "b", "c", "d"] * 200
FRAME = pa.table({"patient": OWNERS, "ward": WARDS})


def declared(**limits: object) -> Dataset:
    """The visits under some limits."""
    unit = sf.Unit("patient", **limits)
    return Dataset(
        "d",
        {"visits": sf.Table(FRAME, unit=unit, columns={"ward": sf.Category("a", "b", "c", "d")})},
    )


def opened(folder: Path, **limits: object) -> Session:
    """A session over them."""
    return sf.connect(
        declared(**limits).tables,
        dataset="d",
        budget=sf.Budget(100, "1e-6"),
        ledger=folder / "l.db",
    )


def learns(sql: str, **limits: object) -> list[str]:
    """The limits that a question has to learn."""
    dataset = declared(**limits)
    return [name for name, _ in automatic(understand(sql, dataset), dataset)]


def test_only_what_the_question_needs_is_learnt() -> None:
    assert learns(BY_WARD, max_rows=sf.AUTO, max_groups=sf.AUTO) == ["max_rows", "max_groups"]
    assert learns(ALL, max_rows=sf.AUTO, max_groups=sf.AUTO) == ["max_rows"]
    assert (
        learns("SELECT COUNT(DISTINCT patient) FROM visits", max_rows=sf.AUTO, max_groups=sf.AUTO)
        == []
    )
    assert learns(BY_WARD, max_rows=3, max_groups=2) == []


def test_what_is_asked_has_one_row_a_unit() -> None:
    dataset = declared(max_rows=sf.AUTO, max_groups=sf.AUTO, max_rows_total=sf.AUTO)
    for _, question in automatic(understand(BY_WARD, dataset), dataset):
        assert isinstance(question.raw.relation, PerUnit)
        assert not question.raw.relation.keys
        assert not question.raw.keys


@pytest.mark.parametrize(
    ("place", "groups", "limit"),
    [(0, None, 1), (2, None, 4), (12, 7, 7), (-1, 3, 1), (99, None, 4096)],
)
def test_a_place_is_a_power_of_two(place: int, groups: int | None, limit: int) -> None:
    assert learnt_limit(Fraction(place), groups) == limit


def test_groups_are_counted_where_they_are_public() -> None:
    dataset = declared()
    assert declared_groups(understand(BY_WARD, dataset).raw) == 4
    assert declared_groups(understand(ALL, dataset).raw) == 1


def test_limits_that_are_learnt_replace_those_that_were_left_open() -> None:
    dataset = declared(max_rows=sf.AUTO, max_groups=3)
    unit = with_limits(dataset, "visits", {"max_rows": 8}).tables["visits"].unit
    assert unit is not None
    assert (unit.max_rows, unit.max_groups) == (8, 3)
    assert with_limits(dataset, "visits", {}).tables["visits"].unit == sf.Unit(
        "patient", max_groups=3
    )


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 2), Fraction(3)])
def test_so_many_units_teach_a_limit(epsilon: Fraction) -> None:
    def too_large(units: int) -> float:
        # all have one row: of 13 places 12 are too large, each preferred by exp(epsilon utility /
        # (2 sensitivity))
        weight = 12 * math.exp(float(epsilon) * -0.05 * units / (2 * 0.95))
        return weight / (1 + weight)

    enough = units_needed(Price(epsilon=epsilon))
    assert too_large(enough) < 0.01 < too_large(enough * 3 // 4)
    # the exponential mechanism costs epsilon^2 / 8
    assert abs(units_needed(Price(rho=epsilon**2 / 8)) - enough) <= 1


def test_a_question_of_an_open_limit_is_warned(tmp_path: Path) -> None:
    with opened(tmp_path, max_rows=sf.AUTO) as session:
        with pytest.raises(MissingDeclaration, match="fewer than about 2,695 units"):
            session.preview(ALL, epsilon=1)
        (note,) = session.query(ALL, epsilon=1).notes
        assert note.endswith("far too large where there are fewer than about 2,695 units.")


def test_a_question_learns_pays_and_says_so(tmp_path: Path) -> None:
    with opened(tmp_path, max_rows=sf.AUTO, max_groups=sf.AUTO) as session:
        answer = session.query(BY_WARD, epsilon=50)
        # 95% of the patients have at most two visits a ward, and are in at most two wards
        assert [note.split(" was ")[0] for note in answer.notes] == [
            "max_rows = 2",
            "max_groups = 2",
        ]
        assert answer.cost.epsilon == str(50 * (1 - 2 * SHARE))
        assert session.budget.spent == "50"
        # asked again: everything is stored
        assert session.query(BY_WARD, epsilon=50).bytes == answer.bytes
        assert session.budget.spent == "50"


def test_a_preview_learns_nothing_and_says_so(tmp_path: Path) -> None:
    with opened(tmp_path, max_rows=sf.AUTO, max_groups=1) as session:
        with pytest.raises(MissingDeclaration, match=r"max_rows of table 'visits' is sf\.AUTO"):
            session.preview(ALL, epsilon=1)
        with pytest.raises(WrongUse, match="answered first"):
            session.query(ALL, error=10, max_epsilon=1)
        assert session.budget.spent == "0"


@pytest.mark.parametrize("name", ["auto.max_rows", "auto.rows", "auto.k0"])
def test_a_limit_is_learnt_whatever_the_columns_are_called(tmp_path, name):
    frame = pa.table({"patient": OWNERS, name: [1] * len(OWNERS)})
    unit = sf.Unit("patient", max_rows=sf.AUTO, max_groups=2)
    visits = sf.Table(frame, unit, {name: sf.Integer(0, 9)})
    with sf.connect(
        {"visits": visits}, dataset="d", budget=sf.Budget(9), ledger=tmp_path / "l.db"
    ) as session:
        sql = f'SELECT "{name}" AS k, SUM("{name}") AS s FROM visits GROUP BY "{name}"'
        answer = session.query(sql, epsilon=1)
    assert any(note.startswith("max_rows = ") for note in answer.notes)


def test_a_name_is_kept_where_no_column_has_it():
    assert unused_name("auto.rows", declared()) == "auto.rows"
    assert unused_name("ward", declared()) == "ward_"
