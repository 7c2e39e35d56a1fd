# SPDX-License-Identifier: Apache-2.0
"""A wanted error, absolute or relative to a public number that the answer names (RULES 6)."""

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.accounting.account import account
from sfumato.errors import BudgetExceeded, NoReference, TargetUnreachable, UnsupportedSql
from sfumato.noise import DiscreteLaplace
from sfumato.plan.statistic import Statistic
from sfumato.query.answer import Answer
from sfumato.query.price import OnAverage, Target
from sfumato.query.session import Session
from sfumato.query.target import CONFIDENCE, Demand, Reference, typical_size, wanted
from sfumato.sql.lower import understand
from tests.contracts.people import FRAME, dataset, session

COUNT = "SELECT COUNT(*) AS n FROM people"
BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


def half_widths(answer: Answer, column: str) -> set[float]:
    """The half-widths of a column at 95%."""
    return {row[column]["half_width"] for row in answer.error()}


@pytest.mark.parametrize(
    ("sql", "column", "error"),
    [
        (COUNT, "n", 7),
        (BY_SEX, "n", 7),
        ("SELECT SUM(age) AS s FROM people", "s", 50),
        ("SELECT SUM(hours) AS s FROM people WHERE sex = 'F'", "s", "2.5"),
        ("SELECT AVG(age) AS m FROM people", "m", 4),
    ],
)
def test_an_absolute_error_is_met(tmp_path: Path, sql: str, column: str, error: object) -> None:
    # epsilon enough that the noise hardly moves the size of a mean's group
    with session(tmp_path, size=40) as opened:
        answer = opened.query(sql, error=error, max_epsilon=100)
    assert max(half_widths(answer, column)) <= float(Fraction(error))


