# SPDX-License-Identifier: Apache-2.0
"""Blocks: bounds of lengths against exact ones, integers within them, sums of Python's integers."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import WrongUse
from sfumato.learning.torch import blocks as module
from sfumato.learning.torch.blocks import Lookups, Products, Vectors
from tests.contracts.effort import examples

ROWS = 5


def drawn(seed: int, *shape: int) -> Any:
    random = np.random.default_rng(seed)
    scale = 10.0 ** random.integers(-6, 6, (ROWS, *[1] * (len(shape) - 1)))
    return torch.from_numpy((random.normal(size=shape) * scale).astype(np.float32))


def exact(kind: str, seed: int, positions: int, width: int, height: int) -> tuple[Any, Any]:
    """A block, and the gradients of its rows in float64."""
    out = drawn(seed, ROWS, positions, height)
    if kind == "products":
        into = drawn(seed + 1, ROWS, positions, width)
        return Products(into, out), torch.einsum("rtm,rtn->rmn", out.double(), into.double())
    indices = torch.from_numpy(np.random.default_rng(seed).integers(0, width, (ROWS, positions)))
    one_hot = torch.nn.functional.one_hot(indices, width).double()
    return Lookups(indices, out, width), torch.einsum("rtn,rtm->rnm", one_hot, out.double())


@given(
    st.sampled_from(["products", "lookups"]),
    st.integers(0, 10**6),
    st.sampled_from([1, 2, 9]),
    st.sampled_from([1, 3, 40]),
    st.sampled_from([1, 4]),
)
@settings(deadline=None, max_examples=examples(1))
def test_integers_of_a_row_are_as_near_to_its_gradient_as_is_said(
    kind: str, seed: int, positions: int, width: int, height: int
) -> None:
    require_near(*exact(kind, seed, positions, width, height), positions, width)


def test_integers_in_float32_are_as_near() -> None:
    block, gradients = exact("products", 3, 1, 400, 200)
    assert block.unit == module.COARSE
    require_near(block, gradients, 1, 400)
    block, gradients = exact("products", 4, 1, 784, 10)
    assert block.unit == 1 and block._inputs.dtype is torch.float32
    require_near(block, gradients, 1, 784)


def require_near(block: Any, gradients: Any, positions: int, width: int) -> None:
    squares = gradients.square().sum((1, 2)).numpy()
    # inputs are rounded first
    coarse = 2.0**-5 if block.unit == module.COARSE else 2.0**-10 * np.sqrt(positions * width)
    slack = coarse * block.amounts
    assert bool((block.squares >= squares - slack).all())
    factors = 2.0**29 / np.sqrt(block.amounts).clip(min=1e-300)
    for row in range(ROWS):
        only = np.where(np.arange(ROWS) == row, factors, 0.0)
        found = block.total(block.integers(only)).double()
        assert bool((found == found.round()).all())
        length = float(found.square().sum().sqrt()) * block.unit
        assert length <= float(only[row] * np.sqrt(block.squares[row])) + block.rounding
        off = found * block.unit / only[row] - gradients[row].flatten()
        near = 2e-2 if block.unit == module.COARSE else 1e-3
        assert float(off.square().sum().sqrt()) <= near * float(np.sqrt(block.amounts[row]))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_short_floats_of_autocast_are_bounded_as_exactly(kind: Any) -> None:
    ones = torch.ones(ROWS, 1, 3, dtype=kind)
    wide = torch.full((ROWS, 1, 300), 1.1).to(kind)
    blocks = [Vectors(ones), Products(wide, wide.float())]
    # clips that no short float holds
    for clip in (2.0**29, 2.0**29 * 1.003, 2.0**29 * 1.006):
        for block in blocks:
            factors = clip / np.sqrt(block.squares)
            only = np.where(np.arange(ROWS) == 1, factors, 0.0)
            found = float(block.total(block.integers(only)).double().square().sum().sqrt())
            assert 0.9 * clip < found * block.unit <= clip + block.rounding


def test_rows_that_are_not_finite_have_no_bound_and_add_nothing() -> None:
    for broken in (torch.inf, torch.nan):
        into, out = drawn(1, ROWS, 2, 3), drawn(2, ROWS, 2, 4)
        into[1, 0, 0], out[2, 1, 1] = broken, broken
        for block, rows in ((Products(into, out), (1, 2)), (Vectors(out), (2,))):
            bad = np.zeros(ROWS, np.bool)
            bad[list(rows)] = True
            assert (~np.isfinite(block.squares) == bad).all()
            factors = np.where(bad, 0.0, 1e6)
            assert bool(torch.isfinite(block.total(block.integers(factors))).all())


def test_a_layer_that_is_too_large_is_refused() -> None:
    with pytest.raises(WrongUse, match="positions"):
        Products(torch.zeros(1, 1, 1).expand(1, 2**13, 2**14), torch.zeros(1, 2**13, 1))
    with pytest.raises(WrongUse, match="positions"):
        Products(torch.zeros(257, 1, 1), torch.zeros(257, 1, 1))


def many(seed: int) -> Any:
    """A block of 256 rows in float32, and the factors that clip them."""
    random = np.random.default_rng(seed)
    into, out = random.normal(size=(256, 1, 400)), random.normal(size=(256, 1, 200))
    block = Products(torch.from_numpy(into).float(), torch.from_numpy(out).float())
    return block, 2.0**29 / np.sqrt(block.amounts)


def in_whole_numbers(integers: Any) -> Any:
    """The same product of 64-bit integers."""
    inputs, outputs = (each[:, 0].numpy().astype(np.int64) for each in integers)
    return (outputs.T @ inputs).flatten()


def test_a_product_in_float32_is_exact() -> None:
    block, factors = many(1)
    integers = block.integers(factors)
    found = block.total(integers)
    assert found.dtype is torch.float32
    assert (found.numpy().astype(np.int64) == in_whole_numbers(integers)).all()


def test_longer_columns_go_through_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    block, factors = many(2)
    # all rows push one output the same way: a column that is as long as it can be
    block._inputs.abs_()
    block._outputs[:] = 1e-3
    block._outputs[:, :, 7] = 20
    integers = block.integers(factors / 1.4)
    found = block.total(integers)
    assert found.dtype is torch.float64
    assert (found.numpy().astype(np.int64) == in_whole_numbers(integers)).all()
    # the broken version adds them up in float32
    monkeypatch.setattr(module, "_fits_single", lambda *_: True)
    assert (block.total(integers).numpy().astype(np.int64) != in_whole_numbers(integers)).any()


def test_shorter_floats_by_a_setting_of_torch_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    block, factors = many(3)
    integers = block.integers(factors)
    with torch.autocast("cpu"):
        assert (block.total(integers).numpy().astype(np.int64) == in_whole_numbers(integers)).all()
        monkeypatch.setattr(module, "_is_exact", lambda values: True)
        found = block.total(integers).double().numpy().astype(np.int64)
    assert (found != in_whole_numbers(integers)).any()


def test_lengths_hold_where_subnormal_numbers_are_flushed_to_zero() -> None:
    # squares of outputs are below the least normal number of float32
    into, out = torch.full((2, 1, 512), 2.0**54), torch.full((2, 1, 2048), 2.0**-63.5)
    truth = into.double().square().sum((1, 2)) * out.double().square().sum((1, 2))
    torch.set_flush_denormal(True)
    try:
        block = Products(into, out)
    finally:
        torch.set_flush_denormal(False)
    assert block.unit == module.COARSE
    assert (block.squares >= truth.numpy() * (1 - 2.0**-8)).all()
