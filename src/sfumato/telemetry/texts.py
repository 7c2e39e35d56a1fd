# SPDX-License-Identifier: Apache-2.0
"""Estimates the number of devices that hold candidate strings, from RAPPOR's bits.

Each bit of each cohort gives an unbiased estimate of the number of devices whose string sets it; a
candidate explains the bits that it sets. With fewer candidates than bits this is a linear
regression, weighted by the variances of the bits. Source: Fanti, Pihur, Erlingsson, "Building a
RAPPOR with the Unknown" (PoPETs 2016), without its penalty, which is needed only if candidates
outnumber bits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
import pyarrow as pa

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.noise import Integers
from sfumato.noise.law import open_unit
from sfumato.show.svg import Figure
from sfumato.telemetry.domain import Texts
from sfumato.telemetry.estimate_plot import estimate_chart, largest
from sfumato.telemetry.intervals import Floats
from sfumato.telemetry.oracles.rappor import RapporOracle


@dataclass(frozen=True)
class TextEstimates:
    """The estimated number of reports of each string, with its standard error.

    Intervals and ``p_value`` are those of the normal distribution, not proved for every data set.
    For RAPPOR they hold if the candidates include all frequent strings: other strings are explained
    by one more number, the same for all bits. For a sketch or prefixes, errors include collisions
    with other strings.

    >>> shown = TextEstimates(("a",), np.array([30.0]), np.array([10.0]), "0.95", 1000)
    >>> round(float(shown.low[0]), 1), round(float(shown.p_value[0]), 4)
    (10.4, 0.0013)
    >>> shown.found("0.95")
    ['a']
    """

    values: tuple[str, ...]
    estimate: Floats
    standard_error: Floats
    confidence: str
    reports: int

    @cached_property
    def _reach(self) -> Floats:
        miss = float(1 - open_unit("confidence", self.confidence))
        factor = NormalDist().inv_cdf(1 - miss / 2)
        reach: Floats = factor * self.standard_error
        return reach

    @property
    def low(self) -> Floats:
        """The lower end of each string's interval, in reports."""
        return self.estimate - self._reach

    @property
    def high(self) -> Floats:
        """The upper end of each string's interval, in reports."""
        return self.estimate + self._reach

    @cached_property
    def p_value(self) -> Floats:
        """The probability of at least this estimate if no device held the string."""
        scores = self.estimate / self.standard_error / math.sqrt(2)
        return np.array([math.erfc(score) / 2 for score in scores.tolist()])

    def found(self, confidence: Number = "0.95") -> list[str]:
        """Returns the candidate strings that some device holds, with false ones at most with 1 -
        confidence.

        Each is tested at the level (1 - confidence) over the number of candidates (Bonferroni).
        """
        miss = float(1 - open_unit("confidence", confidence)) / len(self.values)
        pairs = zip(self.values, self.p_value.tolist(), strict=True)
        return [text for text, p_value in pairs if p_value <= miss]

    def to_arrow(self) -> pa.Table:
        """Returns the estimates as an Arrow table with a row for each string."""
        columns = {
            "value": list(self.values),
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "low": self.low,
            "high": self.high,
            "p_value": self.p_value,
        }
        return pa.table({name: pa.array(column) for name, column in columns.items()})

    def to_dicts(self) -> list[dict[str, object]]:
        """Returns the estimates as a dictionary for each string."""
        rows: list[dict[str, object]] = self.to_arrow().to_pylist()
        return rows

    @property
    def found_level(self) -> float:
        """The largest p-value at which a string counts as held by some device, with the confidence
        for all strings together.
        """
        return (1 - float(self.confidence)) / max(len(self.values), 1)

    def plot(self, count: int = 20) -> Figure:
        """Draws the largest estimates with their intervals and p-values.

        Blue strings are those of ``found`` with the confidence of the intervals.
        """
        group = largest(self.to_arrow(), count, self.found_level)
        title = f"Estimated number of devices, of {self.reports:,} reports"
        return estimate_chart(title, [group], self.confidence)


