# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo learning``: accuracy by cost, a training that is killed, and a network."""

import html
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np
from rich.console import Console

from sfumato.cli.options import require_spared, write_file
from sfumato.errors import Failed
from sfumato.examples.demo import say
from sfumato.examples.killed_fit import COST, RECIPE, STATEMENT, opened, trained
from sfumato.examples.learning_rows import COLUMNS, FEATURES, adult
from sfumato.learning.fit import preview
from sfumato.learning.frontier import Frontier, frontier
from sfumato.learning.model import Model
from sfumato.show import page as show

_EPSILONS, _FOLDS, _DELTA = ("0.1", "0.3", "1", "3"), 3, "1e-6"
_TITLE = "Learning under a guarantee"
# The checkpoint after which the process of the training is killed.
_DIES_AFTER = 2
# A section of the demo: its title, and its text.
Told = tuple[str, str]


@click.command("learning")
@click.option(
    "--report", default="demo-learning.html", show_default=True, help="Where to write the page."
)
def command(report: str) -> None:
    """Choose an epsilon on public rows, train on private ones, kill the training, resume it."""
    require_spared(report)
    console = Console(highlight=False)
    boundary = _measure_frontier(console)
    told = [(_title(boundary), repr(boundary))]
    say(console, *told[0])
    with tempfile.TemporaryDirectory(prefix="sfumato-learning-") as folder:
        for section in _sections(Path(folder)):
            say(console, *section)
            told.append(section)
    write_file(report, page(boundary, told).encode())
    console.print(f"\n[bold]Written:[/bold] {report}")


def _measure_frontier(console: Console) -> Frontier:
    """Measures accuracy against epsilon on the public rows."""
    console.print(f"{_FOLDS * (len(_EPSILONS) + 1)} fits on public rows ...")
    return frontier(
        RECIPE,
        adult("test"),
        COLUMNS,
        f"SELECT {FEATURES} FROM data",
        label="income",
        epsilons=_EPSILONS,
        delta=_DELTA,
        folds=_FOLDS,
    )


def _title(boundary: Frontier) -> str:
    """The title of the first section."""
    return f"What accuracy costs, on 16,281 public rows ({boundary.folds} fits each, free)"


def _sections(folder: Path) -> Iterator[Told]:
    """Runs the training on the private rows; yields the sections of the demo in order."""
    ledger = folder / "ledger.db"
    with opened(ledger) as session:
        planned = preview(session, RECIPE, STATEMENT, label="income", **COST)
        yield "32,561 private rows: what a training costs, before it is paid", repr(planned)
    yield "The process is killed while it trains", _train_and_kill(ledger)
    with opened(ledger) as session:
        left = preview(session, RECIPE, STATEMENT, label="income", **COST).paid
        places: list[str] = []
        model = trained(session, lambda place, of: places.append(f"checkpoint {place} of {of}"))
        words = f"before: {left}\nnow: {', '.join(places)}\n{model!r}\n{session.budget!r}"
        yield "The same training again goes on from its last checkpoint, and costs nothing", words
        checked = session.verify()
        chain = f"verified: {checked.entries} entries, {checked.charges} charge"
    yield (
        "How often it is right on 16,281 other rows, which are public",
        f"{_accuracy(model)}\n{chain}",
    )
    yield "Pictures of digits, read by a small network of PyTorch", _pictures(folder)


def _train_and_kill(ledger: Path) -> str:
    """Trains in a child process, which kills itself; returns its output."""
    code = _run_module("killed_fit", str(ledger), str(_DIES_AFTER)).returncode
    if code != -signal.SIGKILL:
        raise Failed(f"The training ended with {code}, and not by SIGKILL.")
    return f"SIGKILL right after checkpoint {_DIES_AFTER}: no time to tidy up, no refund"


def _accuracy(model: Model) -> str:
    """The share of public rows that the model predicts right."""
    rows = adult("test")
    truth = np.array(rows["income"].to_pylist())
    share = float((np.array(model.predict(rows)) == truth).mean())
    most = float((truth == "<=50K").mean())
    return f"{share:.1%} (always the larger class: {most:.1%})"


def _pictures(folder: Path) -> str:
    """Runs the demo of the network, if PyTorch is installed; returns its output."""
    if find_spec("torch") is None:
        return "left out: PyTorch is not installed (make torch)"
    ran = _run_module("demo_pictures", str(folder))
    if ran.returncode:
        raise Failed(f"The training of the network ended with {ran.returncode}.")
    return ran.stdout.strip()


def _run_module(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a Python module in a child process until it ends."""
    command = [sys.executable, "-m", f"sfumato.examples.{module}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603


def page(boundary: Frontier, told: list[Told]) -> str:
    """The page: the chart of the accuracies, then all that was printed."""
    sections = [f"<section>{boundary.plot().svg}</section>"]
    for title, text in told:
        shown = f"<h2>{html.escape(title)}</h2>{show.text_blocks(text)}"
        sections.append(f"<section>{shown}</section>")
    header = (
        f"<header><h1>{_TITLE}</h1>"
        "<p>Rows of the census of 1994 (Adult, UCI): 16,281 are taken as public, 32,561 as "
        "private. Everything below was computed by this run.</p></header>"
    )
    return show.page(_TITLE, header + "".join(sections))
