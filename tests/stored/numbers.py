# SPDX-License-Identifier: Apache-2.0
"""What the stored models give for stated rows, and stored synthetic fits for stated cells."""

from collections import Counter
from pathlib import Path
from typing import Any

from torch import nn

from sfumato.learning import torch as lt
from sfumato.testing import Replay
from tests.stored import parts, questions

FRAME = {"a": [0.0, 250.5, 1000.0], "n": [0, 500, 10**7], "b": [0, 5, 9], "s": ["F", "M", "F"]}
# A synthetic fit by its question: its dataset, and the column of a table whose values are counted.
COUNTS = {
    "synthetic": ("room", "t", "y"),
    "synthetic with bins": ("room", "t", "s"),
    "synthetic with a text": ("room", "t", "job"),
    "synthetic of two tables": ("clinic", "visits", "ward"),
    "synthetic of two tables with a text": ("clinic", "patients", "home"),
}


def of_fit(name: str, model: Any) -> dict[str, int]:
    """How often values are in rows of a synthetic fit, drawn from stated bits."""
    _, table, column = COUNTS[name]
    values = model.sample(1000, entropy=Replay(1))[table][column].to_pylist()
    return {str(value): count for value, count in sorted(Counter(map(str, values)).items())}


def numbers() -> dict[str, Any]:
    """The numbers of each model that is in a file."""
    return {path.stem: of_model(path) for path in sorted(questions.MODELS.iterdir())}


def of_model(path: Path) -> Any:
    """The numbers of one model."""
    if path.suffix == ".sfm":
        return lt.load(path, nn.Linear(2, 2)).predict_proba(FRAME).tolist()
    model = parts.loaded(path)
    if path.stem == "synopsis_of_a_column":
        return [model.answer(test).value for test in ("b < 3", "b BETWEEN 2 AND 8")]
    if path.stem.startswith("synopsis"):
        return model.query("SELECT s, COUNT(*) AS n FROM t WHERE b > 4 GROUP BY s").to_pylist()
    if path.stem == "components":
        return model.transform(FRAME).tolist()
    if hasattr(model, "predict_proba") and getattr(model, "classes", True):
        return model.predict_proba(FRAME).tolist()
    predicted = model.predict(FRAME)
    return predicted.tolist() if hasattr(predicted, "tolist") else predicted
