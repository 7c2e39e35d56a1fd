# SPDX-License-Identifier: Apache-2.0
"""Files that are no models are refused, whatever is in them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.errors import WrongUse
from sfumato.learning.load import load
from tests.learning.test_clusters import MODEL as CLUSTERS
from tests.learning.test_components import MODEL as COMPONENTS
from tests.learning.test_model import model

SUM = model()

DAMAGED = [
    "",
    "{}",
    "[1]",
    "7",
    '{"format": 9}',
    '{"format": 1}',
    '{"format": 1, "kind": "forest"}',
    '{"format": 1, "kind": ["clusters"]}',
    '{"format": 1, "kind": "clusters", "columns": 3}',
    "[" * 100_000,
]


@pytest.mark.parametrize("content", DAMAGED)
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "x").write_text(content)
    with pytest.raises(WrongUse, match="no model"):
        load(tmp_path / "x")


SPOILT = [
    (SUM, ("columns", 0, "length"), 10**30),
    (SUM, ("columns", 0, "step"), "0"),
    (SUM, ("columns", 0, "name"), "pay"),
    (SUM, ("columns", 2, "texts"), [1, 2]),
    (SUM, ("features", 0, "edges"), [50, 20]),
    (SUM, ("features", 1, "upper"), 0),
    (SUM, ("features", 1, "kind"), "Model"),
    (SUM, ("features", 2, "count"), 2.5),
    (SUM, ("scores", 0, 0), float("nan")),
    (SUM, ("scores", 0), [1.0]),
    (SUM, ("classes",), ["no"]),
    (SUM, ("bounds",), [0, "1"]),
    (SUM, ("cost", "items"), [{"release": 1}]),
    (SUM, ("cost", "items"), [["release"]]),
    (SUM, ("cost", "delta"), "x"),
    (CLUSTERS, ("upper", 0), 0),
    (CLUSTERS, ("sizes",), [1.0]),
    (CLUSTERS, ("columns", 2, "length"), 3),
    (COMPONENTS, ("axes", 0, 0), 1e300),
    (COMPONENTS, ("mean",), [0.5]),
]


@pytest.mark.parametrize(("model", "path", "value"), SPOILT)
def test_a_file_that_was_edited_is_refused(
    tmp_path: Path, model: Any, path: tuple[Any, ...], value: Any
) -> None:
    """What loads can be applied: no row, and no frame, makes it fail."""
    model.save(tmp_path / "x")
    load(tmp_path / "x")
    stored = json.loads((tmp_path / "x").read_text())
    inner = stored
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    (tmp_path / "x").write_text(json.dumps(stored))
    with pytest.raises(WrongUse, match="no model"):
        load(tmp_path / "x")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(range(256)))
    with pytest.raises(WrongUse, match="no model"):
        load(tmp_path / "x")


def test_the_file_of_a_network_says_what_reads_it(tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as file:
        np.savez(file, weights=np.zeros(3))
    with pytest.raises(WrongUse, match="weights of a network") as refused:
        load(tmp_path / "x")
    assert "torch.load(path, module)" in str(refused.value)
