# SPDX-License-Identifier: Apache-2.0
"""Clips that move and counts of who is within them, against backward passes and neighbours."""

from dataclasses import replace
from fractions import Fraction
from math import exp, log
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration, InvalidNumber, WrongUse
from sfumato.learning.torch import gradients
from sfumato.learning.torch.adaptive import WIDEST, AdaptiveClip, AdaptiveSums, Within
from sfumato.learning.torch.isolation import require_isolated
from sfumato.plan.show import form
from sfumato.privacy import Norm
from sfumato.privacy.unit import Relation
from tests.learning.torch.nets import codes, linear, opened, plan, sums

HALF = AdaptiveClip("0.25", share="0.5")


def adaptive(
    moved: float = 1.0,
    *,
    whole: bool = False,
    clipping: AdaptiveClip = HALF,
    relation: Relation = Relation.ADD_REMOVE,
) -> AdaptiveSums:
    torch.manual_seed(2)
    plain = sums(linear(), whole=whole, clip=Fraction(clipping.start))
    parts = (plan(1, relation), plain.reading, plain.lattice, whole, plain.network)
    return AdaptiveSums(*parts, clipping=clipping, moved=moved)


def lengths(statistic: AdaptiveSums, rows: Any) -> Any:
    x, y, _ = statistic.reading.tensors(rows, len(rows))
    vectors = torch.cat(list(statistic.network.one_by_one(x, y)), 1).double()
    return vectors.numpy(), vectors.norm(dim=1).numpy()


def squared(statistic: AdaptiveSums, one: Any, other: Any) -> int:
    found = (statistic.exact(opened(statistic, rows)) for rows in (one, other))
    return sum((int(first) - int(second)) ** 2 for first, second in zip(*found, strict=True))


@pytest.mark.parametrize("whole", [False, True])
def test_sums_and_count_are_those_of_ordinary_backward_passes(whole: bool) -> None:
    rows = codes(300)
    vectors, long = lengths(adaptive(whole=whole), rows)
    clip = float(np.sort(long)[120:122].mean())
    statistic = adaptive(clip * 4, whole=whole)
    *summed, count = statistic.exact(opened(statistic, rows))
    assert count == 121 * statistic.weight
    factors = np.minimum(1, clip / long)
    # the sums come back as gradients at the present clip
    found = np.array(summed) * float(statistic.lattice.step) * statistic.moved
    assert np.abs(found - factors @ vectors).max() < 3e-4 * clip * 300**0.5


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("moved", [1 / WIDEST, 0.3, 3.0, WIDEST])
def test_sums_and_counts_of_neighbours_are_as_near_as_their_distance_says(
    relation: Relation, moved: float
) -> None:
    statistic = adaptive(moved, relation=relation)
    rows = codes(40, seed=3)
    _, long = lengths(statistic, codes(40, seed=4))
    bound = statistic.distance(Norm.L2).value
    for place in (int(long.argmin()), int(long.argmax())):
        other = np.delete(rows, 0, 0)
        if relation is Relation.REPLACE_ONE:
            other = np.concatenate([codes(40, seed=4)[place : place + 1], other])
        assert squared(statistic, rows, other) <= bound


def test_a_count_that_is_not_in_the_distance_is_noticed() -> None:
    rows = codes(40, seed=3)
    _, long = lengths(adaptive(), rows)
    # the longest gradient is nearly as long as the clip, and within it
    statistic = adaptive(float(long.max()) * 4 * 1.001)
    moved = squared(statistic, rows, np.delete(rows, int(long.argmax()), 0))
    assert moved <= statistic.distance(Norm.L2).value
    assert moved > 1.9 * statistic.lattice.distance(Relation.ADD_REMOVE).value


