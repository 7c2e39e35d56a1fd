# SPDX-License-Identifier: Apache-2.0
"""Steps of sfumato's networks, and ordinary steps of the same modules, in one process."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import torch

from benchmarks.systems import Call, Make
from benchmarks.systems.batches import CLASSES
from benchmarks.systems.steps import LOSS, SHAPES, codes, made, ordinary
from sfumato.engines.base import UnitRows
from sfumato.learning.torch import SGD
from sfumato.learning.torch.gradients import GradientSums, lattice_for
from sfumato.learning.torch.optimizers import Weights
from sfumato.learning.torch.reading import Input, Reading
from sfumato.learning.torch.recorded import Recorded
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.column import Column, Integer
from sfumato.noise import RoundedGaussian
from sfumato.plan.relation import Scan
from sfumato.plan.rows import BoundedRows, RowList
from sfumato.plan.value import Value
from sfumato.privacy.distance import Norm
from sfumato.privacy.unit import Relation
from sfumato.query.statistic import Opened

PACKAGES = ("sfumato", "numpy", "torch")


def _sums(name: str, rows: int) -> tuple[GradientSums, Opened]:
    """The statistic of a network, and rows that are opened for it."""
    torch.set_num_threads(1)
    shape = SHAPES[name]
    columns = tuple(Column(f"x{at}", Integer(0, 999)) for at in range(shape.width + 1))
    listed = RowList(Scan("rows", columns=columns), tuple(map(Value.of, columns)))
    plan = BoundedRows(listed, None, 1, Relation.ADD_REMOVE)
    inputs = tuple(Input(at, 0, shape.largest, is_class=shape.tokens) for at in range(shape.width))
    reading = Reading(inputs, Input(shape.width, 0, CLASSES - 1, is_class=True))
    network = Recorded(made(name), LOSS)
    lattice = lattice_for(network.width, Fraction(1), Fraction(1))
    opened = Opened(plan)
    opened._units = UnitRows(codes(name, rows), np.arange(rows + 1))
    return GradientSums(plan, reading, lattice, whole=False, network=network), opened


def _step(
    name: str,
    release: Callable[[AdditiveMechanism, np.ndarray], np.ndarray],
) -> Make:
    """What ``NetworkPiece.run`` does in a step, without the ledger."""

    def make(scale: float, rows: int) -> Call:
        sums, opened = _sums(name, rows)
        sigma = Fraction(round(float(sums.distance(Norm.L2).value) ** 0.5))
        mechanism, optimizer = AdditiveMechanism(RoundedGaussian(sigma)), SGD(0.1)
        states = [Weights.start(sums.network.start)]
        example = float(rows / sums.lattice.step)

        def step() -> None:
            now = sums.at(states[0].weights)
            released = release(mechanism, now.exact(opened))
            states[0] = optimizer.after(states[0], released / example)

        return step

    return make


def _exact(mechanism: AdditiveMechanism, exact: np.ndarray) -> np.ndarray:
    return exact


def _noisy(mechanism: AdditiveMechanism, exact: np.ndarray) -> np.ndarray:
    return mechanism.release_many(exact)


WORKS: dict[str, Make] = {
    **{f"{name}, ordinary": ordinary(name) for name in SHAPES},
    **{f"{name}, clipped": _step(name, _exact) for name in SHAPES},
    **{f"{name}, noisy": _step(name, _noisy) for name in SHAPES},
}
