# SPDX-License-Identifier: Apache-2.0
"""Chooses the tilt and the lattice for a plan: they affect cost and width, never soundness.

The tilt is the best Chernoff order for the requested delta; the step follows from how far rounding
may move epsilon. ``curve`` calls it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sfumato.accounting.loss.cap import Capped, cappable
from sfumato.accounting.loss.edges import ULPS, Edges, Floats, Pair
from sfumato.accounting.loss.lattice import LOST
from sfumato.accounting.loss.pair import Gaussian, Ramp, Sampled

# The target width of the bounds of epsilon; they are about 2.45 blur (1 + tilt) apart.
WIDTH, _APART = 1e-4, 2.45
# A blur up to 1/16 is removed by a smoothing bell; a larger one shifts epsilon, which large
# epsilons allow.
_WIDEST, _SHIFTED = 0.03, 20.0
_ORDERS = np.geomspace(2e-3, 1.0, 64)
# The largest tilted exponent: e^300 is well within the range of floats.
_STEEPEST = 300.0
# The smallest step and variance; their squares do not underflow.
_SHORTEST, _LEAST = 1e-100, 1e-200
_OUTLINE = 400
_UNSEEN = 1e-20
_FINEST = 1e-7
_MOST_POINTS = 2**18
_FEW_POINTS = 2**12
_SMALL = 1.5
# Losses that exceed a cap by this factor are capped; e^-18 counts as negligible.
_WORTH_A_CAP, _CAPS, _HARDLY = 1.5, 16, 18.0
_FALLS = np.geomspace(0.3, 60.0, 24)
# The rounding loss of one use, the most in all where losses are far apart, and the largest log of
# their ratio.
_EACH, _IN_ALL, _LOOSEST = 1e-14, 1e-5, 11.0
# The shares of the allowed width that refined blur and lost weight aim for.
_BLURRED, _MISSED = 0.6, 0.2
# Below this, rounding in the transforms loses more than truncation.
LEAST_LOST = 1e-13
_FEWEST, _FOLDED, _MANY_FOLDED, _COARSER, _FINER = 64, 256, 1024, 8, 1.45


@dataclass(frozen=True, slots=True)
class Part:
    """A dominating pair with the number of times that a plan uses it."""

    pair: Pair
    times: int


@dataclass(frozen=True, slots=True)
class Aim:
    """The settings for composing a plan's privacy losses: tilt, rounding and allowed errors.

    Half of ``blur``, the variance of rounding, is for the first rounding. ``epsilon`` and ``delta``
    are estimates. ``width`` is the allowed relative distance of the bounds, from an epsilon of
    ``least`` on; ``lost`` the tilted weight to lose; ``score`` ln of Chernoff's bound over delta.
    """

    tilt: float
    blur: float
    epsilon: float
    delta: float
    width: float
    least: float
    lost: float = LOST
    score: float = 0.0

    def apart(self, epsilon: float) -> float:
        """Returns the allowed distance between the lower and the upper bound of an epsilon."""
        return self.width * max(epsilon, self.least)

    @property
    def outside(self) -> float:
        """The total mass of the tails of all losses that may be left out."""
        return _negligible_mass(self.delta)

    def finest(self, parts: Sequence[Part]) -> float:
        """Returns the lattice step whose rounding uses up the allowed ``blur``."""
        step = math.sqrt(2 * self.blur / _count_uses(parts))
        return max(step, _SHORTEST)

    def far(self, parts: Sequence[Part]) -> bool:
        """Whether a single pair's losses range too widely for one lattice."""
        if len(parts) > 1 or parts[0].pair.spacing is not None:
            return False
        return self.step(parts) > self.finest(parts)

    def step(self, parts: Sequence[Part]) -> float:
        """Returns the lattice step for all parts.

        It is the pair's own spacing if there is only one pair, else a power of two.
        """
        outside = self.outside / _count_uses(parts)
        lengths = []
        for part in parts:
            reach = part.pair.reach(outside)
            lengths.append(reach.upper - reach.lower)
        step = max(self.finest(parts), max(lengths) / _MOST_POINTS)
        if len(parts) > 1:
            return 2.0 ** math.floor(math.log2(1.5 * step))
        return _own_step(parts[0].pair, step, lengths[0])


