# SPDX-License-Identifier: Apache-2.0
"""The best split of a cost among the parts of a question."""

from collections.abc import Sequence
from fractions import Fraction

from sfumato.privacy.distance import Norm

_STEPS = 1000


def split(total: Fraction, weights: Sequence[Fraction], norm: Norm) -> list[Fraction]:
    """Shares of ``total`` that minimise the sum of the parts' relative variances.

    ``weights``: each part's sensitivity over its own natural scale. Laplace variance goes
    as (w/epsilon)^2, so epsilon is shared as w^(2/3); Gaussian as w^2/rho, so rho is shared
    as w (Lagrange; weights of an L2 sensitivity are given as w^2).

    Guarantees:
        shares sum to the stated cost

    >>> [str(share) for share in split(Fraction(1), [Fraction(1), Fraction(1)], Norm.L1)]
    ['1/2', '1/2']
    """
    power = 2 / 3 if norm is Norm.L1 else 1 / 2
    largest = max(weights)
    steps = [max(round(_STEPS * float(weight / largest) ** power), 1) for weight in weights]
    return [total * step / sum(steps) for step in steps]
