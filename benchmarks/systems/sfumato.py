# SPDX-License-Identifier: Apache-2.0
"""Sfumato, by its public names."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import count
from typing import Any

from numpy.typing import NDArray

from benchmarks.systems import Call, Make
from benchmarks.systems.accounts import ACCOUNTS
from benchmarks.systems.charges import CHARGES
from benchmarks.systems.collecting import COLLECTING
from benchmarks.systems.devices import DEVICES
from benchmarks.systems.estimates import ESTIMATES
from benchmarks.systems.scores import RATE, normal, votes
from benchmarks.systems.senders import SENDERS
from benchmarks.systems.stored import STORED
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.noise.coin import BernoulliLogistic
from sfumato.noise.select import exponential, permute_and_flip

Noise = type[DiscreteLaplace] | type[DiscreteGaussian]

PACKAGES = ("sfumato", "cryptography")

# a scale that was used before is cached: no two are equal
_FRESH = count(1)


def _many(law: Noise, scale: float, n: int) -> Call:
    return partial(law(scale).sample, n)


def _one(law: Noise, scale: float, n: int) -> Call:
    return law(scale).sample_one


def _first(law: Noise, scale: float, n: int) -> Call:
    def call() -> object:
        noise = law(Fraction(scale) * (1 + Fraction(next(_FRESH), 10**6)))
        return noise.sample(n) if n > 1 else noise.sample_one()

    return call


def _select(
    rule: Callable[[Any, Fraction], int],
    scores: Callable[[int], NDArray[Any]],
    scale: float,
    n: int,
) -> Call:
    return partial(rule, scores(n), Fraction(RATE))


def _bits(scale: float, n: int) -> Call:
    return partial(BernoulliLogistic(1).bits, n)


WORKS: dict[str, Make] = {
    "laplace": partial(_many, DiscreteLaplace),
    "gaussian": partial(_many, DiscreteGaussian),
    "laplace one": partial(_one, DiscreteLaplace),
    "gaussian one": partial(_one, DiscreteGaussian),
    "laplace first": partial(_first, DiscreteLaplace),
    "gaussian first": partial(_first, DiscreteGaussian),
    "exponential, normal": partial(_select, exponential, normal),
    "exponential, votes": partial(_select, exponential, votes),
    "permute-and-flip, normal": partial(_select, permute_and_flip, normal),
    "permute-and-flip, votes": partial(_select, permute_and_flip, votes),
    "bits": _bits,
    **ACCOUNTS,
    **CHARGES,
    **COLLECTING,
    **DEVICES,
    **ESTIMATES,
    **SENDERS,
    **STORED,
}
