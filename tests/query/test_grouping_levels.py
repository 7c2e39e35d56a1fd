# SPDX-License-Identifier: Apache-2.0
"""Grouping sets under a wanted error: what is measured, what it costs, and that it is kept."""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.accounting.account import account
from sfumato.errors import (
    EngineFailed,
    InvalidDeclaration,
    TargetUnreachable,
    UnsupportedSql,
    WrongUse,
)
from sfumato.metadata.dataset import Dataset
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.noise.search import smallest
from sfumato.plan.levels import Levels
from sfumato.plan.open_cube import OpenCube
from sfumato.plan.scalar import Grouping as GroupingOf
from sfumato.plan.stages import Bounded
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import AdditiveNoise
from sfumato.query import answer_rows, choose, grouping_levels
from sfumato.query.answer import Answer
from sfumato.query.choose import Planned, plans_for_target
from sfumato.query.claims import require_proved
from sfumato.query.grouping_levels import Grouping, copies_of
from sfumato.query.price import price
from sfumato.query.session import Session
from sfumato.query.statistic import Opened
from sfumato.query.tail_bounds import reach
from sfumato.query.target import wanted
from sfumato.sql.lower import understand

N = 2400
ROWS = pa.table(
    {
        "id": [row // 3 for row in range(N)],
        "e": [("abcd" * N)[row] for row in range(N)],
        "s": [(["x", "y", None, "y", "z"] * N)[row] for row in range(N)],
        "v": [row % 10 for row in range(N)],
    }
)
COLUMNS = {
    "e": sf.Category(*"abcd"),
    "s": sf.Category(*"xyz", missing="N"),
    "v": sf.Integer(0, 9),
}
UNIT = sf.Unit("id", max_rows=1, max_groups=3)
ROLLUP = "SELECT e, s, COUNT(*) AS n FROM t GROUP BY ROLLUP(e, s)"
CUBE = "SELECT e, s, COUNT(*) AS n, SUM(v) AS t FROM t GROUP BY CUBE(e, s)"
COUNTS = CUBE.replace(", SUM(v) AS t", "")
SETS = "SELECT e, s, COUNT(*) AS n FROM t GROUP BY GROUPING SETS((e), (s))"


def session(folder: Path, *, delta: str = "1e-6", **options: object) -> Session:
    """A session over ``ROWS``."""
    declared = sf.Table(ROWS, columns=COLUMNS, **options)
    budget = sf.Budget(10**6, delta) if delta else sf.Budget(10**6)
    return sf.connect({"t": declared}, dataset="d", budget=budget, ledger=folder / "l.db")


def half_widths(answer: Answer) -> Iterator[float]:
    """The half-width of each released cell."""
    for row in answer.error():
        for cell in row.values():
            if isinstance(cell, dict):
                yield cell["half_width"]


def planned(sql: str, norm: Norm, error: int = 40, **options: object) -> tuple[Grouping, Planned]:
    """A statement planned for a wanted error with the noise of one norm."""
    declared = Dataset("d", {"t": sf.Table(ROWS, columns=COLUMNS, **options)})
    question = understand(sql, declared)
    asked = price(error=error, max_epsilon=10**5)
    goal = wanted(question, declared, asked.target, {})
    plans = plans_for_target(question, declared, asked, goal, concentrated=True)
    (chosen,) = [plan for plan in plans if plan.bounded.norm is norm]
    return Grouping(question, declared, norm), chosen


# --- the error that was asked for -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "delta", "unit"),
    [
        (ROLLUP, "", None),
        (ROLLUP, "1e-6", UNIT),
        (CUBE, "", UNIT),
        (SETS, "1e-6", None),
        pytest.param(CUBE, "1e-6", None, marks=pytest.mark.long),
        pytest.param(CUBE, "1e-6", UNIT, marks=pytest.mark.long),
    ],
)
def test_every_cell_of_every_grouping_set_keeps_the_error(
    tmp_path: Path, sql: str, delta: str, unit: object
) -> None:
    options = {} if unit is None else {"unit": unit}
    with session(tmp_path, delta=delta, **options) as opened:
        preview = opened.preview(sql, error=40, max_epsilon=100)
        answer = opened.query(sql, error=40, max_epsilon=100)
    assert max(half_widths(answer)) <= 40
    expected = {line["half_width"] for line in preview.error()}
    assert max(half_widths(answer)) == max(expected)


