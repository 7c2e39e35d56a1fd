# SPDX-License-Identifier: Apache-2.0
"""Rows of children given their parents, against laws that are worked out by hand."""

import numpy as np
import pytest

from sfumato.query.allowance import allowance
from sfumato.synthetic.children import ChildModel, Conditional, _few
from sfumato.synthetic.estimate import Measurement
from sfumato.synthetic.relational_plan import planned
from sfumato.synthetic.relational_task import Parents
from sfumato.synthetic.rows import Dice
from sfumato.testing import Replay
from sfumato.testing.asserts import assert_counts_follow
from tests.synthetic.clinics import tiny, tiny_family


def model(order: str = "", wards: tuple[int, int] = (20_000, 20_000)) -> ChildModel:
    """Visits with two columns of two values; each day has half of the rows."""
    dataset = tiny()
    task = planned(dataset, tiny_family(dataset, order), allowance(rho=1000), [], {})
    parent = task.parent.base([np.array([500, 500, 0]) << 20, np.array([400, 300, 300, 0]) << 20])
    singles = [np.array([*counts, 0]) << 20 for counts in ((20_000, 20_000), wards)]
    (child,) = task.children
    return child.begin(child.base(singles, parent), Parents(np.zeros((1, 2), np.int64), 1))


def parents() -> np.ndarray:
    """Sixty thousand: their sexes, and how many visits they have."""
    sexes, numbers = np.meshgrid([0, 1], [0, 1, 2])
    return np.tile(np.column_stack([sexes.ravel(), numbers.ravel()]), (10_000, 1))


def test_numbers_of_rows_are_a_few_blocks():
    # none and missing; one visit; two, three and four, which are 130 units together
    assert _few(np.array([500.0, 400, 90, 30, 10, 0]), 100.0).blocks == (0, 1, 2, 2, 2, 0)


def test_odds_multiply():
    one = Conditional(0, (1, 2), (np.log([1.0, 3.0]), np.log([[1, 1], [1, 2.0]]), np.zeros((2, 2))))
    found = one.shares(np.array([[0, 0], [1, 1]]))
    assert found == pytest.approx(np.array([[1 / 4, 3 / 4], [1 / 7, 6 / 7]]))


def test_parents_have_as_many_rows_as_they_say_and_never_more():
    begun = model()
    cells = np.array([[0, 2], [1, 0], [0, 1], [1, 3]])
    rows = begun.drawn(cells, Dice(Replay(1)))
    # a number that is missing, or beyond the limit, is none
    assert begun.owners(rows).tolist() == [0, 0, 2]
    assert begun.weights(rows).tolist() == [0.5, 0.5, 1]


def test_columns_follow_the_counts_that_were_measured():
    """Wards by sex as measured: 3 to 1 for one, even for the other; the days stay even."""
    begun, people = model(wards=(25_000, 15_000)), parents()
    ward, sex = 1, 2
    # each of 20,000 units of a sex has the weight 1, if it has a visit at all
    counts = np.array([[15_000.0, 10_000], [5000, 10_000]])
    seen = Measurement((ward, sex), counts, np.full((2, 2), 1.0))
    fitted = begun.fitted([seen], people, Dice(Replay(1)))
    assert fitted.columns[ward].given == (sex,)
    rows = fitted.drawn(people, Dice(Replay(2)))
    for sex_value, law in ((0, [0.75, 0.25]), (1, [0.5, 0.5])):
        chosen = rows[rows[:, sex] == sex_value]
        found = np.bincount(chosen[:, ward], minlength=2)[:2]
        assert_counts_follow(found, np.array(law), notices=np.array([0.6, 0.4]))
        assert_counts_follow(
            np.bincount(chosen[:, 0], minlength=2)[:2],
            np.array([0.5, 0.5]),
            notices=np.array([0.6, 0.4]),
        )


def test_a_row_knows_the_one_before_it():
    """The ward of a second visit is that of the first: measured, and kept."""
    begun, people = model("d"), parents()
    before = begun.base.schema.names.index("previous w of visits")
    counts = np.array([[5000.0, 0, 15_000], [0, 5000, 15_000]])
    seen = Measurement((1, before), counts, np.full((2, 3), 1.0))
    fitted = begun.fitted([seen], people, Dice(Replay(1)))
    rows = fitted.drawn(people, Dice(Replay(2)))
    second = np.flatnonzero(rows[:, before] < 2)
    assert len(second) == 20_000
    assert np.mean(rows[second, 1] == rows[second - 1, 1]) > 0.99
    assert (rows[second, before] == rows[second - 1, 1]).all()
    firsts = np.setdiff1d(np.arange(len(rows)), second)
    assert_counts_follow(
        np.bincount(rows[firsts, 1]), np.array([0.5, 0.5]), notices=np.array([0.6, 0.4])
    )


def test_columns_of_the_parent_that_go_together_are_not_counted_twice():
    """Two columns of the parent with the same values: the odds are those of one of them."""
    begun, people = model(wards=(20_000, 20_000)), parents()
    people[:, 0] = people[:, 1] == 2
    rows = begun.drawn(people, Dice(Replay(1)))
    blocks = {place: rows[:, place] for place in (2, 3)}
    weights = begun.weights(rows)
    pairs = []
    for place in (2, 3):
        size = begun.base.sizes[place]
        shares = np.bincount(blocks[place], weights, size)
        odds = np.where(np.arange(size) == blocks[place].max(), 0.9, 0.1)
        counts = np.stack([shares * odds, shares * (1 - odds)])
        pairs.append(Measurement((1, place), counts, np.full(counts.shape, 3.0)))
    fitted = begun.fitted(pairs, people, Dice(Replay(2)))
    rows = fitted.drawn(people, Dice(Replay(3)))
    often = rows[rows[:, 2] == 1]
    # a naive Bayes classifier would say 81 to 1
    assert np.mean(often[:, 1] == 0) == pytest.approx(0.9, abs=0.03)


def test_blocks_of_the_previous_row_are_those_of_the_column_and_none():
    begun = model("d")
    before = begun.base.merges[begun.base.schema.names.index("previous w of visits")]
    own = begun.base.merges[1]
    # missing, which does not occur, is in the block of a value; none has one of its own
    assert own.size == 2 and before.blocks == (*own.blocks[:-1], 2)