def _count_uses(parts: Sequence[Part]) -> int:
    """The number of uses of all parts."""
    return sum(part.times for part in parts)


def _own_step(pair: Pair, step: float, length: float) -> float:
    """The step of one pair whose losses cover ``length``: near ``step``, and fit to its spacing."""
    spacing = pair.spacing
    if spacing is None:
        return step
    if step >= spacing:
        if length <= _FEW_POINTS * spacing:
            return spacing
        return spacing * 2.0 ** math.floor(math.log2(step / spacing))
    if pair.continuous:
        return spacing / math.ceil(spacing / step)
    return spacing


@dataclass(frozen=True, slots=True)
class Split:
    """A loss on two lattices: from ``low`` to ``high`` with the step ``near``, else ``far``.

    ``times`` copies are added at once.
    """

    low: float
    high: float
    near: float
    far: float
    times: int


def separated(part: Part, step: float, goal: Aim, *, exchanged: bool, alone: bool) -> Split | None:
    """Returns the two lattices of a loss that is mostly small and rarely very large; else None."""
    pair = part.pair
    if not pair.continuous or part.times < _FEWEST or pair.spacing is not None:
        return None
    losses, masses = outline(pair, goal.outside / part.times)
    rate = 1 + goal.tilt
    if exchanged:
        rate = -goal.tilt
    exponent = rate * losses + np.log(masses)
    weights = np.exp(exponent - exponent.max())
    order = np.argsort(losses)
    losses = losses[order]
    weights = weights[order] / weights.sum()
    finest = goal.finest((part,))
    near = step / 2
    if alone:
        # leaves room for the blur that the coarser lattice of the tail adds
        near = min(step, finest) / _FINER
    apart = partial(_split_at, losses, weights, near, goal.lost, part.times)
    if step > finest:
        return apart(_MANY_FOLDED) or apart(_FOLDED)
    return apart(_FOLDED)


def _split_at(
    losses: Floats, weights: Floats, near: float, lost: float, times: int, most: int
) -> Split | None:
    """Chooses the separation such that of ``most`` copies rarely more than three are far."""
    folds = min(most, times)
    loss_range = float(losses[-1] - losses[0])
    if loss_range <= _FEW_POINTS * near:
        return None
    coarser = 2.0 ** math.ceil(math.log2(loss_range / near / _MOST_POINTS))
    far = near * max(_COARSER, coarser)
    seldom = 0.7 * (24 * lost * folds / times) ** 0.25 / folds
    first = _place_of(weights, seldom)
    last = -1 - _place_of(weights[::-1], seldom)
    low = far * math.floor(float(losses[first]) / far)
    high = far * math.ceil(float(losses[last]) / far)
    if loss_range <= 4 * (high - low):
        return None
    finer = math.floor(math.log2(_MOST_POINTS * far / (high - low)))
    near = max(near, far * 2.0**-finer)
    return Split(low, high, near, far, folds)


def _place_of(weights: Floats, share: float) -> int:
    """The place before which weights add up to at most ``share``, or 0."""
    place = int(np.searchsorted(np.cumsum(weights), share))
    return max(place - 1, 0)


def capped(
    parts: Sequence[Part], *, delta: float | None = None, epsilon: float = 0.0
) -> Sequence[Part]:
    """Returns the pairs with losses far above ``epsilon``, or above that at ``delta``, capped."""
    part = parts[0]
    if len(parts) > 1 or not isinstance(part.pair, Sampled) or not cappable(part.pair):
        return parts
    negligible = _negligible_mass(delta) if delta else _UNSEEN
    outside = negligible / part.times
    losses, masses = outline(part.pair, outside)
    order = np.argsort(losses)
    losses = losses[order]
    masses = masses[order]
    if delta:
        epsilon = _guess_epsilon(losses, masses, part.times, delta)
    top = 2 * epsilon
    for _ in range(2):
        seen = _clip_losses(losses, masses, top)
        fall = _fall(*seen, part.times)
        top = max(epsilon + fall, 1.05 * epsilon)
    if not 0 < top < losses[-1] / _WORTH_A_CAP:
        return parts
    cap = Capped.at(part.pair, top, outside)
    return (Part(cap, part.times),)


