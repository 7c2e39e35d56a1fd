# SPDX-License-Identifier: Apache-2.0
"""Intervals of columns that are computed from private answers: how often, and how wide."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.plan.output import Item, Order, Output
from sfumato.plan.scalar import Estimate, Key
from sfumato.plan.statistic import Statistic
from sfumato.query import outer_errors as module
from sfumato.query.answer import Answer
from sfumato.query.answer_rows import merged
from sfumato.query.outer_errors import Releases
from sfumato.query.table import answer_body
from sfumato.sql.outer_forms import ANY_OR_NULL, NO_ROW, Computed, FixedNumber, Kind, Leaf
from sfumato.testing.asserts import assert_at_most
from tests.contracts.released import means, numbers

LAW = DiscreteLaplace(10)
MISS = Fraction(1, 20)
FACTS = {
    "charge_id": "c", "dataset": "d", "statement": "s", "protected": [], "bounded": [], "bias": [], "notes": [],
    "cost": {"epsilon": "1", "rho": "1", "delta": "0", "items": []},
}  # fmt: skip
PLAIN = Output((Item("k", Key(0)), Item("n", Estimate(0))))
CELL = Leaf(Kind.CELL, (0,))
OTHER = Leaf(Kind.CELL, (1,))
DIFFERENCE = Computed("-", (CELL, OTHER))


def answer(values, output=PLAIN, part=None):
    """The answer with a group for each value."""
    groups = [(place,) for place in range(len(values))]
    rows = merged(output, [part or numbers(values, LAW)], groups)
    shown = [[f"k{place}"] for place in range(len(rows.codes))]
    return Answer(answer_body(FACTS, output, rows, ["text"], shown))


def code(row, column=1, place=0):
    return (place * 2**12 + column) * 2**32 + row


def interval(form, hidden, *answers, miss=MISS):
    return Releases(answers).interval(form, hidden.__getitem__, miss).interval


def width(form, hidden, *answers):
    low, high = interval(form, hidden, *answers)
    return high - low


def total(values, kind=Kind.SUM, rows=None, **options):
    """The leaf and hidden columns of the sum of some rows of an answer."""
    rows = range(len(values)) if rows is None else rows
    added = sum(values[row] for row in rows)
    shown = added if kind is Kind.SUM else added / len(rows)
    hidden = [shown, len(rows), len(set(rows)), code(min(rows)), code(max(rows))]
    return Leaf(kind, (0, 1, 2, 3, 4), **options), hidden


def test_a_cell_has_the_interval_of_its_release():
    assert interval(CELL, [code(1)], answer([5, 7])) == (7 - 30, 7 + 30)
    assert interval(CELL, [None], answer([5, 7])) is None


def test_a_chosen_cell_holds_with_all_others_at_once():
    alone = answer([5] * 50)
    chosen = replace(CELL, chosen=True)
    half = LAW.half_width(1 - MISS / 50)
    assert interval(chosen, [code(1)], alone) == (5 - half, 5 + half)


def test_an_answer_that_shows_few_rows_has_those_it_could_have_shown():
    """A cell that noise chose inside its answer: all 50 groups were candidates."""
    top = replace(PLAIN, order=(Order(Estimate(0), descending=True),), limit=1)
    half = LAW.half_width(1 - MISS / 50)
    low, high = interval(replace(CELL, chosen=True), [code(0)], answer([5] * 49 + [6], top))
    assert (low, high) == (6 - half, 6 + half)


def test_a_difference_and_a_sum_are_as_wide_as_their_law():
    values = [100 + place for place in range(12)]
    own = answer(values)
    assert interval(DIFFERENCE, [code(3), code(2)], own) == (1 - 41, 1 + 41)
    leaf, hidden = total(values)
    low, high = interval(leaf, hidden, own)
    assert (low + high) / 2 == sum(values) and 97 <= (high - low) / 2 < Fraction(97001, 1000)
    leaf, hidden = total(values, Kind.MEAN)
    assert width(leaf, hidden, own) / 2 == pytest.approx(97 / 12, rel=1e-6)


def test_a_cell_less_itself_is_nothing():
    assert interval(DIFFERENCE, [code(1), code(1)], answer([5, 7])) == (0, 0)


def test_cells_of_two_columns_or_answers_are_bounded_apart():
    one = LAW.half_width(1 - MISS / 2)
    apart = interval(DIFFERENCE, [code(0), code(0, place=1)], answer([5]), answer([7]))
    assert apart == (-2 - 2 * one, -2 + 2 * one)


def test_chosen_cells_are_bounded_apart():
    one = LAW.half_width(1 - MISS / 2 / 3)
    chosen = Computed("-", (CELL, replace(OTHER, chosen=True)))
    low, high = interval(chosen, [code(0), code(1)], answer([5, 7, 9]))
    assert high - low == 2 * (LAW.half_width(1 - MISS / 2) + one)


def test_what_is_no_sum_of_noises_of_its_own_has_no_interval():
    values = [5, 7, 9]
    leaf, hidden = total(values, rows=[0, 1, 1])
    assert interval(leaf, hidden, answer(values)) is None
    leaf, hidden = total(values, chosen=True)
    assert interval(leaf, hidden, answer(values)) is None
    leaf, hidden = total(values)
    two = [*hidden[:4], code(2, place=1)]
    assert interval(leaf, two, answer(values), answer(values)) is None
    shown = replace(numbers(values, LAW), threshold=3)
    assert interval(leaf, hidden, answer(values, part=shown)) is None
    mean = means([(5, 5)] * 3, LAW)
    assert interval(leaf, hidden, answer(values, part=mean)) is None
    # a total has the noises of its groups
    leaf, hidden = total([*values, 21])
    assert interval(leaf, hidden, answer(values, replace(PLAIN, sets=((0,), ())))) is None


def test_the_count_and_the_sum_of_a_mean_add_up():
    part = means([(40, 60), (50, 50)], LAW, lower=0, span=10)
    for statistic in (Statistic.COUNT, Statistic.SUM):
        output = Output((Item("k", Key(0)), Item("n", Estimate(0, statistic))))
        own = answer([0, 0], output, part)
        values = [row[1] for row in own.rows]
        leaf, hidden = total(values)
        low, high = interval(leaf, hidden, own)
        assert low < sum(values) < high


def test_arithmetic_shares_the_miss():
    own = answer([100, 400])
    ratio = Computed("/", (CELL, OTHER))
    half = LAW.half_width(1 - MISS / 2)
    low, high = interval(ratio, [code(0), code(1)], own)
    assert low == Fraction(100 - half, 400 + half) and high == Fraction(100 + half, 400 - half)
    twice = Computed("*", (CELL, FixedNumber(Fraction(2))))
    assert interval(twice, [code(0)], own) == (140, 260)
    scaled = Computed("*", (CELL, Leaf(Kind.PUBLIC, (1,))))
    assert interval(scaled, [code(0), 3], own) == (210, 390)
    assert interval(scaled, [code(0), None], own) is None
    rounded = Computed("round", (twice, FixedNumber(Fraction(50))))
    assert interval(rounded, [code(0)], own) == (150, 250)


def test_the_first_that_is_not_null():
    own = answer([100, 400])
    first = Computed("first", (CELL, FixedNumber(Fraction(0))))
    assert interval(first, [code(0)], own) == (70, 130)
    # the number of a group that was not shown is not 0
    assert interval(first, [None], own) is None
    lagged = Computed("lagged", (CELL, FixedNumber(Fraction(0))))
    assert interval(lagged, [code(0)], own) == (70, 130)
    assert interval(lagged, [NO_ROW], own) == (0, 0)
    # a row that is there without its number: not shown, or beyond an outer join
    assert interval(lagged, [None], own) is None
    # noise decides whether the number or the default stands
    default = Computed("first", (Computed(ANY_OR_NULL, (CELL,)), FixedNumber(Fraction(0))))
    assert interval(default, [code(0)], own) == (0, 130)
    anyone = Computed("any", (CELL, FixedNumber(Fraction(0))))
    assert interval(anyone, [code(0)], own) == (0, 130)


def coverage(form, hidden_of, truth, trials=300, cells=12):
    """How many intervals of a form miss, over draws of so many cells of 100."""
    draws = LAW.sample(cells * trials).reshape(trials, cells).tolist()
    missing = 0
    for noise in draws:
        values = [100 + each for each in noise]
        low, high = interval(form, hidden_of(values), answer(values))
        missing += not low <= truth <= high
    return missing, trials


FORMS = {
    "a sum of twelve": (Leaf(Kind.SUM, (0, 1, 2, 3, 4)), lambda values: total(values)[1], 1200),
    "a mean of twelve": (
        Leaf(Kind.MEAN, (0, 1, 2, 3, 4)),
        lambda values: total(values, Kind.MEAN)[1],
        100,
    ),
    "a difference": (DIFFERENCE, lambda values: [code(3), code(2)], 0),
    "a share": (
        Computed("/", (Leaf(Kind.CELL, (5,)), Leaf(Kind.SUM, (0, 1, 2, 3, 4)))),
        lambda values: [*total(values)[1], code(4)],
        Fraction(1, 12),
    ),
    "the largest": (
        replace(CELL, chosen=True),
        lambda values: [code(values.index(max(values)))],
        100,
    ),
    "the largest step": (
        Computed("-", (replace(CELL, chosen=True), replace(OTHER, chosen=True))),
        lambda values: [code(values.index(max(values))), code(values.index(min(values)))],
        0,
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_of_releases_covers_at_least_as_often_as_stated(name):
    assert_at_most(*coverage(*FORMS[name]), 0.05, notices=0.5)


def test_an_interval_of_one_cell_for_a_sum_is_noticed(monkeypatch):
    one = module.sum_reach
    monkeypatch.setattr(
        module, "sum_reach", lambda noise, miss, weights, count: one(noise, miss, weights, 1)
    )
    with pytest.raises(AssertionError):
        assert_at_most(*coverage(*FORMS["a sum of twelve"]), 0.05, notices=0.5)


def test_an_interval_of_one_cell_for_the_largest_is_noticed():
    form, hidden, truth = FORMS["the largest"]
    alone = replace(form, chosen=False)
    with pytest.raises(AssertionError):
        assert_at_most(*coverage(alone, hidden, truth, cells=80), 0.05, notices=0.5)


def missing(noise, draws, far):
    """P(|S| > far) of the sum of so many draws, by convolution of the law."""
    width = 18 * math.ceil(math.sqrt(noise.variance.upper)) + 5
    one = np.array([noise.pmf(x).upper for x in range(-width, width + 1)])
    law = np.ones(1)
    for _ in range(draws):
        law = np.convolve(law, one)
    middle = draws * width
    end = math.floor(far) + 1
    return law[: max(middle - end + 1, 0)].sum() + law[middle + end :].sum()


UNITS = [Fraction(1), Fraction(3), Fraction(1, 2), Fraction(7, 4)]


def farthest(noise, unit, draws):
    """The half width of the sum or difference of released cells, in units of their noise."""
    own = answer([40 + place for place in range(draws)], part=numbers([40] * draws, noise, unit))
    if draws == 2:
        return width(DIFFERENCE, [code(0), code(1)], own) / 2 / unit
    leaf, hidden = total([float(40 * unit)] * draws)
    return width(leaf, hidden, own) / 2 / unit


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("noise", [LAW, DiscreteLaplace("0.7"), DiscreteGaussian("90")], ids=str)
def test_no_interval_of_a_sum_misses_more_often_than_its_law_allows(noise, unit):
    for draws in (1, 2, 5):
        far = farthest(noise, unit, draws)
        assert missing(noise, draws, far) <= float(MISS)
        # and a step less misses more often, but for the cells of the transform
        assert missing(noise, draws, far * Fraction(98, 100) - 1) > float(MISS)


def test_a_floor_of_noise_that_is_not_whole_is_noticed(monkeypatch):
    true = module.Release.reach
    monkeypatch.setattr(
        module.Release, "reach", lambda self, *rest: Fraction(math.floor(true(self, *rest)))
    )
    assert missing(LAW, 2, farthest(LAW, Fraction(1, 2), 2)) > float(MISS)


def test_doubles_that_are_not_whole_have_room_for_their_rounding():
    values = [4, 5, 6]
    own = answer(values, part=numbers(values, LAW, Fraction(1, 10)))
    leaf, hidden = total([0.4, 0.5, 0.6])
    assert width(leaf, hidden, own) / 2 > module.sum_reach(LAW, MISS, (Fraction(1, 10),), 3)
    whole, hidden = total(values)
    exact = module.sum_reach(LAW, MISS, (Fraction(1),), 3)
    assert width(whole, hidden, answer(values)) / 2 == exact
