# SPDX-License-Identifier: Apache-2.0
"""``load``: reads the file of any fitted model of this room."""

import json
from pathlib import Path
from typing import TypeAlias

from sfumato.errors import InvalidDeclaration, WrongUse
from sfumato.learning.clusters import Clusters
from sfumato.learning.components import Components
from sfumato.learning.model import Model
from sfumato.learning.stored import FORMAT
from sfumato.learning.tree import Tree
from sfumato.learning.trees import Trees

Loaded: TypeAlias = Model | Clusters | Components | Tree | Trees
# What reading a file that is none raises.
_DAMAGED = (
    InvalidDeclaration,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
# The first bytes of an archive of arrays.
_ARCHIVE = b"PK"
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
        WrongUse: another file; that of a network, which needs its module.

    >>> from sfumato.errors import WrongUse
    >>> try:
    ...     load("nowhere/income.sfm")
    ... except FileNotFoundError:
    ...     print("no such file")
    no such file
    """
    body = Path(path).read_bytes()
    if body.startswith(_ARCHIVE):
        raise WrongUse(
            f"{path} has the weights of a network, and no module.",
            allowed="the files of other models",
            remedy="In Python, with a module of the same layers: "
            "sfumato.learning.torch.load(path, module).predict(frame).",
        )
    try:
        stored = json.loads(body.decode("utf-8"))
        if stored["format"] != FORMAT:
            raise ValueError("another format")
        return _KINDS[stored.get("kind", "")].from_json(stored)
    except _DAMAGED as damaged:
        raise WrongUse(f"{path} is no model.", allowed="what model.save wrote") from damaged
