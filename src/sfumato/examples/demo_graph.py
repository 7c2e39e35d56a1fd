# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo graph``: an edge or a person as the unit, side by side, and what a hub shows."""

import html
import tempfile
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import duckdb
import numpy as np
from rich.console import Console

from sfumato.cli.options import write_file
from sfumato.errors import SfumatoError
from sfumato.examples.demo import say
from sfumato.graph.answer import Count, DegreeTable, degree_chart
from sfumato.graph.questions import Degrees, Edges, Triangles
from sfumato.graph.synthesis import SyntheticGraph, synthesize
from sfumato.graph.task import ask
from sfumato.graph.triangles import count_triangles
from sfumato.metadata.table import Table
from sfumato.noise import Integers
from sfumato.privacy.budget import Budget
from sfumato.privacy.unit import Edge, Node, Unit
from sfumato.query.connect import connect
from sfumato.query.session import Session
from sfumato.query.statistic import Graph
from sfumato.show.page import page, text_blocks
from sfumato.show.render import text_table

_TIES = Path(__file__).parent / "ties" / "routers.parquet"
# A limit that the owner could know: nobody is thought to have more ties.
_LIMIT = 2048
# Whether the hub is there is guessed so often under each unit.
RUNS = 50


@dataclass(frozen=True, slots=True)
class Truth:
    """The exact numbers, which only a demo may show."""

    pairs: Integers
    degrees: dict[int, int]
    triangles: int
    hub: int
    highest: int


@click.command("graph")
@click.option(
    "--report", default="demo-graph.html", show_default=True, help="Where to write the page."
)
def command(report: str) -> None:
    """Ask about a graph under two units, attack both, and draw a synthetic graph."""
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="sfumato-graph-") as folder:
        body = tell(console, Path(folder))
    write_file(report, page("A graph under two units", body).encode())
    console.print(f"\n[bold]Written:[/bold] {report}")


def tell(console: Console, folder: Path) -> str:
    """Runs the demo and prints it; returns the body of its page."""
    pairs = _pairs()
    truth = _truth(pairs)
    say(
        console,
        f"{len(pairs):,} ties, {truth.highest:,} of them at one node",
        f"{_declared()}\nBeside each answer stands the truth, which only a demo may show.",
    )
    sections = []
    with _opened(pairs, folder, "both") as session:
        sections.append(("Side by side, each at epsilon 1", _side_by_side(session, truth)))
        made = synthesize(session, "ties", epsilon=2)
    sections.append(("Is the hub there?", _attacked(pairs, truth, folder)))
    sections.append(("A synthetic graph, epsilon 2 under sf.Edge", _compared(made, truth)))
    parts = []
    for title, text in sections:
        say(console, title, text)
        parts.append(f"<section><h2>{html.escape(title)}</h2>{text_blocks(text)}</section>")
    chart = degree_chart({"true": truth.degrees, "synthetic": _degrees(made.pairs)})
    return "".join([f"<h1>A graph under two units</h1><section>{chart.svg}</section>", *parts])


def _pairs() -> Integers:
    """Returns the ties of the demo."""
    with duckdb.connect() as raw:
        columns = raw.read_parquet(str(_TIES)).fetchnumpy()
    return np.column_stack([columns["a"], columns["b"]]).astype(np.int64)


def _truth(pairs: Integers) -> Truth:
    """Returns the exact numbers of a graph."""
    names, numbers = np.unique(pairs, return_inverse=True)
    counted = np.bincount(numbers.ravel())
    graph = Graph(numbers.reshape(-1, 2).astype(np.int64), len(names))
    hub = int(names[counted.argmax()])
    return Truth(pairs, _degrees(pairs), count_triangles(graph), hub, int(counted.max()))


def _degrees(pairs: Integers) -> dict[int, int]:
    """Returns how many nodes have each degree."""
    return dict(Counter(np.unique(pairs, return_counts=True)[1].tolist()))


def _declared() -> str:
    """Returns the two declarations, as text."""
    return (
        f"ties:    unit={Edge('a', 'b')!r}\n"
        f"friends: unit={Node('a', 'b', of='people')!r}, the same rows in a file of its own"
    )


