# SPDX-License-Identifier: Apache-2.0
"""Bounds the sum of absolute losses in a composition, on which relative rounding errors act.

Proof: travel.proof.md.
"""

import math
from collections.abc import Sequence

import numpy as np

from sfumato.accounting.loss.lattice import Lattice

# Rates of the Chernoff bound to try, in multiples of 1 / (the largest single loss).
_RATES = np.geomspace(0.05, 30.0, 12)


def travelled(steps: Sequence[tuple[Lattice, float]], lost: float) -> float:
    """Returns a bound of the sum of the absolute values of all composed privacy losses, which holds
    except for ``lost`` of the weight.

    ``steps``: each single loss with the number of its uses; a loss in two parts gives each its
    share of the uses.

    Guarantees:
        nearly all paths travel no farther
    """
    least = math.inf
    farthest = max(_distance(x) for x, _ in steps)
    for rate in _RATES / farthest:
        grown = sum(uses * _excess(x, float(rate)) for x, uses in steps)
        least = min(least, (grown - math.log(lost)) / float(rate))
    return least * (1 + 2.0**-30)


def _distance(x: Lattice) -> float:
    losses = x.losses
    return max(abs(float(losses[0])), abs(float(losses[-1]))) + x.step


def _excess(x: Lattice, rate: float) -> float:
    """An upper bound of the mean of e^(rate size) - 1 over the sizes of a loss before rounding."""
    size = np.abs(x.losses) + x.step
    total = float(x.weights.sum())
    mean = float((x.weights * np.expm1(rate * size)).sum()) / total
    return (mean + 2 * x.error * math.exp(rate * float(size.max()))) * (1 + 2.0**-30)
