# SPDX-License-Identifier: Apache-2.0
"""A synopsis as its user sees it: planned for free, charged once, asked as often as wanted."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import synopsis
from sfumato.errors import InvalidNumber, MissingDeclaration, UnknownName, UnsupportedSql, WrongUse
from sfumato.query.session import Session
from sfumato.synopsis.column import Synopsis

AGES = np.random.default_rng(7).integers(0, 90, 20_000)
COUNTS = np.bincount(AGES, minlength=100)
COLUMNS = {"age": sf.Integer(0, 99), "sex": sf.Category("F", "M"), "name": sf.Text()}
FRAME = pa.table({"age": AGES, "sex": ["F", "M"] * 10_000, "name": ["x"] * 20_000})


def opened(folder: Path, **options: object) -> Session:
    return sf.connect(
        {"people": sf.Table(FRAME, columns=COLUMNS)},
        dataset="d", budget=sf.Budget(10**5, "1e-6"), ledger=folder / "l.db", **options,
    )  # fmt: skip


def measured(session: Session, **how: object) -> Synopsis:
    return synopsis.measure(session, "people", synopsis.ranges("age"), **how)


def test_a_plan_is_free_and_its_error_is_that_of_its_candidates(tmp_path):
    with opened(tmp_path) as session:
        found = synopsis.plan(session.dataset, "people", synopsis.ranges("age"), epsilon="0.5")
        errors = [found.error(candidate) for candidate in found.candidates]
        assert errors[0] <= min(errors) * 1.01
        by_name = dict(zip([each.name for each in found.candidates], errors, strict=True))
        # identity: the mean length of a range is (n + 2) / 3, the noise of scale 2
        variance = 2 * math.exp(-1 / 2) / (1 - math.exp(-1 / 2)) ** 2
        assert by_name["identity"] == pytest.approx(math.sqrt(34 * variance), rel=1e-3)
        assert "nothing was charged" in repr(found)
        assert "rho 0 of" in repr(session.budget)


@pytest.mark.parametrize("cost", [{"epsilon": "0.01"}, {"rho": "0.0001"}])
def test_a_plan_says_what_no_strategy_goes_below(tmp_path, cost):
    with opened(tmp_path) as session:
        found = synopsis.plan(session.dataset, "people", synopsis.ranges("age"), **cost)
    assert 0 < found.least <= found.error(found.candidates[0])
    # at 1,024 values and rho = 1/2 it is 12.2, and grows with the logarithm of the values
    if "rho" in cost:
        assert 4 < found.least**2 * 2 * 0.0001 < 12.2
    assert "no linear strategy is below" in repr(found)


def test_where_units_are_replaced_no_bound_is_stated(tmp_path):
    with opened(tmp_path, relation=sf.ReplaceOne) as session:
        found = synopsis.plan(session.dataset, "people", synopsis.ranges("age"), rho="0.01")
    assert found.least is None
    assert "no linear" not in repr(found)


@pytest.mark.parametrize("cost", [{"epsilon": 50_000}, {"rho": 10_000}])
def test_with_hardly_any_noise_it_answers_what_the_table_says(tmp_path, cost):
    with opened(tmp_path) as session:
        found = measured(session, **cost)
    assert found.counts == pytest.approx(COUNTS, abs=0.5)
    assert found.answer("age BETWEEN 20 AND 29").value == pytest.approx(COUNTS[20:30].sum(), abs=1)
    either = found.answer("age < 3 OR age IN (50, 60) AND NOT age = 50")
    assert either.value == pytest.approx(COUNTS[:3].sum() + COUNTS[60], abs=1)
    assert found.reconstruct().tolist() == COUNTS.tolist()


@pytest.mark.long
@pytest.mark.parametrize("cost", [{"epsilon": "0.1"}, {"rho": "0.005"}])
def test_errors_are_as_planned_and_intervals_cover(tmp_path, cost):
    """400 releases of three queries: the interval holds in at least 95%; the deviation is exact."""
    tests = {"age = 7": COUNTS[7], "age BETWEEN 13 AND 58": COUNTS[13:59].sum(), "age >= 0": 20_000}
    held = 0
    squares = dict.fromkeys(tests, 0.0)
    with opened(tmp_path) as session:
        for release in range(400):
            found = measured(session.asking_as(f"a{release}"), **cost)
            for test, truth in tests.items():
                said = found.answer(test)
                held += said.low <= truth <= said.high
                squares[test] += ((said.value - truth) / said.standard_error) ** 2
    # misses of one release depend on one another: counted as if all three were one
    assert held / 1200 > 0.95
    for total in squares.values():
        # a mean of 400 squares of a unit variable: its deviation is below sqrt(6 / 400) = 0.12
        assert 0.2 < total / 400 < 1.75


def test_many_answers_cost_nothing_more_and_the_same_synopsis_is_recalled(tmp_path):
    with opened(tmp_path) as session:
        first = measured(session, rho="0.01")
        before = repr(session.budget)
        for low in range(0, 90, 10):
            first.answer(f"age BETWEEN {low} AND {low + 9}")
        again = measured(session, rho="0.01")
        assert repr(session.budget) == before
        assert again.stored.recalled
        assert (again.counts == first.counts).all()
        assert "age" in repr(again)


def test_another_candidate_can_be_measured_by_name(tmp_path):
    with opened(tmp_path) as session:
        found = measured(session, rho="0.01", strategy="identity")
        assert len(found.task.cells) == 1
        with pytest.raises(WrongUse, match="Haar wavelet"):
            measured(session, rho="0.01", strategy="magic")


def test_frames_have_a_row_for_each_value(tmp_path):
    with opened(tmp_path) as session:
        table = measured(session, rho="0.5").to_arrow()
    assert table.column_names == ["age", "n", "n_error"]
    assert table.num_rows == 100
    assert table["age"].to_pylist() == list(range(100))


def test_a_reconstruction_is_whole_not_negative_and_has_the_total(tmp_path):
    with opened(tmp_path) as session:
        found = measured(session, epsilon="0.01")
    counts = found.reconstruct()
    assert (counts >= 0).all()
    assert (counts == np.round(counts)).all()
    assert counts.sum() == pytest.approx(max(found.counts.sum(), 0), abs=1)
    raw = found.reconstruct(nonnegative=False, integer=False)
    assert (raw == found.counts).all()


@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_dates_categories_and_replaced_units_are_measured_too(tmp_path, relation):
    columns = {"day": sf.Date("2024-04-01", "2024-06-30"), "sex": sf.Category("F", "M")}
    frame = pa.table({"day": ["2024-05-01", "2024-05-02", "2024-06-30", None], "sex": list("FMFM")})
    table = sf.Table(frame, columns=columns)
    with sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(10**6), ledger=tmp_path / "l.db",
        relation=relation,
    ) as session:  # fmt: skip
        days = synopsis.measure(session, "t", synopsis.ranges("day"), epsilon=100_000)
        may = days.answer("day BETWEEN DATE '2024-05-01' AND DATE '2024-05-31'")
        assert may.value == pytest.approx(2, abs=0.01)
        sexes = synopsis.measure(session, "t", synopsis.cells("sex"), epsilon=100_000)
        assert sexes.answer("sex = 'F'").value == pytest.approx(2, abs=0.01)
        cumulative = synopsis.measure(session, "t", synopsis.prefixes("day"), epsilon=100_000)
        assert cumulative.answer("day <= DATE '2024-05-01'").value == pytest.approx(1, abs=0.01)


def test_rows_without_a_value_are_not_counted_as_none(tmp_path):
    """They are not in the layers: 0 with a small interval would be wrong."""
    with opened(tmp_path) as session:
        found = measured(session, rho=1)
        for where in ("age IS NULL", "TRUE", "age > 5 OR age IS NULL"):
            with pytest.raises(UnsupportedSql, match="without a value of 'age'"):
                found.answer(where)
        with pytest.raises(UnsupportedSql, match="without a value"):
            found.query("SELECT COUNT(*) FROM people")
        assert found.answer("age IS NOT NULL").value > 0


def test_statements_are_answered(tmp_path):
    with opened(tmp_path) as session:
        found = measured(session, epsilon=50_000)
    by_age = found.query("SELECT age, COUNT(*) AS n FROM people WHERE age < 50 GROUP BY age")
    assert by_age.column_names == ["age", "n", "n_error", "n_low", "n_high"]
    assert by_age["n"].to_pylist()[:50] == pytest.approx(COUNTS[:50], abs=0.5)
    years = found.query("SELECT SUM(age) AS n, COUNT(age) AS m FROM people")
    assert years["n"].to_pylist() == pytest.approx([AGES.sum()], abs=500)
    assert years["m"].to_pylist() == pytest.approx([20_000], abs=1)
    assert found.answers(["age < 9", "age = 4"]) == [
        found.answer("age < 9"),
        found.answer("age = 4"),
    ]


def test_what_it_cannot_answer_is_refused_by_name(tmp_path):
    with opened(tmp_path) as session:
        found = measured(session, rho=1)
        for where in ("sex = 'F'", "age > 5 AND sex = 'F'", "name LIKE 'x%'"):
            with pytest.raises(UnsupportedSql, match="sums of age"):
                found.answer(where)
        with pytest.raises(UnknownName):
            found.answer("weight > 5")
        for confidence in (1, 0, "high"):
            with pytest.raises(InvalidNumber):
                found.answer("age > 5", confidence)
        with pytest.raises(UnknownName):
            synopsis.measure(session, "people", synopsis.ranges("weight"), rho=1)
        with pytest.raises(MissingDeclaration):
            synopsis.measure(session, "people", synopsis.ranges("name"), rho=1)
        with pytest.raises(WrongUse):
            synopsis.plan(session.dataset, "people", synopsis.ranges("age"))


def test_an_estimator_that_looks_at_the_exact_cube_is_noticed(tmp_path, monkeypatch):
    """Of 40 squared errors of a unit variable, the mean is below 0.2 with p < 1e-12."""

    def mean_square() -> float:
        squares = 0.0
        for release in range(40):
            said = measured(session.asking_as(f"a{release}"), rho="0.005").answer("age < 40")
            squares += ((said.value - COUNTS[:40].sum()) / said.standard_error) ** 2
        return squares / 40

    with opened(tmp_path) as session:
        assert mean_square() > 0.2
        monkeypatch.setattr(Synopsis, "counts", COUNTS)
        assert mean_square() < 0.2


def test_a_column_with_missing_values_has_their_group(tmp_path):
    rows = pa.table({"job": ["a", "b", None, "a"], "sex": ["x", "y", "x", "y"]})
    columns = {"job": sf.Category("a", "b", missing="N"), "sex": sf.Category("x", "y")}
    table = sf.Table(rows, columns=columns)
    sql = "SELECT job, COUNT(*) AS n FROM t GROUP BY job"
    ledger = tmp_path / "ledger.db"
    with sf.connect({"t": table}, dataset="d", budget=sf.Budget(9999), ledger=ledger) as session:
        alone = synopsis.measure(session, "t", synopsis.cells("job"), epsilon=1000)
        both = synopsis.measure(
            session, "t", synopsis.cells("job") * synopsis.cells("sex"), epsilon=1000
        )
    answer = alone.query(sql).to_pydict()
    assert answer["job"] == ["a", "b", None]
    # epsilon is so large that a count is off by one with a chance below e^-300
    assert [round(count) for count in answer["n"][:2]] == [2, 1]
    assert math.isnan(answer["n"][2]) and answer["n_high"][2] == math.inf
    whole = both.query(sql).to_pydict()
    assert whole["job"] == ["a", "b", None]
    assert [round(count) for count in whole["n"]] == [2, 1, 1]
    with pytest.raises(UnsupportedSql, match="without a value"):
        alone.query("SELECT COUNT(*) AS n FROM t WHERE job IS NULL")