def test_an_error_that_is_kept_by_the_finest_level_alone_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping_levels, "copies_of", lambda *_: 1)
    monkeypatch.setattr(
        Grouping, "roughly_cheapest", lambda self, wanted: ({self.every}, Fraction(1))
    )
    with session(tmp_path) as opened:
        answer = opened.query(ROLLUP, error=40, max_epsilon=100)
    assert max(half_widths(answer)) > 40


def test_an_error_on_average_is_kept_in_every_cell(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        plan = opened.preview(CUBE, error=sf.OnAverage(40), max_epsilon=100).planned
    for place in range(4):
        measured = plan.measured(place)
        for part, mechanism in zip(measured.bounded.parts, measured.mechanisms, strict=True):
            unit = part.aggregate.reading(measured.bounded.refinement).unit
            square = Fraction(mechanism.noise.variance.upper) * measured.copies * unit**2
            assert square <= 1600


def test_an_error_that_costs_too_much_names_about_the_least(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        with pytest.raises(TargetUnreachable, match="smallest that it buys is about") as refused:
            opened.preview(ROLLUP, error=1, max_epsilon="0.05")
        shown = Fraction(refused.value.problem.rsplit("about ", 1)[1].removesuffix("."))
        opened.preview(ROLLUP, error=shown * Fraction(11, 10), max_epsilon="0.05")
        with pytest.raises(TargetUnreachable):
            opened.preview(ROLLUP, error=shown * Fraction(8, 10), max_epsilon="0.05")


# --- what is charged --------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@pytest.mark.parametrize("sql", [ROLLUP, CUBE, SETS])
def test_levels_that_are_measured_apart_compose(sql: str, norm: Norm) -> None:
    _, plan = planned(sql, norm, unit=UNIT)
    assert len(plan.levels) > 1
    cost = account(plan.event)
    each = []
    for level, place in itertools.product(plan.levels, range(len(plan.question.raw.aggregates))):
        start = plan.levels.index(level) * len(plan.question.raw.aggregates)
        part, noise = level.bounded.parts[place], plan.mechanisms[start + place].noise
        if norm is Norm.L1:
            # the distances of independent Laplace noises add up over their scales
            each.append(part.distance.value / noise.scale)
        else:
            each.append(part.distance.value / (2 * noise.sigma_squared))
    assert (cost.epsilon if norm is Norm.L1 else cost.rho) == sum(each)


def test_a_level_has_the_distance_of_its_own_question() -> None:
    """max_groups holds in each level: three groups of e and s, three of e, one in total."""
    grouping, plan = planned(ROLLUP, Norm.L2, unit=UNIT)
    squares = {level.keys: level.bounded.parts[0].distance.value for level in plan.levels}
    fine = grouping.bounded((0, 1)).refinement ** 2
    # the rows of a unit are one in each of three groups at most; the total sees one row of it
    assert squares == {(0, 1): 3 * fine, (0,): 3 * fine, (): 1}


def test_levels_that_are_charged_once_for_all_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    _, plan = planned(ROLLUP, Norm.L1)
    whole = account(plan.event).epsilon
    monkeypatch.setattr(choose.Planned, "questions", property(lambda self: (self.bounded,)))
    with pytest.raises(ValueError, match="zip"):
        _ = plan.events
    assert whole == sum(
        level.bounded.parts[0].distance.value / mechanism.noise.scale
        for level, mechanism in zip(plan.levels, plan.mechanisms, strict=True)
    )


@pytest.mark.parametrize(
    ("sql", "norm"),
    [
        (ROLLUP, Norm.L1),
        pytest.param(COUNTS, Norm.L1, marks=pytest.mark.long),
        pytest.param(SETS, Norm.L1, marks=pytest.mark.long),
        pytest.param(ROLLUP, Norm.L2, marks=pytest.mark.long),
        pytest.param(COUNTS, Norm.L2, marks=pytest.mark.long),
        pytest.param(SETS, Norm.L2, marks=pytest.mark.long),
    ],
)
def test_the_cheaper_of_measured_and_added_up_is_taken(sql: str, norm: Norm) -> None:
    """Against an exhaustive search over the sets of levels."""
    grouping, plan = planned(sql, norm)
    costs = []
    every = tuple(dict.fromkeys([grouping.every, *grouping.sets]))
    for size in range(1, len(every) + 1):
        for chosen in itertools.combinations(every, size):
            cost = exhaustive_cost(grouping, chosen, norm)
            if cost is not None:
                costs.append(cost)
    paid = account(plan.event)
    assert (paid.epsilon if norm is Norm.L1 else paid.rho) <= min(costs) * Fraction(106, 100)


def exhaustive_cost(
    grouping: Grouping, chosen: tuple[tuple[int, ...], ...], norm: Norm
) -> Fraction | None:
    """The cost of counts within 40 of one row a unit, read from the nearest of some levels."""
    sizes = [4, 4]
    most: dict[tuple[int, ...], int] = {}
    for kept in grouping.sets:
        above = [level for level in chosen if set(kept) <= set(level)]
        if not above:
            return None
        copies = {level: copies_of(level, kept, sizes) for level in above}
        nearest = min(above, key=lambda level: copies[level])
        most[nearest] = max(most.get(nearest, 1), copies[nearest])
    return sum(single_cost(norm, copies) for copies in most.values())


@lru_cache
def single_cost(norm: Norm, copies: int) -> Fraction:
    """About the least cost of a count of which sums of so many are within 40 at 95%."""

    def scale_of(steps: int) -> Fraction:
        return Fraction(steps, 5)

    def is_too_wide(steps: int) -> bool:
        scale = scale_of(steps)
        noise = DiscreteLaplace(scale) if norm is Norm.L1 else DiscreteGaussian(scale * scale)
        return reach(noise, Fraction(1, 20), copies=copies) > 40

    best = scale_of(smallest(is_too_wide, below=20) - 1)
    return 1 / best if norm is Norm.L1 else 1 / (2 * best * best)


# --- what is answered -------------------------------------------------------------------------------


def truth(sql: str) -> list[tuple[object, ...]]:
    """The exact answer, by DuckDB."""
    with duckdb.connect() as database:
        database.register("t", ROWS)
        return database.execute(sql).fetchall()


@pytest.mark.parametrize("sql", [ROLLUP, CUBE, SETS])
def test_the_rows_are_those_of_duckdb(tmp_path: Path, sql: str) -> None:
    with session(tmp_path) as opened:
        answer = opened.query(sql, error=40, max_epsilon=100)
    assert answer.form["released"]["levels"] > 1
    exact = {row[:2]: row[2:] for row in truth(sql)}
    # the group of missing values and the total have the same keys in SQL
    places = Counter(tuple(row[:2]) for row in answer.rows)
    assert places == Counter(row[:2] for row in truth(sql))
    for (
        *keys,
        first,
    ) in [row[:3] for row in answer.rows]:
        if places[tuple(keys)] == 1:
            # 40 is exceeded in a twentieth of all draws, 300 in less than one of 1e9
            assert abs(first - exact[tuple(keys)][0]) < 300


def test_a_level_that_takes_the_groups_of_another_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_rows, "bisect_right", lambda ends, group: 0)
    with session(tmp_path) as opened, pytest.raises(EngineFailed):
        opened.query(ROLLUP, error=40, max_epsilon=100)


def test_parts_are_said_not_to_add_up(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        answer = opened.query(ROLLUP, error=40, max_epsilon=100)
        assert any("parts need not add up" in note for note in answer.notes)
        assert {item["release"] for item in answer.cost.items} == {
            "COUNT(*), by e, s",
            "COUNT(*), by e",
            "COUNT(*), total",
        }
        assert (
            "COUNT(*), by e, s: discrete"
            in opened.preview(ROLLUP, error=30, max_epsilon=100).explain()
        )
        # each is cut at 0 and rounded alone
        whole = answer.consistent()
        assert all(value >= 0 for *_, value in whole.rows)


def test_the_intervals_of_a_stored_answer_are_those_at_another_confidence(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        answer = opened.query(COUNTS, error=40, max_epsilon=100)
        again = Answer(answer.bytes)
    assert again.error() == answer.error()
    assert max(half_widths_at(again, "0.5")) < 40 < max(half_widths_at(again, "0.999"))


def half_widths_at(answer: Answer, confidence: str) -> list[float]:
    """The half-widths at a confidence."""
    return [row["n"]["half_width"] for row in answer.error(confidence)]


# --- what is stored ---------------------------------------------------------------------------------


def test_levels_that_were_released_are_read_again(tmp_path: Path) -> None:
    plain = "SELECT e, s, COUNT(*) AS n FROM t GROUP BY e, s"
    with session(tmp_path) as opened:
        opened.query(plain, error=40, max_epsilon=100)
        first = opened.query(ROLLUP, error=40, max_epsilon=100)
        paid = [item["mechanism"] for item in first.cost.items]
        assert paid.count("read from an earlier answer") == 1
        second = opened.query(COUNTS, error=40, max_epsilon=100)
        read = [item["mechanism"] for item in second.cost.items]
        assert read.count("read from an earlier answer") == 3
        spent = opened.budget.spent_rho
        assert opened.query(ROLLUP, error=40, max_epsilon=100).bytes == first.bytes
        third = opened.query(SETS, error=40, max_epsilon=100)
        assert opened.budget.spent_rho == spent
        values = {(row[0], row[1]): row[2] for row in (*first.rows, *second.rows)}
        by_e = [row for row, added in zip(third.rows, third.totals, strict=True) if added == ["s"]]
        assert all(values[row[0], row[1]] == row[2] for row in by_e if row[0] is not None)


def test_a_price_adds_up_the_finest_level_as_before(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        preview = opened.preview(ROLLUP, epsilon=1)
        answer = opened.query(ROLLUP, epsilon=1)
    assert preview.planned.levels == () and isinstance(preview.planned.plan, Bounded)
    by_set = {line["groups"]: line["half_width"] for line in preview.error()}
    shown = {"by e, s": [], "by e": [], "total": []}
    for added, row in zip(answer.totals, answer.error(), strict=True):
        shown[["by e, s", "by e", "total"][len(added)]].append(row["n"]["half_width"])
    assert by_set == {name: max(found) for name, found in shown.items()}
    assert [isinstance(event, AdditiveNoise) for event in preview.planned.event.events] == [True]


# --- totals and the group of missing values ---------------------------------------------------------

BY_S = "SELECT s, GROUPING(s) AS g, COUNT(*) AS n FROM t GROUP BY ROLLUP(s) ORDER BY g, s"


def test_a_total_is_no_group_of_missing_values(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        answer = opened.query(BY_S, epsilon=1000)
    assert [row[:2] for row in answer.rows] == [["x", 0], ["y", 0], ["z", 0], [None, 0], [None, 1]]
    assert answer.totals == [[], [], [], [], ["s"]]
    assert answer.columns[1]["type"] == "integer"
    lines = answer.to_csv(intervals=False).splitlines()
    assert [line.split(",")[0] for line in lines] == ["s", "x", "y", "z", "", "total"]
    table = [line.split()[0] for line in repr(answer).splitlines()[2:7]]
    assert table == ["x", "y", "z", "NULL", "total"]
    assert "<td>total</td>" in answer._repr_html_() and "total 1: " in answer.plot("n").svg
    assert answer.to_json()["totals"] == answer.totals
    assert answer.to_dicts()[4] == {"s": None, "g": 1, "n": answer.rows[4][2]}


def test_a_total_that_is_a_group_of_missing_values_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_rows, "TOTAL", None)
    with session(tmp_path) as opened:
        answer = opened.query(BY_S, epsilon=1000)
    assert answer.totals != [[], [], [], [], ["s"]]


def test_a_declared_value_named_total_is_told_from_the_total(tmp_path: Path) -> None:
    rows = pa.table({"k": ["total", "part"]})
    declared = sf.Table(rows, columns={"k": sf.Category("part", "total")})
    with sf.connect({"t": declared}, dataset="d", budget=sf.Budget(9), ledger=tmp_path / "l") as s:
        answer = s.query("SELECT k, COUNT(*) AS n FROM t GROUP BY ROLLUP(k)", epsilon=1)
    lines = answer.to_csv(intervals=False).splitlines()
    assert [line.split(",")[0] for line in lines] == ["k", "part", "total", "(total)"]


@pytest.mark.parametrize("by", ["CUBE(e, s)", "ROLLUP(s, e)", "GROUPING SETS((e), (s), ())"])
def test_grouping_is_that_of_duckdb(tmp_path: Path, by: str) -> None:
    sql = f"SELECT e, s, GROUPING(e, s) AS g, GROUPING(s) AS h, COUNT(*) AS n FROM t GROUP BY {by}"
    with session(tmp_path) as opened:
        for asked in ({"epsilon": 1}, {"error": 40, "max_epsilon": 100}):
            answer = opened.query(sql, **asked)
            assert Counter(tuple(row[:4]) for row in answer.rows) == Counter(
                row[:4] for row in truth(sql)
            )


def test_grouping_of_what_is_no_key_is_refused() -> None:
    declared = Dataset("d", {"t": sf.Table(ROWS, columns=COLUMNS)})
    with pytest.raises(UnsupportedSql, match="GROUPING of v"):
        understand("SELECT GROUPING(v), COUNT(*) FROM t GROUP BY ROLLUP(e)", declared)
    plain = understand("SELECT e, GROUPING(e) AS g, COUNT(*) AS n FROM t GROUP BY e", declared)
    assert isinstance(plain.output.items[1].expression, GroupingOf)


# --- levels in the one door -------------------------------------------------------------------------


def test_levels_are_taken_only_if_each_claims_what_is_proved() -> None:
    grouping, plan = planned(ROLLUP, Norm.L1, unit=UNIT)
    require_proved(plan.plan, grouping.dataset)
    level = plan.levels[0]
    part = replace(level.bounded.parts[0], distance=plan.levels[-1].bounded.parts[0].distance)
    understated = replace(level, bounded=replace(level.bounded, parts=(part,)))
    with pytest.raises(WrongUse, match="not made for these declarations"):
        require_proved(Levels((understated, *plan.levels[1:])), grouping.dataset)
    cube = replace(level, bounded=OpenCube(None))
    with pytest.raises(WrongUse, match="not made for these declarations"):
        require_proved(Levels((cube,)), grouping.dataset)


def test_only_a_question_of_the_levels_is_read() -> None:
    _, plan = planned(ROLLUP, Norm.L1)
    first, *others = plan.levels
    opened = Opened(Levels((first,)), reads={first.bounded: lambda: ["read"]})
    assert opened.integers(first.bounded) == ["read"]
    with pytest.raises(InvalidDeclaration):
        opened.integers(others[0].bounded)
