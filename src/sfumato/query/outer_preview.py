# SPDX-License-Identifier: Apache-2.0
"""Previews SQL over private answers from declarations alone: its columns, and what it would cost."""

import html
from dataclasses import dataclass, field

from sfumato.exact.rational import Number
from sfumato.privacy.event import Json
from sfumato.query.cost import Cost, total_cost
from sfumato.query.left_after import Balances, left_now
from sfumato.query.preview import Preview
from sfumato.show.render import html_table, text_table

_HEADER = ("private answer", "column", "rows in group", "95% error")


@dataclass(frozen=True, slots=True)
class OuterPreview:
    """The cost of SQL over private answers, and the columns that it would have; free of charge.

    Attributes:
        columns: the name and type of each column.
        inner: the preview of each private answer, with its expected errors.
        outer: the SQL that would be run over the answers.
    """

    columns: tuple[tuple[str, str], ...]
    inner: tuple[Preview, ...]
    outer: str
    balances: Balances | None = field(default=None, repr=False, compare=False)

    @property
    def column_forms(self) -> list[dict[str, Json]]:
        """The name and type of each column; which are released numbers depends on the SQL."""
        return [{"name": name, "type": kind} for name, kind in self.columns]

    @property
    def cost(self) -> Cost:
        """The cost of all private answers together."""
        return total_cost([preview.cost for preview in self.inner])

    @property
    def left(self) -> list[str]:
        """Lines on what the paying accounts have left now, and would have left after the charge."""
        return left_now(self.balances, self.cost.charge)

    @property
    def statement(self) -> str:
        """The bounded SQL of each private answer, and the SQL that would run over the answers."""
        return ";\n".join([*(preview.statement for preview in self.inner), self.outer])

    def error(self, confidence: Number = 0.95) -> list[dict[str, Json]]:
        """Returns the expected errors of the private answers; ``answer`` is the number of each,
        from 0.
        """
        lines = []
        for place, preview in enumerate(self.inner):
            lines += [{"answer": place, **line} for line in preview.error(confidence)]
        return lines

    def explain(self) -> str:
        """A text on each private answer."""
        return "\n\n".join(preview.explain() for preview in self.inner)

    @property
    def errors_in_words(self) -> list[list[str]]:
        """Returns the lines of ``error`` as texts, each after the number of its private answer."""
        lines = []
        for place, preview in enumerate(self.inner):
            lines += [[str(place), *line] for line in preview.errors_in_words]
        return lines

    def _repr_html_(self) -> str:
        said = "<br>".join(map(html.escape, self._last))
        return f"{html_table(_HEADER, self.errors_in_words)}<p>{said}</p>"

    def __repr__(self) -> str:
        return "\n".join([text_table(_HEADER, self.errors_in_words), *self._last])

    @property
    def _last(self) -> list[str]:
        """The last lines: the columns, the cost, and what is left."""
        named = ", ".join(f"{name} ({kind})" for name, kind in self.columns)
        return [
            f"columns: {named}",
            *self.left,
            f"would cost {self.cost}; nothing was charged",
        ]
