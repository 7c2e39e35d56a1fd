# SPDX-License-Identifier: Apache-2.0
"""Chooses the oracle of least exact variance among those whose report is small enough.

``report_task`` uses it for ``sf.AUTO``; ``candidates`` shows the alternatives.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import InvalidDeclaration, InvalidNumber, TargetUnreachable, WrongUse, shown
from sfumato.exact.rational import Number, positive
from sfumato.telemetry.oracles.bit import bit
from sfumato.telemetry.oracles.category import category
from sfumato.telemetry.oracles.frequency import FrequencyOracle
from sfumato.telemetry.oracles.hashed import hashed
from sfumato.telemetry.oracles.projective import projective
from sfumato.telemetry.oracles.unary import unary

# The most that a report may weigh, in bytes, if nothing else is said.
REPORT_BYTES = 64
# An error that is so much larger than the least is as good, where the report is smaller.
_AS_GOOD = 1.02
_MAKERS: tuple[Callable[[int, Fraction], FrequencyOracle], ...] = (
    category,
    projective,
    bit,
    hashed,
    unary,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A frequency oracle (local mechanism), and the variance of its estimates per report.

    ``variance`` is that of the estimate for a value that no device holds: with n reports, the
    estimated number of devices has n times this variance.

    >>> Candidate(bit(1000, 1), 4.683).oracle.size
    2
    """

    oracle: FrequencyOracle
    variance: float

    def __str__(self) -> str:
        kind = f"{self.oracle.kind} of {self.oracle.values:,} values"
        return f"{kind}: variance {self.variance:.4g} a report of {self.oracle.size} bytes"


def candidates(
    values: int, epsilon: Number, report_bytes: int = REPORT_BYTES
) -> tuple[Candidate, ...]:
    """Returns all frequency oracles whose report is small enough, the one of least variance first.

    Among equal variances the smaller report comes first, then the cheaper aggregation: local
    hashing takes time for each pair of report and value, the others for each report.

    >>> [one.oracle.kind for one in candidates(8, 1)]
    ['category', 'projective', 'unary', 'hashed', 'bit']
    >>> print(candidates(65_536, 1)[0])
    hashed of 65,536 values: variance 3.692 a report of 17 bytes
    >>> print(candidates(65_536, 1, report_bytes=4)[0])
    projective of 65,536 values: variance 3.77 a report of 3 bytes
    """
    exact = positive("epsilon", epsilon)
    if type(report_bytes) is not int:
        raise WrongUse(f"report_bytes={shown(report_bytes)}.", allowed="an integer from 4")
    candidates = []
    refused: InvalidDeclaration | InvalidNumber | None = None
    for maker in _MAKERS:
        try:
            oracle = maker(values, exact)
        except (InvalidDeclaration, InvalidNumber) as failure:
            # too many values for its space, or too small an epsilon for so many values
            refused = failure
            continue
        if oracle.size <= report_bytes:
            candidates.append(Candidate(oracle, spread(oracle)))
    if not candidates and refused is not None:
        raise refused
    if not candidates:
        raise TargetUnreachable(
            f"No oracle for {values:,} values has reports of {report_bytes} bytes.",
            allowed="4 bytes and more",
        )
    return tuple(sorted(candidates, key=_rank))


def chosen(values: int, epsilon: Number, report_bytes: int = REPORT_BYTES) -> Candidate:
    """Returns, of the frequency oracles whose standard error is within 2% of the least, the one
    with the smallest report.

    >>> chosen(65_536, 1).oracle.kind, chosen(65_536, 1).oracle.size
    ('projective', 3)
    """
    ranked = candidates(values, epsilon, report_bytes)
    most = ranked[0].variance * _AS_GOOD**2
    return min(
        (each for each in ranked if each.variance <= most), key=lambda each: each.oracle.size
    )


def _rank(candidate: Candidate) -> tuple[float, int]:
    """Returns the variance to six digits, then the size of a report."""
    return float(f"{candidate.variance:.6g}"), candidate.oracle.size


def spread(oracle: FrequencyOracle) -> float:
    """The exact variance of the estimate of an absent value for one report, to the nearest float.

    >>> round(spread(bit(1000, 1)), 3)
    4.683
    """
    own, other = oracle.own, oracle.other
    return float(other * (1 - other) / (own - other) ** 2)
