# SPDX-License-Identifier: Apache-2.0
"""Reads the file of any model that a recipe of this room fits."""

import json
from pathlib import Path
from typing import TypeAlias

from sfumato.errors import WrongUse
from sfumato.learning.clusters import Clusters
from sfumato.learning.components import Components
from sfumato.learning.model import Model
from sfumato.learning.stored import FORMAT
from sfumato.learning.tree import Tree
from sfumato.learning.trees import Trees

Loaded: TypeAlias = Model | Clusters | Components | Tree | Trees
# A file without a kind is of a model of coordinates.
_KINDS: dict[str, type[Loaded]] = {
    "": Model,
    Clusters.kind: Clusters,
    Components.kind: Components,
    Tree.kind: Tree,
    Trees.kind: Trees,
}


def load(path: str | Path) -> Loaded:
    """Reads a model that its method ``save`` wrote.

    Raises:
        WrongUse: another file.

    >>> from sfumato.errors import WrongUse
    >>> try:
    ...     load("nowhere/income.sfm")
    ... except FileNotFoundError:
    ...     print("no such file")
    no such file
    """
    try:
        stored = json.loads(Path(path).read_text(encoding="utf-8"))
        if stored["format"] != FORMAT:
            raise ValueError("another format")
        return _KINDS[stored.get("kind", "")].from_json(stored)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as damaged:
        raise WrongUse(f"{path} is no model.", allowed="what model.save wrote") from damaged
