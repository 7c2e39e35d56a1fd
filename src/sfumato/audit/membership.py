# SPDX-License-Identifier: Apache-2.0
"""The likelihood ratio attack on membership: who was among the rows of a training.

Source: Carlini, Chien, Nasr, Song, Terzis, Tramer, "Membership Inference Attacks From First
Principles" (IEEE S&P 2022), LiRA with shadow trainings. Each row is included by a fair coin, so the
verdict is that of ``guesses``, whatever the attack; the rest is a picture.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.accounting.approx_statement import Promise
from sfumato.audit.attack import CONFIDENCE
from sfumato.audit.one_run import OneRun, guesses
from sfumato.audit.verdict import Verdict
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.rational import Number

# Trains on the rows that are included; returns a score of every row, higher if it fits better.
Fit = Callable[[NDArray[np.bool_]], object]

_FEWEST_ROWS = 10
_FEWEST_SHADOWS = 8
# The least spread, as a share of the larger one of a row, and what keeps it away from 0.
_LEAST_SPREAD, _TINY = 0.01, 1e-12


@dataclass(frozen=True, slots=True)
class Membership:
    """The result of ``membership``: the test of the claim, and the attack's curve.

    ``scores`` are the logarithms of the likelihood ratios, ``included`` the coins.

    >>> import numpy as np
    >>> from sfumato.privacy import PureDP
    >>> noise = np.random.default_rng(1)
    >>> result = membership(
    ...     lambda included: 5.0 * included + noise.normal(size=500), rows=500, claim=PureDP(1)
    ... )
    >>> result.verdict.value, result.found("0.05") > 0.3
    ('VIOLATED', True)
    """

    test: OneRun
    scores: NDArray[np.float64] = field(repr=False, compare=False)
    included: NDArray[np.bool_] = field(repr=False, compare=False)

    @property
    def verdict(self) -> Verdict:
        """VIOLATED or UNDECIDED: that of the guesses."""
        return self.test.verdict

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        return self.test.sentence

    def found(self, false_alarms: Number) -> float:
        """Returns the share of the members that the attack finds at this rate of false alarms.

        It is measured on this run alone, and no bound.
        """
        rate = float(false_alarms)
        if not 0 <= rate <= 1:
            raise InvalidNumber(f"false_alarms = {false_alarms}.", allowed="from 0 to 1")
        others = np.sort(self.scores[~self.included])[::-1]
        threshold = others[min(int(rate * len(others)), len(others) - 1)]
        return float((self.scores[self.included] > threshold).mean())


def membership(
    fit: Fit,
    *,
    rows: int,
    claim: Promise,
    shadows: int = 64,
    confidence: Number = CONFIDENCE,
    seed: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Membership:
    """Attacks a training by shadow trainings, and tests its claim by the guesses.

    ``fit``: trains on the included rows and returns a score of every row, such as its margin or
    minus its loss. It is called ``shadows`` + 1 times. ``claim``: the guarantee of one call, for one
    row. For public or made-up rows only: the result shows who was included.

    Guarantees:
        the attacked run takes no part in the shadows

    Raises:
        InvalidNumber: fewer than 10 rows or 8 shadows.
        InvalidDeclaration: scores that are not finite numbers, one for each row.
    """
    for name, count, least in (("rows", rows, _FEWEST_ROWS), ("shadows", shadows, _FEWEST_SHADOWS)):
        if isinstance(count, bool) or not isinstance(count, int) or count < least:
            raise InvalidNumber(f"{name} = {count}.", allowed=f"{least} or more")
    generator = np.random.default_rng(seed)
    coins = generator.random((shadows + 1, rows)) < 0.5
    scores = np.empty((shadows + 1, rows))
    for run, included in enumerate(coins):
        scores[run] = _scores(fit(included.copy()), rows)
        if progress is not None:
            progress(run + 1, shadows + 1)
    ratios = _ratios(scores[:-1], coins[:-1], scores[-1])
    test = guesses(ratios, coins[-1], claim=claim, confidence=confidence)
    return Membership(test, ratios, coins[-1])


def _scores(given: object, rows: int) -> NDArray[np.float64]:
    scores = np.asarray(given)
    if scores.shape != (rows,) or scores.dtype.kind not in "iuf" or not np.isfinite(scores).all():
        raise InvalidDeclaration(
            f"Scores of shape {scores.shape}.", allowed=f"{rows} finite numbers, one for each row"
        )
    return scores.astype(np.float64)


def _ratios(
    shadows: NDArray[np.float64], coins: NDArray[np.bool_], attacked: NDArray[np.float64]
) -> NDArray[np.float64]:
    """ln of the likelihood ratio of each attacked score: a normal law with the row, and without."""
    totals = coins.sum(axis=0)
    # a row that is in all shadows, or in none, tells nothing
    known = (totals > 0) & (totals < len(coins))
    inside = _means(shadows, coins)
    outside = _means(shadows, ~coins)
    spread_inside = _spreads(shadows - inside, coins)
    spread_outside = _spreads(shadows - outside, ~coins)
    # a training that fits its rows exactly gives them all the same score
    least = _LEAST_SPREAD * np.maximum(spread_inside, spread_outside) + _TINY
    spread_inside = np.maximum(spread_inside, least)
    spread_outside = np.maximum(spread_outside, least)
    ratios = (
        ((attacked - outside) / spread_outside) ** 2 / 2
        - ((attacked - inside) / spread_inside) ** 2 / 2
        + np.log(spread_outside / spread_inside)
    )
    result: NDArray[np.float64] = np.where(known, ratios, 0.0)
    return result


def _spreads(errors: NDArray[np.float64], chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    spreads: NDArray[np.float64] = np.sqrt(_means(errors**2, chosen))
    return spreads


def _means(scores: NDArray[np.float64], chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    means: NDArray[np.float64] = (scores * chosen).sum(axis=0) / np.maximum(chosen.sum(axis=0), 1)
    return means