def candidate_numbers(domain: Texts, candidates: Sequence[str]) -> list[int]:
    """Returns the number in the domain of each candidate string.

    Raises:
        WrongUse: no candidates, or one comes twice.
        UnknownName: one is no text.

    >>> candidate_numbers(Texts(), ["café", "café"])
    Traceback (most recent call last):
    sfumato.errors.WrongUse: The candidate 'café' comes twice...
    """
    if not candidates:
        raise WrongUse("No candidates.", allowed="1 text or more")
    numbers: dict[int, None] = {}
    for text in candidates:
        number = domain.known(text)
        if number in numbers:
            raise WrongUse(
                f"The candidate {shown(text)} comes twice.",
                allowed="texts that differ in Unicode form NFC",
                remedy="Give each candidate once.",
            )
        numbers[number] = None
    return list(numbers)


def text_estimates(
    oracle: RapporOracle,
    domain: Texts,
    tally: Integers,
    candidates: Sequence[str],
    confidence: str,
) -> TextEstimates:
    """Returns the estimated count of each candidate string, from RAPPOR reports, by regression of
    the bits' counts on the candidates' filter bits and a constant.

    The constant stands for all other strings.

    Raises:
        WrongUse: as many candidates as bits of all cohorts, or more; none, or one comes twice.

    >>> from sfumato.noise import SYSTEM
    >>> from sfumato.telemetry.oracles.rappor import rappor
    >>> oracle, domain = rappor(), Texts()
    >>> held = np.full(50_000, domain.number("yes"), np.uint64)
    >>> tally = oracle.tally(oracle.encode_many(held, SYSTEM))
    >>> text_estimates(oracle, domain, tally, ["yes", "no"], "0.95").found("0.999999999")
    ['yes']
    """
    numbers = candidate_numbers(domain, candidates)
    if len(numbers) >= oracle.cohorts * oracle.bits:
        raise WrongUse(
            f"{len(numbers):,} candidates for {oracle.cohorts * oracle.bits:,} bits.",
            allowed="fewer than bits of all cohorts",
            remedy="Test them in parts, the most likely first.",
        )
    reports, ones = oracle.split(tally)
    own, other = float(oracle.own), float(oracle.other)
    owners = (ones - reports[:, None] * other) / (own - other)
    weights = _weights(reports, owners, own, other)
    design = _design(oracle, numbers, reports)
    scaled = design * weights.ravel()[:, None]
    inverse = np.linalg.pinv(scaled.T @ scaled)
    found = inverse @ (scaled.T @ (weights * owners).ravel())
    errors = np.sqrt(np.diag(inverse))
    count = len(numbers)
    texts = tuple(map(str, candidates))
    total = int(reports.sum())
    return TextEstimates(texts, found[:count], errors[:count], confidence, total)


def _weights(
    reports: Integers,
    owners: Floats,
    own: float,
    other: float,
) -> Floats:
    """One over the standard deviation of the number of owners of each bit."""
    totals = reports[:, None].astype(np.float64)
    inside = np.clip(owners, 0, totals)
    spread = inside * own * (1 - own) + (totals - inside) * other * (1 - other)
    weights: Floats = (own - other) / np.sqrt(np.maximum(spread, 1e-9))
    return np.where(totals > 0, weights, 0.0)


def _design(oracle: RapporOracle, numbers: Sequence[int], reports: Integers) -> Floats:
    """For each bit, the share of the devices of a candidate that own it; then the constant."""
    shares = reports / max(int(reports.sum()), 1)
    design = np.zeros((oracle.cohorts, oracle.bits, len(numbers) + 1))
    for column, number in enumerate(numbers):
        for cohort in range(oracle.cohorts):
            owned = list(oracle.places(number, cohort))
            design[cohort, owned, column] = shares[cohort]
    design[:, :, -1] = shares[:, None]
    return design.reshape(-1, len(numbers) + 1)
