# SPDX-License-Identifier: Apache-2.0
"""The files of models: JSON with a kind, and no code."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.privacy.event import Json
from sfumato.query.cost import Cost

FORMAT = 1


def write(path: str | Path, kind: str, fields: Mapping[str, Json]) -> None:
    """Writes a model of a kind."""
    stored = {"format": FORMAT, "kind": kind, **fields}
    Path(path).write_text(json.dumps(stored, indent=1), encoding="utf-8")


def read_cost(form: Mapping[str, Any]) -> Cost:
    """The cost of a stored form."""
    return Cost(form["epsilon"], form["rho"], form["delta"], tuple(form["items"]))
