# SPDX-License-Identifier: Apache-2.0
"""From released numbers to the table: HAVING, ORDER BY, LIMIT, OFFSET, types, bytes."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.plan.output import Item, Order, Output
from sfumato.plan.scalar import Compare, Comparison, Constant, Estimate, Key
from sfumato.query.answer import Answer
from sfumato.query.answer_rows import Rows, merged
from sfumato.query.estimate import TOTAL, Kind, Reading, Released
from sfumato.query.table import answer_body, error_rows, load_body, parts_from_json
from tests.contracts.people import EXACTLY, FRAME, session
from tests.contracts.released import means, numbers

FACTS = {
    "charge_id": "c", "dataset": "d", "statement": "s", "protected": [], "bounded": [], "bias": [], "notes": ["first"],
    "cost": {"epsilon": "1", "rho": "1", "delta": "0", "items": []},
}  # fmt: skip
ONE = Fraction(1)
# two counts by a key of five codes, one of which is missing
GROUPS = [(0,), (1,), (2,), (3,), (None,)]
COUNTS = [30, 10, 20, 10, 40]


def counts(values: list[int], unit: Fraction = ONE) -> Released:
    """Released counts, one a group."""
    return numbers(values, DiscreteLaplace(2), unit)


def body(output: Output, parts: list[Released] | None = None) -> dict[str, object]:
    """The stored form of an answer over ``GROUPS``."""
    shown = [[None if code is None else f"k{code}" for code in group] for group in GROUPS]
    rows = merged(output, parts or [counts(COUNTS)], GROUPS)
    return load_body(answer_body(FACTS, output, rows, ["text"], shown))


def output(**clauses: object) -> Output:
    """SELECT key, n with clauses."""
    return Output((Item("k", Key(0)), Item("n", Estimate(0))), **clauses)


def keys(form: dict[str, object]) -> list[object]:
    """The first column."""
    return [row[0] for row in form["rows"]]


def test_without_clauses_every_group_appears_in_declared_order() -> None:
    form = body(output())
    assert form["rows"] == [["k0", 30], ["k1", 10], ["k2", 20], ["k3", 10], [None, 40]]
    assert form["columns"] == [
        {"name": "k", "type": "text", "released": False},
        {"name": "n", "type": "integer", "released": True},
    ]


def test_having_keeps_what_is_true() -> None:
    assert keys(
        body(output(having=Compare(Comparison.GT, Estimate(0), Constant(Fraction(15)))))
    ) == ["k0", "k2", None]
    # NULL is not true: the missing key compares as NULL
    assert keys(body(output(having=Compare(Comparison.LT, Key(0), Constant(9))))) == [
        "k0",
        "k1",
        "k2",
        "k3",
    ]


def test_order_is_stable_and_nulls_go_where_they_are_told() -> None:
    assert keys(body(output(order=(Order(Estimate(0)),)))) == ["k1", "k3", "k2", "k0", None]
    assert keys(body(output(order=(Order(Estimate(0), descending=True),)))) == [
        None,
        "k0",
        "k2",
        "k1",
        "k3",
    ]
    assert keys(body(output(order=(Order(Key(0), descending=True),)))) == [
        "k3",
        "k2",
        "k1",
        "k0",
        None,
    ]
    assert keys(body(output(order=(Order(Key(0), nulls_first=True),)))) == [
        None,
        "k0",
        "k1",
        "k2",
        "k3",
    ]
    two = (Order(Estimate(0)), Order(Key(0), descending=True))
    assert keys(body(output(order=two))) == ["k3", "k1", "k2", "k0", None]


def test_limit_and_offset_cut_after_the_order() -> None:
    order = (Order(Estimate(0)),)
    assert keys(body(output(order=order, limit=2))) == ["k1", "k3"]
    assert keys(body(output(order=order, limit=2, offset=1))) == ["k3", "k2"]
    assert keys(body(output(order=order, offset=4))) == [None]
    assert keys(body(output(limit=0))) == []
    assert keys(body(output(offset=9))) == []


def test_the_clauses_work_on_the_released_numbers_of_a_session(tmp_path: Path) -> None:
    frame = pa.table({**{n: FRAME[n] for n in FRAME.column_names}, "sex": ["F"] * 30 + ["M"] * 10})
    sql = (
        "SELECT smoker, sex, COUNT(*) AS n FROM people GROUP BY sex, smoker HAVING COUNT(*) > 0 AND n < 100 "
        "ORDER BY n DESC, 1 LIMIT 2 OFFSET 1"
    )
    with session(tmp_path, frame) as opened:
        answer = opened.query(sql, epsilon=EXACTLY)
    assert answer.rows == [[False, "male", 8], [True, "female", 8]]


def test_a_refined_count_is_a_real_number() -> None:
    form = body(output(), [counts(COUNTS, Fraction(1, 4))])
    assert form["columns"][1]["type"] == "real"
    assert [row[1] for row in form["rows"]] == [7.5, 2.5, 5, 2.5, 10]


def test_a_warning_counts_the_shown_rows_whose_mean_has_no_support() -> None:
    mean = means(((5, 5), (-3, 1), (1, 1), (0, 0), (1, -2)), DiscreteGaussian(2), 0, 9)
    notes = body(output(), [mean])["notes"]
    assert notes[0] == "first"
    assert notes[1].startswith("n: in 4 rows it cannot be told")
    mean = means(((5000, 5000), (-3, 1), (4000, 1), (70, 80), (50, 50)), DiscreteGaussian(2), 0, 9)
    assert body(output(), [mean])["notes"][1].startswith("n: in 1 row it cannot be told")
    assert len(body(output(limit=1), [mean])["notes"]) == 1


def test_the_same_release_gives_the_same_bytes() -> None:
    shown = [["k"] for _ in GROUPS]
    rows = merged(output(), [counts(COUNTS)], GROUPS)
    one, two = (answer_body(FACTS, output(), rows, ["text"], shown) for _ in range(2))
    assert one == two
    assert json.loads(one)["format"] == 4


@given(
    st.lists(st.integers(-(10**20), 10**20), min_size=5, max_size=5),
    st.fractions(Fraction(1, 1000), 1000),
)
def test_parts_survive_their_stored_form(values: list[int], unit: Fraction) -> None:
    parts = [
        counts(values, unit),
        means(
            [(v, -v) for v in values],
            DiscreteGaussian(sigma_squared=Fraction(7, 3)),
            unit,
            unit,
            unit,
        ),
        Released(
            "Q",
            Reading(Kind.QUANTILES, unit, unit, unit, 2 * unit, is_date=True),
            None,
            ((1, 2),) * 5,
            (1,) * 5,
            (unit, 2 * unit),
            9,
        ),
    ]
    assert parts_from_json(body(output(), parts)["released"]["parts"]) == parts


def test_stored_errors_are_those_of_the_stored_parts() -> None:
    form = body(output())
    answer = Answer(json.dumps(form).encode())
    parts = parts_from_json(form["released"]["parts"])
    assert form["errors"] == error_rows(output(), parts, [0, 1, 2, 3, 4], Fraction(5, 100))
    assert [row["n"] for row in answer.error()] == [line[1] for line in form["errors"]]


@given(st.integers(-(10**6), 10**6), st.integers(1, 50))
def test_an_interval_is_rounded_outward(value: int, denominator: int) -> None:
    unit = Fraction(1, denominator)
    form = body(output(), [counts([value] * 5, unit)])
    reach = DiscreteLaplace(2).half_width("0.95")
    error = form["errors"][0][1]
    assert Fraction(error["low"]) <= (value - reach) * unit
    assert Fraction(error["high"]) >= (value + reach) * unit
    assert Fraction(error["half_width"]) >= reach * unit
    assert float(error["half_width"]) == pytest.approx(float(reach * unit))


# --- grouping sets -----------------------------------------------------------------------------

CUBE = [(sex, job) for sex in (0, 1) for job in (0, 1, None)]


def test_a_total_is_the_sum_of_its_parts() -> None:
    part = numbers([1, 2, 3, 10, 20, 30], DiscreteLaplace(2))
    sets = ((0, 1), (0,), ())
    rows = merged(output(sets=sets), [part], CUBE)
    (total,) = rows.parts
    assert list(rows.codes) == [*CUBE, (0, TOTAL), (1, TOTAL), (TOTAL, TOTAL)]
    assert rows.members[6:] == ((0, 1, 2), (3, 4, 5), (0, 1, 2, 3, 4, 5))
    assert total.values == ((1,), (2,), (3,), (10,), (20,), (30,), (6,), (60,), (66,))
    assert total.copies == (1,) * 6 + (3, 3, 6)


def test_without_sets_nothing_is_added_up() -> None:
    part = numbers([1, 2], DiscreteLaplace(2))
    assert merged(output(), [part], [(0,), (1,)]) == Rows((part,), ((0,), (1,)), ((0,), (1,)))


def test_a_quantile_of_dates_is_shown_as_a_date() -> None:
    reading = Reading(Kind.QUANTILES, ONE, Fraction(0), ONE, Fraction(199), is_date=True)
    part = Released(
        "Q", reading, None, tuple((day,) for day in (0, 31, 59, 90, 120)), (1,) * 5, (ONE,), 200
    )
    form = body(output(), [part])
    assert [row[1] for row in form["rows"]] == [
        "1970-01-01",
        "1970-02-01",
        "1970-03-01",
        "1970-04-01",
        "1970-05-01",
    ]
    assert form["columns"][1]["type"] == "date"
    assert form["errors"][0][1]["rank_error"] > 0
    assert (form["errors"][0][1]["low"], form["errors"][0][1]["high"]) == (None, None)
    with_ends = replace(part, values=tuple((*days, 3, 150) for days in part.values), shifts=(99,))
    form = body(output(), [with_ends])
    assert (form["errors"][0][1]["low"], form["errors"][0][1]["high"]) == (
        "1970-01-01",
        "1970-05-31",
    )


def test_what_a_quantile_was_selected_with_is_stored_and_restored() -> None:
    reading = Reading(Kind.QUANTILES, ONE, Fraction(2), Fraction(5), Fraction(98), rounding=2 * ONE)
    part = Released("Q", reading, None, ((1, 0, 3),) * 5, (1,) * 5, (ONE,), 20, (99,))
    (form,) = body(output(), [part])["released"]["parts"]
    assert parts_from_json([form]) == [part]
    # a release without ends has the form that it always had
    (form,) = body(output(), [replace(part, values=((1,),) * 5, shifts=())])["released"]["parts"]
    assert "shifts" not in form
    assert parts_from_json([form])[0].shifts == ()


def test_a_quantile_on_a_grid_states_both_ends_of_its_leaf() -> None:
    reading = Reading(Kind.QUANTILES, ONE, Fraction(2), Fraction(5), Fraction(98), rounding=2 * ONE)
    part = Released("Q", reading, None, ((1,), (19,)) * 3, (1,) * 6, (ONE,), 20)
    first, last, *_ = (line[1] for line in body(output(), [part])["errors"])
    assert (first["leaf_low"], first["leaf_high"]) == (5, 9)
    # the last leaf ends with the range
    assert (last["leaf_low"], last["leaf_high"]) == (95, 98)