def _opened(pairs: Integers, folder: Path, name: str) -> Session:
    """Opens a session over the rows under both units; the nodes are listed in a table."""
    paths = {}
    for table in ("ties", "friends", "people"):
        paths[table] = folder / f"{name}-{table}.csv"
    rows = "\n".join(["a,b", *(f"{first},{second}" for first, second in pairs.tolist()), ""])
    paths["ties"].write_text(rows, encoding="utf-8")
    paths["friends"].write_text(rows, encoding="utf-8")
    ids = "\n".join(["id", *map(str, np.unique(pairs).tolist()), ""])
    paths["people"].write_text(ids, encoding="utf-8")
    tables = {
        "people": Table(paths["people"], unit=Unit("id", max_rows_total=1, name="person")),
        "ties": Table(paths["ties"], unit=Edge("a", "b")),
        "friends": Table(paths["friends"], unit=Node("a", "b", of="people")),
    }
    return connect(tables, dataset=name, budget=Budget(1000), ledger=folder / f"{name}.db")


def _side_by_side(session: Session, truth: Truth) -> str:
    """Asks each question under both units."""
    body = []
    asked = {
        "edges": Edges(),
        f"edges, limit {_LIMIT:,}": Edges(max_degree=_LIMIT),
        "degrees": Degrees(),
        "triangles": Triangles(),
    }
    for name, question in asked.items():
        row = [name]
        for table in ("ties", "friends"):
            row.append(_asked(session, table, question))
        body.append([*row, _exact(question, truth)])
    return text_table(["question", "sf.Edge", "sf.Node", "truth"], body)


def _asked(session: Session, table: str, question: Any) -> str:
    """Returns an answer in a few words, or that the question is refused."""
    try:
        answer = ask(session, table, question, epsilon=1)
    except SfumatoError:
        return "refused"
    limit = f", limit {answer.limit:,}" if answer.limit else ""
    if isinstance(answer, DegreeTable):
        return f"{answer.histogram.get(1, 0):,} with one{limit}"
    half = max(answer.high - answer.value, answer.value - answer.low)
    return f"{answer.value:,} +-{half:,}{limit}"


def _exact(question: Any, truth: Truth) -> str:
    """Returns the exact answer in the same words."""
    if isinstance(question, Edges):
        return f"{len(truth.pairs):,}"
    if isinstance(question, Degrees):
        return f"{truth.degrees[1]:,} with one"
    return f"{truth.triangles:,}"


def _attacked(pairs: Integers, truth: Truth, folder: Path) -> str:
    """Guesses from the number of edges whether the hub is there, under both units."""
    without = pairs[(pairs != truth.hub).all(axis=1)]
    right = {"ties": 0, "friends": 0}
    middle = (len(pairs) + len(without)) / 2
    for there, edges in ((True, pairs), (False, without)):
        with _opened(edges, folder, f"hub-{there}") as session:
            for table in right:
                for run in range(RUNS // 2):
                    # each a question of its own: the same one would get the stored answer
                    question = Edges(max_degree=_LIMIT if table == "friends" else None)
                    answer = ask(session, table, question, epsilon=1 - Fraction(run, 10**9))
                    assert isinstance(answer, Count)
                    right[table] += (answer.value > middle) is there
    hub = f"The hub has {truth.highest:,} edges. From one number of edges at epsilon 1, "
    node = f"sf.Node: right in {right['friends']} of {RUNS}; "
    return (
        f"{hub}somebody who knows all others guesses whether it is there:\n"
        f"sf.Edge: right in {right['ties']} of {RUNS}. An edge is protected, a hub is not.\n"
        f"{node}nobody can be right in more than 73.2% on average, whatever they know."
    )


def _compared(made: SyntheticGraph, truth: Truth) -> str:
    """Returns numbers of the true and of the synthetic graph."""
    triangles = count_triangles(Graph(made.pairs, made.nodes))
    body = [
        ["edges", f"{len(truth.pairs):,}", f"{len(made.pairs):,}"],
        ["nodes", f"{len(np.unique(truth.pairs)):,}", f"{len(np.unique(made.pairs)):,}"],
        ["highest degree", f"{truth.highest:,}", f"{max(_degrees(made.pairs), default=0):,}"],
        ["triangles", f"{truth.triangles:,}", f"{triangles:,}"],
    ]
    table = text_table(["", "true", "synthetic"], body)
    return (
        f"{table}\nWith hubs like these, stubs alone close more triangles than were released "
        f"({made.triangles:,}): no density of blocks makes them fewer."
    )
