# SPDX-License-Identifier: Apache-2.0
"""Estimates how much of the fitted weights of a descent is noise, from released numbers (at no
cost).

Near its end a descent is a linear recurrence per coordinate: the gradient grows by curvature times
weight, and each step adds noise of known deviation. The noise in the average of the last weights
follows exactly from that recurrence. Two inputs are estimates: the curvature, from the noisy
counts, and the independence of features, so that a centred curve does not depend on other features.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.learning.descent import COUNTS_DAMPED, LEAST_RATE, MOMENTUM, START, Descent, State
from sfumato.learning.features import Features, Floats

# Places and weights by which the mean over a standard normal is computed.
_NORMAL = np.polynomial.hermite_e.hermegauss(9)


@dataclass(frozen=True, slots=True)
class DescentNoise:
    """Estimates of the noise in the weights of a gradient descent whose steps each read a ``share``
    of the examples.

    >>> from fractions import Fraction
    >>> DescentNoise(Descent(2, 11, 5.0, True), Fraction(1)).share
    Fraction(1, 1)
    """

    descent: Descent
    share: float

    def of_curves(self, state: State, features: Features) -> Floats:
        """Returns, for each coordinate, the standard deviation of the noise in its weight, relative
        to the mean of its feature's curve.
        """
        variance = self.of_weights(state, features)
        sizes = np.maximum(state.counts, 0).reshape(2, -1).sum(axis=0)
        curve_variance = np.zeros_like(variance)
        for first, part in zip(features.starts, features.parts, strict=True):
            own = slice(first, first + part.width)
            portion = portions(sizes[own])
            shared = float(np.sum(portion**2 * variance[own]))
            curve_variance[own] = (1 - 2 * portion) * variance[own] + shared
        deviations: Floats = np.sqrt(np.maximum(curve_variance, 0))
        return deviations

    def middles(self, state: State, features: Features) -> Floats:
        """Returns, for each coordinate, the mean weight of its feature's curve, in which
        coordinates count by their noisy numbers of examples.
        """
        sizes = np.maximum(state.counts, 0).reshape(2, -1).sum(axis=0)
        weights, found = state.result, np.zeros(features.width)
        for first, part in zip(features.starts, features.parts, strict=True):
            own = slice(first, first + part.width)
            found[own] = np.sum(portions(sizes[own]) * weights[own])
        return found

    def of_weights(self, state: State, features: Features) -> Floats:
        """Returns the variance of the noise in each of the final (averaged) weights."""
        descent = self.descent
        without, having = np.maximum(state.counts, 0).reshape(2, -1)
        sizes = np.maximum(without + having, 1.0)
        own = np.clip(having / sizes, LEAST_RATE, 1 - LEAST_RATE)
        spread = own * (1 - own)
        pace = descent.pace(without + having)
        pull = pace * sizes
        if descent.logistic:
            pull *= slopes(state.result, sizes, features)
        of_steps, of_start = gains(pull, state.released, descent)
        sampled = sizes * spread * (1 / float(self.share) - 1)
        steps = (descent.noise**2 + sampled) * pace**2 * of_steps
        # the start follows from rates that are drawn towards the mean
        _, rate = descent.rates(state.counts)
        slope = 1 / (rate * (1 - rate)) if descent.logistic else 1.0
        counted = descent.noise * np.sqrt(rate**2 + (1 - rate) ** 2)
        begun = START * slope * counted / (sizes + COUNTS_DAMPED * descent.noise)
        found: Floats = steps + (of_start * begun) ** 2
        return found


def gains(pull: Floats, released: int, descent: Descent) -> tuple[Floats, Floats]:
    """Returns how unit noise in every step, and in the start, appears in the averaged weights.

    ``pull`` is the share by which one step without momentum shrinks a weight. Returns the variance
    due to the steps, and the factor of the start.

    >>> moving = Descent(1, 3, 1.0, False)
    >>> [float(each[0]) for each in gains(np.array([0.5]), 3, moving)]
    [1.57..., 0.17...]
    """
    steps = released - 1
    averaged = np.array([descent.is_averaged(1 + step) for step in range(1, steps + 1)])
    if not averaged.any():
        averaged[-1:] = True
    # responses[k]: a weight k steps after a push; of the start: after it was one away
    responses = _responses(pull, steps, pushed=True)
    fading = _responses(pull, steps, pushed=False)
    variance = np.zeros_like(pull)
    for step in range(steps):
        mean = responses[: steps - step][averaged[step:]].sum(axis=0) / averaged.sum()
        variance += mean**2
    kept = fading[averaged].sum(axis=0) / averaged.sum() if steps else np.ones_like(pull)
    return variance, kept


def _responses(pull: Floats, steps: int, *, pushed: bool) -> Floats:
    """Returns the weights after each step: after a unit push in the first step, or from a start at
    one.
    """
    weight = np.zeros_like(pull) if pushed else np.ones_like(pull)
    speed = np.zeros_like(pull)
    responses = np.zeros((steps, len(pull)))
    for step in range(steps):
        push = 1.0 if pushed and step == 0 else 0.0
        speed = MOMENTUM * speed + pull * weight + push
        weight = weight - speed
        responses[step] = weight
    return responses


def slopes(weights: Floats, sizes: Floats, features: Features) -> Floats:
    """Returns the mean slope of the logistic function over the examples of each coordinate.

    Scores are assumed normal: the weight of the coordinate plus the sum of the other features, with
    the means and variances of their curves.
    """
    means, variances = np.zeros_like(weights), np.zeros_like(weights)
    mean = variance = 0.0
    for first, part in zip(features.starts, features.parts, strict=True):
        own = slice(first, first + part.width)
        portion = portions(sizes[own])
        means[own] = np.sum(portion * weights[own])
        variances[own] = np.sum(portion * (weights[own] - means[own]) ** 2)
        mean += float(means[first])
        variance += float(variances[first])
    others = np.sqrt(np.maximum(variance - variances, 0))
    found = np.zeros_like(weights)
    for place, chance in zip(*_NORMAL, strict=True):
        rate = 1 / (1 + np.exp(-np.clip(mean - means + weights + place * others, -30, 30)))
        found += chance * rate * (1 - rate)
    slope: Floats = found / _NORMAL[1].sum()
    return slope


def portions(sizes: Floats) -> Floats:
    """Returns the share of each coordinate in the examples of its curve; equal shares if all
    are 0.
    """
    if not sizes.sum() > 0:
        return np.full(len(sizes), 1 / len(sizes))
    found: Floats = sizes / sizes.sum()
    return found
