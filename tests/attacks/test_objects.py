# SPDX-License-Identifier: Apache-2.0
"""No object that a session hands out holds a row, however deep one looks.

Rows of canaries, through every kind of task; each object that comes back is walked, written to a
file where it can be, and what is written is read.
"""

from collections import deque
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from torch import nn

import sfumato as sf
from sfumato.learning.features import Floats
from sfumato.learning.torch import recorded
from sfumato.learning.torch.recorded import Recorded
from tests.contracts.rooms import KINDS, session
from tests.contracts.walk import ENGINE, Canaries, sightings

TEXT = "canary4711"
# codes of ``n``, and of ``a`` on its lattice; and shares of their declared ranges
CANARIES = Canaries(TEXT, (8_675_309, 5_550_123, 777_777, 123_457), fractions=(0.777777, 0.123457))
ROWS = [
    (
        f"{TEXT} {place}",
        (777.777, 123.457)[place % 2],
        (8_675_309, 5_550_123)[place % 2],
        place % 10,
        ("F", TEXT)[place % 2],
        f"{TEXT} {place}",
        "2026-11-03",
        ("no", "yes")[place % 2],
    )
    for place in range(20)
]


def found_in(folder: Path, kind: str) -> list[str]:
    """Where canaries are seen in what a kind of task hands out."""
    with session(folder, ROWS, most=1) as here:
        made = KINDS[kind](here)
        parts = made if isinstance(made, tuple | list) else [made]
        found = [line for part in parts for line in sightings(part, kind, CANARIES)]
        for place, part in enumerate(parts):
            found += _saved(part, folder / f"saved {place}")
    return found


def _saved(part: Any, path: Path) -> list[str]:
    """Where canaries are seen in the file that an object writes."""
    if not hasattr(part, "save") or isinstance(part, sf.Session):
        return []
    part.save(path)
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return [f"file {each.name}" for each in files if CANARIES.in_bytes(each.read_bytes())]


# What goes on asking, and the frames of an error that was raised while asking, have the engine of
# the session.
ASKING = ("stream", "refusals")


@pytest.mark.parametrize("kind", KINDS)
def test_no_object_that_a_session_hands_out_holds_a_row(kind: str, tmp_path: Path) -> None:
    found = found_in(tmp_path, kind)
    assert [line for line in found if not (kind in ASKING and line.endswith(ENGINE))] == []


def planted(rows: "np.ndarray[Any, Any]") -> dict[str, object]:
    """Objects that hold rows, each in another way."""

    class Slotted:
        __slots__ = ("inner",)

        def __init__(self) -> None:
            self.inner = rows

    def closed() -> object:
        return rows

    def defaults(given: object = rows) -> object:
        return given

    cached = lru_cache(lambda key: rows)
    cached(1)
    return {
        "a slot": Slotted(),
        "a closure": closed,
        "a default": defaults,
        "an argument": partial(print, rows),
        "a method": rows.sum,
        "a cache": cached,
        "a queue": deque([[rows]]),
        "a proxy": MappingProxyType({"rows": (rows,)}),
        "an iterator": iter([rows]),
        "a generator": (each for each in [rows]),
        "a tensor": {1: torch.from_numpy(rows)},
        "a table": [pa.table({"n": rows})],
        "a frame": pd.DataFrame({"n": rows}),
        "a text": [f"no row with {rows[0]} is known"],
        "bytes": [rows.tobytes()],
        "a cause": RuntimeError(str(rows[0])),
    }


@pytest.mark.parametrize("way", planted(np.array([1])))
def test_a_row_is_seen_wherever_it_is(way: str) -> None:
    assert sightings(planted(np.array([8_675_309, 7]))[way], way, CANARIES)
    assert not sightings(planted(np.array([8_675_300, 7]))[way], way, CANARIES)


def of_the_module_that_saw_rows(self: Recorded, weights: Floats) -> nn.Module:
    """A model made of the module that was trained."""
    made: nn.Module = self.module
    recorded._fill(recorded._trained(made), weights)
    return made.eval()


def test_a_model_made_of_the_module_that_saw_rows_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Recorded, "plain", of_the_module_that_saw_rows)
    assert any("last" in line for line in found_in(tmp_path, "network that keeps rows"))
