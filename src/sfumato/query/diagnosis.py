# SPDX-License-Identifier: Apache-2.0
"""The result of ``Session.diagnose``: what share of units and values clipping and bounding change."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from sfumato.privacy.event import Json
from sfumato.query.answer import Answer
from sfumato.query.diagnose import Check
from sfumato.show.render import html_table, number


@dataclass(frozen=True, slots=True)
class Finding:
    """The share of units or rows that a limit or a bound changes, with its 95% interval.

    Attributes:
        what: what is true of this share: "more than 6 rows in a group", "cost above the declared
            1000".
        share, low, high: the share and the ends of its interval, from 0 to 1.
        count, half_width, total: the number of these units, its 95% half-width, and the number of
            all units; None for rows, since rows may have weights below 1.
    """

    what: str
    share: float
    low: float
    high: float
    count: float | None = None
    half_width: float | None = None
    total: float | None = None

    def __str__(self) -> str:
        share = f"{self.share:.1%} [{self.low:.1%}, {self.high:.1%}]"
        if self.count is None:
            return f"{share} of the rows: {self.what}"
        size = f"{number(self.count)} +- {number(self.half_width)} of about {number(self.total)}"
        return f"{share} of the units: {self.what} ({size})"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Private estimates of how much of the data clipping and bounding change in a question.

    They do not change the intervals of the question's answer.

    Attributes:
        findings: one for each limit and each bound that the question depends on.
        answers: the answers that the findings were read from; the same diagnosis again costs no
            budget.
    """

    findings: tuple[Finding, ...]
    answers: tuple[Answer, ...]

    def to_json(self) -> dict[str, Json]:
        """The diagnosis as ``sfumato diagnose --format json`` prints it."""
        charges: list[Json] = [
            {"charge_id": answer.charge_id, "cost": answer.cost.to_json()}
            for answer in self.answers
        ]
        findings: list[Json] = [_finding_to_json(finding) for finding in self.findings]
        return {"findings": findings, "charges": charges}

    def __repr__(self) -> str:
        return "\n".join([*map(str, self.findings), *self._receipts])

    def _repr_html_(self) -> str:
        found = html_table(["found"], [[str(finding)] for finding in self.findings])
        receipts = "".join(f"<li>{html.escape(line)}</li>" for line in self._receipts)
        return f"{found}<ul>{receipts}</ul>"

    @property
    def _receipts(self) -> list[str]:
        """What each of its questions cost."""
        return [answer.receipt() for answer in self.answers]


def _finding_to_json(finding: Finding) -> dict[str, Json]:
    """A finding as JSON."""
    return {
        "what": finding.what,
        "of": "rows" if finding.count is None else "units",
        "share": finding.share,
        "low": finding.low,
        "high": finding.high,
        "count": finding.count,
        "half_width": finding.half_width,
        "total": finding.total,
    }


def diagnosis(checks: Sequence[Check], answers: Sequence[Answer]) -> Diagnosis:
    """Returns the diagnosis that the answers to the charged ``checks`` give."""
    findings: list[Finding] = []
    for check, answer in zip(checks, answers, strict=True):
        findings += _findings(check, answer)
    return Diagnosis(tuple(findings), tuple(answers))


def _findings(check: Check, answer: Answer) -> list[Finding]:
    """The findings of one check: each is a share, a count and a total in three columns."""
    (row,) = answer.rows
    (errors,) = cast(list[list[dict[str, float]]], answer.form["errors"])
    values = cast(list[float], row)
    findings = []
    for index, what in enumerate(check.found):
        share = 3 * index
        low = errors[share]["low"]
        high = errors[share]["high"]
        finding = Finding(what, values[share], low, high)
        if check.units:
            half_width = errors[share + 1]["half_width"]
            count = values[share + 1]
            total = values[share + 2]
            finding = replace(finding, count=count, half_width=half_width, total=total)
        findings.append(finding)
    return findings
