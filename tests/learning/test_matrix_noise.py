# SPDX-License-Identifier: Apache-2.0
"""What is computed of the rows of a stream: the sums that went in, with less noise in totals."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import WrongUse
from sfumato.learning.matrix_noise import Decoder, MatrixNoise, turned
from sfumato.mechanisms.encoder import SquareRoot
from sfumato.privacy import Distance, Norm, Relation
from sfumato.query.cycle import Cycle

APART = Distance(Norm.L2, Fraction(2**40), Relation.ADD_REMOVE)


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 2**32))
def test_rows_are_solved_for_their_sums(steps: int, bands: int, seed: int) -> None:
    bands = min(steps, bands)
    cycle = Cycle(APART, 2, steps, 1, bands)
    sums = np.random.default_rng(seed).integers(-(2**40), 2**40, (steps, 2))
    memory, decoder = cycle.encoder.begin(2), Decoder(bands)
    for each in sums:
        memory, row = cycle.row(memory, each)
        # rows are rounded once, and the inverse adds that up
        assert np.abs(decoder.next(row) - each).max() <= steps


def worst_total(steps: int, separation: int, bands: int) -> float:
    """The standard error of the last running total, for noise that hides a unit equally well."""
    cycle = Cycle(APART, 1, steps, separation, bands)
    weights = SquareRoot(steps, bands).coefficients / SquareRoot.unit
    encoder = np.zeros((steps, steps))
    for age, weight in enumerate(weights):
        encoder += np.diag(np.full(steps - age, weight), -age)
    totals = np.linalg.solve(encoder.T, np.ones(steps))
    noise = float(cycle.distance(cycle.participations).value) ** 0.5
    return float(noise * np.linalg.norm(totals))


def test_running_totals_have_less_noise_than_with_independent_noise() -> None:
    # ten steps of a unit among a hundred
    assert worst_total(100, 10, 1) / worst_total(100, 10, 10) == pytest.approx(2.47, abs=0.01)
    assert worst_total(400, 40, 1) / worst_total(400, 40, 40) == pytest.approx(4.35, abs=0.01)


@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 9))
def test_pieces_are_whole_turns(steps: int, separation: int, checkpoints: int) -> None:
    sizes = turned(steps, separation, checkpoints)
    assert sum(sizes) == steps and min(sizes) >= 1 and len(sizes) <= checkpoints
    assert all(size % separation == 0 for size in sizes[:-1])
    # no unit takes part more often than in one stream of all steps
    assert sum(-(-size // separation) for size in sizes) == -(-steps // separation)


@pytest.mark.parametrize("bands", [0, -1, True, 1.5, "8", None, 4097])
def test_bands_are_a_number(bands: object) -> None:
    with pytest.raises(WrongUse, match="bands"):
        MatrixNoise(bands)  # type: ignore[arg-type]
