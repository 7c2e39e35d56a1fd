# SPDX-License-Identifier: Apache-2.0
"""Rows of a model: all columns, or those that a question reads, by the same distribution."""

import numpy as np
import pytest

from sfumato import synthetic as sy
from sfumato.synthetic.rows import Dice
from tests.synthetic.towns import session


@pytest.fixture(scope="module")
def sampler(tmp_path_factory):
    """The sampler of a model with little noise."""
    with session(tmp_path_factory.mktemp("town")) as opened:
        yield sy.fit(opened, ["people"], rho=50).sampler


def counts(rows, *names):
    """How often each combination of values occurs."""
    values = zip(*(rows[name].to_pylist() for name in names), strict=True)
    found: dict[tuple[object, ...], int] = {}
    for value in values:
        found[value] = found.get(value, 0) + 1
    return found


@pytest.mark.parametrize("names", [["job"], ["job", "rich"], ["rich", "age"]])
def test_some_columns_have_the_counts_that_all_have(sampler, names):
    whole = sampler.tables(4000, Dice())["people"]
    some = sampler.some_columns(4000, Dice(), {"people": names})["people"]
    assert sorted(some.column_names) == sorted(names) and len(some) == 4000
    expected, drawn = counts(whole, *names), counts(some, *names)
    # both are drawn by systematic sampling within groups: counts of hundreds are a few rows off
    apart = [abs(expected.get(each, 0) - drawn.get(each, 0)) for each in {*expected, *drawn}]
    assert np.mean(apart) < 12 and max(apart) < 60


def test_of_no_columns_there_are_as_many_rows(sampler):
    assert len(sampler.some_columns(17, Dice(), {"people": []})["people"]) == 17
    assert len(sampler.some_columns(0, Dice(), {})["people"]) == 0
