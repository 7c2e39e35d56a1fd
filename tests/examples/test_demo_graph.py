# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo graph``, whole, once, with fewer guesses."""

import contextlib
import io
from pathlib import Path

import pytest

from sfumato.cli.main import run
from sfumato.examples import demo_graph


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """What the demo printed, and its page; it leaves nothing else."""
    folder, out = tmp_path_factory.mktemp("demo"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.chdir(folder)
        patch.setenv("COLUMNS", "200")
        patch.setattr(demo_graph, "RUNS", 4)
        assert run(["demo", "graph"]) == 0
    assert [path.name for path in folder.iterdir()] == ["demo-graph.html"]
    return out.getvalue(), (folder / "demo-graph.html").read_text(encoding="utf-8")


def test_both_units_stand_side_by_side(shown: tuple[str, str]) -> None:
    printed, _ = shown
    for name in ("edges", "edges, limit 2,048", "degrees", "triangles"):
        assert name in printed
    assert "12,572" in printed and "6,584" in printed and "refused" in printed


def test_the_hub_is_seen_under_an_edge(shown: tuple[str, str]) -> None:
    printed, page = shown
    assert "The hub has 1,458 edges" in printed
    assert "sf.Edge: right in 4 of 4" in printed
    assert "73.2%" in page


def test_true_and_synthetic_degrees_are_drawn(shown: tuple[str, str]) -> None:
    printed, page = shown
    assert "highest degree" in printed
    assert "<svg" in page and "synthetic" in page and "1,024 to 2,047" in page


def test_the_ties_are_simple_and_come_with_their_licence() -> None:
    pairs = demo_graph._pairs()
    assert pairs.shape == (12_572, 2)
    assert len({tuple(sorted(pair)) for pair in pairs.tolist()}) == 12_572
    assert (pairs[:, 0] != pairs[:, 1]).all()
    folder = Path(demo_graph.__file__).parent / "ties"
    assert "Redistribution and use" in (folder / "README.md").read_text(encoding="utf-8")
