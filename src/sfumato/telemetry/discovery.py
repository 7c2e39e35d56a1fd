# SPDX-License-Identifier: Apache-2.0
"""Estimates from sketches: counts of candidate strings, and frequent strings without a list.

``Aggregator.texts`` and ``Aggregator.discover`` use it. Proof: discovery.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import WrongUse, shown
from sfumato.noise import Integers
from sfumato.telemetry.domain import Texts, Words
from sfumato.telemetry.intervals import Floats
from sfumato.telemetry.oracles.prefixes import PrefixesOracle
from sfumato.telemetry.oracles.sketch import SketchOracle
from sfumato.telemetry.texts import TextEstimates, candidate_numbers

Numbers = NDArray[np.uint64]
_MOST_KEPT = 1024


@dataclass(frozen=True)
class SketchSums:
    """The sums of a count sketch, to which each device contributed with probability ``chance``.

    Guarantees:
        estimates of a sketch are unbiased over its rows
        the error of a sketch includes its collisions

    >>> import numpy as np
    >>> from sfumato.noise import SYSTEM
    >>> from sfumato.telemetry.oracles.sketch import sketch
    >>> oracle = sketch(4)
    >>> tally = oracle.tally(oracle.encode_many(np.full(20_000, 7, np.uint64), SYSTEM))
    >>> found, error = SketchSums(oracle, tally).estimates(np.array([7, 8], np.uint64))
    >>> bool(abs(found[0] - 20_000) < 2000), bool(abs(found[1]) < 2000)
    (True, True)
    """

    oracle: SketchOracle
    tally: Integers
    chance: float = 1.0

    def estimates(self, numbers: Numbers) -> tuple[Floats, Floats]:
        """Returns the estimated number of devices that hold each string, and its standard error."""
        oracle = self.oracle
        per_row, buckets = oracle.split(self.tally)
        reports = int(per_row.sum())
        apart = float(oracle.own - oracle.other)
        support = oracle.supported(buckets, numbers).astype(np.float64)
        excess: Floats = (support - reports * float(oracle.other)) / apart
        inside = np.clip(excess, 0, reports)
        own = float(oracle.own * (1 - oracle.own))
        other = float(oracle.other * (1 - oracle.other))
        coins = (inside * own + (reports - inside) * other) / apart**2
        collided = self._same_text(per_row, buckets) - inside**2
        rows = oracle.rows * (oracle.part.values - 1)
        spread = coins + np.maximum(collided, 0) / rows + inside * (1 - self.chance)
        return excess / self.chance, np.sqrt(spread) / self.chance

    def _same_text(self, per_row: Integers, buckets: Integers) -> float:
        """An unbiased estimate of the number of ordered pairs of devices with the same text.

        Pairs with different texts share a bucket of a row with 1 / buckets, pairs with the same
        text always.
        """
        part = self.oracle.part
        count = part.values
        own, other = float(part.own), float(part.other)
        apart = own - other
        holders = (buckets - per_row[:, None] * other) / apart
        # what the coins add to the squares
        noise = own * (1 - own) + (count - 1) * other * (1 - other)
        reports = per_row.astype(np.float64)
        together = float((holders**2).sum() - reports.sum() * (1 + noise / apart**2))
        strangers = float((reports * (reports - 1)).sum()) / count
        return self.oracle.rows * (together - strangers) / (1 - 1 / count)


def sketched(
    oracle: SketchOracle,
    domain: Texts,
    tally: Integers,
    candidates: Sequence[str],
    confidence: str,
) -> TextEstimates:
    """Returns the estimates of candidate strings from the sums of a sketch.

    Raises:
        WrongUse: no candidates, or one comes twice.
        UnknownName: one is no text.
    """
    numbers = candidate_numbers(domain, candidates)
    found, errors = SketchSums(oracle, tally).estimates(np.array(numbers, np.uint64))
    reports = int(oracle.split(tally)[0].sum())
    return TextEstimates(tuple(candidates), found, errors, confidence, reports)


def discovered(
    oracle: PrefixesOracle,
    domain: Words,
    tally: Integers,
    kept: int,
    confidence: str,
) -> TextEstimates:
    """Returns the strings that the search through the prefixes finds, the most frequent first.

    The search uses the reports of all parts but the last; the estimates use the last part alone. So
    no string looks frequent because it was selected.

    Raises:
        WrongUse: an invalid number of kept prefixes.
    """
    require_kept(kept)
    pieces = oracle.pieces(tally)
    sums = [
        SketchSums(part, inner, chance)
        for part, (_, inner), chance in zip(oracle.parts, pieces, oracle.chances, strict=True)
    ]
    prefixes = np.zeros(1, np.uint64)
    done = 0
    for each, length in zip(sums[:-1], oracle.lengths[:-1], strict=True):
        tried = _continued(prefixes, oracle.symbols, length - done, done)
        estimates, _ = each.estimates(tried)
        best = np.argsort(-estimates, kind="stable")[:kept]
        prefixes, done = tried[best], length
    estimates, errors = sums[-1].estimates(prefixes)
    order = np.argsort(-estimates, kind="stable")
    texts = tuple(domain.text(number) for number in prefixes[order].tolist())
    reports = sum(reports for reports, _ in pieces)
    return TextEstimates(texts, estimates[order], errors[order], confidence, reports)


def require_kept(kept: object) -> None:
    """Raises WrongUse unless ``kept`` is a valid number of prefixes or fragments."""
    if type(kept) is not int or not 1 <= kept <= _MOST_KEPT:
        raise WrongUse(f"kept={shown(kept)} of a search.", allowed=f"1 to {_MOST_KEPT:,}")


def _continued(prefixes: Numbers, symbols: int, step: int, done: int) -> Numbers:
    """Each prefix of ``done`` symbols with all continuations.

    After the end of a text there is only its end.

    >>> _continued(np.array([0, 2], np.uint64), 3, 1, 1).tolist()
    [0, 6, 7, 8]
    """
    tails = np.arange(symbols**step, dtype=np.uint64)
    tails = tails[spelled(tails, symbols, step)]
    base = np.uint64(symbols)
    width = np.uint64(symbols**step)
    # an empty prefix is the start of all texts, not the empty text
    ended = (prefixes % base == 0) & (done > 0)
    running = (prefixes[~ended, None] * width + tails).ravel()
    return np.concatenate((prefixes[ended] * width, running))


def spelled(tails: Numbers, symbols: int, step: int) -> NDArray[np.bool_]:
    """Returns a mask over codes of string parts with ``step`` digits: False where a letter follows
    the end digit 0, which no string has.
    """
    good = np.ones(len(tails), np.bool_)
    rest = tails
    after = np.zeros(len(tails), np.bool_)
    for _ in range(step):
        rest, digit = np.divmod(rest, np.uint64(symbols))
        good &= ~((digit == 0) & after)
        after |= digit > 0
    return good