def _clip_losses(losses: Floats, masses: Floats, top: float) -> tuple[Floats, Floats]:
    """The losses with all mass of Q above ``top`` moved there."""
    below = losses < top
    if below.all():
        return losses, masses
    moved = masses[~below].sum()
    return np.append(losses[below], top), np.append(masses[below], moved)


def _guess_epsilon(losses: Floats, masses: Floats, times: int, delta: float) -> float:
    """An estimate of the epsilon at ``delta``: the least Chernoff bound over several caps."""
    lowest = _lowest_cap(losses, masses, times, delta)
    highest = max(float(losses[-1]), lowest)
    best = math.inf
    for top in np.geomspace(lowest, highest, _CAPS):
        below, mass = _clip_losses(losses, masses, float(top))
        square = float((below**2 * mass * np.exp(below)).sum())
        variance = max(times * square, _LEAST)
        steep = 4 * math.sqrt(2 * math.log(2 / delta) / variance)
        orders = _ORDERS * min(steep, _STEEPEST / float(top))
        grown = times * _cumulant((below, mass), orders, exchanged=False)
        bounds = (grown + _log_largest(orders) - math.log(delta / 2)) / orders
        best = min(best, float(bounds.min()))
    return max(best, 0.0)


def _log_largest(orders: Floats) -> Floats:
    """The logarithm of the factor by which a bound on moments becomes one on delta."""
    largest: Floats = orders * np.log(orders / (1 + orders)) - np.log1p(orders)
    return largest


def _lowest_cap(losses: Floats, masses: Floats, times: int, delta: float) -> float:
    """The least cap beyond which at most half of ``delta`` is left out; above 0."""
    ps = np.cumsum((masses * np.exp(losses))[::-1])[::-1]
    qs = np.cumsum(masses[::-1])[::-1]
    infinite = ps - np.exp(losses) * qs
    lowest = float(losses[int(np.argmax(times * infinite <= delta / 2))])
    if lowest > 0:
        return lowest
    return float(losses[losses > 0][0])


def _fall(losses: Floats, masses: Floats, times: int) -> float:
    """A level below which the sum of these losses rarely falls."""
    square = float((losses**2 * masses).sum())
    scale = math.sqrt(max(times * square, _LEAST))
    rates = np.maximum(_FALLS / scale, 1.0)
    grown = times * _cumulant((losses, masses), -rates, exchanged=False)
    levels = (grown + _HARDLY) / rates
    return max(float(levels.min()), 0.0)


def aim(
    parts: Sequence[Part],
    *,
    delta: float | None = None,
    epsilon: float = 0.0,
    exchanged: bool = False,
    width: float = WIDTH,
    known: Aim | None = None,
) -> Aim:
    """Returns the settings for computing epsilon at ``delta``, or without one delta at ``epsilon``.

    ``width`` is the allowed distance of the bounds relative to epsilon. ``known``: an earlier
    choice, of whose delta this is the epsilon.
    """
    variance = sum(part.times * _variance(part.pair, exchanged=exchanged) for part in parts)
    small = max(variance, _LEAST)
    outside = _outside_of_each(parts, delta, known)
    orders = _tilts(parts, small, outside, delta=delta, epsilon=epsilon, exchanged=exchanged)
    moments = _log_moments(parts, orders, outside, exchanged=exchanged) + _log_largest(orders)
    score = 0.0
    if delta:
        best, epsilon = _least_epsilon(orders, moments, delta)
    else:
        exponents = moments - orders * epsilon
        best = _best_tilt(parts, exponents, known)
        bound = float(exponents[best])
        score = _score(parts, bound, known)
        delta = math.exp(max(min(bound, 0.0), -600.0))
    tilt = float(orders[best])
    least = 0.03 * math.sqrt(small)
    blur = _blur(width * max(epsilon, least) / (_APART * (1 + tilt)), delta, width * epsilon)
    return Aim(tilt, blur, epsilon, delta, width, least, score=score)


