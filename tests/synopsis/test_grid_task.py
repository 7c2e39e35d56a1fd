# SPDX-License-Identifier: Apache-2.0
"""The task that measures layers over several columns: what it costs, stores and refuses."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.accounting.account import account
from sfumato.accounting.budget_gates import charge_for
from sfumato.errors import EngineFailed, WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.query.allowance import allowance
from sfumato.query.session import Session
from sfumato.synopsis.grid_task import GridTask
from sfumato.synopsis.tables import plan_tables
from sfumato.synopsis.wanted import Wanted, cells, marginals, ranges

RANDOM = np.random.default_rng(3)
AGES, SEXES = RANDOM.integers(0, 16, 3000), RANDOM.choice(["F", "M"], 3000)
COLUMNS = {"age": sf.Integer(0, 15), "sex": sf.Category("F", "M")}
TABLE = sf.Table(pa.table({"age": AGES, "sex": SEXES}), columns=COLUMNS)
DATA = Dataset("d", {"t": TABLE})
MIXED = ranges("age") * cells("sex") + cells("age")


def opened(folder: Path) -> Session:
    return sf.connect(
        {"t": TABLE}, dataset="d", budget=sf.Budget(10**5, "1e-6"), ledger=folder / "l.db"
    )


def task(wanted: Wanted = MIXED, **cost: object) -> GridTask:
    return plan_tables(DATA, "t", wanted, allowance(**cost)).task


@pytest.mark.parametrize("cost", [{"epsilon": 3}, {"rho": "0.5"}])
def test_at_most_the_whole_cost_is_charged_once(tmp_path, cost):
    with opened(tmp_path) as session:
        planned = task(**cost)
        price = session.price(planned)
        if "rho" in cost:
            assert Fraction("0.4999") < Fraction(price.rho) <= Fraction("0.5")
        else:
            assert Fraction("2.999") < Fraction(price.epsilon) <= 3
        stored = session.ask(planned)
        assert len(stored.body) == planned.size
        assert session.ask(task(**cost)).recalled


def test_nearly_without_noise_it_stores_the_layers(tmp_path):
    planned = task(epsilon=90_000)
    with opened(tmp_path) as session:
        noisy = planned.noisy(session.ask(planned).body)
    table = np.zeros((17, 3), dtype=int)
    np.add.at(table, (AGES, (SEXES == "M").astype(int)), 1)
    grid = planned.layout.grid
    for place, integers in zip(grid.layers, noisy, strict=True):
        levels, sums = dict(place), table
        for axis, chain in enumerate(grid.chains):
            width = chain.widths[levels.get(axis, chain.top)]
            sums = np.add.reduceat(sums, np.arange(0, sums.shape[axis], width), axis=axis)
        assert integers.tolist() == sums.ravel().tolist()


def test_equal_noise_is_one_entry_of_the_event():
    names = [f"c{k}" for k in range(6)]
    table = sf.Table(pa.table({}), columns={name: sf.Integer(0, 3) for name in names})
    data = Dataset("many", {"t": table})
    planned = plan_tables(data, "t", marginals(names, up_to=2), allowance(rho=1)).task
    assert len(planned.cells) == 21
    pairs, alone = planned.event.events
    assert (pairs.times, alone.times) == (15, 6)


def test_other_layers_or_shares_are_other_questions():
    first = task(rho="0.5")
    others = plan_tables(DATA, "t", MIXED, allowance(rho="0.5")).candidates
    forms = {replace(first, layout=layout).form for layout in others}
    assert len(forms) == len(others)
    assert first.form == task(rho="0.5").form


def test_shares_above_the_cost_are_noticed():
    """The mutant gives every layer the whole cost: the event costs more than was allowed."""
    honest = task(rho="0.5")
    shares = (Fraction(1),) * len(honest.layout.shares)
    mutant = replace(honest, layout=replace(honest.layout, shares=shares))
    assert mutant.event != honest.event
    assert charge_for(account(honest.event)).rho <= 5 * 10**11
    assert charge_for(account(mutant.event)).rho > 5 * 10**11


def test_a_layer_that_is_measured_and_not_charged_is_refused(tmp_path, monkeypatch):
    """The mutant measures the first layer twice and charges it once."""
    honest = GridTask.run

    def run(self, curator):
        curator.measure(self.statistics[0], self.mechanisms[0])
        return honest(self, curator)

    monkeypatch.setattr(GridTask, "run", run)
    with opened(tmp_path) as session, pytest.raises(EngineFailed):
        session.ask(task(rho="0.5"))


def test_a_plan_of_other_declarations_and_what_is_too_large_are_refused():
    other = sf.Table(pa.table({"age": [1]}), columns={**COLUMNS, "age": sf.Integer(0, 7)})
    with pytest.raises(WrongUse, match="other declarations"):
        task(rho=1).ready(Dataset("d", {"t": other}))
    wide = sf.Table(pa.table({}), columns={"a": sf.Integer(0, 4999), "b": sf.Integer(0, 4999)})
    with pytest.raises(WrongUse, match="integers"):
        plan_tables(Dataset("w", {"t": wide}), "t", cells("a", "b"), allowance(rho=1)).task  # noqa: B018
    with pytest.raises(WrongUse, match="Noise"):
        _faint()


def _faint() -> GridTask:
    heavy = sf.Table(
        pa.table({"w": [1], "age": [1]}), unit=sf.Unit("w", max_rows_total=2**20), columns=COLUMNS
    )
    data = Dataset("h", {"t": heavy})
    return plan_tables(data, "t", MIXED, allowance(epsilon="1e-11")).task
