# SPDX-License-Identifier: Apache-2.0
"""Sums of clipped float gradients as integers, with a sensitivity that includes rounding errors.

Used for networks, whose gradients are floats. The sums of chunks become integers of ``step`` / 2^16
that add up exactly; the total is rounded to ``step`` once. ``distance`` includes what rounding and
float products can add between neighbours. Proof: lattice.proof.md.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.errors import WrongUse
from sfumato.exact.rational import power_of_two_at_most
from sfumato.exact.rounding import sqrt_up
from sfumato.learning.features import Floats
from sfumato.noise import Integers
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation

# Chunks are integers of this many bits below a step.
_BITS = 16
# Sums are cut here, far beyond what clipped examples can reach.
_MOST = 2.0**60
# Noise this many steps wide costs little time and leaves the rounding far below it.
_NOISE_STEPS = 2**17
# Rounding may add this share of the clip.
_ROUNDED = Fraction(1, 100)
# The unit roundoffs of float32 and float64.
SINGLE, DOUBLE = Fraction(1, 2**24), Fraction(1, 2**53)


@dataclass(frozen=True, slots=True)
class Lattice:
    """The integer grid to which a training step rounds the sum of clipped gradients, each of
    ``size`` entries and L2 norm at most ``clip``.

    ``step``, the spacing of the grid, is a power of two. ``error`` bounds in L2 how far the float
    sum of all chunks is from the exact sum; ``chunks`` is their largest number.

    Guarantees:
        sums of neighbours are as near as their distance says

    Raises:
        WrongUse: a clip that is not above 0, a step that is no power of two.

    >>> lattice = Lattice.of(10_000, Fraction(1), multiplier=Fraction(2))
    >>> lattice.step, float(lattice.distance(Relation.ADD_REMOVE).value) ** 0.5 * lattice.step
    (Fraction(1, 65536), 1.0015...)
    """

    size: int
    clip: Fraction
    step: Fraction
    error: Fraction = Fraction(0)
    chunks: int = 1

    def __post_init__(self) -> None:
        if self.clip <= 0 or self.size < 1 or self.chunks < 1 or self.error < 0:
            raise WrongUse(
                f"A lattice for {self.size} entries clipped to {self.clip}.",
                allowed="a clip above 0, at least one entry and chunk, an error from 0 on",
            )
        if self.step <= 0 or power_of_two_at_most(self.step) != self.step:
            raise WrongUse(f"A lattice of step {self.step}.", allowed="a power of two")

    @classmethod
    def of(
        cls,
        size: int,
        clip: Fraction,
        *,
        multiplier: Fraction,
        error: Fraction = Fraction(0),
        chunks: int = 1,
    ) -> "Lattice":
        """Returns a grid that is fine enough for noise of ``multiplier`` times the clip: rounding
        adds at most 1% to the noise.
        """
        if clip <= 0 or multiplier <= 0:
            raise WrongUse(f"clip={clip}, multiplier={multiplier}.", allowed="above 0")
        finest = min(multiplier * clip / _NOISE_STEPS, _ROUNDED * clip / sqrt_up(Fraction(size)))
        return cls(size, clip, power_of_two_at_most(finest), error, chunks)

    def distance(self, neighbours: Relation) -> Distance:
        """Returns the squared L2 sensitivity of the rounded sum, in steps of the grid."""
        units = 1
        if neighbours is Relation.REPLACE_ONE:
            units = 2
        root = sqrt_up(Fraction(self.size))
        apart = units * self.clip + 2 * self.error
        # each entry of each sum is rounded once to a step, and each chunk to a step / 2^16
        rounded = root * (1 + Fraction(self.chunks, 1 << _BITS))
        return Distance(Norm.L2, (apart / self.step + rounded) ** 2, neighbours)

    def chunk(self, sums: Floats) -> Integers:
        """Rounds the gradient sum of a chunk of rows to integers, in units of step / 2^16; a value
        that is not finite counts as 0.
        """
        fine = float(self.step) / (1 << _BITS)
        finite = np.nan_to_num(sums.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
        with np.errstate(over="ignore"):
            scaled = np.rint(finite / fine)
        return np.clip(scaled, -_MOST, _MOST).astype(np.int64)

    def rounded(self, total: Integers) -> Integers:
        """Converts the total of all chunks from units of step / 2^16 to integer steps, rounded half
        up.
        """
        half = 1 << _BITS - 1
        return (total + half) >> _BITS


def product_error(
    terms: int,
    examples: int,
    amount: Fraction,
    roundoff: Fraction,
) -> Fraction:
    """Bounds in L2 the rounding error of a float matrix product that adds up ``terms`` products.

    ``amount`` bounds, for each of at most ``examples`` examples, the L2 norm of the sums of the
    absolute products. The bound holds in any order of summation, with or without fused
    multiply-add.

    Source: Higham, Accuracy and Stability of Numerical Algorithms (2002), Section 3.1.

    Raises:
        WrongUse: so many terms that nothing is known.

    >>> float(product_error(256, 256, Fraction(1), DOUBLE)) < 1e-11
    True
    """
    if terms < 1 or terms * roundoff >= Fraction(1, 2):
        raise WrongUse(
            f"A product of {terms:,} terms in such floats.",
            remedy="Use float64, or smaller chunks.",
        )
    gamma = terms * roundoff / (1 - terms * roundoff)
    return gamma * examples * amount


def clip_factors(
    squares: Floats,
    amounts: Floats,
    *,
    terms: int,
    clip: float,
    amount: float,
) -> Floats:
    """Returns the factor by which each example's gradient is multiplied, so that its norm is at
    most the clip.

    Scaled by it, a gradient is at most ``clip`` long and its ``amounts`` at most ``amount``.
    ``squares`` are float64 sums of at most ``terms`` squares, ``amounts`` such sums of absolute
    values. An example with a number that is not finite has the factor 0.

    Guarantees:
        a clipped example is no longer than the clip
        an example that is not finite counts as nothing

    >>> clip_factors(np.array([4.0, np.nan]), np.zeros(2), terms=9, clip=1.0, amount=1.0).tolist()
    [0.49999999999999..., 0.0]
    """
    # far more than the relative error of the sum, the root, the quotient and the product
    slack = 1 + (terms + 16) * 2.0**-52
    finite = np.isfinite(squares) & np.isfinite(amounts)
    lengths = np.sqrt(np.where(finite, squares, 1.0)) * slack + 5e-324
    sizes = np.where(finite, amounts, 1.0) * slack + 5e-324
    with np.errstate(over="ignore", divide="ignore"):
        factors = np.minimum(clip / lengths, amount / sizes) / slack
    return np.where(finite, np.minimum(factors, 1.0), 0.0)
