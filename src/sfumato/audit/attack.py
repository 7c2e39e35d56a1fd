# SPDX-License-Identifier: Apache-2.0
"""A lower bound of epsilon from runs of a mechanism alone, of any library.

Source: Ding, Wang, Wang, Zhang, Kifer, "Detecting Violations of Differential Privacy" (CCS 2018);
Jagielski, Ullman, Oprea, "Auditing Differentially Private Machine Learning: How Private is Private
SGD?" (NeurIPS 2020), section 4. Proof: attack.proof.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from sfumato.accounting import Profile, approx_from_zcdp
from sfumato.audit.binomial import at_least, at_most, usual
from sfumato.audit.outcome import Raised
from sfumato.audit.region import Region, best_region
from sfumato.audit.verdict import Verdict, number, table
from sfumato.errors import InvalidDeclaration, InvalidNumber, WrongUse
from sfumato.exact.rational import Number, to_fraction
from sfumato.noise.law import open_unit
from sfumato.privacy import ApproxDP, PureDP, ZeroConcentratedDP

Claim: TypeAlias = Profile | PureDP | ApproxDP | ZeroConcentratedDP
Run: TypeAlias = Callable[[Any], Any]

CONFIDENCE = 1 - Fraction(1, 10**9)
_MOST_RUNS = 10**8
_REPORTS = 100
# two directions, a bound of each of the two probabilities in each
_BOUNDS = 4
_SLACK = 1e-12
_HALVINGS = 20


@dataclass(frozen=True, slots=True)
class Trial:
    """A set of outputs that was tested on ``runs`` new runs of each input; ``epsilon``: the proved
    bound.

    ``swapped``: its probability is higher under the second input.
    """

    region: str
    swapped: bool
    hits: int
    misses: int
    runs: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Audit:
    """The result: with the stated confidence the true epsilon at ``delta`` is at least ``epsilon``.

    ``notices`` is the power: if an output set as likely as the tested ones had this epsilon or
    more, the claim (0 without one) would have been refuted with the same confidence;
    ``notices_delta`` is the same as a delta at the claimed epsilon. ``considered``: sets considered
    on the first half of the runs; only the ``trials`` were tested, on the second half.
    """

    mechanism: str
    epsilon: float
    delta: Fraction
    confidence: Fraction
    claim: Fraction | None
    trials: tuple[Trial, ...]
    considered: int
    notices: float
    notices_delta: float

    @property
    def verdict(self) -> Verdict:
        """VIOLATED or UNDECIDED: runs can never prove that a claim holds."""
        return (
            Verdict.VIOLATED
            if self.claim is not None and self.epsilon > self.claim
            else Verdict.UNDECIDED
        )

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        doubt = f"(wrong with a probability of at most {float(1 - self.confidence):.2g})"
        bound = f"epsilon >= {self.epsilon:.4g} at delta = {number(self.delta)} {doubt}"
        claim = "" if self.claim is None else f"; claimed: {number(self.claim)}"
        power = (
            f"It would have noticed epsilon = {self.notices:.4g}, or delta = "
            f"{self.notices_delta:.2g}."
        )
        said = "" if self.claim is None else f"{self.verdict.value}: "
        return f"{self.mechanism}: {said}{bound}{claim}. {power}"

    def __str__(self) -> str:
        """A sentence, then a table of what was tested."""
        rows = [
            (
                trial.region,
                "second" if trial.swapped else "first",
                str(trial.hits),
                str(trial.misses),
                str(trial.runs),
            )
            for trial in self.trials
        ]
        heading = ("tested set", "likelier under", "hits", "hits of the other", "runs of each")
        return (
            f"{self.sentence}\n\n{table([heading, *rows])}\n{self.considered} sets were considered "
            "on other runs."
        )


def audit(
    mechanism: Any,
    neighbours: tuple[Any, Any],
    runs: int,
    *,
    claim: Claim | None = None,
    delta: Number | None = None,
    confidence: Number = CONFIDENCE,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Runs a mechanism on two neighbouring inputs and proves a lower bound of its epsilon.

    ``mechanism``: a function of the input, or an object whose ``release`` is one. ``runs``: on each
    of the two inputs; one set of outputs for each direction is chosen on the first half and tested
    on the second, with simultaneous Clopper-Pearson bounds of all four probabilities. ``delta``: by
    default that of the claim, else 0; a claim in rho needs one. An exception counts as an output,
    since an observer learns from it. The bits of floats are examined too; an input of 0 reveals
    most of them. ``progress(done, total)`` is called about a hundred times.

    Guarantees:
        an audit is wrong as rarely as stated
        the tested sets are chosen on other runs
        an audit states what it would have noticed

    Raises:
        InvalidNumber: fewer than 2 runs; a delta outside [0, 1); a confidence outside (0, 1).
        InvalidDeclaration: outputs that cannot be counted; a claim of rho without a delta.
        WrongUse: the mechanism raised in every run.

    >>> import random
    >>> keeps = audit(lambda bit: bit ^ (random.random() < 0.25), (0, 1), 20_000, claim=PureDP(Fraction(2)))
    >>> 0.8 < keeps.epsilon <= 1.1, keeps.verdict.value
    (True, 'UNDECIDED')
    >>> audit(lambda bit: bit ^ (random.random() < 0.25), (0, 1), 20_000, claim=PureDP(Fraction(1, 2))).verdict.value
    'VIOLATED'
    """
    claimed, ignored = _target(claim, delta)
    miss = float(1 - open_unit("confidence", confidence)) / _BOUNDS * (1 - _SLACK)
    sampler = _Sampler(getattr(mechanism, "release", mechanism), neighbours, _count(runs), progress)
    first, second = sampler.choose(runs // 2)
    chosen = [
        best_region(*samples, float(ignored), -math.log(miss))
        for samples in ((first, second), (second, first))
    ]
    regions = [region for region, _ in chosen]
    counts = sampler.test(runs - runs // 2, regions)
    trials = tuple(
        _trial(region, hits, runs - runs // 2, ignored, miss, swapped=swapped)
        for region, hits, swapped in zip(regions, counts, (False, True), strict=True)
    )
    power = [_power(trial, claimed or Fraction(0), ignored, miss) for trial in trials]
    return Audit(
        getattr(mechanism, "__name__", type(mechanism).__name__),
        max(trial.epsilon for trial in trials),
        ignored,
        open_unit("confidence", confidence),
        claimed,
        trials,
        sum(count for _, count in chosen),
        *(min(bounds) for bounds in zip(*power, strict=True)),
    )


@dataclass(frozen=True, slots=True)
class _Sampler:
    """Runs the mechanism on the two inputs in turn."""

    run: Run
    neighbours: tuple[Any, Any]
    total: int
    progress: Callable[[int, int], None] | None

    def __post_init__(self) -> None:
        if not callable(self.run):
            raise InvalidDeclaration(
                f"A mechanism of type {type(self.run).__name__}.",
                allowed="a function, or an object with release()",
            )
        if not isinstance(self.neighbours, tuple | list) or len(self.neighbours) != 2:
            raise InvalidDeclaration(
                "Neighbours that are not a pair.", allowed="(one input, the other)"
            )

    def choose(self, runs: int) -> tuple[list[Any], list[Any]]:
        """The outputs on which sets are chosen."""
        samples: tuple[list[Any], list[Any]] = ([], [])
        for done in range(1, runs + 1):
            for sample, given in zip(samples, self.neighbours, strict=True):
                sample.append(self._once(given))
            self._report(done)
        kinds = {
            output.kind if isinstance(output, Raised) else None
            for sample in samples
            for output in sample
        }
        if None not in kinds:
            raise WrongUse(
                f"The mechanism raised in every run: {', '.join(sorted(filter(None, kinds)))}.",
                allowed="a mechanism that answers on these inputs",
            )
        return samples

    def test(self, runs: int, regions: list[Region]) -> list[list[int]]:
        """How often the outputs of each input were in each set."""
        counts = [[0, 0] for _ in regions]
        for done in range(1, runs + 1):
            for side, given in enumerate(self.neighbours):
                output = self._once(given)
                for region, count in zip(regions, counts, strict=True):
                    count[side] += output in region
            self._report(self.total - runs + done)
        return counts

    def _once(self, given: Any) -> Any:
        try:
            return self.run(given)
        except Exception as error:
            return Raised(type(error).__name__)

    def _report(self, done: int) -> None:
        if (
            self.progress is not None
            and done * _REPORTS // self.total > (done - 1) * _REPORTS // self.total
        ):
            self.progress(done, self.total)


def _trial(
    region: Region, counts: list[int], runs: int, delta: Fraction, miss: float, *, swapped: bool
) -> Trial:
    """ln((P - delta) / Q) with P at its lower and Q at its upper bound."""
    hits, misses = reversed(counts) if swapped else counts
    p, q = at_least(hits, runs, miss), at_most(misses, runs, miss)
    return Trial(str(region), swapped, hits, misses, runs, _epsilon(p, q, delta))


def _epsilon(p: float, q: float, delta: Fraction) -> float:
    """ln((p - delta) / q), rounded down; 0 where it is less."""
    excess = p - float(delta) * (1 + _SLACK)
    return max(math.log(excess / q) - _SLACK, 0.0) if excess > 0 else 0.0


def _power(trial: Trial, claim: Fraction, delta: Fraction, miss: float) -> tuple[float, float]:
    """The least epsilon, and the least delta at the claimed epsilon, that such a test would detect.

    For a set of probability q under one input: the observed one, and for epsilon at least one in
    ``runs``, since no set is infinitely likelier.
    """
    seen = trial.misses / trial.runs
    some = max(seen, 1 / trial.runs)
    for_epsilon, for_delta = (
        _noticed_from(q, trial.runs, claim, delta, miss) for q in (some, seen)
    )
    return (
        math.log((for_epsilon - float(delta)) / some) if for_epsilon <= 1 else math.inf,
        max(for_delta - math.exp(claim) * seen, 0.0) if for_delta <= 1 else 1.0,
    )


def _noticed_from(q: float, runs: int, claim: Fraction, delta: Fraction, miss: float) -> float:
    """The least probability under the other input at which even few hits refute the claim; above 1
    if none.
    """
    highest = at_most(usual(q, runs, miss)[1], runs, miss)

    def noticed(p: float) -> bool:
        return _epsilon(at_least(usual(p, runs, miss)[0], runs, miss), highest, delta) > claim

    if not noticed(1.0):
        return math.inf
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if noticed(middle) else (middle, high)
    return high


def _target(claim: Claim | None, delta: Number | None) -> tuple[Fraction | None, Fraction]:
    """The claimed epsilon, and the delta at which it is tested."""
    asked = None if delta is None else to_fraction("delta", delta)
    if asked is not None and not 0 <= asked < 1:
        raise InvalidNumber(f"delta = {delta}.", allowed="from 0 to below 1")
    match claim:
        case None:
            return None, asked or Fraction(0)
        case PureDP(epsilon):
            return epsilon, asked or Fraction(0)
        case ApproxDP(epsilon, own) | Profile(epsilon=Fraction() as epsilon, delta=own):
            return epsilon, _at_least_own(own, asked)
        case ZeroConcentratedDP(rho) | Profile(rho=rho):
            own = claim.delta if isinstance(claim, Profile) else Fraction(0)
            if asked is None or asked <= own:
                raise InvalidDeclaration(
                    "A claim of rho without a delta to look at it.",
                    allowed="delta= above that of the claim",
                )
            return approx_from_zcdp(ZeroConcentratedDP(rho), asked - own).epsilon, asked
    raise InvalidDeclaration(
        f"A claim of type {type(claim).__name__}.",
        allowed="PureDP, ApproxDP, ZeroConcentratedDP, Profile",
    )


def _at_least_own(own: Fraction, asked: Fraction | None) -> Fraction:
    """Refuses a delta below the claimed one, at which nothing was claimed."""
    if asked is not None and asked < own:
        raise InvalidDeclaration(
            f"delta = {number(asked)} for a claim of delta = {number(own)}.",
            allowed="that of the claim, or more",
        )
    return own if asked is None else asked


def _count(runs: int) -> int:
    if isinstance(runs, bool) or not isinstance(runs, int) or not 2 <= runs <= _MOST_RUNS:
        raise InvalidNumber(
            f"runs = {runs!r}.", allowed="an integer from 2 to 10^8: half to choose, half to test"
        )
    return runs
