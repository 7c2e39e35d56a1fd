# SPDX-License-Identifier: Apache-2.0
"""A classifier trained on rows and tested on private ones: near the truth, charged, refused."""

import numpy as np
import pyarrow as pa
import pytest

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


@pytest.mark.parametrize(("label", "error"), [("nobody", UnknownName), ("pay", WrongUse)])
def test_wrong_labels_cost_nothing(tmp_path, label, error):
    with session(tmp_path) as opened:
        before = repr(opened.budget)
        with pytest.raises(error):
            right_answers(opened, "people", town(50), label, 1)
        assert repr(opened.budget) == before
