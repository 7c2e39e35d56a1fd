# SPDX-License-Identifier: Apache-2.0
"""Every kind of task over one table of any rows, and the objects that each hands out."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import torch
from torch import nn

import sfumato as sf
from sfumato import learning as ln
from sfumato import synopsis
from sfumato import synthetic as sy
from sfumato.errors import SfumatoError
from sfumato.learning.torch import SGD, Network

COLUMNS: Mapping[str, Any] = {
    "a": sf.Real(0, 1000, step="0.001"),
    "n": sf.Integer(0, 10**7),
    "b": sf.Integer(0, 9),
    "s": sf.Category("F", "M"),
    "job": sf.Text(),
    "day": sf.Date("2026-11-01", "2026-11-30"),
    "y": sf.Category("no", "yes"),
}
SELECT = "SELECT a, n, b, s, y FROM t"
Row = tuple[Any, ...]


def session(folder: Path, rows: Sequence[Row], most: int = 2) -> sf.Session:
    """A session over rows of a unit and of every column, at most so many of a unit."""
    columns = zip(*rows, strict=True)
    kinds = [pa.string(), pa.float64(), pa.int64(), pa.int64(), *[pa.string()] * 4]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    source = pa.table(dict(zip(("u", *COLUMNS), arrays, strict=True)))
    unit = sf.Unit("u", max_rows_total=most)
    return sf.connect(
        {"t": sf.Table(source, unit, columns=COLUMNS)},
        dataset="d",
        budget=sf.Budget(10**4, "1e-3"),
        ledger=folder / "l.db",
        states=folder / "states",
    )


class Inverse(nn.Module):
    """A module in which rows of zeros are infinite."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(1, 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.out(1 / x)
        return made


def margin(output: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """A loss whose gradients are infinite with either sign, so that two of a unit have no sum."""
    return (1 - 2 * label) * output[:, 0]


class Keeping(nn.Module):
    """A module that keeps the last rows that it saw,."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(1, 1)
        self.last: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.last = x.detach()
        made: torch.Tensor = self.out(x)
        return made


class KeepingLoss:
    """A loss that keeps the last outputs and labels that it saw."""

    def __init__(self) -> None:
        self.last: tuple[torch.Tensor, torch.Tensor] | None = None

    def __call__(self, output: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        self.last = output.detach(), label.detach()
        return margin(output, label)


def _kept(here: sf.Session) -> object:
    """The model of a module that keeps rows, with the module and the loss of the caller."""
    module, loss = Keeping(), KeepingLoss()
    return network(module, loss)(here), module, loss


def fits(recipe: Any, label: str | None = "y", **cost: Any) -> Callable[[sf.Session], object]:
    """Fits a model to the rows."""
    statement = SELECT if label else "SELECT a, n, b FROM t"
    return lambda here: ln.fit(here, recipe, statement, label=label, **cost)


def network(module: nn.Module, loss: Any = margin) -> Callable[[sf.Session], object]:
    """Fits a module in one step; it reads one number."""
    recipe = Network(module, loss, SGD(1e-9), size=1000, steps=1, checkpoints=1)
    return lambda here: ln.fit(
        here, recipe, "SELECT a, y FROM t", label="y", epsilon="0.01", delta="1e-9"
    )


@cache
def public_model() -> Any:
    """A model of other, public rows."""
    row = ("u", 1.0, 1, 1, "F", "x", "2026-11-02", "no")
    with TemporaryDirectory() as folder, session(Path(folder), [row] * 10) as public:
        return ln.fit(public, ln.NaiveBayes(), SELECT, label="y", epsilon=1)


def _streamed(here: sf.Session) -> object:
    found = synopsis.stream(here, "t", time="day", by=["s"], horizon=4, epsilon=1)
    with found:
        return found, found.advance("2026-11-15")


def _synthesized(here: sf.Session) -> object:
    model = sy.fit(here, "t", epsilon=1, delta="1e-9", options=sy.Options(columns=["b", "s", "y"]))
    return model, model.sample(rows=5)


def _framed(here: sf.Session) -> object:
    frame = here.table("t").where(sf.col("b") > 3).agg(n=sf.count())
    return frame, frame.query(epsilon=1)


def _refused(here: sf.Session) -> object:
    """What is refused, and why."""
    errors = []
    for ask in (
        lambda: here.query("SELECT nobody FROM t", epsilon=1),
        lambda: here.query("SELECT COUNT(*) FROM t", epsilon=10**6),
        lambda: here.query("SELECT job, COUNT(*) FROM t GROUP BY job", epsilon=1),
        lambda: here.query("SELECT a FROM t", epsilon=1),
    ):
        try:
            ask()
        except SfumatoError as refused:
            errors.append(refused)
    return errors


ONE: Mapping[str, Any] = {"epsilon": 1, "delta": "1e-9"}
# Every kind of task, by name.
KINDS: Mapping[str, Callable[[sf.Session], object]] = {
    "sql": lambda here: here.query(
        "SELECT s, COUNT(*) AS c, AVG(a) AS m, SUM(n) AS t FROM t GROUP BY s", epsilon=1
    ),
    "quantiles": lambda here: here.query("SELECT MEDIAN(b) AS m FROM t", epsilon=1),
    "open groups": lambda here: here.query(
        "SELECT job, COUNT(DISTINCT u) AS c FROM t GROUP BY job", **ONE
    ),
    "frame": _framed,
    "preview": lambda here: (
        here.preview("SELECT s, AVG(a) AS m FROM t GROUP BY s", epsilon=1),
        here.diagnose("SELECT AVG(a) FROM t", epsilon=1),
        ln.preview(here, ln.NaiveBayes(), SELECT, label="y", epsilon=1),
    ),
    "marginals": lambda here: here.marginals("t", [("s", "y"), ("b",)], rho="0.01"),
    "synopsis": lambda here: synopsis.measure(
        here, "t", synopsis.ranges("b") * synopsis.cells("s"), epsilon=1
    ),
    "stream": _streamed,
    "synthetic": _synthesized,
    "additive": fits(ln.Additive(bins=4, steps=2, checkpoints=1), rho="0.01"),
    "logistic": fits(ln.LogisticRegression(steps=2, checkpoints=1), rho="0.01"),
    "ridge": lambda here: ln.fit(
        here, ln.Ridge(), "SELECT n, b, s, a FROM t", label="a", rho="0.01"
    ),
    "naive bayes": fits(ln.NaiveBayes(), epsilon=1),
    "decision tree": fits(ln.DecisionTree(depth=2), epsilon=1),
    "forest": fits(ln.Forest(trees=2, depth=2), rho="0.01"),
    "clusters": fits(ln.KMeans(2), None, rho="0.01"),
    "components": fits(ln.PCA(1), None, rho="0.01"),
    "tune": lambda here: ln.tune(here, [ln.NaiveBayes()], SELECT, label="y", runs=2, epsilon=1),
    "score": lambda here: ln.score(here, public_model(), SELECT, label="y", epsilon=1),
    "choose": lambda here: ln.choose(here, [public_model()] * 2, SELECT, label="y", epsilon=1),
    "network": network(Inverse()),
    "network that keeps rows": _kept,
    "refusals": _refused,
}
