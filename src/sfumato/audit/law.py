# SPDX-License-Identifier: Apache-2.0
"""The exact output distribution of a mechanism on one input, for ``verify``.

For additive noise, thresholds, noisy maxima and short sparse vectors, the code itself is explored.
Weighted selection and randomised response, which use no noise distribution, and longer streams,
which have too many paths, are computed independently from formulas; whether the samples follow
these is checked by ``audit`` and the tests of ``noise``. Proof: law.proof.md.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

from sfumato.audit.explore import (
    BITS,
    ONE,
    Explored,
    NoEntropy,
    Table,
    Tape,
    explore,
    masses_of,
    paths_to,
    table_of,
    watched,
)
from sfumato.audit.outcome import Key
from sfumato.errors import InvalidDeclaration
from sfumato.exact.exponential import exp_scaled
from sfumato.mechanisms import VectorMechanism
from sfumato.mechanisms.ladder import LadderMechanism
from sfumato.privacy.event import (
    AdditiveNoise,
    Event,
    NoisyMax,
    RandomizedResponse,
    Rule,
    Selection,
    SparseVector,
    Thresholded,
)

# Sequences of verdicts (above the threshold or not), with bounds of their masses.
_Sequences: TypeAlias = dict[tuple[bool, ...], tuple[int, int]]

_NONE = NoEntropy()
# With more candidates the exact integral of permute-and-flip is slow.
_MOST_CANDIDATES = 30
# Runs, likeliest first, from which the largest number of draws of a run is estimated.
_PROBES = 1_000
# The longest stream whose code is run; longer ones have too many paths.
_LONGEST_RUN = 2
# The weight of a rung of a ladder from which on rungs are left out.
_LEFT_OUT = ONE >> 34


@dataclass(frozen=True, slots=True)
class Effort:
    """The limits of an exploration: at most ``paths`` runs, or until ``aim`` / 2^160 is unexplored."""

    paths: int
    aim: int


def law_of(mechanism: Any, event: Event, given: Any, effort: Effort) -> Explored:
    """Returns the exact output distribution of a mechanism on one input (``given``), as bounds, by
    the type of its event.

    Guarantees:
        the law is that of the code that releases

    Raises:
        InvalidDeclaration: an event of a kind without a rule.
        WrongUse: the mechanism draws randomness outside its noise distributions.
    """
    formula = _formula(event, given)
    if formula is not None:
        return formula(mechanism, given)
    tape, run = _run(mechanism, event, given)
    return explore(run, tape, paths=effort.paths, aim=effort.aim)


def law_by_formula(mechanism: Any, event: Event, given: Any) -> Explored | None:
    """Returns the output distribution of a mechanism on one input by a formula, if that is as
    informative as running the code; else None.
    """
    if isinstance(event, SparseVector) and not event.gap:
        return _verdicts(mechanism, given)
    return None


def is_whole(event: Event, given: Any) -> bool:
    """Whether ``law_of`` computes the distribution of all that a mechanism releases on this input.

    For long streams it leaves the gaps between releases out.
    """
    return not (isinstance(event, SparseVector) and event.gap and len(given) > _LONGEST_RUN)


def paths_needed(mechanism: Any, event: Event, given: Any, aim: int) -> float:
    """Estimates how many runs ``law_of`` needs until at most ``aim`` of the probability is
    unexplored.

    Computed from the noise distributions alone, before exploring; 0 if a formula gives the
    distribution.
    """
    if _formula(event, given) is not None:
        return 0.0
    tape, run = _run(mechanism, event, given)
    longest: list[Table] = []

    def probe() -> object:
        output = run()
        if len(tape.taken) > len(longest):
            longest[:] = [table for table, _ in tape.taken]
        return output

    explore(probe, tape, paths=_PROBES, aim=aim)
    return paths_to(longest, aim)


def _formula(event: Event, given: Any) -> Callable[[Any, Any], Explored] | None:
    if isinstance(event, SparseVector) and len(given) > _LONGEST_RUN:
        return _verdicts
    return _FORMULAS.get(type(event))


def _run(mechanism: Any, event: Event, given: Any) -> tuple[Tape, Callable[[], object]]:
    """The mechanism's code as a function without arguments that takes its noise from a tape."""
    run = _RUNS.get(type(event))
    if run is None:
        raise InvalidDeclaration(
            f"No exact output law for {type(event).__name__}.",
            allowed=", ".join(kind.__name__ for kind in (*_RUNS, *_FORMULAS)),
            remedy="Use sfumato.audit.audit: it needs only runs.",
        )
    tape = Tape()
    return tape, partial(run, watched(mechanism, tape), given)


def _add(mechanism: Any, exact: Sequence[int]) -> object:
    # a vector mechanism has its own number of cells
    cells = [] if isinstance(mechanism, VectorMechanism) else [len(exact)]
    released = mechanism.release(exact, mechanism.draw(*cells, _NONE))
    return tuple(map(int, released))


def _show(
    mechanism: Any, counts: Mapping[Hashable, int] | Sequence[tuple[Hashable, int]]
) -> object:
    return mechanism.release(dict(counts), _NONE)


def _win(mechanism: Any, scores: Sequence[int]) -> object:
    drawn = mechanism.draw(len(scores), _NONE)
    return mechanism.release(scores, drawn)


def _stream(mechanism: Any, answers: Sequence[int]) -> object:
    return mechanism.release(answers, _NONE)


