# SPDX-License-Identifier: Apache-2.0
"""Whole numbers: sums to the last integer, whatever they are near to."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.synopsis.geography.simplex import Groups, projected_rows
from sfumato.synopsis.geography.whole import whole_groups, whole_rows, whole_tables
from tests.contracts.effort import examples  # noqa: F401  (sets the profiles)


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, Groups]:
    """Numbers in tables, and sums of rows and columns that some whole numbers have."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    columns = draw(st.integers(1, 5))
    seed = draw(st.integers(0, 10**6))
    noise = np.random.default_rng(seed)
    truth = noise.poisson(draw(st.sampled_from([0.2, 2, 30])), (sum(sizes), columns))
    near = np.maximum(truth + noise.normal(0, draw(st.sampled_from([0.0, 1, 20])), truth.shape), 0)
    starts = np.cumsum([0, *sizes[:-1]])
    groups = Groups(starts, np.repeat(np.arange(len(sizes)), sizes))
    return near, truth.sum(axis=1), np.add.reduceat(truth, starts, axis=0), groups


@given(tables())
def test_tables_have_both_sums_to_the_last_integer(drawn):
    near, rows, columns, groups = drawn
    found = whole_tables(near, rows, columns, groups)
    assert found.min() >= 0
    assert found.sum(axis=1).tolist() == rows.tolist()
    assert np.add.reduceat(found, groups.starts, axis=0).tolist() == columns.tolist()


@given(tables())
def test_whole_tables_stay_as_they_are(drawn):
    near, _, _, groups = drawn
    whole = np.floor(near).astype(np.int64)
    sums = np.add.reduceat(whole, groups.starts, axis=0)
    found = whole_tables(whole.astype(float), whole.sum(axis=1), sums, groups)
    assert found.tolist() == whole.tolist()


@given(tables())
def test_rows_and_groups_have_their_totals_and_move_by_less_than_one(drawn):
    near, rows, _, groups = drawn
    projected = projected_rows(near, rows.astype(float))
    found = whole_rows(projected, rows)
    assert found.sum(axis=1).tolist() == rows.tolist()
    assert np.abs(found - projected).max() < 1 + 1e-6
    assert (found[projected == 0] == 0).all()
    totals = np.add.reduceat(rows, groups.starts)
    shifted = rows + 0.3 * np.sin(np.arange(len(rows)))
    near_totals = np.maximum(shifted, 0)
    scale = np.divide(
        totals, np.add.reduceat(near_totals, groups.starts), where=totals > 0,
        out=np.zeros(len(totals)),
    )  # fmt: skip
    whole = whole_groups(near_totals * scale[groups.of], totals, groups)
    assert np.add.reduceat(whole, groups.starts).tolist() == totals.tolist()
    assert whole.min() >= 0
