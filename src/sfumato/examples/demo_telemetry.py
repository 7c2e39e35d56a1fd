# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo telemetry``: a million reports of made-up devices, sent by real processes."""

import contextlib
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from rich.console import Console

from sfumato.cli.options import require_spared, write_file
from sfumato.cli.page_language import in_language
from sfumato.collector.folder import read
from sfumato.errors import Failed
from sfumato.examples.demo import say
from sfumato.examples.made_up_devices import SEALED, SENT, Question, drawn, left, questions
from sfumato.examples.telemetry_findings import Found, find
from sfumato.examples.telemetry_page import Story, page
from sfumato.examples.telemetry_processes import (
    Sender,
    Sent,
    free_port,
    java_sender,
    node_sender,
    sending,
    sent_by,
    serving,
    shown,
)
from sfumato.privacy.budget import Budget
from sfumato.privacy.unit import ReplaceOne
from sfumato.query.connect import connect
from sfumato.show.render import text_table
from sfumato.telemetry import Aggregator, sign, simulate

BUDGET = Budget(20)
# Seconds until a shuffled batch must have arrived.
_PATIENCE = 60


@click.command("telemetry")
@click.option(
    "--report", default="demo-telemetry.html", show_default=True, help="Where to write the page."
)
def command(report: str) -> None:
    """Ask a million made-up devices, and write a page with what was found."""
    require_spared(report)
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="sfumato-telemetry-") as folder:
        story = tell(console, Path(folder))
    write_file(report, in_language(page(story)).encode())
    console.print(f"\n[bold]Written:[/bold] {report}")


def tell(console: Console, folder: Path) -> Story:
    """Runs the demo and prints it; returns the results for the page."""
    begun = time.monotonic()
    key, aggregator = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    task_questions = questions(int(time.time()), aggregator.public_key())
    _write_keys(folder, key, aggregator)
    account = _sign_tasks(folder, task_questions, key)
    say(
        console,
        "Five questions to made-up devices, charged and signed",
        _cost_table(task_questions, account),
    )
    sent, sums = _collect_reports(console, folder, task_questions)
    sealed = shown(
        folder, "telemetry", "estimate", "dark-mode.task", "reports", "--key", "aggregator.key"
    )
    say(console, "Sealed, shuffled, opened: is dark mode on?", sealed.strip())
    for question in task_questions[1:]:
        _count_stored(folder, question, sums[question.task.id])
    found = find(task_questions, sums)
    say(console, "Found", "\n".join(found.lines))
    _require(found)
    return Story(task_questions, sent, sums, found, sealed, account, time.monotonic() - begun)


def _write_keys(
    folder: Path, key: ec.EllipticCurvePrivateKey, aggregator: ec.EllipticCurvePrivateKey
) -> None:
    """The public key of the owner, and the private one of the aggregator, as files."""
    owner = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    opener = aggregator.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "owner.pem").write_bytes(owner)
    (folder / "aggregator.key").write_bytes(opener)


def _sign_tasks(
    folder: Path, task_questions: Sequence[Question], key: ec.EllipticCurvePrivateKey
) -> str:
    """Charges and signs all tasks; returns what is spent, as text."""
    with connect(
        {}, dataset="phones", relation=ReplaceOne, budget=BUDGET, ledger=folder / "ledger.db"
    ) as session:
        for question in task_questions:
            # the made-up devices are there a second before the start
            signed = sign(session, question.task, key, signed_at=question.task.start - 1)
            (folder / f"{question.task.id}.task").write_bytes(signed.to_bytes())
        return repr(session.budget)


def _cost_table(task_questions: Sequence[Question], account: str) -> str:
    """A table of the questions with their oracles and costs."""
    body = []
    for question in task_questions:
        task = question.task
        first, life = float(task.first_epsilon), float(task.life_epsilon)
        body.append([task.question, task.oracle.kind, f"{first:.3g}", f"{life:.3g}"])
    table = text_table(["question", "oracle", "epsilon, first report", "for ever"], body)
    return f"{table}\n{account}"