def _selected(mechanism: Any, scores: Any) -> Explored:
    if isinstance(mechanism, LadderMechanism):
        return _climbed(mechanism, scores)
    if len(scores) > _MOST_CANDIDATES:
        raise InvalidDeclaration(
            f"{len(scores)} candidates.", allowed=f"at most {_MOST_CANDIDATES}"
        )
    best = max(scores)
    weights: list[tuple[int, int]] = []
    for score in scores:
        gap = mechanism.rate * (best - score)
        weights.append(exp_scaled(gap.numerator, gap.denominator, BITS))
    if mechanism.rule is Rule.EXPONENTIAL:
        return _in_proportion(weights)
    lows = [low for low, _ in weights]
    highs = [high for _, high in weights]
    law: dict[Key, tuple[int, int]] = {}
    for index in range(len(scores)):
        low, _ = _first(lows, highs, index)
        _, high = _first(highs, lows, index)
        law[index] = low, high
    return Explored(law)


def _climbed(mechanism: LadderMechanism, given: tuple[int, int]) -> Explored:
    """The distribution of a ladder: each integer in proportion to q^rung, with q = e^-rate.

    Rung t has the next width + t - 1 integers on each side. The last rungs are left out, and
    bounded by the sum of their series.
    """
    exact, width = given
    rate = mechanism.rate
    weights = {exact: (ONE, ONE)}
    reach = rung = 0
    high = ONE
    while high > _LEFT_OUT:
        rung += 1
        power = rung * rate
        low, high = exp_scaled(power.numerator, power.denominator, BITS)
        for distance in range(reach + 1, reach + width + rung):
            weights[exact - distance] = weights[exact + distance] = low, high
        reach += width + rung - 1
    most = Fraction(exp_scaled(rate.numerator, rate.denominator, BITS)[1], ONE)
    series = (width + rung) / (1 - most) + most / (1 - most) ** 2
    beyond = math.ceil(2 * high * most * series)
    lowest_sum = sum(low for low, _ in weights.values())
    highest_sum = sum(high for _, high in weights.values()) + beyond
    return Explored(
        {
            integer: (ONE * low // highest_sum, -(-ONE * high // lowest_sum))
            for integer, (low, high) in weights.items()
        }
    )


def _reported(mechanism: Any, truth: int) -> Explored:
    epsilon = mechanism.epsilon
    untrue = exp_scaled(epsilon.numerator, epsilon.denominator, BITS)
    categories = range(mechanism.categories)
    return _in_proportion([(ONE, ONE) if category == truth else untrue for category in categories])


def _verdicts(mechanism: Any, answers: Sequence[int]) -> Explored:
    """The distribution of which answers are above the noisy threshold, without gaps.

    It is a sum over the noise of the threshold.
    """
    table = table_of(mechanism.threshold_noise)
    law: dict[Key, tuple[int, int]] = {}
    for noise, low, high in zip(table.values, table.lows, table.highs, strict=True):
        unfinished: _Sequences = {(): (low, high)}
        for answer in answers:
            least = mechanism.threshold + noise - answer
            below = masses_of(mechanism.query_noise.cdf(least - 1))
            above = masses_of(mechanism.query_noise.above(least - 1))
            longer = _longer(unfinished, below, above)
            unfinished = {}
            finished: _Sequences = {}
            for verdicts, mass in longer.items():
                stopped = sum(verdicts) == mechanism.positives
                (finished if stopped else unfinished)[verdicts] = mass
            _add_up(law, finished)
        _add_up(law, unfinished)
    return Explored(law)


def _longer(sequences: _Sequences, below: tuple[int, int], above: tuple[int, int]) -> _Sequences:
    """Each sequence with one more verdict, given the masses of noise below and above it."""
    longer: _Sequences = {}
    for verdicts, (low, high) in sequences.items():
        for is_above, (part_low, part_high) in ((False, below), (True, above)):
            mass = low * part_low >> BITS, -(-high * part_high >> BITS)
            longer[(*verdicts, is_above)] = mass
    return longer


def _add_up(law: dict[Key, tuple[int, int]], more: _Sequences) -> None:
    for key, (low, high) in more.items():
        low_before, high_before = law.get(key, (0, 0))
        law[key] = low_before + low, high_before + high


def _in_proportion(weights: Sequence[tuple[int, int]]) -> Explored:
    """Probabilities proportional to weights."""
    lowest_sum = sum(low for low, _ in weights)
    highest_sum = sum(high for _, high in weights)
    law: dict[Key, tuple[int, int]] = {}
    for index, (low, high) in enumerate(weights):
        law[index] = ONE * low // highest_sum, -(-ONE * high // lowest_sum)
    return Explored(law)


def _first(own: Sequence[int], others: Sequence[int], index: int) -> tuple[int, int]:
    """Bounds of the probability that permute-and-flip selects the candidate ``index``, i.

    It is own_i times the integral over t in 0..1 of the product over j != i of (1 - t others_j).
    That is the probability that the coin of i, flipped at a uniform time t, is the first heads.
    """
    # coefficients of the product, lowest power first
    product = [Fraction(1)]
    for at, weight in enumerate(others):
        if at == index:
            continue
        bias = Fraction(weight, ONE)
        same_power, next_power = [*product, Fraction(0)], [Fraction(0), *product]
        product = [a - bias * b for a, b in zip(same_power, next_power, strict=True)]
    integral = Fraction(0)
    for power, coefficient in enumerate(product):
        integral += coefficient / (power + 1)
    chance = own[index] * integral
    return math.floor(chance), math.ceil(chance)


_RUNS: dict[type, Callable[[Any, Any], object]] = {
    AdditiveNoise: _add,
    Thresholded: _show,
    NoisyMax: _win,
    SparseVector: _stream,
}
_FORMULAS: dict[type, Callable[[Any, Any], Explored]] = {
    Selection: _selected,
    RandomizedResponse: _reported,
}
