# SPDX-License-Identifier: Apache-2.0
"""Integer layers: each cell is in one block, with the coefficient 1 or -1."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import WrongUse
from sfumato.synopsis.layers import Layer
from tests.synopsis.matrices import matrix

LAYERS = st.one_of(
    st.builds(Layer, st.integers(1, 9)),
    st.builds(lambda half: Layer(2 * half, halves=True), st.integers(1, 5)),
)


@given(LAYERS, st.integers(1, 20))
def test_each_cell_is_in_one_block_with_the_coefficient_1_or_1(layer, cells):
    coefficients = matrix(layer, cells)
    assert coefficients.shape == (layer.size(cells), cells)
    assert (np.abs(coefficients).sum(axis=0) == 1).all()
    blocks = np.abs(coefficients).argmax(axis=0)
    assert blocks.tolist() == [cell // layer.width for cell in range(cells)]


@given(LAYERS, st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=20))
def test_a_layer_is_the_sum_that_its_docstring_says(layer, cells):
    found = layer.apply(np.array(cells, dtype=np.int64)).tolist()
    for block, number in enumerate(found):
        inside = cells[block * layer.width : (block + 1) * layer.width]
        half = layer.width // 2
        minus = sum(inside[half:]) if layer.halves else -sum(inside[layer.width :])
        whole = sum(inside[:half]) if layer.halves else sum(inside)
        assert number == whole - minus


def test_odd_halves_and_empty_blocks_are_refused():
    for width, halves in ((0, False), (-1, False), (3, True), (1, True)):
        with pytest.raises(WrongUse):
            Layer(width, halves=halves)
