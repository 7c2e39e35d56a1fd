# SPDX-License-Identifier: Apache-2.0
"""What a diagnosis asks: the right numbers on both engines, within the claimed distance."""

from contextlib import closing
from dataclasses import replace
from itertools import groupby

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.reference import Reference
from sfumato.errors import UnsupportedSql
from sfumato.metadata.dataset import Dataset
from sfumato.plan.output import Output
from sfumato.plan.question import Question
from sfumato.plan.relation import is_single
from sfumato.plan.stages import Bounded, Limits
from sfumato.privacy.distance import Norm
from sfumato.query import diagnose, stability
from sfumato.query.diagnose import Check, checks
from sfumato.query.pipeline import compile_plan
from sfumato.sql.lower import understand
from tests.query.test_stability import Pair, asked_of_the_world, exceeds

BY_WARD = "SELECT ward, COUNT(*), AVG(cost) FROM visits GROUP BY ward"


def declared(source: object = "nowhere.csv", **limits: object) -> Dataset:
    """Visits under some limits; without any, each row is one unit."""
    columns = {"ward": sf.Category("a", "b", "c"), "cost": sf.Integer(0, 5), "drug": sf.Text()}
    unit = sf.Unit("patient", **limits) if limits else None
    return Dataset("d", {"visits": sf.Table(source, unit=unit, columns=columns)})


def found(sql: str, dataset: Dataset) -> tuple[Check, ...]:
    """What the diagnosis of a statement asks."""
    question = understand(sql, dataset)
    return checks(question, compile_plan(question.raw, dataset, Norm.L1))


def texts(sql: str, **limits: object) -> list[str]:
    """What it looks for."""
    return [text for check in found(sql, declared(**limits)) for text in check.found]


COST = ["cost below the declared 0", "cost above the declared 5"]
NO_WARD = ["ward missing or not declared"]


@pytest.mark.parametrize(
    ("sql", "limits", "expected"),
    [
        ("SELECT AVG(cost) FROM visits", {}, COST),
        (BY_WARD, {}, COST + NO_WARD),
        (
            BY_WARD,
            {"max_rows": 2, "max_groups": 1},
            [
                "more than 2 rows in a group",
                "more than 2 rows in all, at most 2 of a group",
                *COST,
                *NO_WARD,
            ],
        ),
        # distinct counts are of the first groups, all else is weighed
        (
            BY_WARD.replace("AVG(cost)", "COUNT(DISTINCT patient)"),
            {"max_rows": 2, "max_groups": 1},
            [
                "more than 2 rows in a group",
                "in more than 1 groups",
                "more than 2 rows in all, at most 2 of a group",
                *NO_WARD,
            ],
        ),
        # three groups there are, so three are no limit; a total of nine is none either
        (
            BY_WARD,
            {"max_rows": 3, "max_groups": 3, "max_rows_total": 9},
            ["more than 3 rows in a group", *COST, *NO_WARD],
        ),
        (
            BY_WARD,
            {"max_rows_total": 2},
            [
                "more than 2 rows in a group",
                "more than 2 rows in all, at most 2 of a group",
                *COST,
                *NO_WARD,
            ],
        ),
        ("SELECT COUNT(*) FROM visits", {"max_rows": 4}, ["more than 4 rows"]),
        (
            "SELECT COUNT(DISTINCT drug) FROM visits",
            {"max_rows": 4},
            ["more than 4 values of drug"],
        ),
        (
            "SELECT ward, COUNT(DISTINCT patient) FROM visits GROUP BY ward",
            {"max_groups": 2},
            ["in more than 2 groups"],
        ),
        (
            "SELECT ward, COUNT(DISTINCT patient) FROM visits GROUP BY ward",
            {"max_rows_total": 1},
            ["in more than 1 groups", *NO_WARD],
        ),
        (
            "SELECT drug, COUNT(*) FROM visits GROUP BY drug",
            {"max_rows": 1, "max_groups": 2},
            [
                "more than 1 rows in a group",
                "in more than 2 groups",
                "drug missing or not declared",
            ],
        ),
        (
            "SELECT AVG(n) FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient)",
            {"max_rows": 1},
            [],
        ),
        # clipped, but not where it can be told: the refusal must not say that nothing is
        (
            "SELECT AVG(n) FROM (SELECT patient, MAX(cost) AS n FROM visits GROUP BY patient)",
            {"max_rows": 1},
            [],
        ),
    ],
)
def test_it_looks_for_what_the_question_meets(
    sql: str, limits: dict[str, object], expected: list[str]
) -> None:
    if expected:
        assert texts(sql, **limits) == expected
    else:
        with pytest.raises(UnsupportedSql, match="nothing to diagnose"):
            texts(sql, **limits)


