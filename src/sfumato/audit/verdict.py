# SPDX-License-Identifier: Apache-2.0
"""The possible results of a check of a claim, and how results are shown."""

from collections.abc import Sequence
from enum import Enum
from fractions import Fraction

from sfumato.exact.bracket import Bracket
from sfumato.exact.rational import decimal_text


class Verdict(Enum):
    """The result of a check of a claim.

    ``VIOLATED``: proved false. ``HOLDS``: proved, for what was explored. ``UNDECIDED``: neither.

    >>> overall([Verdict.HOLDS, Verdict.UNDECIDED]).value
    'UNDECIDED'
    """

    HOLDS = "HOLDS"
    VIOLATED = "VIOLATED"
    UNDECIDED = "UNDECIDED"


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """Returns the verdict over several checks: VIOLATED if any is, HOLDS if all do, else UNDECIDED.

    >>> overall([Verdict.HOLDS, Verdict.UNDECIDED])
    <Verdict.UNDECIDED: 'UNDECIDED'>
    """
    for verdict in (Verdict.VIOLATED, Verdict.UNDECIDED):
        if verdict in verdicts:
            return verdict
    return Verdict.HOLDS if verdicts else Verdict.UNDECIDED


def table(rows: Sequence[Sequence[str]]) -> str:
    """Returns rows of text as a table in columns; the first row is the heading.

    >>> print(table([("measure", "claimed"), ("epsilon", "1")]))
    measure  claimed
    -------  -------
    epsilon  1
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    heading, *body = rows
    rule = ["-" * width for width in widths]
    lines: list[str] = []
    for row in (heading, rule, *body):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def shown(bounds: Bracket) -> str:
    """Returns a lower and an upper bound as text with six digits.

    >>> shown(Bracket(0.12345678, float("inf")))
    '[0.123457, inf]'
    """
    return f"[{bounds.lower:.6g}, {bounds.upper:.6g}]"


def number(value: Fraction) -> str:
    """Returns an exact number as text; a long one is cut to six digits.

    >>> number(Fraction(1, 8)), number(Fraction(10**40 + 1, 3 * 10**40))
    ('0.125', '0.333333')
    """
    exact = decimal_text(value)
    if len(exact) <= 8:
        return exact
    return f"{float(value):.6g}"
