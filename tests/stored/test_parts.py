# SPDX-License-Identifier: Apache-2.0
"""What is stored beside the forms of questions is written as before, and read back."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sfumato.ledger.pieces import Pieces
from sfumato.ledger.pins import Known
from sfumato.ledger.store.rows import _columns
from sfumato.telemetry.oracles.form import KINDS
from sfumato.telemetry.task import task_from_bytes
from tests.stored import numbers, parts, questions
from tests.stored.world import World

MADE = dict(parts.makers())


@pytest.mark.parametrize("name", MADE)
def test_a_text_is_written_as_before(name: str) -> None:
    assert MADE[name]() == parts.pinned()[name]


def test_every_text_is_pinned() -> None:
    assert set(MADE) == set(parts.pinned())


@pytest.mark.parametrize("path", sorted(questions.MODELS.iterdir()), ids=lambda path: path.stem)
def test_a_model_of_before_gives_equal_numbers(path: Path) -> None:
    assert near(numbers.of_model(path), parts.read("numbers.json")[path.stem])


def near(one: object, other: object) -> bool:
    """Whether numbers in lists are equal but for the last digits, which a processor decides."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(near, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(near, one.values(), other.values()))
    if isinstance(one, float):
        return one == pytest.approx(other, rel=1e-9)
    return one == other


def test_a_task_of_every_oracle_has_its_hash() -> None:
    texts = parts.read("telemetry.json")
    hashes = {name: task_from_bytes(text.encode()).hash.hex() for name, text in texts.items()}
    assert hashes == parts.read("hashes.json")
    assert {json.loads(text)["oracle"]["kind"] for text in texts.values()} == set(KINDS)


def test_the_rows_of_a_ledger_of_before_are_read(stored_world: World) -> None:
    place = stored_world.folder / questions.LEDGER
    with closing(sqlite3.connect(f"file:{place}?mode=ro", uri=True)) as ledger:
        for table, kind in parts.ROWS.items():
            columns = ", ".join(_columns(kind))
            ledger.execute(f"SELECT {columns} FROM {table} LIMIT 1").fetchall()


def test_progress_and_known_ledgers_of_before_are_read_back(tmp_path: Path) -> None:
    stored = parts.pinned()
    assert Pieces.from_text(stored["pieces"]) == parts.PIECES
    (tmp_path / "known.json").write_text(stored["pin"], encoding="utf-8")
    assert Known(tmp_path / "known.json").find("a place") == parts.PIN