def test_units_are_counted_one_row_each() -> None:
    units, rows = found(BY_WARD, declared(max_rows=2, max_groups=1))
    assert units.units
    assert not rows.units
    assert is_single(units.question.raw.relation)
    for norm in Norm.L1, Norm.L2:
        plan = compile_plan(units.question.raw, declared(max_rows=2, max_groups=1), norm)
        assert [part.distance.value for part in plan.parts] == [1, 1]


def test_under_gaussian_noise_squares_are_looked_at() -> None:
    dataset = declared(max_rows=2, max_groups=1)
    squares = "squares of the rows of a group, at most 2, above 4 in all"
    quantiles = BY_WARD.replace("AVG(cost)", "MEDIAN(cost)")
    for sql, more in (
        (BY_WARD, []),
        (quantiles, ["more than 2 rows in all, at most 2 of a group"]),
    ):
        question = understand(sql, dataset)
        units, _ = checks(question, compile_plan(question.raw, dataset, Norm.L2))
        assert units.found == ("more than 2 rows in a group", *more, squares)


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_a_limit_that_no_column_can_hold_is_nobodys(norm: Norm) -> None:
    question = understand(BY_WARD, declared(max_rows=2, max_groups=1))
    bounded = compile_plan(question.raw, declared(max_rows=2, max_groups=1), norm)
    vast = replace(bounded, tracked=replace(bounded.tracked, limits=Limits(2**31, 2**31, None)))
    assert checks(question, vast)[0].found == (f"more than {2**31} rows in a group",)


@pytest.mark.parametrize(("wards", "beyond"), [("aabb", 1), ("ab", 0), ("aaa", 0), ("aab", 1)])
def test_the_squares_are_those_of_the_rows_that_count(wards: str, beyond: int) -> None:
    # at most 2 rows of a ward count, so squares of at most 4 are in one: 4 + 4 and 4 + 1 are beyond
    # 4, 1 + 1 is not
    dataset = declared(max_rows=2, max_groups=1)
    question = understand(BY_WARD, dataset)
    units, _ = checks(question, compile_plan(question.raw, dataset, Norm.L2))
    rows = [{"patient": "p", "ward": ward, "cost": 1, "drug": "x"} for ward in wards]
    assert integers(units, dataset, rows)[1] == (beyond, 1 - beyond)


# --- the integers are those of a plain count ------------------------------------------------------

ROW = st.fixed_dictionaries(
    {
        "patient": st.sampled_from(["p", "p", "p", "q", "q", "r", None]),
        "ward": st.sampled_from(["a", "a", "b", "c", "other", None]),
        "cost": st.sampled_from([-3, -1, 0, 2, 5, 6, 99, None]),
        "drug": st.sampled_from(["x", "y", "z", None]),
    }
)
R, G, T = 2, 2, 3
KNOWN = {"a", "b", "c"}


def plainly(rows: list[dict[str, object]]) -> list[tuple[int, int]]:
    """(those that are, those that are not) for each check of the question below, without any
    plan.
    """
    owned = [row for row in rows if row["patient"] is not None]
    inside = sorted(
        (row for row in owned if row["ward"] in KNOWN), key=lambda row: str(row["patient"])
    )
    people = [list(group) for _, group in groupby(inside, key=lambda row: row["patient"])]
    counts = [[sum(row["ward"] == ward for row in person) for ward in KNOWN] for person in people]
    tests = [
        [max(each) > R for each in counts],
        [sum(n > 0 for n in each) > G for each in counts],
        [sum(min(n, R) for n in each) > T for each in counts],
    ]
    return [(sum(each), len(each) - sum(each)) for each in tests]