def _score(parts: Sequence[Part], least: float, earlier: Aim | None) -> float:
    """Returns ln of the ratio of the least bound to the known delta; 0 if it is not used."""
    if earlier is None or not (earlier.far(parts) or isinstance(parts[0].pair, Capped)):
        return 0.0
    return least - math.log(earlier.delta)


def _least_epsilon(orders: Floats, moments: Floats, delta: float) -> tuple[int, float]:
    """The place of the tilt with the least bound on epsilon at ``delta``, and this bound."""
    guesses = (moments - math.log(delta)) / orders
    best = int(np.argmin(guesses))
    return best, float(guesses[best])


def _outside_of_each(parts: Sequence[Part], delta: float | None, earlier: Aim | None) -> float:
    """The mass of one copy that may be left out of its outline."""
    times = _count_uses(parts)
    if earlier:
        return earlier.outside / times
    if delta:
        return _negligible_mass(delta) / times
    return _UNSEEN


def _tilts(
    parts: Sequence[Part],
    variance: float,
    outside: float,
    *,
    delta: float | None,
    epsilon: float,
    exchanged: bool,
) -> Floats:
    """The tilts to choose from, up to about four times that of a normal loss."""
    steepest = _largest_tilt(parts, outside, exchanged=exchanged)
    normal = (epsilon + 8 * math.sqrt(variance)) / variance
    if delta:
        normal = math.sqrt(2 * math.log(1 / delta) / variance)
    return _ORDERS * min(4 * normal, steepest)


def _log_moments(
    parts: Sequence[Part],
    orders: Floats,
    outside: float,
    *,
    exchanged: bool,
) -> Floats:
    """The logarithm of the moments of all losses at each tilt."""
    grown = np.zeros_like(orders)
    normal = 0.0
    for part in parts:
        if isinstance(part.pair, Gaussian) or part.pair.worst * orders[-1] < _SMALL:
            # a small loss has the moments of a normal one
            normal += part.times * _variance(part.pair, exchanged=exchanged)
        else:
            seen = outline(part.pair, outside)
            grown += part.times * _cumulant(seen, orders, exchanged=exchanged)
    grown += orders * (orders + 1) / 2 * normal
    return grown


def _best_tilt(parts: Sequence[Part], exponents: Floats, earlier: Aim | None) -> int:
    """The place of the tilt to take: that of the least bound, or a smaller one."""
    best = int(np.argmin(exponents))
    if earlier is None or not earlier.far(parts):
        return best
    # a smaller tilt keeps rare losses rare; it costs digits, of which there are enough here
    loose = math.log(earlier.delta) + _looseness(_count_uses(parts))
    enough = max(float(exponents[best]), loose)
    smallest = int(np.argmax(exponents <= enough))
    return min(best, smallest)


def _blur(blur: float, delta: float, apart: float) -> float:
    """The blur v, or where it is wide the widest one: v/2 + sqrt(2 v c) <= apart / 2."""
    if blur <= _WIDEST:
        return blur
    chance = 2 * (_SHIFTED - math.log(delta))
    root = math.sqrt(chance + apart) - math.sqrt(chance)
    return max(root**2 / 2, _WIDEST)


def finer(goal: Aim, better: Aim, blurred: float, missed: float) -> Aim:
    """Returns refined settings, with the tilt of ``better``, at the epsilon that is now known.

    ``blurred`` and ``missed`` are the two causes of the present width.
    """
    apart = better.apart(better.epsilon)
    blur = goal.blur
    if blurred:
        blur *= min(_BLURRED * apart / blurred, 1.0)
    lost = goal.lost
    if missed:
        lost *= min(_MISSED * apart / missed, 1.0)
    most = LOST * math.exp(-better.score)
    return replace(better, blur=blur, delta=goal.delta, lost=min(lost, most))