def test_two_aggregates_both_meet_the_error(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        answer = opened.query(
            "SELECT COUNT(*) AS n, SUM(age) AS s FROM people", error=30, max_epsilon=100
        )
    assert max(half_widths(answer, "n") | half_widths(answer, "s")) <= 30


def test_a_percentage_of_the_declared_size_is_named(tmp_path: Path) -> None:
    with session(tmp_path, size=1000) as opened:
        answer = opened.query(COUNT, error="5%", max_epsilon=10)
    assert answer.notes[0] == "5% of the declared size 1,000 of the table."
    assert max(half_widths(answer, "n")) <= 50


def test_the_declared_size_is_no_reference_for_a_part_of_the_table(tmp_path: Path) -> None:
    with session(tmp_path, size=1000) as opened:
        for sql in (BY_SEX, f"{COUNT} WHERE sex = 'F'"):
            with pytest.raises(NoReference, match="has nothing public to be relative to"):
                opened.query(sql, error="5%", max_epsilon=10)


def test_without_a_reference_a_percentage_is_refused_and_free(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        with pytest.raises(NoReference) as refused:
            opened.query(COUNT, error="5%", max_epsilon=10)
        assert "a pilot" in refused.value.remedy
        assert opened.budget.spent == "0"


def pilot(opened: Session, sql: str) -> Answer:
    """A first, small answer."""
    return opened.query(sql, epsilon=5)


def test_the_first_stored_estimate_is_the_reference_and_is_named(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        first = pilot(opened, COUNT)
        opened.query(COUNT, epsilon=1)
        answer = opened.query(COUNT, error="10%", max_epsilon=10)
        estimate = first.rows[0][0]
        assert first.charge_id[:12] in answer.notes[0]
        assert answer.notes[0].startswith(
            f"10% of {estimate}, the mean stored estimate of COUNT(*)"
        )
        assert max(half_widths(answer, "n")) <= estimate / 10


def test_asking_for_the_same_error_again_gives_the_same_bytes_and_is_free(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        pilot(opened, COUNT)
        first = opened.query(COUNT, error="10%", max_epsilon=10)
        spent = opened.budget.spent_rho
        assert opened.query(COUNT, error="10%", max_epsilon=10).bytes == first.bytes
        assert opened.query(COUNT, error="10%", max_epsilon=10).bytes == first.bytes
        assert opened.budget.spent_rho == spent


def test_a_reference_by_groups_is_their_mean(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        first = pilot(opened, BY_SEX)
        answer = opened.query(BY_SEX, error="10%", max_epsilon=50)
        mean = sum(abs(row[1]) for row in first.rows) / 2
        assert answer.notes[0].startswith(f"10% of {mean:,.6g}, the mean stored estimate")


def test_the_error_of_a_mean_needs_a_public_size(tmp_path: Path) -> None:
    with (
        session(tmp_path) as opened,
        pytest.raises(NoReference, match="depends on how many rows a group has"),
    ):
        opened.query("SELECT AVG(age) AS m FROM people", error=1, max_epsilon=1)


def test_what_costs_more_than_its_cap_is_refused_and_free(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        with pytest.raises(TargetUnreachable, match=r"max_epsilon = 0\.01"):
            opened.query(COUNT, error=1, max_epsilon="0.01")
        assert opened.budget.spent == "0"


def test_a_target_beyond_the_account_is_refused_by_the_ledger(tmp_path: Path) -> None:
    with (
        session(tmp_path, budget=("0.1", 0)) as opened,
        pytest.raises(BudgetExceeded, match=r"has epsilon=0\.1 left"),
    ):
        opened.query(COUNT, error=1, max_epsilon=10)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(age) / COUNT(*) AS r FROM people",
        "SELECT VARIANCE(age) AS v FROM people",
        "SELECT COUNT(*) AS n FROM people HAVING SUM(age) > 3",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY SUM(age)",
    ],
)
def test_an_error_of_what_is_not_linear_is_refused(tmp_path: Path, sql: str) -> None:
    with session(tmp_path) as opened, pytest.raises(UnsupportedSql, match="every aggregate in"):
        opened.query(sql, error=10, max_epsilon=1)


def test_a_reference_that_is_not_positive_is_none() -> None:
    declared = dataset()
    question = understand(COUNT, declared)
    for magnitude in (Fraction(0), Fraction(-3)):
        with pytest.raises(NoReference):
            wanted(
                question,
                declared,
                Target(Fraction(1, 20), relative=True),
                {0: Reference("c", magnitude, Fraction(1), Fraction(1))},
            )


# --- on average over the cells --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        (COUNT, 7),
        (BY_SEX, 7),
        ("SELECT SUM(age) AS s FROM people", 50),
        ("SELECT SUM(hours) AS s FROM people", "2.5"),
    ],
)
@pytest.mark.parametrize("budget", [(10**6, 0), (10**6, "1e-6")])
def test_an_error_on_average_is_the_root_of_the_mean_square(
    tmp_path: Path, sql: str, error: object, budget: object
) -> None:
    with session(tmp_path, budget=budget) as opened:
        planned = opened.preview(sql, error=OnAverage(error), max_epsilon=100).planned
        everywhere = opened.preview(sql, error=error, max_epsilon=100).planned
    (part,), (mechanism,) = planned.bounded.parts, planned.mechanisms
    step = Fraction(1) if "hours" not in sql else Fraction(1, 4)
    wanted_square = (Fraction(error) * planned.bounded.refinement / step) ** 2
    square = second_moment(mechanism.noise)
    # met, and hardly more than met: a hundredth less noise variance costs more than the grid
    assert square <= wanted_square <= square * Fraction(101, 100)
    assert Fraction(planned.cost.rho) < Fraction(everywhere.cost.rho)
    assert part.distance.value > 0


def second_moment(noise: object) -> Fraction:
    """E X^2 by adding up the law, far enough that what is left out is below 1e-9."""
    far = 60 * int(noise.half_width(Fraction(1, 2)) + 1)
    return 2 * sum((Fraction(noise.pmf(x).lower) * x * x for x in range(1, far)), Fraction(0))


def test_the_second_moment_notices_a_noise_that_is_too_large(tmp_path: Path) -> None:
    with session(tmp_path, budget=(10**6, 0)) as opened:
        per_cell = opened.preview(COUNT, error=20, max_epsilon=100).planned
        on_average = opened.preview(COUNT, error=OnAverage(20), max_epsilon=100).planned
    assert second_moment(on_average.mechanisms[0].noise) <= 400
    assert second_moment(per_cell.mechanisms[0].noise) < 100
    assert on_average.mechanisms[0].noise.tail(20).upper > Fraction(5, 100)


def test_a_mean_by_groups_is_held_to_its_typical_group(tmp_path: Path) -> None:
    sql = "SELECT age > 20 AS g, AVG(hours) AS m FROM people GROUP BY g"
    with session(tmp_path) as opened:
        opened.query(sql, epsilon=2000)
        # groups of 2 and of 38: the mean of 1/n^2 is that of two groups of 2.82
        one = opened.preview(sql, error=1, max_epsilon=100).planned
        both = opened.preview(sql, error=OnAverage(1), max_epsilon=100).planned
    far = Fraction(both.mechanisms[0].noise.variance.upper)
    sizes = [Fraction(2), Fraction(38)]
    step, fine = Fraction(1, 4), both.bounded.refinement
    error = sum(far * (step / size / fine) ** 2 for size in sizes) / 2
    assert error <= 1
    assert error > Fraction(1, 2)
    # the first question has a release that is exact enough, so neither would be charged
    assert account(both.event).rho < account(one.event).rho
    assert (one.cost.rho, both.cost.rho) == ("0", "0")


def test_the_typical_size_has_the_same_mean_square() -> None:
    found = typical_size([Fraction(2), Fraction(38)])
    assert abs(2 / found**2 - (Fraction(1, 4) + Fraction(1, 1444))) < Fraction(1, 10**9)
    assert typical_size([Fraction(5), Fraction(0)]) == 0


def test_an_error_on_average_is_named_in_the_notes(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        answer = opened.query(BY_SEX, error=OnAverage(7), max_epsilon=100)
        assert any("root of the mean squared error" in note for note in answer.notes)
        plain = opened.query(BY_SEX, error=7, max_epsilon=100)
        assert not any("mean squared" in note for note in plain.notes)


def test_a_percentage_on_average(tmp_path: Path) -> None:
    with session(tmp_path, size=1000) as opened:
        answer = opened.preview(COUNT, error=OnAverage("5%"), max_epsilon=10)
    assert answer.planned.notes[0] == "5% of the declared size 1,000 of the table."


# --- what cannot be had ---------------------------------------------------------------------------


@pytest.mark.parametrize(("error", "unit"), [(1, ""), ("0.1%", "%"), (OnAverage(1), "")])
def test_a_refusal_says_the_smallest_error_that_can_be_had(
    tmp_path: Path, error: object, unit: str
) -> None:
    with session(tmp_path, size=1000) as opened:
        with pytest.raises(
            TargetUnreachable, match=r"The smallest that it buys is about"
        ) as refused:
            opened.query(COUNT, error=error, max_epsilon="0.05")
        shown = refused.value.problem.rsplit("about ", 1)[1].removesuffix(".")
        assert shown.endswith("%") == bool(unit)
        enough = shown if unit else Fraction(shown)
        less = f"{Fraction(shown[:-1]) * 4 / 5}%" if unit else Fraction(shown) * 4 / 5
        again = (
            (lambda value: OnAverage(value))
            if isinstance(error, OnAverage)
            else (lambda value: value)
        )
        opened.preview(COUNT, error=again(enough), max_epsilon="0.05")
        with pytest.raises(TargetUnreachable):
            opened.preview(COUNT, error=again(less), max_epsilon="0.05")
        assert opened.budget.spent == "0"


def test_where_nothing_can_be_had_no_error_is_named(tmp_path: Path) -> None:
    with session(tmp_path) as opened, pytest.raises(TargetUnreachable) as refused:
        opened.query(COUNT, error=1, max_epsilon="1e-7")
    assert "smallest" not in str(refused.value)


def test_the_reach_of_a_sum_is_in_lattice_steps() -> None:
    declared = dataset()
    question = understand("SELECT SUM(hours) FROM people", declared)
    goal = wanted(question, declared, Target(Fraction(3), relative=False), {})
    assert goal.demands == ((Demand(Statistic.VALUE, Fraction(3)),),)
    # a step is a quarter of an hour, cut into 8 by the refinement: 3 hours are 12 * 8 pieces
    meets = goal.test(0, question.raw.aggregates[0], 8)
    widest = max(scale for scale in range(1, 200) if meets(DiscreteLaplace(scale)))
    assert DiscreteLaplace(widest).half_width(CONFIDENCE) <= 96
    assert DiscreteLaplace(widest + 1).half_width(CONFIDENCE) > 96


# --- columns that are computed from aggregates ------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT 2 * COUNT(*) AS r FROM people", 8),
        ("SELECT -COUNT(*) / 4 + 3 AS r FROM people", 8),
        ("SELECT 100 * AVG(age) AS r FROM people", 400),
        ("SELECT ROUND(AVG(age), 1) AS r FROM people", 4),
        ("SELECT SUM(age) - 20 * COUNT(*) AS r FROM people", 50),
        ("SELECT AVG(age) + COUNT(*) AS r FROM people", 5),
        ("SELECT AVG(age) AS r, COUNT(age) AS n FROM people", 5),
        ("SELECT AVG(age) AS r, SUM(age) AS s FROM people", 60),
        ("SELECT COUNT(*) AS n, COUNT(*) * 10 AS r FROM people", 50),
    ],
)
def test_the_error_of_a_linear_column_is_met(tmp_path: Path, sql: str, error: int) -> None:
    with session(tmp_path, size=40) as opened:
        preview = opened.preview(sql, error=error, max_epsilon=1000)
        answer = opened.query(sql, error=error, max_epsilon=1000)
    names = [column["name"] for column in answer.columns]
    assert max(max(half_widths(answer, name)) for name in names) <= error
    assert {line["column"] for line in preview.error()} == set(names)
    assert not any(line["half_width"] is None for line in preview.error())


def test_a_percentage_of_a_multiple_is_that_of_the_number(tmp_path: Path) -> None:
    with session(tmp_path, size=1000) as opened:
        plain = opened.preview(COUNT, error="5%", max_epsilon=10)
        multiple = opened.preview("SELECT 3*COUNT(*) AS n FROM people", error="5%", max_epsilon=10)
        assert multiple.cost == plain.cost
        for sql in ("COUNT(*) + 3", "COUNT(*) + SUM(age)"):
            with pytest.raises(NoReference, match="computed from several numbers"):
                opened.preview(f"SELECT {sql} AS n FROM people", error="5%", max_epsilon=10)


def test_an_error_below_the_rounding_of_a_column_is_refused(tmp_path: Path) -> None:
    with session(tmp_path, size=40) as opened, pytest.raises(UnsupportedSql, match="rounded by"):
        opened.preview("SELECT ROUND(AVG(age)) AS m FROM people", error="0.5", max_epsilon=10)


# --- means of a table with a unit -------------------------------------------------------------------

UNITS = (
    sf.Unit("person", max_rows=1),
    sf.Unit("person", max_rows=1, max_groups=1),
    sf.Unit("person", max_rows_total=1),
)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("sql", ["AVG(age)", "AVG(CASE WHEN sex = 'F' THEN 1 ELSE 0 END)"])
def test_the_error_of_a_mean_follows_from_the_declared_size(
    tmp_path: Path, unit: object, sql: str
) -> None:
    sql = f"SELECT {sql} AS m FROM people"
    frame = pa.concat_tables([FRAME] * 100).set_column(
        0, "person", pa.array([f"p{row}" for row in range(4000)])
    )
    (tmp_path / "rows").mkdir()
    with (
        session(tmp_path, frame, size=4000, unit=unit) as opened,
        session(tmp_path / "rows", frame, size=4000) as rows,
    ):
        answer = opened.query(sql, error="0.2", max_epsilon=10)
        assert answer.cost == rows.preview(sql, error="0.2", max_epsilon=10).cost
    assert max(half_widths(answer, "m")) <= 0.2
    assert any("beyond the limits of its unit" in note for note in answer.notes)
