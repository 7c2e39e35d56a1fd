# SPDX-License-Identifier: Apache-2.0
"""What is aimed at: close to the answer, never decisive for it."""

import math

import pytest

from sfumato.accounting.loss import Atoms, Gaussian, Ramp, Sampled
from sfumato.accounting.loss.cap import Capped
from sfumato.accounting.loss.tuning import Part, aim, capped, outline, separated

PARTS = (
    Part(Gaussian(0.01), 10_000),
    Part(Ramp(0.02, tips=True), 500),
    Part(Sampled(Gaussian(1.5), 0.01), 1000),
)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-15])
def test_the_guess_of_epsilon_gives_the_guess_of_delta(delta: float) -> None:
    there = aim(PARTS, delta=delta)
    back = aim(PARTS, epsilon=there.epsilon)
    assert math.log(back.delta) == pytest.approx(math.log(delta), rel=0.1)
    assert there.tilt > 0 and there.blur > 0


def test_the_outline_has_the_mass_of_both_laws() -> None:
    losses, masses = outline(Sampled(Gaussian(1.5), 0.01), 1e-20)
    assert masses.sum() == pytest.approx(1, rel=1e-9)
    assert (masses * [math.exp(loss) for loss in losses.tolist()]).sum() == pytest.approx(
        1, rel=1e-9
    )


def test_one_pair_has_its_own_unit_and_several_a_power_of_two() -> None:
    alone = (Part(Atoms.pure(0.3), 100),)
    assert aim(alone, delta=1e-6).step(alone) == 0.3
    ramp = (Part(Ramp(0.3, tips=True), 100),)
    assert (0.3 / aim(ramp, delta=1e-6).step(ramp)) % 1 == pytest.approx(0, abs=1e-9)
    assert math.log2(aim(PARTS, delta=1e-6).step(PARTS)) % 1 == 0


def test_only_a_seldom_and_long_tail_is_kept_apart() -> None:
    heavy, normal = Part(Sampled(Gaussian(1.6), 0.001), 10**6), Part(Gaussian(0.001), 10**6)
    for part, apart in ((heavy, True), (normal, False)):
        goal = aim((part,), delta=1e-6)
        found = separated(part, goal.step((part,)), goal, exchanged=False, alone=True)
        assert (found is not None) is apart
        if found is not None:
            assert found.low < 0 < found.high and found.far == 8 * found.near


def test_a_loss_that_never_ends_needs_few_points() -> None:
    parts = (Part(Sampled(Gaussian(20.0), 0.5), 10**7),)
    reach = parts[0].pair.reach(1e-20)
    assert (reach.upper - reach.lower) / aim(parts, delta=1e-10).step(parts) <= 1.2 * 2**20


def test_far_losses_are_split_from_near_ones_by_a_finer_lattice() -> None:
    part = Part(Sampled(Gaussian(1 / 0.7), 1e-5), 50_000)
    first = aim((part,), delta=1e-6)
    goal = aim((part,), epsilon=0.01, known=first)
    assert goal.far((part,)) and goal.tilt <= first.tilt
    apart = separated(part, goal.step((part,)), goal, exchanged=False, alone=True)
    assert apart is not None and apart.near < goal.step((part,)) < apart.far * 8
    assert math.log2(apart.far / apart.near) % 1 == 0


@pytest.mark.parametrize(
    ("sigma", "rate", "times", "delta", "epsilon"),
    # epsilons as in tests/accounting/test_curve.py; Chernoff bounds without a cap are up to 9 times
    # as large
    [
        (0.748, 1.51e-6, 45_863, 3.18e-14, 0.036),
        (0.579, 1.51e-6, 8, 9.33e-13, 0.036),
        (0.646, 3.59e-6, 4_517_613, 4.29e-9, 0.129),
    ],
)
def test_a_cap_is_above_epsilon_and_far_below_the_largest_loss(
    sigma: float, rate: float, times: int, delta: float, epsilon: float
) -> None:
    parts = (Part(Sampled(Gaussian(1 / sigma), rate), times),)
    (part,) = capped(parts, delta=delta)
    assert isinstance(part.pair, Capped) and part.times == times
    assert epsilon < part.pair.top < 4 * epsilon < parts[0].pair.reach(1e-20).upper
    assert aim((part,), delta=delta).epsilon < 2 * epsilon
    (known,) = capped(parts, epsilon=epsilon)
    assert epsilon < known.pair.worst <= part.pair.top


def test_only_one_sampled_gaussian_is_capped() -> None:
    normal, mild = (Part(Gaussian(0.01), 10_000),), (Part(Sampled(Gaussian(0.01), 0.5), 10_000),)
    for parts in (PARTS, normal, mild):
        assert capped(parts, delta=1e-6) is parts


def test_wide_epsilons_allow_a_wide_blur() -> None:
    small, large = (aim((Part(Gaussian(1.0), times),), delta=1e-6) for times in (100, 10**6))
    assert small.blur < 1 / 16 < 1 < large.blur
    # what it shifts is within the width that is wanted
    assert large.blur / 2 + math.sqrt(2 * large.blur * 30) <= 1e-4 * large.epsilon
