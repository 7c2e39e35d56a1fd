# SPDX-License-Identifier: Apache-2.0
"""Every mechanism of the house at stated parameters, each with what its promise is checked on.

Parameters are small, so that laws can be gone through and runs tell much; a claimed delta is
1e-2 or more, so that runs can tell anything about it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from sfumato import mechanisms as make
from sfumato.accounting import Profile, account
from sfumato.audit.attack import Audit, audit
from sfumato.audit.verdict import Verdict, overall
from sfumato.audit.verify import Verification, verify
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import PoissonSample
from sfumato.privacy.guarantee import ApproxDP
from sfumato.privacy.unit import Relation

# what a law may be left unexplored, and the delta at which runs look at a claim of rho
TOLERANCE = Fraction(1, 10**6)
AT_DELTA = Fraction(1, 1000)

_L1, _L2, _LINF = (Distance(norm, Fraction(1)) for norm in Norm)
_REPLACED = Distance(Norm.L1, Fraction(2), Relation.REPLACE_ONE)
_SCORES = (0, 0, 0), (1, -1, -1)
_ROWS = [3] * 4, [3] * 5


@dataclass(frozen=True, slots=True)
class Promised:
    """A mechanism, the distance that its claim is about, and two inputs that far apart to run it
    on.

    ``exact``: whether its output law can be worked out, so that the claim can be held against it.
    ``run``: what is run on an input, by default ``release``. ``stated``: what it is calibrated
    to, where that is sharper than what the accountant says of its event.
    """

    name: str
    mechanism: Any
    distance: Distance
    inputs: tuple[Any, Any]
    exact: bool = True
    run: Callable[[Any], Any] | None = None
    stated: ApproxDP | None = None

    @property
    def claim(self) -> Profile | ApproxDP:
        """What is promised: what the accountant says of its event, or what is stated."""
        return self.stated or account(self.mechanism.event(self.distance))

    def check(self, runs: int, progress: Callable[[int, int], None] | None = None) -> "Checked":
        """The claim against the exact law, where there is one, and against ``runs`` of each input,
        unless 0.

        Guarantees:
            a check is violated by either of its tools

        >>> checked = next(catalogue()).check(runs=0)
        >>> checked.promised.name, checked.verdict.value, checked.runs
        ('laplace', 'HOLDS', None)
        """
        claim = self.claim
        law = (
            verify(self.mechanism, self.distance, claim=claim, tolerance=TOLERANCE)
            if self.exact
            else None
        )
        delta = claim.delta + AT_DELTA if claim.epsilon is None else None
        run = self.run or self.mechanism.release
        ran = (
            audit(run, self.inputs, runs, claim=claim, delta=delta, progress=progress)
            if runs
            else None
        )
        return Checked(self, claim, law, ran)


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of a promise: by its exact law, and by runs."""

    promised: Promised
    claim: Profile | ApproxDP
    law: Verification | None
    runs: Audit | None

    @property
    def verdict(self) -> Verdict:
        """VIOLATED by either tool; HOLDS where the exact law proves it; else UNDECIDED."""
        if self.runs is not None and self.runs.verdict is Verdict.VIOLATED:
            return Verdict.VIOLATED
        return overall([self.law.verdict] if self.law else [])


def catalogue() -> Iterator[Promised]:
    """All of them, the simplest first.

    >>> sum(each.exact for each in catalogue()) >= 16
    True
    """
    yield from _additive()
    yield from _thresholds()
    yield from _choices()
    yield from _of_rows()


def _additive() -> Iterator[Promised]:
    cell, cells = ((0,), (1,)), ((0, 0), (0, 1))
    yield Promised("laplace", make.laplace(_L1, 1), _L1, cell)
    yield Promised("geometric", make.geometric(_L1, "0.5"), _L1, cell)
    yield Promised("gaussian", make.gaussian(_L2, "0.5"), _L2, cell)
    calibrated = make.calibrated_gaussian(_L2, 1, "0.02", cells=1)
    yield Promised("calibrated-gaussian", calibrated, _L2, cell, stated=ApproxDP(1, "0.02"))
    two = Distance(Norm.LINF, Fraction(2))
    yield Promised("staircase", make.staircase(two, 2), two, ((0,), (2,)))
    yield Promised("vector", make.vector(_L1, 2, epsilon=1), _L1, cells)
    yield Promised("gaussian-vector", make.vector(_L2, 2, rho="0.5"), _L2, cells)


