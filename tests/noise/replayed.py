# SPDX-License-Identifier: Apache-2.0
"""Every sampler under replayed bits, as hashes.

``python -m tests.noise.replayed`` prints them, for ``GOLDEN``.
"""

import hashlib
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy._core._multiarray_umath import __cpu_features__

from sfumato.noise import (
    Binomial,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
    Entropy,
    Geometric,
    Law,
    Skellam,
    Truncated,
    below_many,
    permutation,
    subset,
)
from sfumato.noise.coin import BernoulliExp
from sfumato.noise.select import exponential, permute_and_flip
from sfumato.testing import Replay

SCALES = ("0.3", "1", "16", "1000", "1e6", str(2**40), str(2**52), str(2**60))
LAWS: dict[str, list[Law]] = {
    "laplace": [DiscreteLaplace(scale) for scale in SCALES],
    "gaussian": [DiscreteGaussian(scale) for scale in SCALES],
    "geometric": [Geometric(scale) for scale in SCALES],
    "staircase": [DiscreteStaircase("0.7", 1000), DiscreteStaircase(2, 3)],
    "truncated": [
        Truncated(DiscreteLaplace(100), -50, 70),
        Truncated(DiscreteGaussian(10**6), -(10**7), 10**7),
    ],
    "binomial": [Binomial(1000, "0.3")],
    "skellam": [Skellam(50)],
}
SCORES = np.arange(20_000) * 7919 % 10_007 / 1000
OTHERS: dict[str, Callable[[Entropy], Any]] = {
    "coins": lambda entropy: BernoulliExp(Fraction(1, 3)).sample(10_000, entropy),
    "uniform": lambda entropy: below_many(10**9 + 7, 10_000, entropy),
    "permutation": lambda entropy: permutation(10_000, entropy),
    "subset": lambda entropy: subset(10**6, 5000, entropy),
    "exponential": lambda entropy: [exponential(SCORES, Fraction(1), entropy) for _ in range(30)],
    "permute and flip": lambda entropy: [
        permute_and_flip(SCORES, Fraction(1), entropy) for _ in range(30)
    ],
}


def drawn(law: Law, entropy: Entropy) -> list[int]:
    """A hundred single draws, a few, and many; few where the law is wider than the engine."""
    many = 300 if law.sample(0).dtype == object else 20_000
    return [
        *(law.sample_one(entropy) for _ in range(100)),
        *law.sample(50, entropy),
        *law.sample(many, entropy),
    ]


def hashed(values: Any) -> str:
    """Of the integers as text: no type and no byte order enters."""
    return hashlib.sha256(" ".join(str(int(each)) for each in values).encode()).hexdigest()[:16]


def hashes() -> dict[str, str]:
    """What each sampler draws from the same bits."""
    laws = {
        name: hashed([x for law in each for x in drawn(law, Replay(1))])
        for name, each in LAWS.items()
    }
    return laws | {name: hashed(draw(Replay(2))) for name, draw in OTHERS.items()}


if __name__ == "__main__":
    print(
        json.dumps(
            {
                "features": [name for name, there in __cpu_features__.items() if there],
                "hashes": hashes(),
            }
        )
    )
