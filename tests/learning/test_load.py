# SPDX-License-Identifier: Apache-2.0
"""Files that are no models are refused, whatever is in them."""

from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import WrongUse
from sfumato.learning.load import load

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
]


@pytest.mark.parametrize("content", DAMAGED)
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "x").write_text(content)
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