def test_a_gradient_that_is_clipped_before_it_is_scaled_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, statistic = codes(40, seed=3), adaptive(1 / 64)
    bound = statistic.distance(Norm.L2).value
    assert squared(statistic, rows, rows[1:]) <= bound
    right = gradients.clip_factors

    def wrong(squares: Any, amounts: Any, **limits: Any) -> Any:
        return right(squares / statistic.scale**2, amounts / statistic.scale, **limits)

    monkeypatch.setattr(gradients, "clip_factors", wrong)
    assert squared(statistic, rows, rows[1:]) > 100 * bound


@given(st.fractions(Fraction(1, 1000), Fraction(1, 2)), st.fractions(2**30, 2**44))
def test_a_count_takes_its_share_at_most(share: Fraction, apart: Fraction) -> None:
    weight = AdaptiveClip(share=share).weight(apart)
    assert weight**2 <= share * (apart + weight**2)
    assert (weight + 1) ** 2 > share * (apart + (weight + 1) ** 2) - 2


@given(
    st.floats(-1e300, 1e300, allow_nan=False),
    st.floats(1 / WIDEST, WIDEST),
)
def test_a_clip_stays_in_its_range(within: float, moved: float) -> None:
    assert 1 / WIDEST <= HALF.after(moved, within) <= WIDEST


def test_a_clip_settles_at_its_quantile() -> None:
    lengths = np.arange(1, 1001) / 100
    clip, moved = AdaptiveClip(1, "0.8"), 1.0
    assert np.isclose(clip.after(2.0, 0.55), 2 * exp(0.05), rtol=1e-15)
    for _ in range(200):
        moved = clip.after(moved, float((lengths <= moved).mean()))
    assert abs(log(moved / 8)) < 0.02


def test_a_unit_whose_gradient_is_not_finite_is_not_counted() -> None:
    block = Within(4, 2.0, 8.0)
    (found,) = block.integers(np.array([2.0, 0.0, 1.999, 2.0]))
    assert found.tolist() == [1, 0, 0, 1] and block.total([found]).tolist() == [2.0]
    rows = codes(5)
    rows[2:, -1] = -1
    for whole in (False, True):
        statistic = adaptive(WIDEST, whole=whole)
        found_too = int(statistic.exact(opened(statistic, rows))[-1])
        # with whole a unit without a label has a gradient of length 0
        assert found_too == (5 if whole else 2) * statistic.weight
        with torch.no_grad():
            statistic.network.module[0].weight.fill_(torch.inf)
        known = statistic.exact(opened(statistic, codes(5)))
        assert not known.any()


def test_a_count_that_mixes_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for whole in (False, True):
        require_isolated(adaptive(3.0, whole=whole))

    def mixed(self: Within, factors: Any) -> Any:
        return (torch.from_numpy(factors >= factors.mean()).to(torch.int32),)

    monkeypatch.setattr(Within, "integers", mixed)
    for whole in (False, True):
        with pytest.raises(WrongUse, match="Rows are mixed"):
            require_isolated(adaptive(3.0, whole=whole))


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": 0},
        {"start": float("nan")},
        {"quantile": 0},
        {"quantile": 1},
        {"rate": 0},
        {"rate": "1.1"},
        {"share": 0},
        {"share": "0.51"},
        {"start": "x"},
    ],
)
def test_settings_outside_their_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((InvalidNumber, WrongUse)):
        AdaptiveClip(**wrong)
    with pytest.raises(InvalidDeclaration):
        adaptive(2 * WIDEST)


def test_all_settings_are_in_the_form_and_equal_numbers_are_equal() -> None:
    base = adaptive()
    others = [
        {"start": "0.250001"},
        {"quantile": "0.6"},
        {"rate": "0.3"},
        {"share": "0.4"},
    ]
    forms = {form(replace(base, clipping=replace(HALF, **other))) for other in others}
    assert len(forms | {form(base)}) == 5
    assert form(base.to(3.0)) == form(base)
    assert AdaptiveClip("0.5", "0.5") == AdaptiveClip(Fraction(1, 2))