def _negligible_mass(delta: float) -> float:
    """A mass that is negligible against delta."""
    return max(1e-8 * delta, 1e-300)


def least_lost(parts: Sequence[Part]) -> float:
    """Returns the least weight to lose: below it floats and transforms lose more than crops."""
    return max(LEAST_LOST, _EACH / 10 * _count_uses(parts))


def _looseness(times: int) -> float:
    """Returns how loose a Chernoff bound may be, as a logarithm."""
    loose = math.log(_IN_ALL / (_EACH * times))
    return min(max(loose, 0.0), _LOOSEST)


def _largest_tilt(parts: Sequence[Part], outside: float, *, exchanged: bool) -> float:
    """The largest tilt within the range of floats."""
    farthest = max(_largest_loss(part.pair, outside, exchanged=exchanged) for part in parts)
    by_rounding = _STEEPEST / (ULPS * _count_uses(parts)) / 1e5
    return min(_STEEPEST / farthest, by_rounding)


def _largest_loss(pair: Pair, outside: float, *, exchanged: bool) -> float:
    """The largest loss; a tilt removes large negative ones."""
    reach = pair.reach(outside)
    if exchanged:
        return -reach.lower
    return reach.upper


def _variance(pair: Pair, *, exchanged: bool) -> float:
    """An estimate of the variance of one loss."""
    if isinstance(pair, Gaussian):
        return pair.mu**2
    if isinstance(pair, Ramp):
        share = 1.0 if pair.tips else 1 / 3
        return pair.epsilon**2 * share
    losses, masses = outline(pair, _UNSEEN)
    squares = losses**2 * masses
    if not exchanged:
        squares = squares * np.exp(losses)
    return float(squares.sum())


def _cumulant(sampled: tuple[Floats, Floats], orders: Floats, *, exchanged: bool) -> Floats:
    """ln of the mean of e^(order loss), from a coarse outline of the pair."""
    losses, masses = sampled
    logs = np.log(masses)
    if exchanged:
        losses = -losses
    else:
        logs = logs + losses
    table = np.multiply.outer(orders, losses) + logs
    peak = table.max(axis=1)
    sums = np.exp(table - peak[:, None]).sum(axis=1)
    total: Floats = peak + np.log(sums)
    return total


def outline(pair: Pair, outside: float) -> tuple[Floats, Floats]:
    """Returns a coarse sample of the losses of a dominating pair (P, Q), and their masses under Q.

    It covers all losses except for probability ``outside``.
    """
    losses, masses = pair.atoms()
    if pair.continuous:
        edges = _outline_edges(pair, outside)
        ratio = np.exp(edges)
        gap = ratio[:-1] * np.expm1(np.diff(edges))
        mass, share = pair.cells(Edges(ratio, np.expm1(edges), gap))
        lower = np.append(mass * (1 - share), 0.0)
        upper = np.append(0.0, mass * share)
        losses = np.concatenate([losses, edges])
        masses = np.concatenate([masses, lower + upper])
    there = masses > 0
    return losses[there], masses[there]


def _outline_edges(pair: Pair, outside: float) -> Floats:
    """The losses at which an outline divides a pair: denser around 0, which is one of them."""
    reach = pair.reach(outside)
    farthest = max(abs(reach.lower), abs(reach.upper))
    scale = max(_FINEST * farthest, _SHORTEST)
    first = math.asinh(reach.lower / scale)
    last = math.asinh(reach.upper / scale)
    edges: Floats = np.sinh(np.linspace(first, last, _OUTLINE)) * scale
    # 0 is an edge, where mirrored masses meet
    edges[int(np.argmin(np.abs(edges)))] = 0.0
    return edges
