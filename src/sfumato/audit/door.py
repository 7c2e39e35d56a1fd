# SPDX-License-Identifier: Apache-2.0
"""Asks made-up rows through real sessions, whose charges go to a scratch ledger.

Two worlds must look the same except for released numbers (``seen``), and the noise of a question
of many cells must be the stated one (``residuals``).
"""

import json
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.audit.residuals import Residuals, residuals
from sfumato.audit.seen import EPSILON, RHO, previewed, seen_with_keys
from sfumato.metadata.column import Integer
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.privacy.budget import Budget
from sfumato.query.connect import connect
from sfumato.query.session import Session

PREFIX = "sfumato-audit-"
# Each family of noise: the price of a count of rows, and the law that it states.
NOISES: Mapping[str, tuple[Mapping[str, Any], Noise]] = {
    "Laplace noise": ({"epsilon": "0.125"}, DiscreteLaplace(8)),
    # the variance is 1 / (2 rho)
    "Gaussian noise": ({"rho": "0.02"}, DiscreteGaussian(5)),
}
_CELLS = 2_000
_BUDGET = Budget(10**6, Fraction(1, 100))
_STATE = "XDG_STATE_HOME"


def differing_statements(
    dataset: Dataset, one: Mapping[str, Table], other: Mapping[str, Table], texts: Sequence[str]
) -> list[str]:
    """Returns the SQL statements whose outcome on two neighbouring made-up datasets differs in
    anything besides the released numbers.

    Compared as bytes: answers without released numbers, errors, the account, previews, log lines
    and warnings.
    """
    first, second = _shown(dataset, one, texts), _shown(dataset, other, texts)
    return [text for text in texts if first[text] != second[text]]


def noisy_cells(name: str) -> Residuals:
    """Tests the noise of one grouped count with 2,000 cells, asked at the price ``name`` of
    ``NOISES``, by released minus exact numbers.
    """
    price, law = NOISES[name]
    # cell number c has c % 3 rows
    codes = [code for code in range(_CELLS) for _ in range(code % 3)]
    rows = pa.table({"cell": pa.array(codes, pa.int64())})
    tables = {"cells": Table(rows, columns={"cell": Integer(0, _CELLS - 1)})}
    with _session(Dataset("cells", tables), tables) as session:
        answer = session.query("SELECT cell, COUNT(*) AS n FROM cells GROUP BY cell", **price)
    noise = [int(str(count)) - int(str(code)) % 3 for code, count in answer.rows]
    return residuals(noise, law=law)


def _shown(
    dataset: Dataset, tables: Mapping[str, Table], texts: Sequence[str]
) -> dict[str, list[bytes]]:
    """What each statement shows on a world: previewed, then asked in each family of noise."""
    shown: dict[str, list[bytes]] = {text: [] for text in texts}
    with (
        warnings.catch_warnings(record=True) as warned,
        _session(dataset, tables) as session,
    ):
        warnings.simplefilter("always")
        for text in texts:
            views: list[object] = [previewed(session, [text])]
            views.extend(seen_with_keys(session, text, price) for price in (EPSILON, RHO))
            views.append([str(each.message) for each in warned])
            shown[text] = [json.dumps(view, sort_keys=True, default=str).encode() for view in views]
            warned.clear()
    return shown


@contextmanager
def _session(dataset: Dataset, tables: Mapping[str, Table]) -> Iterator[Session]:
    """Opens a session over made-up rows; nothing of it is left afterwards."""
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        with _remembering_in(folder):
            session = connect(
                tables,
                dataset=dataset.name,
                relation=dataset.relation,
                version=dataset.version,
                budget=_BUDGET,
                ledger=Path(folder) / "ledger.db",
            )
        with session:
            yield session


@contextmanager
def _remembering_in(folder: str) -> Iterator[None]:
    """Heads of ledgers that are opened inside the block are remembered in a folder.

    Else each scratch ledger would take the place of one of the user's.
    """
    before = os.environ.get(_STATE)
    os.environ[_STATE] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ[_STATE]
        else:
            os.environ[_STATE] = before
