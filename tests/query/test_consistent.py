# SPDX-License-Identifier: Apache-2.0
"""Consistent counts: whole, not negative, totals that agree, intervals that still hold."""

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.noise import DiscreteLaplace
from sfumato.plan.output import Item, Output
from sfumato.plan.scalar import Estimate, Key
from sfumato.query.answer import Answer
from sfumato.query.answer_rows import merged
from sfumato.query.consistent import consistent_error, consistent_rows, is_count
from sfumato.query.table import answer_body, load_body
from tests.contracts.people import session
from tests.contracts.released import means, numbers
from tests.query.test_table import FACTS

GROUPS = [(sex, job) for sex in (0, 1) for job in (0, 1)]
ITEMS = (Item("sex", Key(0)), Item("job", Key(1)), Item("n", Estimate(0)))


def answer(
    values: list[int], sets: tuple[tuple[int, ...], ...] = (), unit: Fraction = Fraction(1)
) -> Answer:
    """An answer with these released counts by sex and job."""
    output = Output(ITEMS, sets=sets)
    rows = merged(output, [numbers(values, DiscreteLaplace(2), unit)], GROUPS)
    shown = [[code if code is None else f"k{code}" for code in codes] for codes in rows.codes]
    return Answer(answer_body(FACTS, output, rows, ["text", "text"], shown))


@given(
    st.lists(st.integers(-50, 50), min_size=4, max_size=4),
    st.sampled_from([Fraction(1), Fraction(1, 8)]),
)
def test_consistent_counts_are_whole_and_not_negative(values: list[int], unit: Fraction) -> None:
    shown = [row[2] for row in answer(values, unit=unit).consistent().rows]
    for value, exact in zip(shown, values, strict=True):
        assert isinstance(value, int)
        assert value == max(round(float(exact * unit) + 1e-9), 0)


@given(st.lists(st.integers(-50, 50), min_size=4, max_size=4))
def test_a_total_agrees_with_its_parts(values: list[int]) -> None:
    rows = answer(values, sets=((0, 1), (0,), ())).consistent().rows
    parts, by_sex, (total,) = (
        [row[2] for row in rows[:4]],
        [row[2] for row in rows[4:6]],
        [row[2] for row in rows[6:]],
    )
    assert by_sex == [parts[0] + parts[1], parts[2] + parts[3]]
    assert total == sum(parts)
    plain = [row[2] for row in answer(values, sets=((0, 1), (0,), ())).rows]
    # the mutant that shows each total by itself is noticed wherever a part was cut
    if min(values) < 0 < sum(values):
        assert plain[6] != total


def test_totals_without_their_parts_are_rounded_by_themselves() -> None:
    assert [row[2] for row in answer([5, -9, 3, 4], sets=((0,), ())).consistent().rows] == [0, 7, 3]


@pytest.mark.parametrize("confidence", ["0.5", "0.95"])
def test_intervals_are_cut_at_zero_and_still_hold_the_truth(confidence: str) -> None:
    plain = answer([-3, 20, 0, 1])
    for before, after, value in zip(
        plain.error(confidence),
        plain.consistent().error(confidence),
        plain.consistent().rows,
        strict=True,
    ):
        old, new = before["n"], after["n"]
        assert (new["low"], new["high"]) == (max(old["low"], 0), max(old["high"], 0))
        assert new["half_width"] == max(value[2] - new["low"], new["high"] - value[2])


def test_other_columns_stay_as_they_are() -> None:
    part = means([(3, 4)], DiscreteLaplace(1))
    assert not is_count(Estimate(0), [part])
    output = Output((Item("m", Estimate(0)),))
    body = answer_body(FACTS, output, merged(output, [part], [()]), [], [[]])
    assert consistent_rows(load_body(body), output, [part]) == load_body(body)["rows"]
    assert consistent_error(None, 3) is None
    assert consistent_error({"low": None, "high": None, "half_width": None}, 3)["low"] is None


def test_a_session_offers_it_and_it_is_free(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        found = opened.query(
            "SELECT smoker, COUNT(*) AS n FROM people GROUP BY ROLLUP(smoker)", epsilon="0.1"
        )
        consistent = found.consistent()
        assert opened.budget.spent == "0.1"
    counts = [row[1] for row in consistent.rows]
    assert counts[-1] == sum(counts[:-1])
    assert min(counts) >= 0
    assert consistent.notes[-1].startswith("Counts are shown as whole numbers")
    assert consistent.charge_id == found.charge_id
