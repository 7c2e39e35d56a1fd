# SPDX-License-Identifier: Apache-2.0
"""Clipping against exact fractions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.privacy.distance import Norm
from sfumato.query import clip
from sfumato.query.clip import clipped

VECTORS = st.lists(st.integers(-(2**30), 2**30), min_size=1, max_size=3)


def is_within(vector: list[int], bound: int, norm: Norm) -> bool:
    (found,) = clipped(np.array([vector]), bound, norm).tolist()
    if norm is Norm.L1:
        return sum(map(abs, found)) <= bound
    return sum(entry * entry for entry in found) <= bound * bound


@given(VECTORS, st.integers(1, 2**30), st.sampled_from([Norm.L1, Norm.L2]))
def test_a_clipped_vector_is_within_the_bound(vector: list[int], bound: int, norm: Norm) -> None:
    assert is_within(vector, bound, norm)


@given(VECTORS, st.sampled_from([Norm.L1, Norm.L2]))
def test_a_short_vector_stays_and_a_long_one_is_nearly_as_long_as_the_bound(
    vector: list[int], norm: Norm
) -> None:
    assert clipped(np.array([vector]), 2**31 - 1, norm).tolist() in ([vector], [vector]) or (
        sum(map(abs, vector)) >= 2**31
    )
    long = np.array([[2**29, -(2**29)]])
    length = np.abs(clipped(long, 2**20, Norm.L1)).sum()
    assert 2**20 - 2 <= length <= 2**20
    squared = (clipped(long, 2**20, Norm.L2).astype(float) ** 2).sum()
    assert (2**20 - 4) ** 2 <= squared <= 2.0**40


def test_the_test_notices_a_factor_that_rounds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    right = np.maximum
    # the mutant: lengths a thousandth too short
    monkeypatch.setattr(
        clip.np, "maximum", lambda one, other: right(one - one // 1000, other), raising=False
    )
    assert not is_within([2**29, 2**29], 2**25, Norm.L2)


def test_a_vector_does_not_depend_on_the_others() -> None:
    vectors = np.random.default_rng(1).integers(-(2**20), 2**20, (50, 4))
    together = clipped(vectors, 1000, Norm.L2)
    apart = np.concatenate([clipped(vectors[k : k + 1], 1000, Norm.L2) for k in range(50)])
    assert (together == apart).all()


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-(2**29), 2**29)), min_size=1, max_size=6),
    st.integers(1, 2**30),
    st.sampled_from([Norm.L1, Norm.L2]),
)
def test_parts_of_an_owner_are_clipped_as_one_vector(
    parts: list[tuple[int, int]], bound: int, norm: Norm
) -> None:
    owners = np.array([owner for owner, _ in parts])
    found = clipped(np.array([[entry] for _, entry in parts]), bound, norm, owners)[:, 0]
    for owner in range(3):
        whole = [entry for each, entry in parts if each == owner]
        if whole and sum(map(abs, whole)) < 2**31:
            apart = clipped(np.array([whole]), bound, norm)[0]
            assert found[owners == owner].tolist() == apart.tolist()
