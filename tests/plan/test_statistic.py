# SPDX-License-Identifier: Apache-2.0
"""The names under which statistics are stored never change."""

from sfumato.plan.statistic import Statistic


def test_a_stored_name_keeps_its_meaning():
    assert {each.name: each.value for each in Statistic} == {
        "VALUE": "value",
        "COUNT": "count",
        "SUM": "sum",
        "MEAN": "mean",
        "VARIANCE": "variance",
        "VARIANCE_OF_SAMPLE": "variance of a sample",
        "DEVIATION": "standard deviation",
        "DEVIATION_OF_SAMPLE": "standard deviation of a sample",
    }
