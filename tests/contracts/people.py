# SPDX-License-Identifier: Apache-2.0
"""A small declared world for tests of questions: 40 people, two of each age from 20 to 39."""

from pathlib import Path

import pyarrow as pa

import sfumato as sf
from sfumato.metadata.contract import Contract
from sfumato.metadata.dataset import Dataset
from sfumato.query.asker import Asker
from sfumato.query.session import Session

# With this epsilon, split over four parts at most, a count or a sum of FRAME (whose largest
# sensitivity is 99 steps) is its exact value, but for a chance below 2 exp(-12,500 / 99) < 1e-54.
EXACTLY = 50_000

FRAME = pa.table(
    {
        "person": [f"p{index}" for index in range(40)],
        "sex": ["F", "M"] * 20,
        "age": [20 + index // 2 for index in range(40)],
        "hours": [index / 4 for index in range(40)],
        "smoker": [index % 4 == 0 for index in range(40)],
        "born": [f"19{60 + index % 20}-01-31" for index in range(40)],
        "job": [f"job {index % 3}" for index in range(40)],
    }
)


def columns() -> dict[str, object]:
    """The declarations of ``FRAME``."""
    return {
        "sex": sf.Category({"F": "female", "M": "male"}),
        "age": sf.Integer(0, 99),
        "hours": sf.Real(0, 10, step="0.25"),
        "smoker": sf.Boolean(missing="N"),
        "born": sf.Date("1960-01-01", "1979-12-31"),
        "job": sf.Text(),
    }


def table(frame: object = FRAME, **options: object) -> sf.Table:
    """The declared table."""
    return sf.Table(frame, columns=columns(), **options)


def dataset(
    frame: object = FRAME, *, relation: object = sf.AddRemove, **options: object
) -> Dataset:
    """The declared dataset."""
    return Dataset("tiny", {"people": table(frame, **options)}, relation)


def asker(declared: Dataset, budget: sf.Budget, analyst: str = "owner") -> Asker:
    """Who asks about a dataset under a budget."""
    return Asker(declared, Contract.of(declared, budget), analyst)


def session(
    folder: Path, frame: object = FRAME, *, budget: object = (1_000_000, "1e-6"), **options: object
) -> Session:
    """A session over the declared table; options of the table, or of ``connect``."""
    own = {
        name: options.pop(name)
        for name in ("relation", "version", "analyst", "purpose")
        if name in options
    }
    limit = None if budget is None else sf.Budget(*budget)
    tables = {"people": table(frame, **options)}
    return sf.connect(tables, dataset="tiny", budget=limit, ledger=folder / "ledger.db", **own)
