# SPDX-License-Identifier: Apache-2.0
"""A classifier trained on rows and tested on private ones: near the truth, charged, refused."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.cli.rows_score import nearest_guess
from sfumato.cli.rows_score import tested as right_answers
from sfumato.errors import UnknownName, WrongUse
from tests.synthetic.towns import session, town


def test_true_rows_are_predicted_and_shuffled_ones_are_not(tmp_path):
    """Pay decides the job: a classifier of the true rows is right, one of shuffled labels is not."""
    with session(tmp_path) as opened:
        good = right_answers(opened, "people", town(seed=2), "job", 1)
        assert good.accuracy > 0.95 and good.low <= good.accuracy <= good.high
        before = repr(opened.budget)
        jobs = np.random.default_rng(3).permutation(town(seed=2)["job"].to_pylist())
        place = town().column_names.index("job")
        shuffled = town(seed=2).set_column(place, "job", pa.array(jobs))
        assert right_answers(opened, "people", shuffled, "job", 1).accuracy < 0.6
        # the second test is a charge of its own
        assert repr(opened.budget) != before


def test_a_number_is_predicted_within_a_tolerance(tmp_path):
    """The job names the pay to within 5,000; rows whose pay is shuffled know a third of it."""
    with session(tmp_path) as opened:
        rows = town(seed=2)
        good = right_answers(opened, "people", rows, "pay", 5, 7000)
        assert good.accuracy > 0.95 and abs(good.right + good.wrong - 4000) < 50
        pays = np.random.default_rng(3).permutation(rows["pay"].to_numpy())
        place = rows.column_names.index("pay")
        shuffled = rows.set_column(place, "pay", pa.array(pays))
        assert right_answers(opened, "people", shuffled, "pay", 5, 7000).accuracy < 0.5
        # an even line from 0 to 10,999
        even = pa.table({"pay": np.arange(11_000.0)})
        assert nearest_guess(even, "pay", 2500) == pytest.approx(5000 / 11_000, abs=1e-3)


@pytest.mark.parametrize(
    ("label", "within", "error"),
    [
        ("nobody", None, UnknownName),
        ("pay", None, WrongUse),
        ("job", 3, WrongUse),
        ("pay", -1, WrongUse),
    ],
)
def test_wrong_labels_cost_nothing(tmp_path, label, within, error):
    with session(tmp_path) as opened:
        before = repr(opened.budget)
        with pytest.raises(error):
            right_answers(opened, "people", town(50), label, 1, within)
        assert repr(opened.budget) == before
