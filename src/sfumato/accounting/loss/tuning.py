# SPDX-License-Identifier: Apache-2.0
"""Chooses the tilt and the lattice for a plan. It affects cost and width, never soundness.

The tilt is the best Chernoff order for the requested delta; the step follows from how far rounding
may move epsilon.
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
    """``times`` uses of one dominating pair."""

    pair: Pair
    times: int


@dataclass(frozen=True, slots=True)
class Aim:
    """The chosen ``tilt`` for all parts, the ``blur`` to spend (half on first rounding), and
    estimates of epsilon and delta.

    ``width`` is the allowed distance of the bounds, for an epsilon of ``least`` or more; ``lost``
    the allowed loss of tilted weight; ``score`` ln of the Chernoff bound over delta.
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
        """The allowed distance of the bounds of this epsilon."""
        return self.width * max(epsilon, self.least)

    @property
    def outside(self) -> float:
        """The allowed total mass of the tails that are left out."""
        return _outside(self.delta)

    def finest(self, parts: Sequence[Part]) -> float:
        """The lattice step that the blur allows."""
        return max(math.sqrt(2 * self.blur / sum(part.times for part in parts)), _SHORTEST)

    def far(self, parts: Sequence[Part]) -> bool:
        """Whether some losses are so far apart that one lattice cannot be fine enough."""
        return (
            len(parts) == 1
            and parts[0].pair.spacing is None
            and self.step(parts) > self.finest(parts)
        )

    def step(self, parts: Sequence[Part]) -> float:
        """The common lattice step: the pair's own spacing if there is one pair, else a power of
        two.
        """
        times = sum(part.times for part in parts)
        spans = [part.pair.reach(self.outside / times) for part in parts]
        step = max(
            self.finest(parts), max(span.upper - span.lower for span in spans) / _MOST_POINTS
        )
        spacing = parts[0].pair.spacing
        if len(parts) > 1:
            return 2.0 ** math.floor(math.log2(1.5 * step))
        if spacing is None:
            return step
        if step < spacing:
            return spacing / math.ceil(spacing / step) if parts[0].pair.continuous else spacing
        if spans[0].upper - spans[0].lower <= _FEW_POINTS * spacing:
            return spacing
        return spacing * 2.0 ** math.floor(math.log2(step / spacing))


@dataclass(frozen=True, slots=True)
class Split:
    """Losses from ``low`` to ``high`` on one lattice, the rare ones beyond on another; ``times``
    copies at once.
    """

    low: float
    high: float
    near: float
    far: float
    times: int


def separated(part: Part, step: float, goal: Aim, *, exchanged: bool, alone: bool) -> Split | None:
    """Where nearly all losses are close together and few very far: how to separate them."""
    if not part.pair.continuous or part.times < _FEWEST or part.pair.spacing is not None:
        return None
    losses, masses = outline(part.pair, goal.outside / part.times)
    exponent = (-goal.tilt if exchanged else 1 + goal.tilt) * losses + np.log(masses)
    weights = np.exp(exponent - exponent.max())
    order = np.argsort(losses)
    losses, weights = losses[order], weights[order] / weights.sum()
    # leaves room for the blur that the coarser lattice of the tail adds
    near = min(step, goal.finest((part,))) / _FINER if alone else step / 2
    apart = partial(_split_at, losses, weights, near, goal.lost, part.times)
    fine = apart(_MANY_FOLDED) if step > goal.finest((part,)) else None
    return fine or apart(_FOLDED)


def _split_at(
    losses: Floats, weights: Floats, near: float, lost: float, times: int, most: int
) -> Split | None:
    """Chooses the separation such that of ``most`` copies rarely more than three are far."""
    folds = min(most, times)
    whole = float(losses[-1] - losses[0])
    if whole <= _FEW_POINTS * near:
        return None
    seldom = 0.7 * (24 * lost * folds / times) ** 0.25 / folds
    below, above = np.cumsum(weights), np.cumsum(weights[::-1])
    far = near * max(_COARSER, 2.0 ** math.ceil(math.log2(whole / near / _MOST_POINTS)))
    low = far * math.floor(float(losses[max(int(np.searchsorted(below, seldom)) - 1, 0)]) / far)
    high = far * math.ceil(
        float(losses[-1 - max(int(np.searchsorted(above, seldom)) - 1, 0)]) / far
    )
    near = max(near, far * 2.0 ** -math.floor(math.log2(_MOST_POINTS * far / (high - low))))
    return Split(low, high, near, far, folds) if whole > 4 * (high - low) else None


