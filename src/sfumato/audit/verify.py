# SPDX-License-Identifier: Apache-2.0
"""Verifies the claim of a mechanism by its exact output distributions on the worst neighbours.

``sf.audit.verify`` is the entry point. Proof: verify.proof.md.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

from sfumato.accounting import Profile, account, approx_from_zcdp
from sfumato.audit.divergence import Compared
from sfumato.audit.explore import ONE, Explored
from sfumato.audit.law import Effort, is_whole, law_by_formula, law_of, paths_needed
from sfumato.audit.neighbours import Neighbours, worst_neighbours
from sfumato.audit.outcome import Key, key_of
from sfumato.audit.verdict import Verdict, number, overall, shown, table
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.bracket import Bracket
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import exp_down, float_up, log_up, sqrt_up
from sfumato.privacy import ApproxDP, Distance, PureDP, ZeroConcentratedDP
from sfumato.privacy.event import Event

Claim: TypeAlias = Profile | PureDP | ApproxDP | ZeroConcentratedDP

# The orders of the Renyi divergence that are tested; dividing a float by a power of two is exact.
ORDERS = (2, 4, 16)
# The shares of the claimed delta that are used for converting zCDP to (epsilon, delta).
_SHARES = (Fraction(1, 16), Fraction(1, 256))
_MOST_PATHS = 10**8
# Draws explored, likeliest first, of an input that takes too many to be explored completely.
_GLANCE = 2_000
# The estimate of the number of paths may be a little too low.
_SPARE = Fraction(5, 4)
# Stated masses are floats, whose sum is not more accurate than 2^-44.
_FINEST = 44


class Measure(Enum):
    """The privacy measure in which a claim is checked, such as delta or rho.

    >>> [measure.value for measure in Measure]
    ['delta at the claimed epsilon', 'rho of zCDP']
    """

    DELTA = "delta at the claimed epsilon"
    RHO = "rho of zCDP"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of checking a claimed privacy measure on a pair of neighbouring inputs, in one
    direction.

    ``claimed`` is the claim and ``truth`` the proved bounds of the real value, both in the unit of
    ``measure``: a probability for DELTA, a rho for RHO. The claim holds if the truth exceeds it by
    at most ``tolerance``. ``whole`` is False if only the likeliest outputs were explored, which can
    refute a claim but not prove it.

    >>> truth = Bracket(0.0, 1e-12)
    >>> pair = Neighbours((0,), (1,))
    >>> Finding(pair, Measure.DELTA, Fraction(0), truth, tolerance=Fraction(1, 10**9)).verdict
    <Verdict.HOLDS: 'HOLDS'>
    """

    neighbours: Neighbours
    measure: Measure
    claimed: Fraction
    truth: Bracket
    tolerance: Fraction
    whole: bool = True

    @property
    def verdict(self) -> Verdict:
        # floats and Fractions compare exactly, infinity too
        if self.truth.lower > self.claimed:
            return Verdict.VIOLATED
        if self.truth.upper <= self.claimed + self.tolerance:
            return Verdict.HOLDS
        return Verdict.UNDECIDED


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of ``verify``: the findings, and bounds of the true epsilon.

    ``epsilon``: bounds of the largest true loss over the pairs, at the claimed delta plus
    ``tolerance``. ``unreached``: the largest probability that was not explored on an input of a
    pair that was compared completely (of any pair, if none was). ``needed``: an estimate of the
    number of runs for the largest input that was not explored; 0 if all pairs were compared
    completely.

    >>> from sfumato.mechanisms import laplace
    >>> from sfumato.privacy import Norm
    >>> one = Distance(Norm.L1, Fraction(1))
    >>> verification = verify(laplace(one, epsilon=1), one)
    >>> verification.verdict.value, 0.99 < verification.epsilon.lower <= 1
    ('HOLDS', True)
    """

    mechanism: str
    claim: Profile
    findings: tuple[Finding, ...]
    epsilon: Bracket
    tolerance: Fraction
    unreached: float
    needed: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """VIOLATED if a pair of inputs violates the claim, HOLDS if all were compared completely.

        Otherwise UNDECIDED.
        """
        telling = [
            finding
            for finding in self.findings
            if finding.whole or finding.verdict is Verdict.VIOLATED
        ]
        return overall([finding.verdict for finding in telling])

    @property
    def worst(self) -> Finding:
        """The finding that decides the verdict: the one whose truth exceeds its claim most."""
        verdict = self.verdict
        decided = [finding for finding in self.findings if finding.verdict is verdict]

        def above_claim(finding: Finding) -> tuple[float, float]:
            truth = finding.truth
            return truth.lower - float(finding.claimed), truth.upper

        return max(decided or self.findings, key=above_claim)

    def __str__(self) -> str:
        """A sentence, then a table of the worst finding in each measure."""
        heading = ("measure", "claimed", "truth", "verdict", "neighbours")
        rows = [
            (
                finding.measure.value,
                number(finding.claimed),
                shown(finding.truth),
                finding.verdict.value,
                str(finding.neighbours),
            )
            for finding in self._by_measure()
        ]
        return f"{self.sentence}\n\n{table([heading, *rows])}"

    @property
    def sentence(self) -> str:
        """The verdict as a sentence."""
        loss = (
            f"The true epsilon at delta = {number(self.claim.delta + self.tolerance)} is in "
            f"{shown(self.epsilon)}."
        )
        return f"{self.mechanism}: {self._verdict_text()} {loss}"

    def _verdict_text(self) -> str:
        verdict = self.verdict
        if verdict is Verdict.VIOLATED:
            worst = self.worst
            measure, claimed = worst.measure.value, number(worst.claimed)
            return f"VIOLATED: the {measure} is proved to be above {claimed}."
        all_pairs = {str(finding.neighbours) for finding in self.findings}
        pairs = len({str(finding.neighbours) for finding in self.findings if finding.whole})
        if verdict is Verdict.HOLDS:
            sentence = (
                f"HOLDS on {pairs} pairs of neighbours, up to a probability of "
                f"{number(self.tolerance)}."
            )
            rest = len(all_pairs) - pairs
            return f"{sentence} Not compared whole: {rest} pairs." if rest else sentence
        if self.needed and not pairs:
            return (
                f"UNDECIDED: one input takes about {self.needed:.1g} runs, more than paths "
                "allows; most was not gone through."
            )
        return f"UNDECIDED: a probability of up to {self.unreached:.2g} was not gone through."

    def _by_measure(self) -> list[Finding]:
        """The worst finding in each measure."""
        order = (Verdict.VIOLATED, Verdict.UNDECIDED, Verdict.HOLDS)

        def rank(finding: Finding) -> tuple[int, float]:
            return order.index(finding.verdict), -finding.truth.lower

        last_to_first = sorted(self.findings, key=rank)[::-1]
        return list({finding.measure: finding for finding in last_to_first}.values())


def verify(
    mechanism: Any,
    distance: Distance,
    *,
    claim: Claim | None = None,
    neighbours: Iterable[tuple[Any, Any]] | None = None,
    tolerance: Number = "1e-9",
    paths: int = 150_000,
) -> Verification:
    """Compares the claim of a mechanism with its exact output distributions on neighbours.

    The neighbours are ``distance`` apart. ``claim``: by default that of the accountant for
    ``mechanism.event(distance)``. ``neighbours``: pairs of inputs, by default the worst known ones
    for its type. ``tolerance``: a claim that is exceeded by at most this counts as held; at most a
    hundredth of a claimed delta. ``paths``: the most runs for the exploration of one input.

    It trusts that each noise distribution samples what it states. Everything after that is run or
    computed independently. Small noise (a scale below 10) and few cells keep it exact.

    Guarantees:
        a violation that is reported is there
        what holds is proved on the pairs compared
        a right mechanism is never called violated

    Raises:
        InvalidNumber: a tolerance outside (0, 1/2], paths below 1.
        InvalidDeclaration: a kind of event without an exact law; no neighbours; a claim of another
            kind.
        WrongUse: the mechanism draws randomness outside its noise distributions.

    >>> from sfumato.mechanisms import laplace
    >>> from sfumato.privacy import Norm
    >>> one = Distance(Norm.L1, Fraction(1))
    >>> verify(laplace(one, epsilon=1), one).verdict
    <Verdict.HOLDS: 'HOLDS'>
    >>> verify(laplace(one, epsilon=1), one, claim=PureDP(Fraction(1, 2))).verdict
    <Verdict.VIOLATED: 'VIOLATED'>
    """
    event = mechanism.event(distance)
    claimed = _profile(account(event) if claim is None else claim)
    if neighbours is None:
        pairs = worst_neighbours(mechanism, event, distance)
    else:
        pairs = tuple(Neighbours(one, other) for one, other in neighbours)
    if not pairs:
        raise InvalidDeclaration("No neighbours to compare.", allowed="one pair of inputs or more")
    slack = positive("tolerance", tolerance, at_most=Fraction(1, 2))
    if claimed.delta:
        slack = min(slack, claimed.delta / 100)
    effort = Effort(_count(paths), _aim(claimed, slack))
    compared = _compared(mechanism, event, pairs, effort)
    complete_pairs = [pair for pair in compared if pair.whole]
    findings: list[Finding] = []
    for pair in compared:
        findings += _findings(pair, claimed, slack)
    return Verification(
        mechanism=type(mechanism).__name__,
        claim=claimed,
        findings=tuple(findings),
        epsilon=_largest_epsilon(compared, claimed.delta + slack),
        tolerance=slack,
        unreached=float_up(Fraction(max(pair.rest for pair in complete_pairs or compared), ONE)),
        needed=max(pair.needed for pair in compared),
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """The output distributions on a pair of neighbours, in one direction."""

    neighbours: Neighbours
    laws: Compared
    whole: bool
    rest: int
    needed: float


def _largest_epsilon(compared: Sequence[_Pair], delta: Fraction) -> Bracket:
    """Bounds of the largest true epsilon at ``delta``; the upper one from complete pairs only."""
    lowers: list[float] = []
    uppers: list[float] = []
    for pair in compared:
        epsilon = pair.laws.epsilon(delta)
        lowers.append(epsilon.lower)
        if pair.whole:
            uppers.append(epsilon.upper)
    return Bracket(max(lowers), max(uppers, default=math.inf))


def _compared(
    mechanism: Any, event: Event, pairs: Iterable[Neighbours], effort: Effort
) -> list[_Pair]:
    """The distributions on each pair, in both directions.

    They are complete while ``effort`` lasts, then by formula or of the likeliest draws.
    """
    known: dict[Key, Explored] = {}
    left = float(effort.paths)
    compared: list[_Pair] = []
    for pair in pairs:
        sides = [side for side in (pair.one, pair.other) if key_of(side) not in known]
        needs = [paths_needed(mechanism, event, side, effort.aim) for side in sides]
        if sum(needs) > left:
            compared += _in_part(mechanism, event, pair, effort, max(needs))
            continue
        left -= sum(needs)
        for side, need in zip(sides, needs, strict=True):
            allowed = replace(effort, paths=int(need * _SPARE) + _GLANCE)
            known[key_of(side)] = law_of(mechanism, event, side, allowed)
        one, other = known[key_of(pair.one)], known[key_of(pair.other)]
        compared += _both_ways(pair, one, other, whole=is_whole(event, pair.one))
    return compared


def _in_part(
    mechanism: Any, event: Event, pair: Neighbours, effort: Effort, needed: float
) -> Iterator[_Pair]:
    """The distributions on a pair that takes too many runs: of the likeliest draws, and by formula."""
    glance = replace(effort, paths=min(_GLANCE, effort.paths))
    one = law_of(mechanism, event, pair.one, glance)
    other = law_of(mechanism, event, pair.other, glance)
    yield from _both_ways(pair, one, other, whole=False, needed=needed)
    one_formula = law_by_formula(mechanism, event, pair.one)
    other_formula = law_by_formula(mechanism, event, pair.other)
    if one_formula is not None and other_formula is not None:
        yield from _both_ways(pair, one_formula, other_formula, whole=True)


def _both_ways(
    pair: Neighbours, one: Explored, other: Explored, *, whole: bool, needed: float = 0.0
) -> Iterator[_Pair]:
    """A pair in both directions."""
    rest = max(one.rest, other.rest)
    for laws in (Compared(one, other), Compared(other, one)):
        yield _Pair(pair, laws, whole, rest, needed)


def _findings(pair: _Pair, claim: Profile, slack: Fraction) -> list[Finding]:
    """The findings on one pair in one direction, one for each measure of the claim."""
    findings: list[Finding] = []

    def add(measure: Measure, claimed: Fraction, truth: Bracket) -> None:
        findings.append(Finding(pair.neighbours, measure, claimed, truth, slack, pair.whole))

    if claim.epsilon is not None:
        add(Measure.DELTA, claim.delta, pair.laws.delta(claim.epsilon))
    # a rho that follows from the epsilon holds if the epsilon does
    if claim.epsilon is None or claim.rho < claim.epsilon**2 / 2:
        add(Measure.RHO, claim.rho, _rho(pair.laws, claim, slack))
    return findings


def _rho(laws: Compared, claim: Profile, slack: Fraction) -> Bracket:
    """Bounds of the least rho of zCDP at the tested orders, beside the claimed delta.

    For the upper bound the tolerance is added to the delta. With a delta the lower bound is 0, or
    infinity if the (epsilon, delta) that the claim implies is violated.
    """
    lower = upper = -math.inf
    for order in ORDERS:
        divergence = laws.renyi(order, claim.delta + slack)
        lower = max(lower, divergence.lower / order)
        upper = max(upper, divergence.upper / order)
    if not claim.delta:
        # the upper bound leaves out the tolerance, the lower bound does not
        return Bracket(lower, max(lower, upper))
    for share in _SHARES:
        implied = approx_from_zcdp(ZeroConcentratedDP(claim.rho), share * claim.delta)
        proved = Fraction(laws.delta(implied.epsilon).lower)
        if proved > claim.delta + implied.delta:
            return Bracket(math.inf, math.inf)
    return Bracket(0.0, upper)


def _aim(claim: Profile, slack: Fraction) -> int:
    """The probability that may remain unexplored.

    Even if it is e^loss times as likely on the other side, it stays below the tolerance.
    """
    loss = claim.epsilon
    if not loss:
        loss = claim.rho + 2 * sqrt_up(claim.rho * log_up(1 / slack))
    aim = int(slack * ONE / 8 * exp_down(-loss))
    return max(aim, ONE >> _FINEST)


def _profile(claim: object) -> Profile:
    match claim:
        case Profile():
            return claim
        case PureDP(epsilon):
            return Profile.pure(epsilon)
        case ApproxDP(epsilon, delta):
            return Profile.pure(epsilon, delta)
        case ZeroConcentratedDP(rho):
            return Profile(None, rho)
        case _:
            raise InvalidDeclaration(
                f"A claim of type {type(claim).__name__}.",
                allowed="Profile, PureDP, ApproxDP, ZeroConcentratedDP",
            )


def _count(paths: int) -> int:
    if isinstance(paths, bool) or not isinstance(paths, int) or not 1 <= paths <= _MOST_PATHS:
        raise InvalidNumber(f"paths = {paths!r}.", allowed="an integer from 1 to 10^8")
    return paths
