# SPDX-License-Identifier: Apache-2.0
"""Digits of MNIST under one account, as a user would: ``python -m benchmarks.systems.digits 1``.

The account has this epsilon and delta 1e-5, and pays for all that is learnt. Prints what a fit cost
and how many of the test pictures it tells right, as JSON.
"""

import json
import resource
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from torch import nn

import sfumato as sf
from benchmarks.systems.pictures import mnist
from benchmarks.worker import UNIT
from sfumato import learning as ln
from sfumato.learning import torch as lt
from sfumato.metadata.column import ColumnType

_SIDE, _CLASSES = 28, 10
# One setting for every epsilon, chosen on 10,000 of the training pictures: the share of the budget
# for the whitening, its directions; steps, rate and clip of the linear layer.
_WHITENING, _KEPT = Fraction(3, 10), 600
_STEPS, _RATE, _CLIP = 100, 150.0, "0.5"


def pictures(split: str) -> pa.Table:
    """The pictures of a split and their digits."""
    path = mnist()
    assert path is not None, "asked for only where it is"
    with np.load(path) as file:
        pixels, digits = file[f"x_{split}"].ravel(), file[f"y_{split}"]
    lists = pa.FixedSizeListArray.from_arrays(pa.array(pixels), _SIDE**2)
    return pa.table({"picture": lists, "digit": digits.astype(np.int64).astype(str)})


def fitted(session: sf.Session, size: int) -> lt.NetworkModel:
    """A linear layer on whitened, fixed features; all of the account is spent."""
    features = lt.OrientedGradients(_SIDE, _SIDE)
    rho = _WHITENING * Fraction(session.budget.left_rho)
    white = ln.fit(session, lt.Whitening(features, _KEPT), "SELECT picture FROM digits", rho=rho)
    head = nn.Linear(_KEPT, _CLASSES)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    network = lt.Network(
        nn.Sequential(features, white.layer, head),
        nn.CrossEntropyLoss(reduction="none"),
        lt.SGD(_RATE),
        clip=_CLIP,
        steps=_STEPS,
        size=size,
        checkpoints=1,
    )
    left = session.budget.left_rho
    return ln.fit(session, network, "SELECT picture, digit FROM digits", label="digit", rho=left)


def measured(epsilon: str) -> dict[str, float]:
    """One fit: accuracy in percent, seconds of the processor and of the clock, peak GB."""
    train, test = pictures("train"), pictures("test")
    columns: dict[str, ColumnType] = {
        "picture": sf.Array((_SIDE, _SIDE), 0, 255),
        "digit": sf.Category(*map(str, range(_CLASSES))),
    }
    with tempfile.TemporaryDirectory() as folder:
        tables = {"digits": sf.Table(train, columns=columns)}
        budget, ledger = sf.Budget(epsilon, "1e-5"), Path(folder) / "ledger.db"
        processor, clock = time.process_time(), time.perf_counter()
        with sf.connect(tables, dataset="mnist", budget=budget, ledger=ledger) as session:
            model = fitted(session, len(train))
        taken = time.process_time() - processor, time.perf_counter() - clock
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT / 1e9
    right = np.array(model.predict(test)) == test["digit"].to_numpy(zero_copy_only=False)
    accuracy = 100 * float(right.mean())
    return {"accuracy": accuracy, "CPU s": taken[0], "wall s": taken[1], "peak GB": peak}


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(measured(sys.argv[1])))
