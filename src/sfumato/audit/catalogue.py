# SPDX-License-Identifier: Apache-2.0
"""Every mechanism of sfumato with fixed parameters and two inputs, so that it can be audited.

``sfumato audit`` checks them all. Parameters are small, so that exact output distributions can be
explored and runs have power. A claimed delta is 1e-2 or more, since runs cannot detect a violation
of a smaller one.
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
from sfumato.mechanisms.ladder import ladder
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import PoissonSample
from sfumato.privacy.guarantee import ApproxDP
from sfumato.privacy.unit import Relation

# The tolerance of ``verify``, and the delta at which runs test a claim of rho.
TOLERANCE = Fraction(1, 10**6)
AT_DELTA = Fraction(1, 1000)

_L1, _L2, _LINF = (Distance(norm, Fraction(1)) for norm in Norm)
_REPLACED = Distance(Norm.L1, Fraction(2), Relation.REPLACE_ONE)
_SCORES = (0, 0, 0), (1, -1, -1)
_ROWS = [3] * 4, [3] * 5


@dataclass(frozen=True, slots=True)
class Promised:
    """An entry of the catalogue of mechanisms to audit: its claimed sensitivity and two inputs at
    that distance.

    ``exact``: whether its exact output distribution can be computed. ``run``: the function that is
    run on an input, by default ``release``. ``stated``: the guarantee it is calibrated to, if that
    is tighter than the accountant's for its event.

    >>> laplace = next(catalogue())
    >>> laplace.name, laplace.inputs, str(laplace.claim.epsilon)
    ('laplace', ((0,), (1,)), '1')
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
        """The claimed guarantee: ``stated``, or else the accountant's for its event."""
        return self.stated or account(self.mechanism.event(self.distance))

    def check(self, runs: int, progress: Callable[[int, int], None] | None = None) -> "Checked":
        """Tests the claim, with ``verify`` if the mechanism is ``exact``, and with ``audit``;
        returns both results.

        ``runs`` is the number of runs of each input for ``audit``; 0 skips it.

        Guarantees:
            a check is violated by either of its tools

        >>> checked = next(catalogue()).check(runs=0)
        >>> checked.promised.name, checked.verdict.value, checked.runs
        ('laplace', 'HOLDS', None)
        """
        claim = self.claim
        law: Verification | None = None
        ran: Audit | None = None
        if self.exact:
            law = verify(self.mechanism, self.distance, claim=claim, tolerance=TOLERANCE)
        if runs:
            run = self.run or self.mechanism.release
            delta = claim.delta + AT_DELTA if claim.epsilon is None else None
            ran = audit(run, self.inputs, runs, claim=claim, delta=delta, progress=progress)
        return Checked(self, claim, law, ran)


@dataclass(frozen=True, slots=True)
class Checked:
    """The results of auditing an entry of the catalogue: from exact output distributions (``law``)
    and from random ``runs``; None if that was not done.

    >>> checked = next(catalogue()).check(runs=0)
    >>> checked.verdict.value, checked.runs is None
    ('HOLDS', True)
    """

    promised: Promised
    claim: Profile | ApproxDP
    law: Verification | None
    runs: Audit | None

    @property
    def verdict(self) -> Verdict:
        """VIOLATED if either check refutes the claim, HOLDS if the exact one proves it.

        Otherwise UNDECIDED.
        """
        if self.runs is not None and self.runs.verdict is Verdict.VIOLATED:
            return Verdict.VIOLATED
        return overall([self.law.verdict] if self.law else [])


def catalogue() -> Iterator[Promised]:
    """Yields every mechanism of sfumato with a claim to check, simplest first.

    >>> sum(promised.exact for promised in catalogue()) >= 16
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
    makers = {
        "threshold-laplace": make.threshold_laplace,
        "threshold-gaussian": make.threshold_gaussian,
        "threshold-geometric": make.threshold_geometric,
    }
    for name, maker in makers.items():
        mechanism = maker(2, 2, "0.05", Relation.ADD_REMOVE)
        yield Promised(name, mechanism, _LINF, lone)


def _choices() -> Iterator[Promised]:
    yield from _selections("", _SCORES, monotone=False)
    yield from _selections("monotone-", ((0, 0, 0), (1, 0, 0)), monotone=True)
    gap = make.report_noisy_max(_LINF, 3, gap=True)
    yield Promised("noisy-max-with-gap", gap, _LINF, _SCORES)
    sparse = partial(make.sparse_vector, _LINF, threshold=5, positives=1)
    yield Promised("sparse-vector", sparse(epsilon=8), _LINF, ((5, 5), (6, 4)))
    sparse_gap = sparse(epsilon=6, gap=True, monotone=True)
    yield Promised("sparse-vector-with-gap", sparse_gap, _LINF, ((5, 5), (6, 5)))
    yield Promised("randomized-response", make.randomized_response(1), _REPLACED, (0, 1))
    yield Promised("response-of-four", make.randomized_response(1, 4), _REPLACED, (0, 1))
    climbed = ladder(_LINF, 2)
    inputs = ((0, 1), (1, 2))
    yield Promised("ladder", climbed, _LINF, inputs, run=lambda given: climbed.release(*given))
    yield Promised("peeled-top-k", make.peeled_top_k(_LINF, 2, 1), _LINF, _SCORES, exact=False)
    yield Promised("joint-top-k", make.joint_top_k(_LINF, 2, 1), _LINF, _SCORES, exact=False)


def _selections(
    prefix: str, scores: tuple[tuple[int, ...], tuple[int, ...]], *, monotone: bool
) -> Iterator[Promised]:
    exponential = make.exponential(_LINF, 1, monotone=monotone)
    yield Promised(f"{prefix}exponential", exponential, _LINF, scores)
    permute_and_flip = make.permute_and_flip(_LINF, 1, monotone=monotone)
    yield Promised(f"{prefix}permute-and-flip", permute_and_flip, _LINF, scores)
    noisy_max = make.report_noisy_max(_LINF, 3, monotone=monotone)
    yield Promised(f"{prefix}noisy-max", noisy_max, _LINF, scores)


def _of_rows() -> Iterator[Promised]:
    """Mechanisms whose input is rows; their exact distributions are not computed."""
    yield from _of_clipped_rows()
    of_rows = partial(Promised, distance=_L1, inputs=_ROWS, exact=False)
    yield of_rows("mode", make.mode(_L1, 1, range(5)))
    representative = make.representative(_L1, 1, range(5), lambda c, r: abs(c - r), cap=4)
    yield of_rows("representative", representative)
    sampled = make.SamplingMechanism(PoissonSample(Fraction(1, 2)), make.laplace(_L1, 2))

    def count_sampled(rows: Any) -> Any:
        return sampled.release(rows, lambda chosen: [len(chosen)])

    yield of_rows("sampled-laplace", sampled, run=count_sampled)


def _of_clipped_rows() -> Iterator[Promised]:
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
