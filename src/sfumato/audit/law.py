# SPDX-License-Identifier: Apache-2.0
"""The exact output distribution of a mechanism on one input.

For additive noise, thresholds, noisy maxima and short sparse vectors, the code itself is explored.
Weighted selection and randomised response, which use no noise distribution, and longer streams,
which have too many paths, are computed independently from formulas; whether the samples follow
these is checked by ``audit`` and the tests of ``noise``. Proof: law.proof.md.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from sfumato.audit.explore import (
    BITS,
    ONE,
    Explored,
    NoEntropy,
    Table,
    Tape,
    explore,
    paths_to,
    table_of,
    units_of,
    watched,
)
from sfumato.audit.outcome import Key
from sfumato.errors import InvalidDeclaration
from sfumato.exact.exponential import exp_scaled
from sfumato.mechanisms import VectorMechanism
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

_NONE = NoEntropy()
# beyond, the exact integral of permute-and-flip is slow
_MOST_CANDIDATES = 30
# How many draws a run takes may depend on the first ones: the most that the likeliest runs take.
_PROBES = 1_000
# longer streams have too many paths
_LONGEST_RUN = 2


@dataclass(frozen=True, slots=True)
class Effort:
    """When an exploration ends: after ``paths`` paths, or when all but ``aim`` / 2^160 is
    reached.
    """

    paths: int
    aim: int


def law_of(mechanism: Any, event: Event, given: Any, effort: Effort) -> Explored:
    """The output distribution of a mechanism on one input, by the type of its event.

    Guarantees:
        the law is that of the code that releases

    Raises:
        InvalidDeclaration: an event of a kind without a rule.
        WrongUse: the mechanism draws beside its noise laws.
    """
    formula = _formula(event, given)
    if formula is not None:
        return formula(mechanism, given)
    tape, run = _run(mechanism, event, given)
    return explore(run, tape, paths=effort.paths, aim=effort.aim)


def law_by_formula(mechanism: Any, event: Event, given: Any) -> Explored | None:
    """The distribution from a formula, where that says as much as running the code; else None."""
    if isinstance(event, SparseVector) and not event.gap:
        return _verdicts(mechanism, given)
    return None


def is_whole(event: Event, given: Any) -> bool:
    """Whether ``law_of`` covers everything that is released; for long streams it leaves out the
    gaps.
    """
    return not (isinstance(event, SparseVector) and event.gap and len(given) > _LONGEST_RUN)


def paths_needed(mechanism: Any, event: Event, given: Any, aim: int) -> float:
    """An estimate of the number of paths until ``law_of`` leaves ``aim``; 0 for a formula.

    Computed from the noise distributions alone, before exploring.
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
    """A run of the mechanism with its noise on a tape."""
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
    # a vector knows how many cells it has
    drawn = (
        mechanism.draw(_NONE)
        if isinstance(mechanism, VectorMechanism)
        else mechanism.draw(len(exact), _NONE)
    )
    return tuple(map(int, mechanism.release(exact, drawn)))


def _show(
    mechanism: Any, counts: Mapping[Hashable, int] | Sequence[tuple[Hashable, int]]
) -> object:
    return mechanism.release(dict(counts), _NONE)


def _win(mechanism: Any, scores: Sequence[int]) -> object:
    return mechanism.release(scores, mechanism.draw(len(scores), _NONE))


def _stream(mechanism: Any, answers: Sequence[int]) -> object:
    return mechanism.release(answers, _NONE)


def _selected(mechanism: Any, scores: Sequence[int]) -> Explored:
    if len(scores) > _MOST_CANDIDATES:
        raise InvalidDeclaration(
            f"{len(scores)} candidates.", allowed=f"at most {_MOST_CANDIDATES}"
        )
    gaps = [mechanism.rate * (max(scores) - score) for score in scores]
    weights = [exp_scaled(gap.numerator, gap.denominator, BITS) for gap in gaps]
    if mechanism.rule is Rule.EXPONENTIAL:
        return _in_proportion(weights)
    lows, highs = [low for low, _ in weights], [high for _, high in weights]
    return Explored(
        {i: (_first(lows, highs, i)[0], _first(highs, lows, i)[1]) for i in range(len(scores))}
    )


def _reported(mechanism: Any, truth: int) -> Explored:
    low, high = exp_scaled(mechanism.epsilon.numerator, mechanism.epsilon.denominator, BITS)
    return _in_proportion(
        [
            (ONE, ONE) if category == truth else (low, high)
            for category in range(mechanism.categories)
        ]
    )


def _verdicts(mechanism: Any, answers: Sequence[int]) -> Explored:
    """Which answers are above the noisy threshold, without gaps: a sum over the noise of the
    threshold.
    """
    table = table_of(mechanism.threshold_noise)
    law: dict[Key, tuple[int, int]] = {}
    for noise, low, high in zip(table.values, table.lows, table.highs, strict=True):
        open_ones: dict[tuple[bool, ...], tuple[int, int]] = {(): (low, high)}
        for answer in answers:
            least = mechanism.threshold + noise - answer
            below, above = (
                units_of(side(least - 1))
                for side in (mechanism.query_noise.cdf, mechanism.query_noise.above)
            )
            split = {
                (*said, told): (mass[0] * part[0] >> BITS, -(-mass[1] * part[1] >> BITS))
                for said, mass in open_ones.items()
                for told, part in ((False, below), (True, above))
            }
            _add_up(
                law,
                {said: mass for said, mass in split.items() if sum(said) == mechanism.positives},
            )
            open_ones = {
                said: mass for said, mass in split.items() if sum(said) < mechanism.positives
            }
        _add_up(law, open_ones)
    return Explored(law)


def _add_up(
    law: dict[Key, tuple[int, int]], more: Mapping[tuple[bool, ...], tuple[int, int]]
) -> None:
    for key, (low, high) in more.items():
        before = law.get(key, (0, 0))
        law[key] = before[0] + low, before[1] + high


def _in_proportion(weights: Sequence[tuple[int, int]]) -> Explored:
    """Probabilities proportional to weights."""
    low, high = (sum(weight[side] for weight in weights) for side in (0, 1))
    return Explored({i: (ONE * w[0] // high, -(-ONE * w[1] // low)) for i, w in enumerate(weights)})


def _first(own: Sequence[int], others: Sequence[int], index: int) -> tuple[int, int]:
    """Bounds of the probability that permute-and-flip selects i: own_i times the integral over 0..1
    of the product over j != i of (1 - t others_j) dt.

    That is the probability that the coin of i, flipped at a uniform time t, is the first heads.
    """
    product = [Fraction(1)]
    for at, weight in enumerate(others):
        if at != index:
            bias = Fraction(weight, ONE)
            product = [
                a - bias * b
                for a, b in zip([*product, Fraction(0)], [Fraction(0), *product], strict=True)
            ]
    chance = own[index] * sum(
        (coefficient / (power + 1) for power, coefficient in enumerate(product)), Fraction(0)
    )
    return chance.__floor__(), chance.__ceil__()


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
