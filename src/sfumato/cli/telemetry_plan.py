# SPDX-License-Identifier: Apache-2.0
"""The expected errors of a telemetry task, by oracle and by number of devices.

``sfumato telemetry plan`` prints them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sfumato.errors import WrongUse
from sfumato.show.render import number, text_table
from sfumato.show.svg import Figure
from sfumato.telemetry import Lattice, Record, ReportTask, Texts, Words, candidates, oracles
from sfumato.telemetry.error_plot import ErrorLine, error_chart, share_text
from sfumato.telemetry.oracles.attributes import AttributesOracle
from sfumato.telemetry.oracles.form import AnyOracle
from sfumato.telemetry.oracles.fragments import FragmentsOracle
from sfumato.telemetry.oracles.frequency import FrequencyOracle
from sfumato.telemetry.oracles.levels import LevelsOracle
from sfumato.telemetry.oracles.mean import MeanOracle
from sfumato.telemetry.oracles.prefixes import PrefixesOracle
from sfumato.telemetry.oracles.rappor import RapporOracle
from sfumato.telemetry.oracles.sketch import SketchOracle

# Half an interval of 95%, in standard errors.
_HALF = 1.96
_COLLISIONS = "Collisions with other texts are not in these errors; estimates have them."
_DEPENDS = "The errors of quantiles depend on the numbers: see sfumato telemetry simulate."


@dataclass(frozen=True, slots=True)
class Planned:
    """The expected errors as text, and as lines of a chart.

    There are no lines if the errors depend on the values of the devices.
    """

    text: str
    axis: str
    lines: Sequence[ErrorLine]
    told: Callable[[float], str] = share_text

    def picture(self, task: ReportTask, devices: int) -> Figure:
        """A chart of the errors against the number of devices.

        Raises:
            WrongUse: the errors depend on the values of the devices.
        """
        if not self.lines:
            raise WrongUse(
                f"A chart of errors. {_DEPENDS}", remedy="sfumato telemetry simulate --save-plot"
            )
        title = f"{task.id}: 95% error against the number of devices"
        return error_chart(title, self.axis, self.lines, devices, self.told)


def planned_errors(task: ReportTask, devices: int) -> Planned:
    """Returns the expected errors of a telemetry task's estimates if about ``devices`` devices
    report.
    """
    if isinstance(task.oracle, MeanOracle):
        return _mean(task, devices)
    if isinstance(task.oracle, LevelsOracle):
        return Planned(_DEPENDS, "", ())
    if isinstance(task.oracle, AttributesOracle) and isinstance(task.domain, Record):
        return _attributes(task.oracle, task.domain, devices)
    if isinstance(task.domain, Texts | Words):
        return _texts(task, devices)
    return _counts(task, devices)


def _counts(task: ReportTask, devices: int) -> Planned:
    """The errors of all oracles for the values of a task, at a value that no device has."""
    rows, lines = [], []
    for each in candidates(task.domain.size, task.first_epsilon):
        half = _HALF * (each.variance * devices) ** 0.5
        kind = each.oracle.kind
        mark = " *" if kind == task.oracle.kind else ""
        rows.append([kind + mark, f"{each.oracle.size}", f"+- {number(half)}"])
        lines.append(ErrorLine(kind, half / devices))
    text = text_table(("oracle (*: of the task)", "bytes", "95% error in devices"), rows)
    return Planned(text, "95% error in share of the devices", lines)


def _attributes(oracle: AttributesOracle, domain: Record, devices: int) -> Planned:
    """The error of each attribute, which only a part of the devices reports."""
    rows, lines = [], []
    shares = zip(domain.names, oracle.parts, oracle.chances, strict=True)
    for name, part, chance in shares:
        asked = devices * chance
        half = _HALF * (_spread(part) * asked) ** 0.5
        rows.append([name, part.kind, number(round(asked)), f"+- {number(half)}"])
        lines.append(ErrorLine(f"{name} ({part.kind})", half / asked))
    header = ("attribute", "oracle", "devices that draw it", "95% error in these")
    return Planned(text_table(header, rows), "95% error in share of those asked", lines)


def _texts(task: ReportTask, devices: int) -> Planned:
    """The errors of all oracles for strings, at a string that no device has."""
    rows, lines = [], []
    for name, oracle in _text_oracles(task):
        half = _HALF * (_absent_variance(oracle) * devices) ** 0.5
        mark = " *" if oracle == task.oracle else ""
        rows.append([name + mark, f"{oracle.size}", f"+- {number(half)}"])
        lines.append(ErrorLine(name, half / devices))
    text = text_table(("oracle (*: of the task)", "bytes", "95% error in devices"), rows)
    return Planned(f"{text}\n{_COLLISIONS}", "95% error in share of the devices", lines)


def _text_oracles(task: ReportTask) -> list[tuple[str, AnyOracle]]:
    """The oracles for strings at the cost of the task, and the task's own, with their names."""
    epsilon = task.first_epsilon
    if isinstance(task.oracle, RapporOracle):
        return [("rappor", task.oracle)]
    named_oracles: list[tuple[str, AnyOracle]]
    if isinstance(task.domain, Words):
        symbols, length = task.domain.symbols, task.domain.length
        named_oracles = [
            ("prefixes", oracles.prefixes(symbols, length, epsilon)),
            ("fragments", oracles.fragments(symbols, length, epsilon)),
        ]
    else:
        named_oracles = [
            ("sketch", oracles.sketch(epsilon)),
            ("count_mean", oracles.count_mean(epsilon)),
            ("hadamard_count_mean", oracles.hadamard_count_mean(epsilon)),
        ]
    # one with other options, or of an epsilon that was rounded, is shown as it is
    own = _name_of(task.oracle)
    return [(name, task.oracle if name == own else each) for name, each in named_oracles]


def _name_of(oracle: AnyOracle) -> str:
    """The name of an oracle; sketches are named after their inner oracle."""
    if not isinstance(oracle, SketchOracle):
        return oracle.kind
    return {"unary": "count_mean", "bit": "hadamard_count_mean"}.get(oracle.part.kind, "sketch")


def _absent_variance(oracle: AnyOracle) -> float:
    """The variance, for one device, of the estimate of a string that no device has."""
    match oracle:
        case PrefixesOracle():
            return _spread(oracle.parts[-1]) / oracle.chances[-1]
        case FragmentsOracle():
            return _spread(oracle.parts[-1])
        case RapporOracle():
            return _spread(oracle) / oracle.hashes
        case SketchOracle():
            return _spread(oracle)
    raise TypeError(oracle.kind)


def _spread(oracle: FrequencyOracle | SketchOracle | RapporOracle) -> float:
    """The variance of the estimate of an absent value for one report."""
    own, other = oracle.own, oracle.other
    return float(other * (1 - other) / (own - other) ** 2)


def _mean(task: ReportTask, devices: int) -> Planned:
    """The error of a mean, for the values with the largest error."""
    domain, oracle = task.domain, task.oracle
    assert isinstance(domain, Lattice) and isinstance(oracle, MeanOracle), "a mean of numbers"
    half = _HALF * float(domain.step * (domain.size - 1)) * (oracle.worst / devices) ** 0.5
    line = ErrorLine("mean", half)
    return Planned(
        f"mean: 95% error at most +- {half:.4g}", "95% error at most", [line], "{:,.4g}".format
    )
