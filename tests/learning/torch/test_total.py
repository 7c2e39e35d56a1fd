# SPDX-License-Identifier: Apache-2.0
"""Sums of chunks against Python's integers, with broken versions."""

from typing import Any

import numpy as np
import pytest
import torch

from sfumato.learning.torch import total as module
from sfumato.learning.torch.total import Total

WIDTH = 40
SINGLE, DOUBLE = (torch.float32, 2**24 - 1), (torch.float64, 2**45 - 1)


def added(total: Total, kind: Any, unit: int, seed: int) -> list[int]:
    """Adds a chunk with both ends of what it may hold; what it is in fine steps."""
    dtype, most = kind
    values = np.random.default_rng(seed).integers(-most // unit, most // unit, WIDTH, endpoint=True)
    if dtype is torch.float32:
        values = np.random.default_rng(seed).integers(-most, most, WIDTH, endpoint=True)
        values[:2] = most, -most
    total.add(torch.from_numpy(values).to(dtype), float(unit))
    return [int(value) * unit for value in values]


def written(total: Total, steps: int) -> list[int]:
    out = np.full(WIDTH, 7, np.int64)
    total.write(out, steps)
    return [int(each) for each in out]


CASES = [
    [],
    [(SINGLE, 256)],
    [(SINGLE, 1024)],
    [(DOUBLE, 1)],
    [(SINGLE, 256), (DOUBLE, 1), (SINGLE, 1024), (DOUBLE, 3)],
    [(DOUBLE, 1)] * 9 + [(SINGLE, 256)],
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("steps", [1, 256, 512, 4096])
def test_sums_are_exact_and_rounded_half_up(
    case: Any, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # so few are held in float64, and pieces end within a parameter
    monkeypatch.setattr(module, "_AT_ONCE", 4)
    monkeypatch.setattr(module, "PIECE", 16)
    total, wanted = Total(), [0] * WIDTH
    for seed, (kind, unit) in enumerate(case):
        chunk = added(total, kind, unit, seed)
        wanted = [sum(pair) for pair in zip(wanted, chunk, strict=True)]
    found = written(total, steps)
    assert found == [(2 * each + steps) // (2 * steps) for each in wanted]
    # nothing is changed by writing
    assert found == written(total, steps)


def test_what_float64_would_round_is_moved_before(monkeypatch: pytest.MonkeyPatch) -> None:
    # 257 chunks at the end of their range, and one more fine step: beyond 2^53
    for at_once, is_exact in ((2**8, True), (2**20, False)):
        monkeypatch.setattr(module, "_AT_ONCE", at_once)
        total = Total()
        for _ in range(257):
            total.add(torch.full((WIDTH,), 2.0**45 - 1, dtype=torch.float64), 1.0)
        assert (written(total, 1)[0] == 257 * (2**45 - 1)) == is_exact


def test_a_sum_that_is_rounded_in_its_own_floats_is_noticed() -> None:
    largest = np.float32(2**24 - 1)
    total, out = Total(), np.zeros(1, np.int64)
    total.add(torch.tensor([float(largest)]), 256.0)
    total.write(out, 256)
    assert out[0] == 2**24 - 1
    # the broken version adds the half to a float32
    assert int(np.floor(largest + np.float32(0.5))) == 2**24