def of_rows(rows: list[dict[str, object]]) -> list[tuple[int, int]]:
    """The same of each row, where each is its own unit."""
    costs = [row["cost"] for row in rows if row["ward"] in KNOWN and row["cost"] is not None]
    tests = [
        [cost < 0 for cost in costs],
        [cost > 5 for cost in costs],
        [row["ward"] not in KNOWN for row in rows],
    ]
    return [(sum(each), len(each) - sum(each)) for each in tests]


def integers(
    check: Check, dataset: Dataset, rows: list[dict[str, object]]
) -> list[tuple[int, int]]:
    """What the reference computes; DuckDB computes the same."""
    plan = compile_plan(check.question.raw, dataset, Norm.L1)
    exact = Reference({"visits": rows}).run(plan, "key")
    schema = pa.schema(
        {"patient": pa.string(), "ward": pa.string(), "cost": pa.int64(), "drug": pa.string()}
    )
    source = pa.Table.from_pylist(rows, schema=schema)
    tables = {
        "visits": sf.Table(
            source, unit=dataset.tables["visits"].unit, columns=dataset.tables["visits"].columns
        )
    }
    with closing(DuckDB(tables)) as engine:
        assert engine.run(plan, "key") == exact
    return [tuple(each.get((), (0, 0))) for each in exact]


@settings(deadline=None)
@given(st.lists(ROW, max_size=14))
def test_the_integers_are_those_of_a_plain_count(rows: list[dict[str, object]]) -> None:
    dataset = declared(max_rows=R, max_groups=G, max_rows_total=T)
    units = found(BY_WARD.replace("AVG(cost)", "COUNT(DISTINCT patient)"), dataset)[0]
    assert integers(units, dataset, rows) == plainly(rows)
    assert integers(found(BY_WARD, declared())[0], declared(), rows) == of_rows(rows)


def test_a_test_that_reads_clipped_values_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"patient": "p", "ward": "a", "cost": cost, "drug": None} for cost in (-1, 3, 9)]
    assert integers(found(BY_WARD, declared())[0], declared(), rows) == of_rows(rows)
    monkeypatch.setattr(diagnose, "widened", lambda relation, columns: relation)
    monkeypatch.setattr(diagnose, "wide", lambda column: column if column.name == "cost" else None)
    assert integers(found(BY_WARD, declared())[0], declared(), rows) != of_rows(rows)


FIRST = "SELECT AVG(cost) FROM (SELECT cost, ROW_NUMBER() OVER (PARTITION BY patient ORDER BY drug) AS r FROM visits) WHERE r = 1"


def test_it_looks_at_the_rows_that_the_answer_takes() -> None:
    # nothing reads the ward, so of the two rows the one of the smaller cost is the first
    rows = [
        {"patient": "p", "ward": ward, "cost": cost, "drug": "x"}
        for ward, cost in (("a", 9), ("b", 1))
    ]
    dataset = declared(max_rows=2)
    assert integers(found(FIRST, dataset)[0], dataset, rows) == [(0, 1), (0, 1)]
    assert integers(found(FIRST, dataset)[0], dataset, rows[:1]) == [(0, 1), (1, 0)]


# --- neighbours -----------------------------------------------------------------------------------


def plans(raw: object, dataset: Dataset, norm: Norm) -> list[Bounded]:
    """The bounded plans of every check of a question."""
    question = Question("", next(iter(dataset.tables)), raw, Output(()))
    try:
        made = checks(question, compile_plan(raw, dataset, norm))
    except UnsupportedSql:
        return []
    return [compile_plan(check.question.raw, dataset, norm) for check in made]


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(asked_of_the_world())
def test_neighbours_keep_to_the_distance(asked: object) -> None:
    raw, dataset, pair = asked
    for norm in (Norm.L1, Norm.L2):
        for plan in plans(raw, dataset, norm):
            assert not exceeds(plan, pair)


def test_a_claim_that_is_too_small_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = declared(max_rows=3)
    rows = [{"patient": "p", "ward": "a", "cost": 9, "drug": None}] * 5
    pair = Pair({"visits": []}, {"visits": rows})
    raw = understand("SELECT AVG(cost) FROM visits", dataset).raw
    assert not any(exceeds(plan, pair) for plan in plans(raw, dataset, Norm.L1))
    monkeypatch.setattr(stability, "_limits", lambda aggregate, plan: (1, 1, 1))
    assert any(exceeds(plan, pair) for plan in plans(raw, dataset, Norm.L1))