def capped(
    parts: Sequence[Part], *, delta: float | None = None, epsilon: float = 0.0
) -> Sequence[Part]:
    """The parts with a cap above epsilon, or above the epsilon at ``delta``, where losses are much
    larger.
    """
    part = parts[0]
    if len(parts) > 1 or not isinstance(part.pair, Sampled) or not cappable(part.pair):
        return parts
    outside = (_outside(delta) if delta else _UNSEEN) / part.times
    losses, masses = outline(part.pair, outside)
    order = np.argsort(losses)
    losses, masses = losses[order], masses[order]
    if delta:
        epsilon = _guess(losses, masses, part.times, delta)
    top = 2 * epsilon
    for _ in range(2):
        top = max(epsilon + _fall(*_clipped(losses, masses, top), part.times), 1.05 * epsilon)
    if not 0 < top < losses[-1] / _WORTH_A_CAP:
        return parts
    return (Part(Capped.at(part.pair, top, outside), part.times),)


def _clipped(losses: Floats, masses: Floats, top: float) -> tuple[Floats, Floats]:
    """The losses with all mass of Q above ``top`` moved there."""
    below = losses < top
    if below.all():
        return losses, masses
    return np.append(losses[below], top), np.append(masses[below], masses[~below].sum())


def _guess(losses: Floats, masses: Floats, times: int, delta: float) -> float:
    """An estimate of the epsilon at ``delta``: the least Chernoff bound over several caps."""
    lowest = _lowest(losses, masses, times, delta)
    best = math.inf
    for top in np.geomspace(lowest, max(float(losses[-1]), lowest), _CAPS):
        seen = _clipped(losses, masses, float(top))
        variance = max(times * float((seen[0] ** 2 * seen[1] * np.exp(seen[0])).sum()), _LEAST)
        steep = 4 * math.sqrt(2 * math.log(2 / delta) / variance)
        orders = _ORDERS * min(steep, _STEEPEST / float(top))
        grown = times * _cumulant(seen, orders, exchanged=False)
        largest = orders * np.log(orders / (1 + orders)) - np.log1p(orders)
        best = min(best, float(((grown + largest - math.log(delta / 2)) / orders).min()))
    return max(best, 0.0)


def _lowest(losses: Floats, masses: Floats, times: int, delta: float) -> float:
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
    scale = math.sqrt(max(times * float((losses**2 * masses).sum()), _LEAST))
    rates = np.maximum(_FALLS / scale, 1.0)
    grown = times * _cumulant((losses, masses), -rates, exchanged=False)
    return max(float(((grown + _HARDLY) / rates).min()), 0.0)


def aim(
    parts: Sequence[Part],
    *,
    delta: float | None = None,
    epsilon: float = 0.0,
    exchanged: bool = False,
    width: float = WIDTH,
    known: Aim | None = None,
) -> Aim:
    """The choice for the epsilon at ``delta``; without one, for the delta at ``epsilon``.

    ``width`` is relative to epsilon.

    ``known``: an earlier choice, of whose delta this is the epsilon.
    """
    variance = sum(part.times * _variance(part.pair, exchanged=exchanged) for part in parts)
    small = max(variance, _LEAST)
    outside = _outside_of_each(parts, delta, known)
    orders = _orders(parts, small, outside, delta=delta, epsilon=epsilon, exchanged=exchanged)
    grown = _grown(parts, orders, outside, exchanged=exchanged)
    # the logarithm of what is lost when a bound on the moments becomes one on delta
    largest = orders * np.log(orders / (1 + orders)) - np.log1p(orders)
    score = 0.0
    if delta:
        best, epsilon = _least_epsilon(orders, grown + largest, delta)
    else:
        exponents = grown + largest - orders * epsilon
        best = _best(parts, exponents, known)
        bound = float(exponents[best])
        score = _score(parts, bound, known)
        delta = math.exp(max(min(bound, 0.0), -600.0))
    tilt = float(orders[best])
    least = 0.03 * math.sqrt(small)
    blur = _blur(width * max(epsilon, least) / (_APART * (1 + tilt)), delta, width * epsilon)
    return Aim(tilt, blur, epsilon, delta, width, least, score=score)


def _score(parts: Sequence[Part], least: float, known: Aim | None) -> float:
    """How far the least bound is above the delta that is known, as a logarithm; 0 if unused."""
    if known is None or not (known.far(parts) or isinstance(parts[0].pair, Capped)):
        return 0.0
    return least - math.log(known.delta)


def _least_epsilon(orders: Floats, moments: Floats, delta: float) -> tuple[int, float]:
    """The place of the tilt with the least bound on epsilon at ``delta``, and this bound."""
    guesses = (moments - math.log(delta)) / orders
    best = int(np.argmin(guesses))
    return best, float(guesses[best])


def _outside_of_each(parts: Sequence[Part], delta: float | None, known: Aim | None) -> float:
    """The mass of one copy that may be left out of its outline."""
    times = sum(part.times for part in parts)
    if known:
        return known.outside / times
    if delta:
        return _outside(delta) / times
    return _UNSEEN


def _orders(
    parts: Sequence[Part],
    variance: float,
    outside: float,
    *,
    delta: float | None,
    epsilon: float,
    exchanged: bool,
) -> Floats:
    """The tilts to choose from, up to about four times that of a normal loss."""
    steepest = _steepest(parts, outside, exchanged=exchanged)
    if delta:
        return _ORDERS * min(4 * math.sqrt(2 * math.log(1 / delta) / variance), steepest)
    return _ORDERS * min(4 * ((epsilon + 8 * math.sqrt(variance)) / variance), steepest)


