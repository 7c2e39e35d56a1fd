# SPDX-License-Identifier: Apache-2.0
"""The HTML report of ``sfumato demo``: one file, without scripts, with charts as inline SVG."""

import html
from dataclasses import dataclass
from fractions import Fraction

from sfumato.examples.census import REFUSED
from sfumato.examples.differencing import BITS, NAMES, Attack, sums
from sfumato.ledger.verify import Report
from sfumato.privacy.budget import Budget
from sfumato.query.answer import Answer
from sfumato.show import page as show
from sfumato.show.bars import Bar, bar_chart
from sfumato.show.render import cells, html_table


@dataclass(frozen=True, slots=True)
class Told:
    """A question of ``sfumato demo`` with its privacy cost, its answer, and the budget left after
    it.
    """

    title: str
    price: str
    answer: Answer
    left: str


@dataclass(frozen=True, slots=True)
class Story:
    """The results of a run of ``sfumato demo``, as the HTML report shows them."""

    budget: Budget
    told: tuple[Told, ...]
    repeated: bool
    refusal: str
    attack: Attack
    account: str
    verified: Report


def page(story: Story) -> str:
    """Returns the demo's report as HTML."""
    parts = [_header(story)]
    for index, told in enumerate(story.told, start=1):
        parts.append(_question(index, told))
    parts += [_refusal(story), _attack(story.attack), _ledger(story)]
    return show.page("sfumato: a census extract, answered privately", "".join(parts))


def _header(story: Story) -> str:
    """Returns the title and the tiles with the main numbers."""
    budget, attack = story.budget, story.attack
    share = attack.successes / attack.trials
    numbers = [
        ("27,253", "persons, each protected"),
        (str(len(story.told)), "questions answered"),
        (f"{float(budget.epsilon):g}", f"epsilon in all, delta {float(budget.delta):g}"),
        (f"{share:.0%}", f"attacker right; bound {attack.bound:.0%}, blind guess 50%"),
    ]
    return (
        "<header><h1>A census extract, answered privately</h1>"
        "<p>American Community Survey 2019, national excerpt (NIST). "
        "Every number below carries exact discrete noise; "
        "every whisker is a 95% interval for the statistic as it was bounded; "
        "every cost was booked in a durable ledger before the data was read.</p></header>"
        f"{show.tiles(numbers)}"
    )


def _question(index: int, told: Told) -> str:
    """Returns the section of a question."""
    answer = told.answer
    header, body = cells(answer.columns, answer.form["rows"], answer.form["errors"])
    chart = answer.plot().svg if len(answer.rows) > 1 else ""
    table = html_table(header, body)
    if len(answer.rows) > 8:
        table = f"<details><summary>The numbers</summary>{table}</details>"
    lines = [*answer.protected, *answer.bounded, *answer.bias, *answer.notes]
    more = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    price, cost = html.escape(told.price), html.escape(str(answer.cost))
    return (
        f"<section><h2>{index}. {html.escape(told.title)}</h2>"
        f"<pre>{html.escape(answer.statement)}</pre>{chart}{table}"
        f'<p class="cost">asked with {price}; cost {cost}; {html.escape(told.left)}</p>'
        "<details><summary>What was done, and what the intervals leave out</summary>"
        f"<ul>{more}</ul></details></section>"
    )


def _refusal(story: Story) -> str:
    """Returns the section of the repeated question and the refused one."""
    again = "the same bytes, at no cost" if story.repeated else "NOT the same"
    return (
        "<section><h2>Asked again, and refused</h2>"
        f"<p>The first question asked again: {again}.</p>"
        f"<p>{html.escape(REFUSED.title)}:</p><pre>{html.escape(REFUSED.sql)}</pre>"
        f"<pre>{html.escape(story.refusal)}</pre></section>"
    )


def _attack(result: Attack) -> str:
    """Returns the section of the differencing attack."""
    first, second = sums()
    five, four = result.plain
    noisy_five, noisy_four = result.noisy
    rows = "".join(
        f"<tr><td>{name}</td><td>{bit}</td></tr>" for name, bit in zip(NAMES, BITS, strict=True)
    )
    share = result.successes / result.trials
    return (
        "<section><h2>The differencing attack</h2><p>Five patients and a secret bit. "
        "The sum over all five minus the sum over the first four is Chandler's bit.</p>"
        "<table><thead><tr><th>name</th><th>diabetes</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
        f"<pre>{html.escape(first)}\n{html.escape(second)}</pre>"
        f"<p>Plain SQL: {five} &minus; {four} = <b>{five - four}</b>, the secret. "
        f"sfumato, one try: {noisy_five} &minus; {noisy_four} = "
        f"<b>{noisy_five - noisy_four}</b>. "
        f"Over {result.trials:,} fresh budgets with a fair coin as the secret "
        f"the attacker is right {share:.1%} of the time; "
        f"no attacker can exceed e<sup>E</sup>/(1+e<sup>E</sup>) = {result.bound:.1%} "
        f"with E = {result.total_epsilon}, "
        f"what both sums cost for a changed bit.</p>{_attack_chart(result)}</section>"
    )


def _attack_chart(result: Attack) -> str:
    """Returns the chart of how often the attacker is right."""
    share = result.successes / result.trials
    # half the width of a 95% interval of the true rate, by Hoeffding's inequality
    reach = (3.689 / (2 * result.trials)) ** 0.5
    bars = [
        Bar("blind guess", "", 0.5, None, None),
        Bar("against sfumato", "", share, share - reach, share + reach),
        Bar("most that is possible", "", result.bound, None, None),
        Bar("against plain SQL", "", 1.0, None, None),
    ]
    return bar_chart("How often the attacker is right", "share of attacks", bars).svg


def _ledger(story: Story) -> str:
    """Returns the section of the ledger after it was opened again."""
    rows = "".join(
        f"<tr><td>{html.escape(told.title)}</td><td>{html.escape(str(told.answer.cost))}</td>"
        f"<td><code>{told.answer.charge_id[:12]}</code></td></tr>"
        for told in story.told
    )
    spent, verified = _spent_share(story), story.verified
    return (
        f"<section><h2>The ledger, opened again</h2>{show.text_blocks(story.account)}"
        f'<div class="gauge"><i style="width:{spent:.1%}"></i></div>'
        f'<p class="cost">{spent:.0%} of the zCDP gate is spent</p>'
        "<table><thead><tr><th>question</th><th>cost</th><th>charge</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
        f'<p class="cost">verified: {verified.entries} entries, {verified.charges} charges, '
        f"the hash chain is whole, head {verified.head[:16]}</p></section>"
    )


def _spent_share(story: Story) -> float:
    """Returns the share of the zCDP gate that is spent."""
    rho = sum((Fraction(told.answer.cost.rho) for told in story.told), Fraction(0))
    words = story.account.split()
    cap = Fraction(words[words.index("(zCDP") - 1])
    return float(rho / cap)
