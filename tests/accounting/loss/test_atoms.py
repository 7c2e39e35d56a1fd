# SPDX-License-Identifier: Apache-2.0
"""Atoms beside enumeration of the laws that they stand for; the rest is in test_pair."""

import math
from fractions import Fraction

import pytest

from sfumato.accounting.loss.atoms import Atoms
from sfumato.errors import InvalidNumber
from tests.accounting.loss import oracle


@pytest.mark.parametrize("shift", [1, 2, 5])
def test_both_laws_of_atoms_sum_to_one(shift: int) -> None:
    for atoms in (
        Atoms.discrete_laplace(0.3, shift),
        Atoms.discrete_gaussian(9.0, shift),
        Atoms.response(0.7, 5),
    ):
        losses, masses = atoms.atoms()
        assert masses.sum() == pytest.approx(1, rel=1e-13)
        assert (masses * [math.exp(loss) for loss in losses]).sum() == pytest.approx(1, rel=1e-12)
        assert atoms.worst == max(losses) and not atoms.continuous and atoms.symmetric


def test_atoms_of_a_response_are_its_law() -> None:
    law = oracle.response_law(Fraction(1, 2), 4)
    truth = float(oracle.delta_of(law, oracle.number(Fraction(1, 2)), 0.1).mid())
    losses, masses = Atoms.response(0.5, 4).atoms()
    found = sum(
        mass * max(math.exp(loss) - math.exp(0.1), 0)
        for loss, mass in zip(losses, masses, strict=True)
    )
    assert found == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("losses", [(), (400.0,), (-301.0, 1.0)])
def test_losses_that_floats_do_not_hold_are_refused(losses: tuple[float, ...]) -> None:
    with pytest.raises(InvalidNumber):
        Atoms(losses, tuple(0.5 for _ in losses), 1.0)
