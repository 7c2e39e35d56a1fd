# SPDX-License-Identifier: Apache-2.0
"""Projections against sorting, and against a quadratic program of scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from sfumato.synopsis.geography.simplex import (
    Groups,
    projected,
    projected_rows,
    projected_tables,
)

NUMBERS = st.lists(st.floats(-50, 50).map(lambda x: round(x, 3)), min_size=1, max_size=12)


def by_sorting(values: np.ndarray, total: float) -> np.ndarray:
    """The projection onto numbers of at least 0 with a total, by sorting (Held et al. 1974)."""
    ordered = np.sort(values)[::-1]
    over = (np.cumsum(ordered) - total) / np.arange(1, len(values) + 1)
    last = np.flatnonzero(ordered > over)
    shift = over[last[-1]] if len(last) else ordered[0]
    return np.maximum(values - shift, 0)


@given(NUMBERS, st.integers(0, 100))
def test_a_row_is_projected_as_by_sorting(values, total):
    row = np.array(values)
    found = projected_rows(row[None], np.array([float(total)]))[0]
    np.testing.assert_allclose(found, by_sorting(row, total), atol=1e-6)
    assert found.sum() == pytest.approx(total, abs=1e-6)


@given(st.lists(NUMBERS, min_size=1, max_size=5), st.integers(0, 60))
def test_groups_are_projected_each_by_itself(columns, total):
    sizes = [len(column) for column in columns]
    groups = Groups(
        np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(sizes)), sizes)
    )  # fmt: skip
    totals = np.full((len(sizes), 1), float(total))
    found = projected(np.concatenate(columns)[:, None], totals, groups).ravel()
    wanted = [by_sorting(np.array(column), total) for column in columns]
    np.testing.assert_allclose(found, np.concatenate(wanted), atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_tables_are_near_the_quadratic_program(seed):
    noise = np.random.default_rng(seed)
    truth = noise.poisson(3, (4, 3)).astype(float)
    values = truth + noise.normal(0, 3, truth.shape)
    rows, columns = truth.sum(axis=1), truth.sum(axis=0)
    groups = Groups(np.array([0]), np.zeros(4, int))
    found = projected_tables(values, rows, columns[None], groups)

    def distance(flat: np.ndarray) -> float:
        return float(((flat - values.ravel()) ** 2).sum())

    sums = [
        {"type": "eq", "fun": lambda flat, at=at: flat.reshape(4, 3)[at].sum() - rows[at]}
        for at in range(4)
    ]
    sums += [{"type": "eq", "fun": lambda flat, at=at: flat.reshape(4, 3)[:, at].sum() - columns[at]}
             for at in range(2)]  # fmt: skip
    best = minimize(distance, truth.ravel(), bounds=[(0, None)] * 12, constraints=sums)
    # the turns end when no sum is off by more than half a step
    assert np.abs(found - best.x.reshape(4, 3)).max() < 1
    assert np.abs(found.sum(axis=1) - rows).max() <= 0.5 + 1e-9
    np.testing.assert_allclose(found.sum(axis=0), columns, atol=1e-6)


def test_groups_can_be_repeated():
    many = Groups(np.array([0, 2]), np.array([0, 0, 1])).repeated(2)
    assert many.starts.tolist() == [0, 2, 3, 5]
    assert many.of.tolist() == [0, 0, 1, 2, 2, 3]
