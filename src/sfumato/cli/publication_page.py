# SPDX-License-Identifier: Apache-2.0
"""The HTML page of a publication: all tables with intervals, charts and costs.

``sfumato publish`` writes it.
"""

import html
from collections.abc import Mapping
from contextlib import suppress

from sfumato.cli.language import present
from sfumato.errors import WrongUse
from sfumato.query.answer import Answer
from sfumato.show import page as show
from sfumato.show.render import cells, html_table

# Longer tables are folded, and pictures of more bars are left out.
_FOLDED, _DRAWN = 12, 60


def page(title: str, titles: Mapping[str, str], answers: Mapping[str, Answer]) -> str:
    """Returns a publication's HTML page in the language of the shell; ``answers`` has the released
    tables by name, in order.
    """
    sections = [_section(titles[name], answer) for name, answer in answers.items()]
    header = f"<header><h1>{html.escape(title)}</h1>{_protected(answers)}</header>"
    return show.page(title, header + "".join(sections), language=present().code)


def _protected(answers: Mapping[str, Answer]) -> str:
    """The sentence on who is protected, for all tables together."""
    lines = dict.fromkeys(line for answer in answers.values() for line in answer.protected)
    intervals = "Every number has exact discrete noise, and an interval of 95%."
    said = " ".join(map(present().sentence, (*lines, intervals)))
    return f"<p>{html.escape(said)}</p>"


def _section(title: str, answer: Answer) -> str:
    """The section of a table: its chart, its statement and its bias."""
    words = present()
    header, body = cells(answer.columns, answer.form["rows"], answer.form["errors"])
    shown = html_table([words.headers.get(name, name) for name in header], body)
    if len(answer) > _FOLDED:
        folded = words.sentence(f"{len(answer):,} rows")
        shown = f"<details><summary>{folded}</summary>{shown}</details>"
    lines = map(words.sentence, (*answer.notes, *answer.bias))
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    cost = html.escape(words.sentence(f"cost: {answer.cost}"))
    asked = words.sentence("How it was asked, and what the intervals leave out")
    return (
        f"<section><h2>{html.escape(title)}</h2>{_chart(answer)}{shown}"
        f'<p class="cost">{cost}</p>'
        f"<details><summary>{asked}</summary>"
        f"<pre>{html.escape(answer.statement)}</pre><ul>{items}</ul></details></section>"
    )


def _chart(answer: Answer) -> str:
    """The chart of an answer; empty if it has one row, very many rows, or no numbers."""
    if not 1 < len(answer) <= _DRAWN:
        return ""
    names = [str(column["name"]) for column in answer.columns if column["released"]]
    # the last column is what a table is about: counts come first
    for name in reversed([name for name in names if not name.endswith("_clipped")]):
        with suppress(WrongUse):
            whiskers = "whiskers: 95% interval"
            return answer.plot(name).svg.replace(whiskers, present().sentence(whiskers))
    return ""