def _collect_reports(
    console: Console, folder: Path, task_questions: Sequence[Question]
) -> tuple[tuple[Sent, ...], Mapping[str, Mapping[int, Aggregator]]]:
    """Runs collector, shuffler and clients, and simulates the other devices meanwhile."""
    doors = [free_port(), free_port()]
    _write_config(folder, task_questions, doors)
    simulated = _write_devices(folder, task_questions, doors)
    senders = (node_sender(folder), java_sender(folder))
    with contextlib.ExitStack() as stack:
        stack.enter_context(serving(folder, "collect", doors[0], "emoji"))
        stack.enter_context(serving(folder, "shuffle", doors[1], "dark-mode"))
        running = stack.enter_context(sending(senders))
        sums = {
            question.task.id: _simulate_devices(question, simulated)
            for question in task_questions[1:]
        }
        pairs = zip(senders, running, strict=True)
        sent = tuple(sent_by(sender, process) for sender, process in pairs)
        say(console, "Collector and shuffler, and two clients that send", _rates(senders, sent))
        _await_shuffled(folder, task_questions[0])
    return sent, sums


def _write_config(folder: Path, task_questions: Sequence[Question], doors: Sequence[int]) -> None:
    """Writes the configuration of collector and shuffler."""
    collector, shuffler = doors
    tasks = ", ".join(f'"{question.task.id}.task"' for question in task_questions)
    text = f"""[collector]
folder = "reports"
tasks = [{tasks}]
key = "owner.pem"
port = {collector}
[shuffler]
folder = "waiting"
tasks = ["dark-mode.task"]
key = "owner.pem"
port = {shuffler}
collector = "http://127.0.0.1:{collector}"
"""
    (folder / "telemetry.toml").write_text(text, encoding="utf-8")


def _write_devices(
    folder: Path, task_questions: Sequence[Question], doors: Sequence[int]
) -> Mapping[str, Mapping[object, int]]:
    """Writes the values of each client's devices to files; returns those of the other devices."""
    lines, remaining = [], {}
    for question in task_questions:
        task, truth = question.task, question.truth[question.period]
        size = SEALED // 2 if task.aggregator else SENT
        real = drawn(truth, 2 * size)
        node = drawn(real, size)
        java = left(real, node)
        for name, counts in (("node", node), ("java", java)):
            rows = [f"{count}\t{value}\n" for value, count in counts.items() if count]
            (folder / f"{task.id}.{name}.tsv").write_text("".join(rows), encoding="utf-8")
        remaining[task.id] = left(truth, real)
        kind = "number" if question.is_number else "text"
        address = f"http://127.0.0.1:{doors[bool(task.aggregator)]}/v1/tasks/{task.id}/reports"
        lines.append("\t".join((task.id, kind, task.hash.hex(), str(task.start), address)))
    (folder / "tasks.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return remaining


def _simulate_devices(
    question: Question, present: Mapping[str, Mapping[object, int]]
) -> Mapping[int, Aggregator]:
    """The sums of the simulated devices, which send no reports, by period."""
    truth = dict(question.truth) | {question.period: present[question.task.id]}
    return {
        period: simulate(question.task, counts, period=period) for period, counts in truth.items()
    }


def _rates(senders: Sequence[Sender], sent: Sequence[Sent]) -> str:
    """How fast each client sent."""
    lines = []
    for sender, one in zip(senders, sent, strict=True):
        rate = one.reports / one.seconds
        lines.append(f"{one.client}: {one.reports:,} reports acknowledged, {rate:,.0f} a second")
        if sender.note:
            lines.append(f"  {sender.note}")
    return "\n".join(lines)


def _await_shuffled(folder: Path, question: Question) -> None:
    """Waits until the collector has the batch of the shuffler."""
    limit = time.monotonic() + _PATIENCE
    while sum(map(len, read(folder / "reports", question.task, 0))) < SEALED:
        if time.monotonic() > limit:
            raise Failed("The shuffler did not forward its batch.")
        time.sleep(0.2)


def _count_stored(folder: Path, question: Question, sums: Mapping[int, Aggregator]) -> None:
    """Adds the collector's reports to the simulated sums of the present period."""
    present = question.period
    stored = Aggregator(question.task, sums[present].period)
    for part in read(folder / "reports", question.task, present):
        stored.add_many(part)
    if stored.reports != 2 * SENT or stored.duplicates or stored.refused:
        raise Failed(f"The collector keeps {stored.reports:,} reports of {question.task.id}.")
    sums[present].merge(stored)


def _require(found: Found) -> None:
    """Raises Failed unless the estimates agree with the true values."""
    if not found.is_noticed or "snoozle" not in found.words:
        raise Failed("The demo did not find what its devices hold.")
