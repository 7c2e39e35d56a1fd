# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the accuracy of models, and who is asked when. Nothing is fitted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import learning_accuracy
from benchmarks.compare import Sample
from benchmarks.driver import Unavailable
from benchmarks.learning_accuracy import ACCURACY, COST, Asked, Found, Row, measured
from benchmarks.systems import groups, persons


def test_an_interval_is_that_of_student():
    # 5 runs: deviation sqrt(2.5), 2.776 * sqrt(2.5 / 5) = 1.9629
    assert Found.of([1, 2, 3, 4, 5]) == Found(3.0, 1.037, 4.963)
    assert Found.of([7.0]) == Found(7.0, 7.0, 7.0)


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=2, max_size=40))
def test_the_area_is_the_share_of_pairs_in_order(rows):
    chances, rich = (np.array(each) for each in zip(*rows, strict=True))
    low, high = chances[~rich], chances[rich]
    if not len(low) or not len(high):
        return
    pairs = [(above > below) + (above == below) / 2 for above in high for below in low]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(persons, "persons", lambda split: persons.Persons({}, {}, rich))
        assert persons.area(chances) == pytest.approx(np.mean(pairs))


class Fake:
    """Gives 90, 91, ... for ours, or refuses."""

    def __init__(self, first, asked, refuses=False):
        self.next, self.asked, self.refuses = first, asked, refuses

    def ask(self, work, kind):
        self.asked.append((work.system, work.name, work.n))
        if self.refuses:
            raise Unavailable("cannot")
        self.next += 1
        return Sample(float(self.next - 1), None)


CASE = Asked("data", 0.5, "model", ((ACCURACY, 91.5),), ("first", "second"), runs=2)


def test_models_are_fitted_in_turn_and_the_first_row_has_the_bar():
    asked, skipped = [], {}
    workers = {"models": Fake(91, asked), "diffprivlib": Fake(10, asked)}
    first, second = measured(CASE, workers, skipped)
    names = [("models", "model"), ("diffprivlib", "first"), ("diffprivlib", "second")]
    once = [(system, f"{name}, accuracy") for system, name in names]
    assert asked == [(*each, run) for run in (0, 1) for each in once] and not skipped
    assert first.ours.mean == 91.5 and (first.bar, first.holds) == (">= 91.5", True)
    assert first.peer.mean == 11.0 and first.ratio == pytest.approx(0.1202)
    assert (second.peer_name, second.bar, second.holds) == ("diffprivlib, second", None, None)


def test_a_peer_that_cannot_is_asked_once_and_we_never_are_left_out():
    asked, skipped = [], {}
    workers = {"models": Fake(90, asked), "diffprivlib": Fake(0, asked, refuses=True)}
    first, _ = measured(CASE, workers, skipped)
    assert (first.peer, first.ratio, first.holds) == (None, None, False)
    assert skipped == {
        "diffprivlib: first, accuracy, 0.5": "cannot",
        "diffprivlib: second, accuracy, 0.5": "cannot",
    }
    assert len([each for each in asked if each[0] == "diffprivlib"]) == 2
    with pytest.raises(Unavailable):
        list(measured(CASE, {"models": Fake(0, [], refuses=True)}, {}))


def test_less_is_better_for_a_cost():
    case = Asked("data", 0.5, "model", ((COST, 1.1),), runs=2)
    (row,) = measured(case, {"models": Fake(1, [])}, {})
    assert row.holds is False and row.bar == "<= 1.1" and row.peer_name is None
    assert learning_accuracy.line(row).endswith("FAILS")
    assert isinstance(row, Row)


def test_the_cost_of_centers_is_that_of_the_nearest_ones():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    assert groups.cost(points, np.array([[0.0, 0.0], [0.0, 3.0]])) == 2.0
    found = groups.groups(0)
    # 20,000 points, 5 numbers, deviation 0.1: at most 1,000, and a little less after k-means
    assert 930 < found.best < 1010
