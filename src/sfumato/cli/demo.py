# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo``: a census extract answers its first questions, and survives an attack."""

import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.rule import Rule

from sfumato.cli.census import QUESTIONS, REFUSED, census
from sfumato.cli.differencing import Attack, attack, sums
from sfumato.cli.options import require_folders, write_file
from sfumato.cli.report import Story, Told, page
from sfumato.errors import Failed, Refused
from sfumato.privacy.budget import Budget
from sfumato.query.connect import connect
from sfumato.query.session import Session

BUDGET = Budget(epsilon=3, delta="1e-6")
DATASET = "acs-2019-national"


@click.command("demo")
@click.option(
    "--report", default="demo-report.html", show_default=True, help="Where to write the page."
)
def command(report: str) -> None:
    """Ask ten questions of a census extract, attack them, and write a report."""
    require_folders(report)
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="sfumato-demo-") as folder:
        story = tell(console, Path(folder))
    write_file(report, page(story).encode())
    console.print(f"\n[bold]Written:[/bold] {report}")


def tell(console: Console, folder: Path) -> Story:
    """The whole demo, printed as it happens."""
    ledger = folder / "ledger.db"
    with connect({"people": census()}, dataset=DATASET, budget=BUDGET, ledger=ledger) as session:
        say(
            console,
            "A census extract: 27,253 persons, each row one person",
            f"{BUDGET!r}, ledger {ledger.name}",
        )
        told = [_question(console, session, index) for index in range(len(QUESTIONS))]
        repeated = _repeat(console, session, told[0])
        refusal = _refusal(console, session)
        before = repr(session.budget)
    found = attack(folder)
    _tell_attack(console, found)
    with connect({"people": census()}, dataset=DATASET, ledger=ledger) as session:
        after, verified = repr(session.budget), session.verify()
        if after != before or verified.problems:
            raise Failed("The ledger did not survive being closed and opened again.")
        say(console, "The ledger, opened again: what was spent is still spent", after)
        console.print(
            f"verified: {verified.entries} entries, {verified.charges} charges, the chain is whole"
        )
    return Story(BUDGET, tuple(told), repeated, refusal, found, after, verified)


def say(console: Console, title: str, text: str) -> None:
    """A titled part of a demo."""
    console.print()
    console.print(Rule(f"[bold]{title}[/bold]", align="left"))
    console.print(text, markup=False)


def shown_left(session: Session) -> str:
    """What one more question may cost."""
    left = session.budget
    gaussian = f" or rho up to {float(left.left_rho):.4g}" if left.left_rho else ""
    return f"left: one question of epsilon up to {float(left.left):.4g}{gaussian}"


def _question(console: Console, session: Session, index: int) -> Told:
    asked = QUESTIONS[index]
    answer = asked.ask(session)
    shown = shown_left(session)
    say(console, f"{index + 1}. {asked.title}", f"{asked.sql}\n{asked.shown_price}\n")
    console.print(f"{answer!r}\n{shown}", markup=False)
    return Told(asked.title, asked.shown_price, answer, shown)


def _repeat(console: Console, session: Session, first: Told) -> bool:
    before = repr(session.budget)
    again = QUESTIONS[0].ask(session)
    same = again.bytes == first.answer.bytes and repr(session.budget) == before
    say(
        console,
        "The first question again",
        f"the same bytes, at no cost: {'yes' if same else 'NO'}",
    )
    return same


def _refusal(console: Console, session: Session) -> str:
    try:
        REFUSED.ask(session)
    except Refused as refusal:
        say(console, f"Refused: {REFUSED.title}", f"{REFUSED.sql}\n{refusal}")
        return str(refusal)
    raise Failed("A question that must be refused was answered.")


def _tell_attack(console: Console, found: Attack) -> None:
    five, four = sums()
    text = (
        f"plain SQL: {found.plain[0]} - {found.plain[1]} = {found.plain[0] - found.plain[1]}: Chandler has diabetes, for certain\n"
        f"  {five}\n  {four}\n"
        f"sfumato, once: {found.noisy[0]} - {found.noisy[1]} = {found.noisy[0] - found.noisy[1]}\n"
        f"sfumato, {found.trials:,} fresh budgets, a fair coin as the secret: the attacker is right "
        f"{found.successes / found.trials:.1%} of the time\n"
        f"no attacker can be right more often than e^E / (1 + e^E) = {found.bound:.1%}, E = {found.total_epsilon} in all"
    )
    say(console, "The differencing attack", text)
