# SPDX-License-Identifier: Apache-2.0
"""Weights of pairs from weights of columns."""

import pytest

from sfumato.errors import UnknownName, WrongUse
from sfumato.synthetic.workload import weights_of

NAMES = ("age", "job", "pay")


def test_a_pair_matters_as_its_heavier_column():
    found = dict(weights_of(NAMES, {"age": 2, "pay": 9}))
    assert found == {(0, 1): 2, (0, 2): 9, (1, 2): 9}
    # a column that does not matter takes its pairs away, unless the other one matters
    assert dict(weights_of(NAMES, {"age": 0, "pay": 3})) == {(0, 1): 1, (0, 2): 3, (1, 2): 3}


@pytest.mark.parametrize(
    ("workload", "error"),
    [({"age": -1}, WrongUse), ({"age": True}, WrongUse), ({"size": 2}, UnknownName)],
)
def test_what_is_no_weight_is_refused(workload, error):
    with pytest.raises(error):
        weights_of(NAMES, workload)
