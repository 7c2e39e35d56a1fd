# SPDX-License-Identifier: Apache-2.0
"""The cost of an event: one table from event type to rule; an unknown event raises.

The ledger prices every charge by it. Proof: account.proof.md.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol, get_args, runtime_checkable

from sfumato.accounting.profile import Profile
from sfumato.errors import InvalidDeclaration, shown
from sfumato.exact.rounding import exp_down, exp_up, log_up, sqrt_up
from sfumato.noise import (
    Binomial,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
    RoundedGaussian,
    Skellam,
    Truncated,
)
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import (
    AdditiveNoise,
    BestOf,
    Block,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Event,
    FixedSample,
    Group,
    NoisyMax,
    Nonadaptive,
    Parallel,
    PoissonSample,
    Repeated,
    Rule,
    Sampled,
    Selection,
    SharedNoise,
    Shuffled,
    SparseVector,
    Stream,
    Thresholded,
    WithReplacementSample,
)
from sfumato.privacy.guarantee import ApproxDP, BoundedRangeDP, PureDP
from sfumato.privacy.unit import Relation

# Above this epsilon, e^epsilon would be a number of thousands of digits, and the protection is nil.
_HUGE = 10_000
# At most 2 pi^2.
_TWO_PI_SQUARED = Fraction("19.739")


@runtime_checkable
class _Stated(Protocol):
    """The interface of an event that states its guarantee and its neighbour relation."""

    @property
    def guarantee(self) -> PureDP | ApproxDP | BoundedRangeDP: ...

    @property
    def relation(self) -> Relation: ...


def account(event: Event) -> Profile:
    """Returns the cost of an event: exact where the theory is rational, else rounded up.

    Guarantees:
        laplace costs its sensitivity over its scale
        gaussian costs its squared sensitivity over twice its variance
        composition adds
        shares cost what the loss of their sum is
        a bounded range costs an eighth
        a threshold costs the chance that a lone unit passes
        a sample costs less than the whole
        a group costs its size and the square of its size
        neighbour relations never mix
        parallel parts cost the dearest of them
        the best of pure runs costs a multiple of one
        an event without a rule raises

    Raises:
        InvalidDeclaration: an event, a noise or a norm has no rule, or neighbour relations are
            mixed.

    >>> from sfumato.privacy import Distance, Norm
    >>> account(AdditiveNoise(DiscreteLaplace(10), Distance(Norm.L1, Fraction(1)))).epsilon
    Fraction(1, 10)
    """
    check_relations(event)
    return _cost(event)


def _cost(event: Event) -> Profile:
    rule = _EVENTS.get(type(event))
    if rule is None:
        raise _unknown(event)
    return rule(event)


def _additive(event: AdditiveNoise) -> Profile:
    noise, distance = event.noise, _summed(event)
    if isinstance(noise, DiscreteLaplace) and distance.norm is Norm.L1:
        return Profile.pure(distance.value / noise.scale)
    if isinstance(noise, DiscreteGaussian) and distance.norm is Norm.L2:
        return Profile(None, distance.value / (2 * noise.sigma_squared))
    if isinstance(noise, RoundedGaussian) and distance.norm is Norm.L2:
        return Profile(None, distance.value / (2 * noise.sigma**2))
    if (
        isinstance(noise, DiscreteStaircase)
        and event.distance.norm is Norm.LINF
        and event.cells is not None
    ):
        return Profile.pure(
            event.cells * math.ceil(event.distance.value / noise.sensitivity) * noise.epsilon
        )
    if (
        isinstance(noise, Truncated)
        and isinstance(noise.whole, DiscreteLaplace)
        and distance.norm is Norm.L1
    ):
        return Profile.pure(distance.value / noise.whole.scale, _cut(noise, event))
    if isinstance(noise, Skellam | Binomial):
        raise _no_rule(event, "its loss has no bound, and no proved rho", _ONE_CELL)
    norm = event.distance.norm.value
    raise _no_rule(
        event, f"{type(noise).__name__} noise has no proved cost under this {norm} bound", _NORMS
    )


def _shared(event: SharedNoise) -> Profile:
    """A sum of discrete Gaussians (Kairouz, Liu, Steinke 2021, Proposition 14)."""
    variance = event.noise.sigma_squared
    loss = sqrt_up(event.distance.value * event.overlap**2 / (event.shares * variance))
    # larger exponents, down to 1e-87, are stated as that
    apart = sum(
        exp_up(-min(_TWO_PI_SQUARED * variance * Fraction(k, k + 1), Fraction(200)))
        for k in range(1, event.shares)
    )
    return Profile(None, (loss + 10 * apart * sqrt_up(Fraction(event.cells))) ** 2 / 2)


def _continuous(event: ContinuousNoise) -> Profile:
    if event.law is ContinuousLaw.GAUSSIAN:
        return Profile(None, event.distance.value / (2 * event.scale**2))
    return Profile.pure(event.distance.value / event.scale)


def _summed(event: AdditiveNoise) -> Distance:
    """Converts an Linf sensitivity over a known number of cells to the norm of the noise."""
    if event.distance.norm is not Norm.LINF or event.cells is None:
        return event.distance
    is_gaussian = isinstance(event.noise, DiscreteGaussian | RoundedGaussian)
    return event.distance.over(event.cells, Norm.L2 if is_gaussian else Norm.L1)


def _cut(noise: Truncated, event: AdditiveNoise) -> Fraction:
    """The probability that a shifted cell leaves the support of truncated noise, at the worse
    end.
    """
    shift = math.ceil(event.distance.value)
    cells = event.cells if event.distance.norm is Norm.LINF and event.cells is not None else 1
    ends = (noise.above(noise.upper - shift).upper, noise.cdf(noise.lower + shift - 1).upper)
    return min(cells * Fraction(max(ends)), Fraction(1))


def _selection(event: Selection) -> Profile:
    epsilon = event.rate * event.distance.value * (1 if event.monotone else 2)
    if event.rule is Rule.EXPONENTIAL:
        return Profile(epsilon, epsilon**2 / 8)
    return Profile.pure(epsilon)


def _noisy_max(event: NoisyMax) -> Profile:
    return Profile.pure(_loss(event.noise, event, 1 if event.monotone else 2))


def _sparse_vector(event: SparseVector) -> Profile:
    copies = 1 if event.monotone else 2
    return Profile.pure(
        _loss(event.threshold_noise, event, 1)
        + _loss(event.query_noise, event, copies * event.positives)
    )


def _loss(noise: object, event: NoisyMax | SparseVector, times: int) -> Fraction:
    """The loss of discrete Laplace noise that an alignment shifts ``times`` times by the
    sensitivity.
    """
    if not isinstance(noise, DiscreteLaplace):
        raise _no_rule(
            event,
            f"{type(noise).__name__} noise has no alignment here",
            "Draw DiscreteLaplace noise.",
        )
    return times * math.ceil(event.distance.value) / noise.scale


def _stated(event: _Stated) -> Profile:
    """The cost of an event that states its guarantee."""
    guarantee = event.guarantee
    match guarantee:
        case PureDP():
            return Profile.pure(guarantee.epsilon)
        case ApproxDP():
            return Profile.pure(guarantee.epsilon, guarantee.delta)
        case BoundedRangeDP():
            return Profile(guarantee.eta, guarantee.eta**2 / 8)


def _thresholded(event: Thresholded) -> Profile:
    """The cost of the noise on keys shared with other units; for a key of one unit alone, the
    probability that it passes.
    """
    additive, distance = event.additive, event.additive.distance
    touched = event.keys * (1 if distance.relation is Relation.ADD_REMOVE else 2)
    if distance.norm is not Norm.LINF or distance.value != 1 or additive.cells != touched:
        raise _no_rule(
            event,
            f"a unit moves {touched} counts by at most 1",
            f"State Distance(Norm.LINF, 1) and cells={touched}.",
        )
    inner = _additive(additive)
    alone = touched * Fraction(additive.noise.above(event.threshold - 2).upper)
    return Profile(inner.epsilon, inner.rho, min(max(inner.delta, alone), Fraction(1)))


def _sampled(event: Sampled) -> Profile:
    """Amplification by sampling: ln(1 + q (e^epsilon - 1)) and q delta (Balle, Barthe, Gaboardi
    2018, Theorems 8 and 9).
    """
    inner, design = _cost(event.event), event.design
    if inner.epsilon is None:
        raise _no_rule(
            event,
            "what is sampled has no pure loss to amplify",
            "Read privacy_curve (a plan fixed in advance) or renyi (a RenyiFilter takes it); both "
            "take PoissonSample and FixedSample.",
        )
    if isinstance(design, PoissonSample) and design.relation is Relation.REPLACE_ONE:
        return _swapped(inner.epsilon, inner.delta, design.rate)
    if isinstance(design, WithReplacementSample):
        return _grouped(
            _drawn(inner.epsilon, inner.delta, Fraction(1, design.population)), design.size
        )
    if design.rate == 1:
        return inner
    return _drawn(inner.epsilon, inner.delta, design.rate)


def _drawn(epsilon: Fraction, delta: Fraction, rate: Fraction) -> Profile:
    amplified = (
        epsilon if epsilon > _HUGE else min(log_up(1 + rate * (exp_up(epsilon) - 1)), epsilon)
    )
    return Profile.pure(amplified, rate * delta)


def _swapped(epsilon: Fraction, delta: Fraction, rate: Fraction) -> Profile:
    """The cost of a Poisson sample under replace-one: one unit leaves and another enters.

    ln((1 - q + q e^epsilon) / (1 - q + q e^-epsilon)); with a delta, two add-remove steps.
    """
    if rate == 1 or delta > 0 or epsilon > _HUGE:
        return _grouped(
            Profile.pure(epsilon, delta) if rate == 1 else _drawn(epsilon, delta, rate), 2
        )
    amplified = log_up((1 - rate + rate * exp_up(epsilon)) / (1 - rate + rate * exp_down(-epsilon)))
    return Profile.pure(min(amplified, 2 * epsilon))


def _shuffled(event: Shuffled) -> Profile:
    """The cost of one report, since for some outcomes the shuffle hides nothing.

    With a delta: ``amplify``.
    """
    return _cost(event.event)


def _group(event: Group) -> Profile:
    inner = _cost(event.event)
    if inner.epsilon is None and inner.delta > 0 and event.size > 1:
        raise _no_rule(
            event,
            "a delta beside a rho does not grow with a group",
            "Declare the group as the unit.",
        )
    return _grouped(inner, event.size)


def _grouped(one: Profile, size: int) -> Profile:
    """Group privacy: ``size`` steps between neighbours; delta is multiplied by 1 + e^epsilon + ...

    + e^((size - 1) epsilon).
    """
    if size == 1:
        return one
    if one.delta == 0 or one.epsilon is None:
        return Profile(None if one.epsilon is None else size * one.epsilon, size**2 * one.rho)
    whole = size * one.epsilon
    if whole > _HUGE:
        return Profile.pure(whole, Fraction(1))
    grows, steps = exp_down(one.epsilon) - 1, size * exp_up(whole - one.epsilon)
    if grows > 0:
        steps = min(steps, (exp_up(whole) - 1) / grows)
    return Profile.pure(whole, min(steps * one.delta, Fraction(1)))


def _stream(event: Stream) -> Profile:
    return _cost(event.noise)


def _composed(event: Composed) -> Profile:
    return Profile.total([_cost(part) for part in event.events])


def _parallel(event: Parallel) -> Profile:
    """Parallel composition: the most expensive part; under replace-one the two most expensive,
    since a unit may leave one and enter another (RULES 8).
    """
    relations = relations_of(event)
    if len(relations) != 1:
        raise _no_rule(
            event,
            "its parts state no relation, or several",
            "State the same relation in every part.",
        )
    parts, touched = (
        [_cost(part) for part in event.events],
        1 if relations == {Relation.ADD_REMOVE} else 2,
    )
    pure = [part.epsilon for part in parts if part.epsilon is not None]
    return Profile(
        sum(sorted(pure)[-touched:], Fraction(0)) if len(pure) == len(parts) else None,
        sum(sorted(part.rho for part in parts)[-touched:], Fraction(0)),
        min(sum(sorted(part.delta for part in parts)[-touched:], Fraction(0)), Fraction(1)),
    )


def _repeated(event: Repeated) -> Profile:
    return _cost(event.event).times(event.times)


def _nonadaptive(event: Nonadaptive) -> Profile:
    """Nonadaptive composition costs at most as much as adaptive composition."""
    return _cost(event.event)


def _best_of(event: BestOf) -> Profile:
    """The best of a secret number of pure runs: 2 + shape times the dearest (Papernot and Steinke
    2022, Corollary 3).
    """
    runs = [_cost(part) for part in event.events]
    pure = [run.epsilon for run in runs if run.epsilon is not None and run.delta == 0]
    if len(pure) < len(runs):
        raise _no_rule(
            event,
            "a run has no pure loss",
            "Price it at an order (order_price), or read renyi.",
        )
    return Profile.pure((2 + event.shape) * max(pure))


def _block(event: Block) -> Profile:
    raise _no_rule(
        event, "a block has no cost inside another event", "Charge it alone (order_price)."
    )


def check_relations(event: Event) -> None:
    """Raises an error for an event of an unknown type, or one whose parts have different neighbour
    relations.
    """
    if len(relations_of(event)) > 1:
        raise InvalidDeclaration(
            "Parts of one event are about different neighbour relations.",
            allowed="one relation for all parts",
        )


def relations_of(event: object) -> set[Relation]:
    """Returns the neighbour relations of an event and its parts.

    Guarantees:
        the relation of an unknown event is refused

    Raises:
        InvalidDeclaration: the event, or a part of it, is of an unknown kind.
    """
    if type(event) not in _EVENTS:
        raise _unknown(event)
    match event:
        case Composed(events) | Parallel(events) | BestOf(events):
            return set().union(*(relations_of(part) for part in events))
        case Repeated(inner):
            return relations_of(inner)
        case Sampled(PoissonSample(_, Relation.REPLACE_ONE), inner):
            # proved for a unit that enters or leaves the sample; another relation beside it would
            # be mixed
            return (
                set(Relation)
                if Relation.REPLACE_ONE in relations_of(inner)
                else {Relation.REPLACE_ONE}
            )
        case Sampled(PoissonSample() | FixedSample() | WithReplacementSample() as design, inner):
            return {design.relation} | relations_of(inner)
        case Thresholded(additive):
            return relations_of(additive)
        case Group(inner) | Stream(inner) | Shuffled(inner) | Nonadaptive(inner) | Block(inner):
            return relations_of(inner)
        case (
            AdditiveNoise()
            | SharedNoise()
            | ContinuousNoise()
            | Selection()
            | NoisyMax()
            | SparseVector()
        ):
            return {event.distance.relation}
        case _Stated():
            return {event.relation}
        case _:
            raise _unknown(event)


_STATED = {kind: _stated for kind in get_args(Event) if hasattr(kind, "guarantee")}
_EVENTS: dict[type, Callable[..., Profile]] = {
    **_STATED,
    AdditiveNoise: _additive,
    SharedNoise: _shared,
    ContinuousNoise: _continuous,
    Selection: _selection,
    NoisyMax: _noisy_max,
    SparseVector: _sparse_vector,
    Thresholded: _thresholded,
    Sampled: _sampled,
    Shuffled: _shuffled,
    Group: _group,
    Stream: _stream,
    Composed: _composed,
    Parallel: _parallel,
    Repeated: _repeated,
    Nonadaptive: _nonadaptive,
    BestOf: _best_of,
    Block: _block,
}


_NORMS = "Laplace noise takes L1, Gaussian noise L2, the staircase Linf; an Linf bound needs cells."

_ONE_CELL = "Read privacy_curve of one integer (cells=1), as a plan fixed in advance."


def _unknown(event: object) -> InvalidDeclaration:
    return InvalidDeclaration(
        f"The accountant has no rule for {type(event).__name__}: the kind is unknown.",
        allowed=", ".join(kind.__name__ for kind in get_args(Event)),
        remedy="Describe what was done by one of these kinds.",
    )


def _no_rule(event: Event, reason: str, remedy: str) -> InvalidDeclaration:
    return InvalidDeclaration(
        f"The accountant has no rule for {shown(event)}: {reason}.",
        allowed="the noise, the norm and the kinds that docs/accounting.md lists, and their "
        "composition",
        remedy=remedy,
    )
