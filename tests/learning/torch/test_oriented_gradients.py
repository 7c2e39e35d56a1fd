# SPDX-License-Identifier: Apache-2.0
"""Oriented gradients against a slow version in numpy, and what they say of simple pictures."""

from typing import Any

import numpy as np
import pytest
import torch

from sfumato.errors import WrongUse
from sfumato.learning.torch.oriented_gradients import OrientedGradients


def padded(values: Any, by: int) -> Any:
    return np.pad(values, by)


def slow(picture: Any) -> Any:
    """One picture, pixel by pixel, in float64."""
    places = np.arange(-3, 4)
    bell = np.exp(-(places**2) / (2 * 0.8**2))
    bell /= bell.sum()
    slope = places * bell / np.abs(places * bell).sum()
    height, width = picture.shape
    wide = padded(picture, 3)
    strength = np.zeros((8, height, width))
    for row in range(height):
        for column in range(width):
            around = wide[row : row + 7, column : column + 7]
            right, down = bell @ around @ slope, slope @ around @ bell
            length = np.hypot(right, down)
            for way in range(8):
                along = right * np.cos(way * np.pi / 4) + down * np.sin(way * np.pi / 4)
                strength[way, row, column] = length * max(along / max(length, 1e-12), 0) ** 3
    pyramid = np.convolve(np.ones(4), np.ones(4)) / 16
    size = [(side + 4 - 7) // 3 + 1 for side in (height, width)]
    cells = np.zeros((8, *size))
    for way in range(8):
        wider = padded(strength[way], 2)
        for row, column in np.ndindex(*size):
            part = wider[3 * row : 3 * row + 7, 3 * column : 3 * column + 7]
            cells[way, row, column] = pyramid @ part @ pyramid
    squares = padded((cells**2).sum(0), 1)
    for row, column in np.ndindex(*size):
        near = squares[row : row + 3, column : column + 3].sum()
        cells[:, row, column] = np.sqrt(cells[:, row, column] / np.sqrt(near + 0.05**2))
    return cells.ravel()


def test_numbers_are_those_of_plain_sums() -> None:
    pictures = np.random.default_rng(1).uniform(size=(2, 12, 17))
    features = OrientedGradients(12, 17)
    found = features(torch.from_numpy(pictures.reshape(2, -1)).float()).numpy()
    assert found.shape == (2, 8 * 4 * 5) and found.min() >= 0 and found.max() <= 1
    for row, picture in zip(found, pictures, strict=True):
        assert np.abs(row - slow(picture)).max() < 2e-3
    assert not list(features.parameters()) and not features.state_dict()


def test_an_edge_has_its_direction() -> None:
    picture = torch.zeros(16, 16)
    picture[:, 8:] = 1
    for turned, way in ((picture, 0), (picture.T, 2), (1 - picture, 4), (1 - picture.T, 6)):
        found = OrientedGradients(16, 16)(turned.reshape(1, -1)).reshape(8, 5, 5)
        assert int(found[:, 2, 2].argmax()) == way
    assert not OrientedGradients(16, 16)(torch.zeros(1, 256)).isnan().any()


@pytest.mark.parametrize("sides", [(7, 28), (28, 65), (28.0, 28), (True, 28)])
def test_sides_are_whole_numbers(sides: Any) -> None:
    with pytest.raises(WrongUse, match="side"):
        OrientedGradients(*sides)
