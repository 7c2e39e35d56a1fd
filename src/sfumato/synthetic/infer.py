# SPDX-License-Identifier: Apache-2.0
"""Error bars by parametric bootstrap: refits the model to simulated noise.

The fitted model is measured as the private rows were, with fresh noise of the same distribution,
and fitted again. The spread of these copies estimates the effect of the noise on an answer. What is
never measured, such as pairs that were not selected, affects no copy: intervals do not cover it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number, to_fraction
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.synthetic.estimate import Estimator, Fitted, Measurement
from sfumato.synthetic.fitting import Base, whole_fits
from sfumato.synthetic.schema import Floats

# With so many degrees of freedom Student's law is the normal one.
_NORMAL = 1e9


@dataclass(frozen=True, eq=False)
class Copy:
    """A bootstrap copy of a model: its simulated single columns, and the distribution fitted to
    them.
    """

    base: Base
    fitted: Fitted


def copied(
    base: Base,
    pairs: Sequence[Measurement],
    fitted: Fitted,
    *,
    count: int,
    estimator: Estimator | None = None,
) -> list[Copy]:
    """Returns ``count`` copies of the model, each measured and fitted again with fresh noise.

    Source: the parametric bootstrap of Efron and Tibshirani (1993).
    """
    # from nothing, as the model was: a fit that began at the model would stop when it had followed
    # the noise a little, and the copies would spread by a fifth to nine tenths of what they do
    measured = [_measured_again(base, pairs, fitted) for _ in range(count)]
    fits = whole_fits(measured, estimator)
    return [Copy(noisy, fit) for (noisy, _), fit in zip(measured, fits, strict=True)]


def _measured_again(
    base: Base,
    pairs: Sequence[Measurement],
    fitted: Fitted,
) -> tuple[Base, list[Measurement]]:
    """Returns the single columns and the pairs of a model, counted with fresh noise."""
    listed = []
    for place, merging in enumerate(base.merges):
        weights = base.weights(place) + 1e-9
        share = weights / merging.merged(weights)[list(merging.blocks)]
        listed.append(fitted.marginal((place,))[list(merging.blocks)] * share)
    singles = with_noise(base, base.noises.single, listed)
    noisy = replace(base, singles=singles, pinned=base.merges)
    expected = [fitted.marginal(each.columns) for each in pairs]
    counts = with_noise(base, base.noises.chosen, expected) if pairs else ()
    return noisy, [replace(one, counts=new) for one, new in zip(pairs, counts, strict=True)]


def with_noise(
    base: Base,
    mechanism: AdditiveMechanism,
    tables: Sequence[Floats],
) -> tuple[Floats, ...]:
    """Adds noise to tables of counts, from the same distribution as in the measurement.

    All noise is drawn at once: drawing a few numbers at a time takes a hundred times as long.
    """
    sizes = [table.size for table in tables]
    drawn = mechanism.noise.sample(sum(sizes)) / base.refinement
    parts = np.split(drawn, np.cumsum(sizes)[:-1])
    return tuple(
        table + part.reshape(table.shape) for table, part in zip(tables, parts, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Combined:
    """An estimate combined from several copies, with its standard error and interval.

    >>> round(combine([10.0, 12.0]).high, 1)
    33.0
    """

    value: float
    standard_error: float
    low: float
    high: float


def combine(
    estimates: Sequence[float],
    variances: Sequence[float] | None = None,
    confidence: Number = "0.95",
) -> Combined:
    """Combines estimates that your own software computed from each of ``model.samples(m)``.

    With W the mean of the variances and B the variance of the estimates, the variance is W + (1 +
    1/m) B: copies differ by the noise of the measurements only, and the variance of a copy is that
    of its rows as a sample. Without variances, the statement is about the measured table, not about
    the population behind it.

    Source: Rubin (1987), "Multiple imputation for nonresponse in surveys", for copies that stand
    for what is unknown of the table; his degrees of freedom.

    Raises:
        WrongUse: fewer than two estimates, other numbers of variances, or negative ones.

    >>> found = combine([10.0, 12.0, 11.0, 11.0], [1.0, 1.0, 1.0, 1.0])
    >>> found.value, round(found.standard_error, 3)
    (11.0, 1.354)
    """
    values = np.asarray(estimates, np.float64)
    within = np.zeros(len(values)) if variances is None else np.asarray(variances, np.float64)
    if values.ndim != 1 or len(values) < 2 or within.shape != values.shape or (within < 0).any():
        raise WrongUse(
            f"{len(values)} estimates with {within.size} variances.",
            allowed="two estimates or more, each with a variance of 0 or more",
        )
    if not (np.isfinite(values).all() and np.isfinite(within).all()):
        raise WrongUse(
            "An estimate or a variance that is no finite number.",
            remedy="Combine what can be computed in every copy: that of a larger group, say.",
        )
    between = (1 + 1 / len(values)) * float(values.var(ddof=1))
    mean = float(within.mean())
    total = mean + between
    freedom = math.inf
    if between > 0:
        freedom = (len(values) - 1) * (total / between) ** 2
    far = _quantile(confidence, freedom) * math.sqrt(total)
    value = float(values.mean())
    return Combined(value, math.sqrt(total), value - far, value + far)


def interval(
    value: float,
    copies: Floats,
    confidence: Number,
) -> tuple[float, float]:
    """Returns the interval of an answer, given the answers of the copies.

    Its half-width includes the spread of the copies, and their mean deviation from the answer: the
    fit shrinks small counts, and shrinks those of the copies as it did those of the model.
    """
    known = copies[np.isfinite(copies)]
    if len(known) < 2:
        return -math.inf, math.inf
    spread = math.sqrt((1 + 1 / len(known)) * float(known.var(ddof=1)))
    far = _quantile(confidence, len(known) - 1) * spread + abs(float(known.mean()) - value)
    return value - far, value + far


def _quantile(
    confidence: Number,
    freedom: float,
) -> float:
    """Returns the half-width of an interval in standard errors."""
    wanted = float(to_fraction("confidence", confidence))
    if not 0 < wanted < 1:
        raise WrongUse(f"confidence={shown(confidence)}.", allowed="between 0 and 1")
    return float(stdtrit(min(freedom, _NORMAL), (1 + wanted) / 2))
