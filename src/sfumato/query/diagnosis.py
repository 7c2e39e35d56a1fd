# SPDX-License-Identifier: Apache-2.0
"""What a diagnosis found: shares of units and of values that clipping and bounding touch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from sfumato.privacy.event import Json
from sfumato.query.answer import Answer
from sfumato.query.diagnose import Check
from sfumato.query.render import number


@dataclass(frozen=True, slots=True)
class Finding:
    """A share with its 95% interval; of units also how many they are, and of how many.

    Attributes:
        what: "more than 6 rows in a group", "cost above the declared 1000".
        share, low, high: 0 to 1.
        count, half_width, total: of units; None for values, whose rows may count with a weight.
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
    """How much of the data the bias of an answer comes from, as far as it can be told privately.

    It stands beside the intervals of the answer and changes none of them.

    Attributes:
        findings: one for each limit and each bound that the question meets.
        answers: what was asked and charged for it; the same diagnosis again is free.
    """

    findings: tuple[Finding, ...]
    answers: tuple[Answer, ...]

    def to_json(self) -> dict[str, Json]:
        """As ``sfumato diagnose --format json`` prints it."""
        return {
            "findings": [
                {
                    "what": each.what,
                    "of": "rows" if each.count is None else "units",
                    "share": each.share,
                    "low": each.low,
                    "high": each.high,
                    "count": each.count,
                    "half_width": each.half_width,
                    "total": each.total,
                }
                for each in self.findings
            ],
            "charges": [
                {"charge_id": each.charge_id, "cost": each.cost.to_json()} for each in self.answers
            ],
        }

    def __repr__(self) -> str:
        return "\n".join([*map(str, self.findings), *(answer.receipt() for answer in self.answers)])


def diagnosis(checks: Sequence[Check], answers: Sequence[Answer]) -> Diagnosis:
    """What the answers to the checks say."""
    found = [
        each
        for check, answer in zip(checks, answers, strict=True)
        for each in _findings(check, answer)
    ]
    return Diagnosis(tuple(found), tuple(answers))


def _findings(check: Check, answer: Answer) -> list[Finding]:
    (row,) = answer.rows
    (errors,) = cast(list[list[dict[str, float]]], answer.form["errors"])
    values = cast(list[float], row)
    found = []
    for index, what in enumerate(check.found):
        share, count, total = (3 * index + place for place in range(3))
        known = (values[count], errors[count]["half_width"], values[total]) if check.units else ()
        found.append(
            Finding(what, values[share], errors[share]["low"], errors[share]["high"], *known)
        )
    return found
