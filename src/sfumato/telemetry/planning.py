# SPDX-License-Identifier: Apache-2.0
"""Finds the epsilon that a requested error needs: from declarations alone, at no cost."""

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from sfumato.errors import TargetUnreachable, WrongUse, shown
from sfumato.exact.rational import Number, decimal_text, positive
from sfumato.noise.law import open_unit
from sfumato.show.svg import Figure
from sfumato.telemetry.choose import REPORT_BYTES, Candidate, chosen
from sfumato.telemetry.domain import Declared, domain_of
from sfumato.telemetry.error_plot import ErrorLine, error_chart

# The epsilons that are tried, in thousandths.
_MOST = 20_000


@dataclass(frozen=True, slots=True)
class TelemetryPlan:
    """The least epsilon of a report with which a requested error is reached, and the oracle for it.

    ``error`` is half the width of the interval of a value that no device holds.

    >>> plan(["yes", "no"], 100_000, error=1000).candidate.oracle.kind
    'category'
    """

    epsilon: Fraction
    candidate: Candidate
    devices: int
    error: float

    def __str__(self) -> str:
        return (
            f"epsilon {decimal_text(self.epsilon)} a report: +-{self.error:,.0f} of "
            f"{self.devices:,} devices ({self.candidate})"
        )

    def plot(self) -> Figure:
        """Draws the error by the number of devices, at half, once and twice epsilon.

        Errors are shares of the devices, for a value that no device holds.
        """
        lines = []
        factor = self.error / math.sqrt(self.candidate.variance) / self.devices
        for times in (Fraction(1, 2), Fraction(1), Fraction(2)):
            epsilon = times * self.epsilon
            values = self.candidate.oracle.values
            best = self.candidate
            if times != 1:
                best = chosen(values, epsilon, max(REPORT_BYTES, best.oracle.size))
            name = f"epsilon {decimal_text(epsilon)} ({best.oracle.kind})"
            lines.append(ErrorLine(name, factor * math.sqrt(best.variance)))
        title = "Half the width of an interval, against the number of devices"
        return error_chart(title, "error in share of the devices", lines, self.devices)


def plan(
    domain: Declared,
    devices: int,
    *,
    error: Number,
    confidence: Number = "0.95",
    report_bytes: int = REPORT_BYTES,
) -> TelemetryPlan:
    """Returns the least epsilon of a report, to a thousandth, at which estimated counts have at
    most this error, in devices.

    Raises:
        TargetUnreachable: no epsilon up to 20 keeps it.
        WrongUse: an invalid number of devices.

    >>> print(plan(["yes", "no"], 100_000, error=1000))
    epsilon 0.737 a report: +-1,000 of 100,000 devices (category of 3 values: ...)
    """
    if type(devices) is not int or devices < 1:
        raise WrongUse(f"devices={shown(devices)}.", allowed="an integer of 1 or more")
    wanted = float(positive("error", error))
    miss = float(1 - open_unit("confidence", confidence))
    factor = NormalDist().inv_cdf(1 - miss / 2) * math.sqrt(devices)
    size = domain_of(domain).size

    def half_width(thousandths: int) -> float:
        best = chosen(size, Fraction(thousandths, 1000), report_bytes)
        return factor * math.sqrt(best.variance)

    if half_width(_MOST) > wanted:
        raise TargetUnreachable(
            f"An error of {wanted:g} of {devices:,} devices.",
            allowed=f"{half_width(_MOST):.3g} or more, at epsilon 20",
            remedy="Ask more devices, or allow a larger error.",
        )
    low, high = 0, _MOST
    while high - low > 1:
        middle = (low + high) // 2
        if half_width(middle) <= wanted:
            high = middle
        else:
            low = middle
    best = chosen(size, Fraction(high, 1000), report_bytes)
    return TelemetryPlan(Fraction(high, 1000), best, devices, half_width(high))
