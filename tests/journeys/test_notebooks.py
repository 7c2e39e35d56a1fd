# SPDX-License-Identifier: Apache-2.0
"""A data scientist runs the notebooks of examples/ from top to bottom, in a kernel of their own."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tests.architecture.structure import ROOT

EXAMPLES = ROOT / "examples"
# What a reader must come to see, in this order: kinds of output, and words in their text.
SEEN = {
    "publish": [
        ("text/html", "people"),
        ("text/html", "hours"),
        ("text/html", "decade"),
        ("image/svg+xml", "<svg"),
        ("text/html", "rich"),
        ("text/html", "95%"),
        ("text/html", "gate"),
    ],
    "synthetic": [
        ("text/plain", "nothing was charged"),
        ("text/html", "education"),
        ("text/html", "income_low"),
        ("text/html", "mean"),
        ("text/html", "No row is that of a person"),
    ],
    "boundary": [("text/plain", "attacker right at most"), ("image/svg+xml", "attacker")],
}


def ran(notebook: Any) -> Any:
    """A notebook after all its cells have run."""
    where = {"metadata": {"path": EXAMPLES}}
    return NotebookClient(notebook, timeout=120, kernel_name="python3", resources=where).execute()


def outputs(notebook: Any) -> list[Any]:
    """What stands below its cells."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [each for cell in cells for each in cell.outputs]


@pytest.mark.parametrize("name", SEEN)
def test_a_notebook_runs_from_top_to_bottom(name: str) -> None:
    made = ran(nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4))
    shown = [each for each in outputs(made) if each.output_type == "execute_result"]
    assert len(shown) == len(SEEN[name])
    for each, (kind, words) in zip(shown, SEEN[name], strict=True):
        assert words in each.data[kind], (kind, words, each.data)


def test_notebooks_are_kept_without_outputs() -> None:
    found = sorted(EXAMPLES.glob("*.ipynb"))
    assert [path.stem for path in found] == sorted(SEEN)
    for path in found:
        assert not outputs(nbformat.read(path, as_version=4))


def test_a_mistake_shows_the_message_and_the_own_line_alone() -> None:
    wrong = """import tempfile
import sfumato as sf
people = sf.Table({"age": [30]}, columns={"age": sf.Integer(0, 99)})
ledger = tempfile.mkdtemp() + "/l.db"
session = sf.connect({"people": people}, dataset="d", budget=sf.Budget(1), ledger=ledger)
session.query("SELECT AVG(wage) FROM people", epsilon="0.1")"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(wrong)])
    with pytest.raises(CellExecutionError) as failed:
        ran(notebook)
    assert "Allowed: age" in str(failed.value)
    assert "site-packages" not in str(failed.value)
    assert str(ROOT / "src") not in str(failed.value)


def test_this_page_names_every_notebook() -> None:
    page = (ROOT / "docs" / "tutorials" / "notebook.md").read_text("utf-8")
    for path in EXAMPLES.glob("*.ipynb"):
        assert f"examples/{Path(path).name}" in page
