# SPDX-License-Identifier: Apache-2.0
"""The part of the demo of learning that needs PyTorch: ``python -m sfumato.examples.demo_pictures``.

A network reads pictures of digits; the argument is a folder for its ledger.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

from sfumato.examples.learning_rows import digits
from sfumato.learning.fit import fit
from sfumato.learning.order import Poisson
from sfumato.learning.torch.network import Network
from sfumato.learning.torch.optimizers import Adam
from sfumato.privacy.budget import Budget
from sfumato.query.connect import connect

_PIXELS, _HIDDEN, _CLASSES = 64, 32, 10
_EPSILON, _DELTA = 3, "1e-5"
# About as many pictures as are private; a public number.
_SIZE = 1350


def told(folder: Path) -> str:
    """Trains the network on the private pictures; returns a sentence on its accuracy."""
    private, held_out = digits()
    with connect(
        {"pictures": private},
        dataset="digits",
        budget=Budget(epsilon=_EPSILON, delta="2e-5"),
        ledger=folder / "digits.db",
    ) as session:
        model = fit(
            session,
            network(),
            "SELECT picture, digit FROM pictures",
            label="digit",
            epsilon=_EPSILON,
            delta=_DELTA,
        )
    right = np.array(model.predict(held_out)) == np.array(held_out["digit"].to_pylist())
    where = f"{right.mean():.1%} of {len(right)} pictures that it did not see"
    return f"{where} (a guess: 10%), trained on {_SIZE:,} at epsilon {_EPSILON}\n{model.cost}"


def network() -> Network:
    """A network with one hidden layer of ReLUs, the same at each call."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(_PIXELS, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, _CLASSES))
    loss = nn.CrossEntropyLoss(reduction="none")
    order = Poisson("0.2")
    return Network(module, loss, Adam(0.02), order=order, clip=1, steps=80, size=_SIZE)


if __name__ == "__main__":
    print(told(Path(sys.argv[1])))
