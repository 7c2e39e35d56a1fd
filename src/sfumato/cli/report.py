# SPDX-License-Identifier: Apache-2.0
"""The page of the demo: self-contained, no script, charts as inline SVG."""

import html
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from sfumato.cli.census import REFUSED
from sfumato.cli.differencing import BITS, NAMES, Attack, sums
from sfumato.ledger.verify import Report
from sfumato.privacy.budget import Budget
from sfumato.query.answer import Answer
from sfumato.query.plot import Bar, bar_chart
from sfumato.query.render import cells, html_table

_STYLE = (Path(__file__).parent / "report.css").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Told:
    """A question of the demo with its answer, and what was left after it."""

    title: str
    price: str
    answer: Answer
    left: str


@dataclass(frozen=True, slots=True)
class Story:
    """Everything that the demo showed."""

    budget: Budget
    told: tuple[Told, ...]
    repeated: bool
    refusal: str
    attack: Attack
    account: str
    verified: Report


def page(story: Story) -> str:
    """The whole page."""
    body = "".join(
        [
            _header(story),
            *(_question(index, told) for index, told in enumerate(story.told, start=1)),
            _refusal(story),
            _attack(story.attack),
            _ledger(story),
        ]
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>sfumato: a census extract, answered privately</title><style>{_STYLE}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def _header(story: Story) -> str:
    tiles = [
        ("27,253", "persons, each protected"),
        (str(len(story.told)), "questions answered"),
        (
            f"{float(story.budget.epsilon):g}",
            f"epsilon in all, delta {float(story.budget.delta):g}",
        ),
        (
            f"{story.attack.successes / story.attack.trials:.0%}",
            f"attacker right; bound {story.attack.bound:.0%}, blind guess 50%",
        ),
    ]
    shown = "".join(
        f'<div class="tile"><b>{html.escape(big)}</b><span>{html.escape(small)}</span></div>'
        for big, small in tiles
    )
    return (
        "<header><h1>A census extract, answered privately</h1><p>American Community Survey 2019, national excerpt (NIST). "
        "Every number below carries exact discrete noise; every whisker is a 95% interval for the statistic as it was bounded; "
        "every cost was booked in a durable ledger before the data was read.</p></header>"
        f'<div class="tiles">{shown}</div>'
    )


def _question(index: int, told: Told) -> str:
    answer = told.answer
    header, body = cells(answer.columns, answer.form["rows"], answer.form["errors"])
    chart = answer.plot().svg if len(answer.rows) > 1 else ""
    table = html_table(header, body)
    if len(answer.rows) > 8:
        table = f"<details><summary>The numbers</summary>{table}</details>"
    lines = [*answer.protected, *answer.bounded, *answer.bias, *answer.notes]
    more = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return (
        f"<section><h2>{index}. {html.escape(told.title)}</h2><pre>{html.escape(answer.statement)}</pre>{chart}{table}"
        f'<p class="cost">asked with {html.escape(told.price)}; cost {html.escape(str(answer.cost))}; {html.escape(told.left)}</p>'
        f"<details><summary>What was done, and what the intervals leave out</summary><ul>{more}</ul></details></section>"
    )


def _refusal(story: Story) -> str:
    again = "the same bytes, at no cost" if story.repeated else "NOT the same"
    return (
        f"<section><h2>Asked again, and refused</h2><p>The first question asked again: {again}.</p>"
        f"<p>{html.escape(REFUSED.title)}:</p><pre>{html.escape(REFUSED.sql)}</pre><pre>{html.escape(story.refusal)}</pre></section>"
    )


def _attack(found: Attack) -> str:
    five, four = sums()
    rows = "".join(
        f"<tr><td>{name}</td><td>{bit}</td></tr>" for name, bit in zip(NAMES, BITS, strict=True)
    )
    share = found.successes / found.trials
    # Hoeffding at 95%: what the true rate can be after so many trials
    reach = (3.689 / (2 * found.trials)) ** 0.5
    chart = bar_chart(
        "How often the attacker is right",
        "share of attacks",
        [
            Bar("blind guess", "", 0.5, None, None),
            Bar("against sfumato", "", share, share - reach, share + reach),
            Bar("most that is possible", "", found.bound, None, None),
            Bar("against plain SQL", "", 1.0, None, None),
        ],
    ).svg
    return (
        "<section><h2>The differencing attack</h2><p>Five patients and a secret bit. The sum over all five minus the sum over the "
        f"first four is Chandler's bit.</p><table><thead><tr><th>name</th><th>diabetes</th></tr></thead><tbody>{rows}</tbody></table>"
        f"<pre>{html.escape(five)}\n{html.escape(four)}</pre>"
        f"<p>Plain SQL: {found.plain[0]} &minus; {found.plain[1]} = <b>{found.plain[0] - found.plain[1]}</b>, the secret. "
        f"sfumato, one try: {found.noisy[0]} &minus; {found.noisy[1]} = <b>{found.noisy[0] - found.noisy[1]}</b>. "
        f"Over {found.trials:,} fresh budgets with a fair coin as the secret the attacker is right {share:.1%} of the time; "
        f"no attacker can exceed e<sup>E</sup>/(1+e<sup>E</sup>) = {found.bound:.1%} with E = {found.total_epsilon}, "
        f"what both sums cost for a changed bit.</p>{chart}</section>"
    )


def _ledger(story: Story) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(told.title)}</td><td>{html.escape(str(told.answer.cost))}</td>"
        f"<td><code>{told.answer.charge_id[:12]}</code></td></tr>"
        for told in story.told
    )
    spent = _spent_share(story)
    return (
        f"<section><h2>The ledger, opened again</h2><pre>{html.escape(story.account)}</pre>"
        f'<div class="gauge"><i style="width:{spent:.1%}"></i></div><p class="cost">{spent:.0%} of the zCDP gate is spent</p>'
        f"<table><thead><tr><th>question</th><th>cost</th><th>charge</th></tr></thead><tbody>{rows}</tbody></table>"
        f'<p class="cost">verified: {story.verified.entries} entries, {story.verified.charges} charges, the hash chain is whole, '
        f"head {story.verified.head[:16]}</p></section>"
    )


def _spent_share(story: Story) -> float:
    rho = sum((Fraction(told.answer.cost.rho) for told in story.told), Fraction(0))
    words = story.account.split()
    cap = Fraction(words[words.index("(zCDP") - 1])
    return float(rho / cap)
