# SPDX-License-Identifier: Apache-2.0
"""``sfumato graph``: formats, files, refusals, previews, and one charge."""

import csv
import io
import json

import pyarrow as pa
import pytest

from tests.contracts.shell import Shell

TIES = """
[tables.persons]
source = "persons.csv"
unit = {column = "id", max_rows_total = 1, name = "person"}
[tables.ties]
source = "ties.csv"
unit = {edge = ["a", "b"]}
columns.kind = {type = "category", values = ["close", "far"]}
[tables.friends]
source = "friends.csv"
unit = {node = ["a", "b"], of = "persons"}
"""
EXACTLY = ("--epsilon", "10000")


@pytest.fixture
def ties(shell: Shell) -> Shell:
    """A cycle of eight, of which each has a name, under both units."""
    rows = [f"p{at},p{(at + 1) % 8},{'close' if at % 2 else 'far'}" for at in range(8)]
    shell.write("ties.csv", "\n".join(["a,b,kind", *rows]))
    shell.write("friends.csv", "\n".join(["a,b,kind", *rows]))
    shell.write("persons.csv", "\n".join(["id", *(f"p{at}" for at in range(8))]))
    shell.configure('columns.job = {type = "text"}\n', f'columns.job = {{type = "text"}}\n{TIES}')
    return shell


def test_each_question_is_answered_with_its_notes_and_the_account(ties: Shell) -> None:
    ran = ties.run("graph", "edges", "ties", *EXACTLY)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("edges: 8 (8 to 8)") and "Not protected" in ran.out
    assert "spent     epsilon 10000 of" in ran.out
    assert "2      8" in ties.run("graph", "degrees", "ties", *EXACTLY).out
    assert ties.run("graph", "triangles", "ties", *EXACTLY).out.startswith("triangles: 0 ")
    close = ties.run("graph", "edges", "ties", *EXACTLY, "--where", "kind = 'close'")
    assert close.out.startswith("edges: 4 ")


def test_a_person_as_the_unit_keeps_edges_up_to_a_limit(ties: Shell) -> None:
    ran = ties.run("graph", "edges", "friends", *EXACTLY, "--max-degree", "2")
    assert ran.out.startswith("edges: 8 (8 to 8)") and "more than 2 edges" in ran.out
    ran = ties.run("graph", "triangles", "friends", *EXACTLY)
    assert ran.code == 1 and "sf.Edge" in ran.err
    ran = ties.run("query", "SELECT COUNT(*) FROM friends", "--epsilon", "1")
    assert ran.code == 1 and "graph.ask" in ran.err
    assert "epsilon 10000 spent" in ties.run("budget").out


def test_a_preview_is_free(ties: Shell) -> None:
    ran = ties.run("graph", "triangles", "ties", "--epsilon", "1", "--preview")
    assert ran.code == 0 and "Cost: epsilon = 1." in ran.out
    form = json.loads(
        ties.run("graph", "edges", "ties", "--rho", "1", "--preview", "--format", "json").out
    )
    assert form["cost"]["rho"] == "1" and form["expected"]
    assert "epsilon 0 spent" in ties.run("budget").out


def test_json_csv_arrow_and_a_plot_are_written(ties: Shell) -> None:
    asked = ("graph", "degrees", "ties", *EXACTLY)
    form = json.loads(ties.run(*asked, "--format", "json").out)
    assert form["degrees"] == [[2, 8]] and len(form["charge_id"]) == 32
    rows = list(csv.reader(io.StringIO(ties.run(*asked, "--format", "csv").out)))
    assert ties.run(*asked, "--format", "csv", "--excel").out.startswith("\ufeff")
    assert rows == [["degree", "nodes"], ["2", "8"]]
    output, plot = (str(ties.folder / name) for name in ("d.arrow", "d.svg"))
    ran = ties.run(*asked, "--format", "arrow", "--output", output, "--save-plot", plot)
    assert (ran.code, ran.out) == (0, "")
    assert pa.ipc.open_stream((ties.folder / "d.arrow").read_bytes()).read_all().num_rows == 1
    assert (ties.folder / "d.svg").read_text().startswith("<svg")


def test_a_synthetic_graph_is_written_to_a_file(ties: Shell) -> None:
    path = str(ties.folder / "like.csv")
    ran = ties.run("graph", "synthesize", "ties", *EXACTLY, "--output", path)
    assert ran.code == 0 and ran.out.startswith("synthetic graph: 8 nodes, ")
    assert (ties.folder / "like.csv").read_text().splitlines()[0] == "a,b"
    assert ties.run("graph", "synthesize", "ties", "--epsilon", "1", "--preview").code == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ("synthesize", "ties", "--epsilon", "1"),
        ("synthesize", "ties", "--epsilon", "1", "--output", "g.txt"),
        ("edges", "ties"),
        ("edges", "ties", "--epsilon", "1", "--max-degree", "0"),
        ("edges", "ties", "--epsilon", "1", "--output", "ties.csv"),
        ("edges", "persons", "--epsilon", "1"),
        ("edges", "nothing", "--epsilon", "1"),
    ],
)
def test_wrong_use_is_refused_free(ties: Shell, wrong: tuple[str, ...]) -> None:
    ran = ties.run("graph", *wrong)
    assert ran.code in (1, 2) and ran.err
