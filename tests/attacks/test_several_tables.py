# SPDX-License-Identifier: Apache-2.0
"""A unit with many rows in three tables against every number that a fit of them reads."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

import sfumato as sf
from sfumato import synthetic as sy
from sfumato.accounting.account import account
from sfumato.engines.reference import Reference
from sfumato.metadata.dataset import Dataset
from sfumato.plan.open_rows import OpenRows
from sfumato.plan.rows import BoundedRows
from sfumato.privacy.distance import Norm
from sfumato.query.allowance import Allowance, allowance, price_of
from sfumato.query.cells import Units
from sfumato.query.claims import require_proved
from sfumato.query.curator import Curator
from sfumato.query.reserved import Reserved, drawn
from sfumato.query.statistic import Opened
from sfumato.synthetic import unit_table
from sfumato.synthetic.fit import _task
from sfumato.synthetic.unit_table import UnitTable

Tables = dict[str, list[dict[str, object]]]
TABLES = ["patients", "visits", "drugs"]
TEXTS = {"patients.town": "-", "visits.why": "-", "drugs.note": "-"}


def clinic(relation: Any) -> Dataset:
    """A patient has up to 3 visits, and up to 4 drugs of visits; pay has bins at quantiles."""
    empty = pa.table({"pid": [0]})
    patients = {"town": sf.Text(), "old": sf.Boolean()}
    visits = {"pay": sf.Integer(0, 99_999), "why": sf.Text(), "day": sf.Integer(0, 3)}
    drugs = {"drug": sf.Category("a", "b"), "note": sf.Text()}
    units = {
        "patients": sf.Unit("pid", max_rows_total=1),
        "visits": sf.Unit("pid", max_rows_total=3),
        "drugs": sf.Unit("vid", via="visits.pid", max_rows_total=4),
    }
    tables = {}
    for name, columns in zip(TABLES, (patients, visits, drugs), strict=True):
        tables[name] = sf.Table(empty, unit=units[name], columns=columns)
    return Dataset("clinic", tables, relation)


def heavy(who: int, visits: int, drugs: int) -> Tables:
    """A patient with two rows, and far more visits and drugs than count, each with its text."""
    patients: list[dict[str, object]] = []
    for old in (True, False):
        patients.append({"pid": who, "town": f"town {who}", "old": old})
    seen: list[dict[str, object]] = []
    for place in range(visits):
        number = 1000 * who + place
        row: dict[str, object] = {"pid": who, "vid": number, "pay": 300 * number % 99_999}
        seen.append({**row, "why": f"why {number}", "day": place % 4})
    taken: list[dict[str, object]] = []
    for place in range(drugs):
        vid = 1000 * who + place % visits
        taken.append({"vid": vid, "drug": "ab"[who % 2], "note": f"note {who} {place}"})
    return {"patients": patients, "visits": seen, "drugs": taken}


def light(who: int) -> Tables:
    """A patient with up to two visits and up to three drugs."""
    patients: list[dict[str, object]] = [{"pid": who, "town": "Ulm", "old": who % 3 == 0}]
    seen: list[dict[str, object]] = []
    for place in range(who % 3):
        row: dict[str, object] = {"pid": who, "vid": 1000 * who + place, "pay": 7 * who}
        seen.append({**row, "why": "eye", "day": (who + place) % 4})
    taken: list[dict[str, object]] = []
    for place in range(who % 4 if seen else 0):
        taken.append({"vid": 1000 * who, "drug": "ab"[place % 2], "note": "none"})
    return {"patients": patients, "visits": seen, "drugs": taken}


OTHERS = [light(who) for who in range(2, 20)]


def together(*people: Tables) -> Tables:
    """The rows of all."""
    found: Tables = {name: [] for name in TABLES}
    for one in people:
        for name in TABLES:
            found[name] += one[name]
    return found


class Twin:
    """A curator that looks, at each step, how far the numbers of two neighbours are apart.

    ``most`` has, of each kind of step, the largest move as a share of what is accounted;
    ``information`` what all noisy counts of a table say about which of the two it is: the squares
    of their differences over the variance of their noise.
    """

    def __init__(self, curator: Curator, here: Opened, there: Opened) -> None:
        self._curator, self._pair = curator, (here, there)
        self.charge = curator.charge
        self.most: dict[str, Fraction] = {}
        self.information = [0.0] * len(TABLES)

    def measure(self, statistic: Any, mechanism: Any) -> Any:
        moved = self._look(f"counts {statistic.names[0]}", statistic, mechanism.norm)
        told = float((moved.astype(np.float64) ** 2).sum()) / float(mechanism.noise.variance.upper)
        self.information[statistic.plan.table] += told
        return self._curator.measure(statistic, mechanism)

    def select(self, scored: Any, mechanism: Any) -> int:
        self._look("scores", scored, Norm.LINF)
        return self._curator.select(scored, mechanism)

    def threshold(self, counted: Units, mechanism: Any) -> Any:
        here, there = (dict(counted.exact(opened)) for opened in self._pair)  # type: ignore[arg-type]
        differences = [here.get(key, 0) - there.get(key, 0) for key in {*here, *there}]
        moved = [abs(each) for each in differences if each]
        distance = counted.distance(Norm.LINF)
        keys = mechanism.keys * (2 if distance.relation is sf.ReplaceOne else 1)
        self._keep("units of a text", max(moved, default=0), distance.value)
        self._keep("texts of a unit", len(moved), Fraction(keys))
        return self._curator.threshold(counted, mechanism)

    def _look(self, what: str, statistic: Any, norm: Norm) -> Any:
        here, there = (np.asarray(statistic.exact(opened)) for opened in self._pair)
        moved = np.abs(here.astype(object) - there.astype(object))
        by_norm = {Norm.L1: moved.sum(), Norm.L2: (moved**2).sum(), Norm.LINF: moved.max()}
        self._keep(what, int(by_norm[norm]), statistic.distance(norm).value)
        return moved

    def _keep(self, what: str, moved: int, accounted: Fraction) -> None:
        self.most[what] = max(moved / accounted, self.most.get(what, Fraction(0)))


def opened(plan: OpenRows | BoundedRows, tables: Tables) -> Opened:
    """The tables as the door opens them; the key by which rows are kept is that of neighbours."""
    engine = Reference(tables)
    if isinstance(plan, BoundedRows):
        return Opened(plan, rows=engine.rows(plan, "key"))
    reads = {each: partial(engine.run, each, "key") for each in plan.questions}
    return Opened(plan, reads=reads, listed=lambda rows: engine.rows(rows, "key"))


def moves(relation: Any, here: Tables, there: Tables, texts: bool = True) -> dict[str, Fraction]:
    """How far each kind of step of a whole fit moves, as a share of what is accounted."""
    dataset = clinic(relation)
    known = [sy.public("old", {True: 1, False: 2})]
    order = {"visits": "day"}
    bins = {"visits.pay": sy.Quantiles(4)}
    options = sy.Options(order=order, triples=True, rounds=3, bins=bins)
    cost = price_of(keys=False, epsilon=30, rho=None, delta=None)
    if texts:
        options = replace(options, texts=TEXTS)
        cost = price_of(keys=True, epsilon=None, rho=30, delta="1e-6")
    task = _task(dataset, TABLES, cost, known, {"drugs.drug": 7}, options)
    return twin_of(task, dataset, here, there).most


def twin_of(task: Any, dataset: Dataset, here: Tables, there: Tables) -> Twin:
    """The whole run of a task, seen on both of two data."""
    plan = task.ready(dataset)
    require_proved(plan, dataset)
    pair = [opened(plan, tables) for tables in (here, there)]  # type: ignore[arg-type]
    curator = Curator("c", Reserved(task.event, drawn(task.event, task.cells)), pair[0])
    twin = Twin(curator, pair[0], pair[1])
    with pair[0], pair[1]:
        task.run(twin)  # type: ignore[arg-type]
    # every step was the next one of the event that is charged, and none is left
    assert curator.end() == ""
    return twin


def added(texts: bool = True) -> dict[str, Fraction]:
    """The moves where a heavy patient comes to the others."""
    with_him = together(heavy(1, 30, 40), *OTHERS)
    return moves(sf.AddRemove, with_him, together(*OTHERS), texts)


def test_a_unit_with_many_rows_moves_every_step_by_what_is_accounted():
    replaced = together(heavy(1, 30, 40), *OTHERS), together(heavy(98, 9, 90), *OTHERS)
    known = {"scores", "counts pay", "counts number of drugs", "counts day"}
    attained = ["scores", "counts old", "texts of a unit", "units of a text"]
    one = added()
    for most in (one, added(texts=False), moves(sf.ReplaceOne, *replaced)):
        assert known <= set(most)
        assert max(most.values()) <= 1
    assert [one[each] for each in attained] == [1, 1, 1, 1]


def weigh_rows(family, table, rows):
    """The mutant gives every row of a child the weight of a unit."""
    cells, weights = CHILD_ROWS(family, table, rows)
    return cells, np.full_like(weights, unit_table.FULL)


def rare(day: int, pay: int) -> Tables:
    """The only old patient with a drug, and three visits like nobody else's."""
    visit = {"pid": 1, "why": "", "day": day, "pay": pay}
    seen = [{**visit, "vid": 1000 + place} for place in range(3)]
    return {
        "patients": [{"pid": 1, "town": "Ulm", "old": True}],
        "visits": seen,
        "drugs": [{"vid": 1000, "drug": "b", "note": ""}],
    }


