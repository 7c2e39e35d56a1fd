# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo``: asks questions of a census extract, and attacks it by differencing."""

import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.rule import Rule

from sfumato.cli.lazy_group import LazyGroup
from sfumato.cli.options import require_spared, write_file
from sfumato.errors import Failed, Refused
from sfumato.examples.census import INCOME, KEPT_INCOME, QUESTIONS, REFUSED, census, true_incomes
from sfumato.examples.differencing import Attack, attack, sums
from sfumato.examples.report import Story, Told, page
from sfumato.privacy.budget import Budget
from sfumato.query.connect import connect
from sfumato.query.session import Session

BUDGET = Budget(epsilon=3, delta="1e-6")
DATASET = "acs-2019-national"


_HERE = __name__.rpartition(".")[0]
# The other demos by name: the module of each, and what it shows.
_DEMOS = {
    "census": (f"{_HERE}.demo_census", "Census tables down a geography, with a page to look at."),
    "stream": (f"{_HERE}.demo_stream", "Rides day by day, and ten years of births denoised."),
    "synthetic": (f"{_HERE}.demo_synthetic", "Synthetic rows of the census extract, and a page."),
    "learning": (
        f"{_HERE}.demo_learning",
        "What accuracy costs; a training is killed and resumed.",
    ),
    "telemetry": (f"{_HERE}.demo_telemetry", "A million made-up devices that nobody can read."),
    "federation": (f"{_HERE}.demo_federation", "Three hospitals, one study, no pooled data."),
    "service": (
        f"{_HERE}.demo_service",
        "A clinic serves two analysts: a race, a kill, the report.",
    ),
    "graph": (
        f"{_HERE}.demo_graph",
        "A graph under two units; is the hub there? A synthetic one.",
    ),
    "mining": (
        f"{_HERE}.demo_mining",
        "What many people say, buy and do next; one person's secret is sought.",
    ),
    "audit": (
        f"{_HERE}.demo_audit",
        "What tables of an area give away; an audit, and the documents about it.",
    ),
    "hospitals": (
        f"{_HERE}.hospitals",
        "One unit over three tables: a study and a statistics office.",
    ),
}


@click.group("demo", cls=LazyGroup, sections={"Demos": _DEMOS}, invoke_without_command=True)
@click.option(
    "--report", default="demo-report.html", show_default=True, help="Where to write the page."
)
@click.pass_context
def command(ctx: click.Context, report: str) -> None:
    """Ask ten questions of a census extract, attack them, and write a report.

    Or run the demo that is named.
    """
    if ctx.invoked_subcommand is None:
        _questions(report)


def _questions(report: str) -> None:
    """Runs the demo of the census extract, and writes its page."""
    require_spared(report)
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="sfumato-demo-") as folder:
        story = tell(console, Path(folder))
    write_file(report, page(story).encode())
    console.print(f"\n[bold]Written:[/bold] {report}")


def tell(console: Console, folder: Path) -> Story:
    """Runs the demo and prints it; returns the results for the page."""
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
    result = attack(folder)
    _tell_attack(console, result)
    with connect({"people": census()}, dataset=DATASET, ledger=ledger) as session:
        after, verified = repr(session.budget), session.verify()
        if after != before or verified.problems:
            raise Failed("The ledger did not survive being closed and opened again.")
        say(console, "The ledger, opened again: what was spent is still spent", after)
        console.print(
            f"verified: {verified.entries} entries, {verified.charges} charges, the chain is whole"
        )
    return Story(BUDGET, tuple(told), repeated, refusal, result, after, verified)


def say(console: Console, title: str, text: str) -> None:
    """Prints a titled paragraph of a demo on the console."""
    console.print()
    console.print(Rule(f"[bold]{title}[/bold]", align="left"))
    console.print(text, markup=False)


def shown_left(session: Session) -> str:
    """Returns a line for the console: the largest epsilon, and rho if there is one, that the budget
    allows for one more question.
    """
    left = session.budget
    gaussian = f" or rho up to {float(left.left_rho):.4g}" if left.left_rho else ""
    return f"left: one question of epsilon up to {float(left.left):.4g}{gaussian}"


def _question(console: Console, session: Session, index: int) -> Told:
    """Asks a question of the demo and prints its answer."""
    asked = QUESTIONS[index]
    answer = asked.ask(session)
    shown = shown_left(session)
    say(console, f"{index + 1}. {asked.title}", f"{asked.sql}\n{asked.shown_price}\n")
    console.print(f"{answer!r}\n{shown}", markup=False)
    if asked is INCOME:
        console.print(_true_incomes(), markup=False)
    return Told(asked.title, asked.shown_price, answer, shown)


def _true_incomes() -> str:
    """Returns the exact means, which the two intervals of the income question should contain."""
    lines = ["in the file, which is public (of private data nobody may print this):"]
    for sex, (mean, clipped) in true_incomes().items():
        lines.append(f"  {sex}: mean {mean:,.0f}, clipped to {KEPT_INCOME:,}: {clipped:,.0f}")
    return "\n".join(lines)


def _repeat(console: Console, session: Session, first: Told) -> bool:
    """Asks the first question again; returns whether it got the same bytes at no cost."""
    before = repr(session.budget)
    again = QUESTIONS[0].ask(session)
    same = again.bytes == first.answer.bytes and repr(session.budget) == before
    shown = "yes" if same else "NO"
    say(console, "The first question again", f"the same bytes, at no cost: {shown}")
    return same


def _refusal(console: Console, session: Session) -> str:
    """Asks a question that must be refused; returns the error message."""
    try:
        REFUSED.ask(session)
    except Refused as refusal:
        say(console, f"Refused: {REFUSED.title}", f"{REFUSED.sql}\n{refusal}")
        return str(refusal)
    raise Failed("A question that must be refused was answered.")


def _tell_attack(console: Console, result: Attack) -> None:
    """Prints the results of the differencing attack."""
    first, second = sums()
    five, four = result.plain
    noisy_five, noisy_four = result.noisy
    text = (
        f"plain SQL: {five} - {four} = {five - four}: Chandler has diabetes, for certain\n"
        f"  {first}\n  {second}\n"
        f"sfumato, once: {noisy_five} - {noisy_four} = {noisy_five - noisy_four}\n"
        f"sfumato, {result.trials:,} fresh budgets, a fair coin as the secret: "
        f"the attacker is right {result.successes / result.trials:.1%} of the time\n"
        f"no attacker can be right more often than e^E / (1 + e^E) = {result.bound:.1%}, "
        f"E = {result.total_epsilon} in all"
    )
    say(console, "The differencing attack", text)
