# SPDX-License-Identifier: Apache-2.0
"""The task that measures layers: what it costs, what it stores, what it refuses."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import EngineFailed, WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.plan.show import form
from sfumato.privacy.event import Composed
from sfumato.query.allowance import allowance
from sfumato.query.marginals import marginal_cube
from sfumato.query.session import Session
from sfumato.synopsis.measurement import LayersTask, every_value
from sfumato.synopsis.strategy import strategies
from sfumato.synopsis.workload import Ranges

VALUES = [value % 50 for value in range(3000)]
TABLE = sf.Table(pa.table({"v": VALUES}), columns={"v": sf.Integer(0, 63)})
DATA = Dataset("d", {"t": TABLE})


def opened(folder: Path) -> Session:
    return sf.connect(
        {"t": TABLE}, dataset="d", budget=sf.Budget(10**6, "1e-6"), ledger=folder / "l.db"
    )


def task(**cost: object) -> LayersTask:
    allowed = allowance(**cost)
    plan = marginal_cube(DATA, "t", [["v"]])
    best, *_ = strategies(Ranges(64), allowed.norm)
    return LayersTask("t", "v", plan, best, allowed)


@pytest.mark.parametrize("cost", [{"epsilon": 3}, {"rho": "0.5"}])
def test_the_whole_cost_is_charged_once(tmp_path, cost):
    with opened(tmp_path) as session:
        planned = task(**cost)
        assert session.price(planned).epsilon in ("3", "unbounded")
        assert Fraction(session.price(planned).rho) <= Fraction("4.5")
        stored = session.ask(planned)
        assert len(stored.body) == planned.size
        assert session.ask(task(**cost)).body == stored.body
        assert session.ask(task(**cost)).recalled


def test_nearly_without_noise_it_stores_the_layers(tmp_path):
    planned = task(epsilon=900_000)
    with opened(tmp_path) as session:
        noisy = planned.noisy(session.ask(planned).body)
    counts = np.bincount(VALUES, minlength=64)
    for layer, integers in zip(planned.strategy.stack.layers, noisy, strict=True):
        assert integers.tolist() == layer.apply(counts).tolist()


def test_other_layers_or_shares_are_other_questions():
    first = task(rho="0.5")
    other = LayersTask(
        "t", "v", first.plan, strategies(Ranges(64), first.allowance.norm)[-1], first.allowance
    )
    assert first.form != other.form
    assert first.form == task(rho="0.5").form
    assert "t by v" in first.line


def test_a_plan_of_other_declarations_and_noise_beyond_words_are_refused():
    other = sf.Table(pa.table({"v": [1]}), columns={"v": sf.Integer(0, 7)})
    with pytest.raises(WrongUse, match="other declarations"):
        task(rho=1).ready(Dataset("d", {"t": other}))
    with pytest.raises(WrongUse, match="Noise"):
        wide = sf.Table(
            pa.table({"w": [1], "v": [1]}),
            unit=sf.Unit("w", max_rows_total=2**20),
            columns={"v": sf.Integer(0, 63)},
        )
        data = Dataset("d", {"t": wide})
        plan = marginal_cube(data, "t", [["v"]])
        allowed = allowance(epsilon="1e-12")
        LayersTask("t", "v", plan, strategies(Ranges(64), allowed.norm)[0], allowed)


def test_the_values_of_an_axis_are_in_its_form_by_their_declaration():
    """Cubes that differ in the declared values alone have different forms, and short ones."""
    forms = set()
    for kind in (sf.Integer(0, 63), sf.Integer(0, 64), sf.Integer(1, 64), sf.Category("a", "b")):
        data = Dataset("d", {"t": sf.Table(pa.table({}), columns={"v": kind})})
        plan = marginal_cube(data, "t", [["v"]])
        forms.add(form([plan], every_value(plan)))
    assert len(forms) == 4
    assert max(map(len, forms)) < 2000


def test_a_root_that_is_measured_and_not_charged_is_refused(tmp_path, monkeypatch):
    """The mutant leaves the last layer, the widest blocks, out of its event."""
    honest = LayersTask.event.fget(task(rho="0.5"))
    monkeypatch.setattr(LayersTask, "event", Composed(honest.events[:-1]))
    monkeypatch.setattr(LayersTask, "cells", task(rho="0.5").cells[:-1])
    with opened(tmp_path) as session, pytest.raises(EngineFailed):
        session.ask(task(rho="0.5"))


def test_less_noise_than_was_charged_is_refused(tmp_path, monkeypatch):
    """The mutant looks at the cube with the noise of ten times the cost, or none to speak of."""

    def run(self, curator):
        loud = replace(self, allowance=allowance(rho=5))
        return curator.measure(self.statistics[0], loud.mechanisms[0]).tobytes()

    monkeypatch.setattr(LayersTask, "run", run)
    with opened(tmp_path) as session, pytest.raises(EngineFailed):
        session.ask(task(rho="0.5"))