def told_of_visits(cost: Allowance) -> tuple[float, float]:
    """What a fit tells, to whoever knows everybody and the patient's other rows, about which of two
    visits his are, and the rho of the fit of visits.
    """
    dataset = clinic(sf.AddRemove)
    options = sy.Options(rounds=3, bins={"visits.pay": [50_000]})
    task = _task(dataset, TABLES, cost, options=options)
    here, there = (together(rare(*visit), *OTHERS) for visit in ((3, 99_000), (0, 0)))
    twin = twin_of(task, dataset, here, there)
    assert twin.information[0] == 0
    return twin.information[1], float(account(task.children[0].event).rho)


def test_unique_children_of_a_known_parent_are_told_by_no_more_than_is_charged(monkeypatch):
    """The best test of Gaussian counts (Neyman and Pearson, 1933) is one of their likelihood. A
    patient with other visits is two steps away: at most 4 times the rho, 8 in information.
    """
    information, rho = told_of_visits(allowance(epsilon=1, delta="1e-9"))
    assert 0 < information <= 8 * rho
    # of two equally likely visits, the right one is named so much more often than the wrong one
    assert 2 * norm.cdf(math.sqrt(information) / 2) - 1 < 0.09
    monkeypatch.setattr(unit_table, "_child_rows", weigh_rows)
    information, rho = told_of_visits(allowance(rho=100))
    assert information > 8 * rho


CHILD_ROWS = unit_table._child_rows
MUTANTS = [
    (unit_table, "_child_rows", weigh_rows),
    # a threshold for one text where a unit counts in as many as it has rows
    (Units, "groups", property(lambda counted: 1)),
    # scores of the heaviest pair that are calibrated to a pair of weight 1
    (UnitTable, "apart", property(lambda table: lighter(APART.fget(table)))),
]
APART = UnitTable.__dict__["apart"]


def lighter(distance):
    return replace(distance, value=distance.value / 7)


@pytest.mark.parametrize("mutant", MUTANTS, ids=["rows", "texts", "weights"])
def test_a_fit_that_moves_by_more_is_noticed(mutant, monkeypatch):
    place, name, wrong = mutant
    monkeypatch.setattr(place, name, wrong)
    assert max(added().values()) > 1
