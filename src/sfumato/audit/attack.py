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
# Two directions with a bound of two probabilities each.
_BOUNDS = 4
_SLACK = 1e-12
_HALVINGS = 20


@dataclass(frozen=True, slots=True)
class Trial:
    """The statistical test of a set of outputs, on ``runs`` fresh runs of the mechanism on each of
    two inputs.

    ``hits`` counts outputs in the set for the input under which the set is likelier, ``misses`` for
    the other input. ``swapped``: the set is likelier under the second input. ``epsilon`` is the
    proved lower bound, 0 if the test shows nothing.

    >>> trial = audit(lambda bit: bit, (0, 1), 1_000).trials[0]
    >>> trial.region, trial.hits, trial.misses, trial.runs
    ('the output is one of 1 values', 500, 0, 500)
    """

    region: str
    swapped: bool
    hits: int
    misses: int
    runs: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of ``audit``: a lower bound of epsilon at ``delta``, with the stated confidence.

    ``notices`` is the power: if an output set as likely as the tested ones had this epsilon or
    more, the claim (0 without one) would have been refuted with the same confidence;
    ``notices_delta`` is the same as a delta at the claimed epsilon. ``considered`` is the number of
    sets considered on the first half of the runs; only the ``trials`` were tested, on the second
    half.

    >>> revealing = audit(lambda bit: bit, (0, 1), 1_000, claim=PureDP(Fraction(1)))
    >>> revealing.verdict.value, revealing.epsilon > 2
    ('VIOLATED', True)
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
        if self.claim is not None and self.epsilon > self.claim:
            return Verdict.VIOLATED
        return Verdict.UNDECIDED

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        doubt = f"(wrong with a probability of at most {float(1 - self.confidence):.2g})"
        bound = f"epsilon >= {self.epsilon:.4g} at delta = {number(self.delta)} {doubt}"
        if self.claim is not None:
            bound = f"{self.verdict.value}: {bound}; claimed: {number(self.claim)}"
        power = (
            f"It would have noticed epsilon = {self.notices:.4g}, or delta = "
            f"{self.notices_delta:.2g}."
        )
        return f"{self.mechanism}: {bound}. {power}"

    def __str__(self) -> str:
        """A sentence, then a table of the tested sets."""
        rows = [("tested set", "likelier under", "hits", "hits of the other", "runs of each")]
        for trial in self.trials:
            likelier_under = "second" if trial.swapped else "first"
            counts = str(trial.hits), str(trial.misses), str(trial.runs)
            rows.append((trial.region, likelier_under, *counts))
        considered = f"{self.considered} sets were considered on other runs."
        return f"{self.sentence}\n\n{table(rows)}\n{considered}"


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
    >>> def respond(bit):  # epsilon is ln 3
    ...     return bit ^ (random.random() < 0.25)
    >>> held = audit(respond, (0, 1), 20_000, claim=PureDP(Fraction(2)))
    >>> 0.8 < held.epsilon <= 1.1, held.verdict.value
    (True, 'UNDECIDED')
    >>> audit(respond, (0, 1), 20_000, claim=PureDP(Fraction(1, 2))).verdict.value
    'VIOLATED'
    """
    claimed, ignored = _target(claim, delta)
    sure = open_unit("confidence", confidence)
    miss = float(1 - sure) / _BOUNDS * (1 - _SLACK)
    run = getattr(mechanism, "release", mechanism)
    sampler = _Sampler(run, neighbours, _count(runs), progress)
    trials, considered = _trials(sampler, ignored, miss)
    power = [_power(trial, claimed or Fraction(0), ignored, miss) for trial in trials]
    return Audit(
        mechanism=getattr(mechanism, "__name__", type(mechanism).__name__),
        epsilon=max(trial.epsilon for trial in trials),
        delta=ignored,
        confidence=sure,
        claim=claimed,
        trials=trials,
        considered=considered,
        notices=min(epsilon for epsilon, _ in power),
        notices_delta=min(delta for _, delta in power),
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
        """Runs both inputs; returns the outputs from which the sets are chosen."""
        samples: tuple[list[Any], list[Any]] = ([], [])
        for done in range(1, runs + 1):
            for sample, given in zip(samples, self.neighbours, strict=True):
                sample.append(self._once(given))
            self._report(done)
        outputs = [*samples[0], *samples[1]]
        errors = [output.kind for output in outputs if isinstance(output, Raised)]
        if len(errors) == len(outputs):
            raise WrongUse(
                f"The mechanism raised in every run: {', '.join(sorted(set(errors)))}.",
                allowed="a mechanism that answers on these inputs",
            )
        return samples

    def test(self, runs: int, regions: list[Region]) -> list[list[int]]:
        """Runs both inputs; returns how often the outputs of each were in each set."""
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
        if self.progress is None:
            return
        before = (done - 1) * _REPORTS // self.total
        if done * _REPORTS // self.total > before:
            self.progress(done, self.total)


def _trials(sampler: _Sampler, delta: Fraction, miss: float) -> tuple[tuple[Trial, Trial], int]:
    """Chooses a set for each direction on half of the runs, and tests both on the other half.

    Also returns how many sets were considered.
    """
    chosen_on = sampler.total // 2
    tested_on = sampler.total - chosen_on
    first, second = sampler.choose(chosen_on)
    evidence = -math.log(miss)
    forward, considered_forward = best_region(first, second, float(delta), evidence)
    backward, considered_backward = best_region(second, first, float(delta), evidence)
    forward_counts, backward_counts = sampler.test(tested_on, [forward, backward])
    trials = (
        _trial(forward, forward_counts, tested_on, delta, miss, swapped=False),
        _trial(backward, backward_counts, tested_on, delta, miss, swapped=True),
    )
    return trials, considered_forward + considered_backward


def _trial(
    region: Region, counts: list[int], runs: int, delta: Fraction, miss: float, *, swapped: bool
) -> Trial:
    """The test of one set: ln((P - delta) / Q) with P at its lower and Q at its upper bound."""
    hits, misses = reversed(counts) if swapped else counts
    p, q = at_least(hits, runs, miss), at_most(misses, runs, miss)
    return Trial(str(region), swapped, hits, misses, runs, _epsilon(p, q, delta))


def _epsilon(p: float, q: float, delta: Fraction) -> float:
    """Returns ln((p - delta) / q), rounded down; 0 if it is negative."""
    excess = p - float(delta) * (1 + _SLACK)
    if excess <= 0:
        return 0.0
    return max(math.log(excess / q) - _SLACK, 0.0)


def _power(trial: Trial, claim: Fraction, delta: Fraction, miss: float) -> tuple[float, float]:
    """The least epsilon, and the least delta at the claimed epsilon, that such a test would detect.

    They are for a set of probability q under one input: the observed probability, and for epsilon
    at least one in ``runs``, since no set is infinitely likelier.
    """
    seen = trial.misses / trial.runs
    some = max(seen, 1 / trial.runs)
    noticed_epsilon, noticed_delta = math.inf, 1.0
    from_some = _noticed_from(some, trial.runs, claim, delta, miss)
    if from_some <= 1:
        noticed_epsilon = math.log((from_some - float(delta)) / some)
    from_seen = _noticed_from(seen, trial.runs, claim, delta, miss)
    if from_seen <= 1:
        noticed_delta = max(from_seen - math.exp(claim) * seen, 0.0)
    return noticed_epsilon, noticed_delta


def _noticed_from(q: float, runs: int, claim: Fraction, delta: Fraction, miss: float) -> float:
    """The least probability under the other input at which even few hits refute the claim.

    It is above 1 if there is none.
    """
    _, many_hits = usual(q, runs, miss)
    highest = at_most(many_hits, runs, miss)

    def noticed(p: float) -> bool:
        few_hits, _ = usual(p, runs, miss)
        lowest = at_least(few_hits, runs, miss)
        return _epsilon(lowest, highest, delta) > claim

    if not noticed(1.0):
        return math.inf
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if noticed(middle):
            high = middle
        else:
            low = middle
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
            own = Fraction(0)
            if isinstance(claim, Profile):
                own = claim.delta
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


def _at_least_own(claimed_delta: Fraction, tested_delta: Fraction | None) -> Fraction:
    """The delta at which a claim is tested; refuses one below its own, where it claims nothing."""
    if tested_delta is not None and tested_delta < claimed_delta:
        raise InvalidDeclaration(
            f"delta = {number(tested_delta)} for a claim of delta = {number(claimed_delta)}.",
            allowed="that of the claim, or more",
        )
    return claimed_delta if tested_delta is None else tested_delta


def _count(runs: int) -> int:
    if isinstance(runs, bool) or not isinstance(runs, int) or not 2 <= runs <= _MOST_RUNS:
        raise InvalidNumber(
            f"runs = {runs!r}.", allowed="an integer from 2 to 10^8: half to choose, half to test"
        )
    return runs
