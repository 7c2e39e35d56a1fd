# SPDX-License-Identifier: Apache-2.0
"""The errors of a task before it is asked: of each oracle, by the number of devices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sfumato.errors import WrongUse
from sfumato.query.plot import Figure
from sfumato.query.render import number, text_table
from sfumato.telemetry import Lattice, ReportTask, candidates
from sfumato.telemetry.error_plot import ErrorLine, error_chart, share_text
from sfumato.telemetry.oracles.levels import LevelsOracle
from sfumato.telemetry.oracles.mean import MeanOracle

# Half an interval of 95%, in standard errors.
_HALF = 1.96
_DEPENDS = "The errors of quantiles depend on the numbers: see sfumato telemetry simulate."


@dataclass(frozen=True, slots=True)
class Planned:
    """What is said of the errors of a task, and the lines of their picture (none: they depend)."""

    text: str
    axis: str
    lines: Sequence[ErrorLine]
    told: Callable[[float], str] = share_text

    def picture(self, task: ReportTask, devices: int) -> Figure:
        """The errors against the number of devices.

        Raises:
            WrongUse: the errors depend on what the devices hold.
        """
        if not self.lines:
            raise WrongUse(
                f"A chart of errors. {_DEPENDS}", remedy="sfumato telemetry simulate --save-plot"
            )
        title = f"{task.id}: 95% error against the number of devices"
        return error_chart(title, self.axis, self.lines, devices, self.told)


def planned_errors(task: ReportTask, devices: int) -> Planned:
    """The error of a task with about so many devices."""
    if isinstance(task.oracle, MeanOracle):
        return _mean(task, devices)
    if isinstance(task.oracle, LevelsOracle):
        return Planned(_DEPENDS, "", ())
    return _counts(task, devices)


def _counts(task: ReportTask, devices: int) -> Planned:
    """The oracles for the values of a task, and the error of a value that no device holds."""
    rows, lines = [], []
    for each in candidates(task.domain.size, task.first_epsilon):
        half = _HALF * (each.variance * devices) ** 0.5
        kind = each.oracle.kind
        mark = " *" if kind == task.oracle.kind else ""
        rows.append([kind + mark, f"{each.oracle.size}", f"+- {number(half)}"])
        lines.append(ErrorLine(kind, half / devices))
    text = text_table(("oracle (*: of the task)", "bytes", "95% error in devices"), rows)
    return Planned(text, "95% error in share of the devices", lines)


def _mean(task: ReportTask, devices: int) -> Planned:
    """The error of a mean, for the numbers that make it largest."""
    domain, oracle = task.domain, task.oracle
    assert isinstance(domain, Lattice) and isinstance(oracle, MeanOracle), "a mean of numbers"
    half = _HALF * float(domain.step * (domain.size - 1)) * (oracle.worst / devices) ** 0.5
    line = ErrorLine("mean", half)
    return Planned(
        f"mean: 95% error at most +- {half:.4g}", "95% error at most", [line], "{:,.4g}".format
    )