def _grown(
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


def _best(parts: Sequence[Part], exponents: Floats, known: Aim | None) -> int:
    """The place of the tilt to take: that of the least bound, or a smaller one."""
    best = int(np.argmin(exponents))
    if known is None or not known.far(parts):
        return best
    # a smaller tilt keeps rare losses rare; it costs digits, of which there are enough here
    times = sum(part.times for part in parts)
    enough = max(float(exponents[best]), math.log(known.delta) + _loose(times))
    return min(best, int(np.argmax(exponents <= enough)))


def _blur(blur: float, delta: float, apart: float) -> float:
    """The blur v, or where it is wide the widest one: v/2 + sqrt(2 v c) <= apart / 2."""
    if blur <= _WIDEST:
        return blur
    chance = 2 * (_SHIFTED - math.log(delta))
    return max((math.sqrt(chance + apart) - math.sqrt(chance)) ** 2 / 2, _WIDEST)


def finer(goal: Aim, better: Aim, blurred: float, missed: float) -> Aim:
    """A refined choice, tilted as ``better`` is, at the epsilon now known, given the two causes of
    its width.
    """
    apart = better.apart(better.epsilon)
    return replace(
        better,
        blur=goal.blur * min(_BLURRED * apart / blurred, 1.0) if blurred else goal.blur,
        delta=goal.delta,
        lost=min(
            goal.lost * min(_MISSED * apart / missed, 1.0) if missed else goal.lost,
            LOST * math.exp(-better.score),
        ),
    )


def _outside(delta: float) -> float:
    """A mass that is negligible against delta."""
    return max(1e-8 * delta, 1e-300)


def least_lost(parts: Sequence[Part]) -> float:
    """A level below which floats and transforms lose more than windows and crops."""
    return max(LEAST_LOST, _EACH / 10 * sum(part.times for part in parts))


def _loose(times: int) -> float:
    """How loose a Chernoff bound may be, as a logarithm."""
    return min(max(math.log(_IN_ALL / (_EACH * times)), 0.0), _LOOSEST)


def _steepest(parts: Sequence[Part], outside: float, *, exchanged: bool) -> float:
    """The largest tilt within the range of floats."""
    farthest = max(_span(part.pair, outside, exchanged=exchanged) for part in parts)
    return min(_STEEPEST / farthest, _STEEPEST / (ULPS * sum(part.times for part in parts)) / 1e5)


def _span(pair: Pair, outside: float, *, exchanged: bool) -> float:
    """The largest loss; a tilt removes large negative ones."""
    reach = pair.reach(outside)
    return -reach.lower if exchanged else reach.upper


def _variance(pair: Pair, *, exchanged: bool) -> float:
    """An estimate of the variance of one loss."""
    if isinstance(pair, Gaussian):
        return pair.mu**2
    if isinstance(pair, Ramp):
        return pair.epsilon**2 * (1.0 if pair.tips else 1 / 3)
    losses, masses = outline(pair, _UNSEEN)
    return float((losses**2 * masses * (1.0 if exchanged else np.exp(losses))).sum())


def _cumulant(seen: tuple[Floats, Floats], orders: Floats, *, exchanged: bool) -> Floats:
    """ln of the mean of e^(order loss), from a coarse outline of the pair."""
    losses, masses = seen
    logs = np.log(masses) + (0.0 if exchanged else losses)
    table = np.multiply.outer(orders, -losses if exchanged else losses) + logs
    peak = table.max(axis=1)
    total: Floats = peak + np.log(np.exp(table - peak[:, None]).sum(axis=1))
    return total


def outline(pair: Pair, outside: float) -> tuple[Floats, Floats]:
    """A coarse sample of the losses ln(dP/dQ) of a dominating pair (P, Q), and their masses under
    Q.

    It covers all losses except for probability ``outside``.
    """
    losses, masses = pair.atoms()
    if pair.continuous:
        reach = pair.reach(outside)
        scale = max(_FINEST * max(abs(reach.lower), abs(reach.upper)), _SHORTEST)
        edges = (
            np.sinh(
                np.linspace(
                    math.asinh(reach.lower / scale), math.asinh(reach.upper / scale), _OUTLINE
                )
            )
            * scale
        )
        # 0 is an edge, where mirrored masses meet
        edges[int(np.argmin(np.abs(edges)))] = 0.0
        ratio = np.exp(edges)
        mass, share = pair.cells(
            Edges(ratio, np.expm1(edges), ratio[:-1] * np.expm1(np.diff(edges)))
        )
        losses = np.concatenate([losses, edges])
        masses = np.concatenate(
            [masses, np.append(mass * (1 - share), 0.0) + np.append(0.0, mass * share)]
        )
    return losses[masses > 0], masses[masses > 0]
