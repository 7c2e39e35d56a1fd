# SPDX-License-Identifier: Apache-2.0
"""Edges keep the digits of losses near 0, and shares keep the mean of a cell."""

import numpy as np
import pytest

from sfumato.accounting.loss.edges import Edges, losing
from sfumato.errors import InvalidNumber


def edges(losses: np.ndarray) -> Edges:
    ratio = np.exp(losses)
    return Edges(ratio, np.expm1(losses), ratio[:-1] * np.expm1(np.diff(losses)))


@pytest.mark.parametrize("size", [1e-30, 1e-12, 1e-3, 0.5, 1.0, 60.0])
def test_losses_come_back_with_all_their_digits(size: float) -> None:
    losses = np.array([-size, -size / 3, size / 7, size])
    assert edges(losses).losses() == pytest.approx(losses, rel=1e-14)
    # by the ratios alone they would be lost
    if size < 1e-16:
        assert not np.log(edges(losses).ratio).any()


def test_a_share_keeps_the_mean() -> None:
    of = edges(np.array([-0.1, 0.2, 0.5]))
    mean = of.ratio[:-1] + 0.25 * of.gap
    assert of.share(mean) == pytest.approx([0.25, 0.25], rel=1e-12)
    assert of.share(of.ratio[1:] * 2).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 301.0])
def test_a_loss_that_floats_do_not_hold_is_refused(epsilon: float) -> None:
    with pytest.raises(InvalidNumber):
        losing(epsilon)