def _thresholds() -> Iterator[Promised]:
    lone: tuple[dict[str, int], dict[str, int]] = {}, {"a": 1, "b": 1}
    for name, maker in (
        ("threshold-laplace", make.threshold_laplace),
        ("threshold-gaussian", make.threshold_gaussian),
        ("threshold-geometric", make.threshold_geometric),
    ):
        yield Promised(name, maker(2, 2, "0.05", Relation.ADD_REMOVE), _LINF, lone)


def _choices() -> Iterator[Promised]:
    stream = (5, 5), (6, 4)
    for monotone in (False, True):
        name, scores = ("monotone-", ((0, 0, 0), (1, 0, 0))) if monotone else ("", _SCORES)
        yield Promised(
            f"{name}exponential", make.exponential(_LINF, 1, monotone=monotone), _LINF, scores
        )
        yield Promised(
            f"{name}permute-and-flip",
            make.permute_and_flip(_LINF, 1, monotone=monotone),
            _LINF,
            scores,
        )
        yield Promised(
            f"{name}noisy-max", make.report_noisy_max(_LINF, 3, monotone=monotone), _LINF, scores
        )
    gap = make.report_noisy_max(_LINF, 3, gap=True)
    yield Promised("noisy-max-with-gap", gap, _LINF, _SCORES)
    sparse = partial(make.sparse_vector, _LINF, threshold=5, positives=1)
    yield Promised("sparse-vector", sparse(epsilon=8), _LINF, stream)
    yield Promised(
        "sparse-vector-with-gap",
        sparse(epsilon=6, gap=True, monotone=True),
        _LINF,
        ((5, 5), (6, 5)),
    )
    yield Promised("randomized-response", make.randomized_response(1), _REPLACED, (0, 1))
    yield Promised("response-of-four", make.randomized_response(1, 4), _REPLACED, (0, 1))
    yield Promised("peeled-top-k", make.peeled_top_k(_LINF, 2, 1), _LINF, _SCORES, exact=False)
    yield Promised("joint-top-k", make.joint_top_k(_LINF, 2, 1), _LINF, _SCORES, exact=False)


def _of_rows() -> Iterator[Promised]:
    """Those that take rows: a law of theirs is not gone through."""
    of_rows = partial(Promised, distance=_L1, inputs=_ROWS, exact=False)
    within: dict[str, int] = {"lower": 0, "upper": 4}
    clip_bounds = make.bounds(_L1, "0.5", **within, failure="0.1")
    yield of_rows("bounds", make.bounds(_L1, 1, **within, failure="0.1"))
    yield of_rows("quantile", make.quantile(_L1, 1, q="0.25", **within))
    yield of_rows("median", make.median(_L1, 1, **within))
    yield of_rows("quantiles", make.quantiles(_L1, 1, q=["0.25", "0.75"], **within))
    yield of_rows("mean", make.mean(_L1, 1, **within))
    yield of_rows("variance", make.variance(_L1, 1, **within))
    yield of_rows("clipped-mean", make.clipped_mean(_L1, 1, clip=clip_bounds))
    yield of_rows("clipped-variance", make.clipped_variance(_L1, 1, clip=clip_bounds))
    yield of_rows("mode", make.mode(_L1, 1, range(5)))
    yield of_rows(
        "representative", make.representative(_L1, 1, range(5), lambda c, r: abs(c - r), cap=4)
    )
    sampled = make.SamplingMechanism(PoissonSample(Fraction(1, 2)), make.laplace(_L1, 2))
    yield of_rows(
        "sampled-laplace",
        sampled,
        run=lambda units: sampled.release(units, lambda chosen: [len(chosen)]),
    )
