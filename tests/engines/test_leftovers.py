# SPDX-License-Identifier: Apache-2.0
"""What still holds rows: layouts, and the folders of processes that were killed."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sfumato.engines import leftovers
from sfumato.engines.leftovers import held_rows, spill_prefix

SESSION = """
import sys
import sfumato as sf
from sfumato.engines.duckdb import DuckDB
engine = DuckDB({"t": sf.Table(sys.argv[1], columns={"a": sf.Integer(0, 9)})})
print(engine._spill, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of one's own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def test_what_a_killed_session_has_left_is_listed_and_what_a_running_one_has_is_not(
    tmp_path: Path,
) -> None:
    data = tmp_path / "t.csv"
    data.write_text("a\n1\n")
    command = [sys.executable, "-c", SESSION, str(data)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as session:
        assert session.stdout is not None
        folder = Path(session.stdout.readline().strip())
        (folder / "spilled").write_bytes(b"rows")
        assert held_rows(None) == []
        session.send_signal(signal.SIGKILL)
        session.wait()
    (found,) = held_rows(None)
    assert (found.path, found.size, "has ended" in found.what) == (folder, 4, True)


def test_an_empty_folder_holds_no_rows(temporary: Path) -> None:
    folder = temporary / f"{leftovers.SPILL}0x-a"
    folder.mkdir()
    assert held_rows(None) == []
    (folder / "spilled").write_bytes(b"r")
    assert [held.path for held in held_rows(None)] == [folder]


def test_layouts_are_listed_with_what_was_left_beside_them(tmp_path: Path) -> None:
    place = tmp_path / "layouts"
    (place / f"{leftovers.SPILL}0x-a").mkdir(parents=True)
    (place / f"{leftovers.SPILL}0x-a" / "rows").write_bytes(b"123")
    (place / "sfumato-t-1.parquet").write_bytes(b"12345")
    (place / "layout.json").write_text("{}")
    assert [(each.path.name, each.size) for each in held_rows(place)] == [
        ("sfumato-t-1.parquet", 5),
        (f"{leftovers.SPILL}0x-a", 3),
    ]


def test_a_folder_of_this_process_is_in_use(temporary: Path) -> None:
    (temporary / f"{spill_prefix()}x").mkdir()
    (temporary / f"{spill_prefix()}x" / "rows").write_bytes(b"1")
    assert held_rows(None) == []
    assert str(os.getpid()) in spill_prefix()
