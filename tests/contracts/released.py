# SPDX-License-Identifier: Apache-2.0
"""Released parts, made by hand."""

from collections.abc import Sequence
from fractions import Fraction

from sfumato.noise import Noise
from sfumato.query.estimate import Kind, Reading, Released

ONE = Fraction(1)


def numbers(
    values: Sequence[int], noise: Noise, unit: Fraction = ONE, title: str = "COUNT(*)"
) -> Released:
    """Released numbers, one a row."""
    return Released(
        title, Reading(Kind.NUMBER, unit), noise, tuple((v,) for v in values), (1,) * len(values)
    )


def means(
    pairs: Sequence[tuple[int, int]],
    noise: Noise,
    lower: object = 0,
    span: object = 1,
    unit: Fraction = ONE,
) -> Released:
    """Released means, one a row."""
    reading = Reading(
        Kind.MEAN, unit, Fraction(lower), Fraction(span), Fraction(lower) + Fraction(span)
    )
    return Released("AVG(x)", reading, noise, tuple(pairs), (1,) * len(pairs))


def variances(
    triples: Sequence[tuple[int, int, int]],
    noise: Noise,
    lower: object = 0,
    span: object = 1,
    unit: Fraction = ONE,
) -> Released:
    """Released variances, one a row."""
    reading = Reading(
        Kind.VARIANCE, unit, Fraction(lower), Fraction(span), Fraction(lower) + Fraction(span)
    )
    return Released("VARIANCE(x)", reading, noise, tuple(triples), (1,) * len(triples))
