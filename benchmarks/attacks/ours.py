# SPDX-License-Identifier: Apache-2.0
"""Sessions of sfumato over rows of one table t, for the cases."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

import sfumato as sf


@contextmanager
def session(rows: Mapping[str, Any], epsilon: Any = 1000, **columns: Any) -> Iterator[sf.Session]:
    """Opens a session; nothing is left of it."""
    table = sf.Table(pa.table(rows), columns=columns)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        place, budget = f"{folder}/ledger.db", sf.Budget(epsilon, "1e-6")
        with sf.connect({"t": table}, dataset="attacked", budget=budget, ledger=place) as opened:
            yield opened


def asked(rows: Mapping[str, Any], text: str, price: Mapping[str, Any], **columns: Any) -> Any:
    """Asks one question; returns the rows of its answer."""
    with session(rows, **columns) as opened:
        return opened.query(text, **price).rows
