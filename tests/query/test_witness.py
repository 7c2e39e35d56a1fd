# SPDX-License-Identifier: Apache-2.0
"""A witness compares each release with its claim, and has the methods of a curator."""

import importlib
import inspect
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidDeclaration, SfumatoError, UnsupportedSql
from sfumato.mechanisms import laplace
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Repeated
from sfumato.query.cells import Cells, Units
from sfumato.query.curator import Curator
from sfumato.query.price import price
from sfumato.query.witness import (
    MadeUp,
    Step,
    Witness,
    questions_of,
    reference_integers,
    sql_task,
)

WITNESS = importlib.import_module("sfumato.query.witness")
STABILITY = importlib.import_module("sfumato.query.stability")
COLUMNS = {"w": sf.Category("a", "b", "c"), "n": sf.Integer(0, 10), "t": sf.Text()}
UNIT = sf.Unit("who", max_rows=2, max_groups=2)
BASE = {"who": ["p", "p", "q"], "w": ["a", "b", "c"], "n": [1, 2, 3], "t": ["x", "y", "x"]}
ENTERS = {
    "who": ["v"] * 6,
    "w": ["a", "a", "b", "b", "c", "c"],
    "n": [10] * 6,
    "t": ["x", "y", "z", "u", "x", "y"],
}
BY_W = "SELECT w, COUNT(*) AS n, SUM(n) AS s FROM people GROUP BY w"


def declared(*parts, relation=sf.AddRemove):
    """A dataset with the rows of some parts."""
    rows = {name: [value for part in parts for value in part[name]] for name in BASE}
    table = sf.Table(pa.table(rows), columns=COLUMNS, unit=UNIT)
    return Dataset("made-up", {"people": table}, relation)


def compared(text, cost, *, relation=sf.AddRemove):
    """The steps of a statement on two neighbours."""
    one, other = declared(BASE, relation=relation), declared(BASE, ENTERS, relation=relation)
    with MadeUp([one.tables, other.tables]) as worlds:
        return worlds.steps(sql_task(text, one, cost), one)


@pytest.mark.parametrize("cost", [price(epsilon=1), price(rho=1)])
def test_a_witness_compares_every_release_with_its_claim(cost):
    count, total = compared(BY_W, cost)
    assert count.holds and total.holds and count.kind == "measure"
    # two groups of at most two rows each, of at most 10: attained, but for rounded weights
    assert count.moved > 0.9999 * count.claimed and total.moved > 0.9999 * total.claimed
    if cost.epsilon is not None:
        assert count.norm == "L1" and total.claimed == 10 * count.claimed
    else:
        assert count.norm == "L2" and total.claimed == 100 * count.claimed


def test_selections_and_thresholds_are_compared():
    (median,) = compared("SELECT MEDIAN(n) AS m FROM people", price(epsilon=1))
    assert median.holds and median.kind == "quantiles" and median.moved > 0
    steps = compared(
        "SELECT t, COUNT(*) AS n FROM people GROUP BY t", price(epsilon=1, delta="1e-6")
    )
    kinds = {step.kind: step for step in steps}
    assert all(step.holds for step in steps)
    assert kinds["threshold, keys"].moved == kinds["threshold, keys"].claimed == 2
    replaced = compared(
        "SELECT t, COUNT(*) AS n FROM people GROUP BY t",
        price(epsilon=1, delta="1e-6"),
        relation=sf.ReplaceOne,
    )
    assert {step.claimed for step in replaced if step.norm == "L0"} == {4}


def test_mutant_of_half_the_distance(monkeypatch):
    honest = Cells.distance

    def halved(self, norm):
        claim = honest(self, norm)
        return replace(claim, value=claim.value / 2)

    monkeypatch.setattr(Cells, "distance", halved)
    assert not any(step.holds for step in compared(BY_W, price(epsilon=1)))


def test_mutant_of_one_group_more(monkeypatch):
    honest = STABILITY._limits

    def one_group_less(aggregate, plan):
        rows, groups, total = honest(aggregate, plan)
        return rows, groups - 1, total

    monkeypatch.setattr(STABILITY, "_limits", one_group_less)
    assert not all(step.holds for step in compared(BY_W, price(epsilon=1)))


def test_mutant_of_a_key_more(monkeypatch):
    text = "SELECT t, COUNT(*) AS n FROM people GROUP BY t"
    honest = Units.exact

    def twice(self, opened):
        counts = honest(self, opened)
        return {key: 2 * count for key, count in WITNESS._counts(counts).items()}

    monkeypatch.setattr(Units, "exact", twice)
    assert not all(step.holds for step in compared(text, price(epsilon=1, delta="1e-6")))


def test_it_has_the_methods_of_a_curator():
    def methods(kind):
        return {name for name, _ in inspect.getmembers(kind, callable) if name[0] != "_"}

    assert methods(Witness) == methods(Curator) and Witness.charge
    for name in ("measure", "select", "select_each", "quantiles", "threshold", "sample", "best"):
        own, theirs = (inspect.signature(getattr(kind, name)) for kind in (Witness, Curator))
        assert list(own.parameters) == list(theirs.parameters), name


class Pieces:
    """A series whose pieces depend on those before."""

    event = Repeated(laplace(Distance(Norm.L1, Fraction(1)), 1).event(Distance(Norm.L1, 1)), 30)

    def __init__(self, task):
        self.task, self.seen = task, []

    def piece(self, place, earlier):
        self.seen.append((place, list(earlier)))
        return self.task


def test_pieces_of_a_series_are_run_after_those_before_them():
    dataset = declared(BASE)
    series = Pieces(sql_task("SELECT COUNT(*) AS n FROM people", dataset, price(epsilon=1)))
    with MadeUp([dataset.tables, declared(BASE, ENTERS).tables]) as worlds:
        steps = worlds.steps(series, dataset)
    assert len(steps) == 20 and all(step.holds and step.moved for step in steps)
    assert series.seen[0] == (1, []) and series.seen[-1] == (20, list(range(1, 20)))


def test_what_is_not_compared_is_refused():
    witness = Witness(None, None)
    for name in ("share", "ladder", "tick", "turn", "row"):
        with pytest.raises(InvalidDeclaration):
            getattr(witness, name)(1, 2)
    assert witness.end() == "" and witness.sample("design") == "design"


def test_every_run_of_the_best_is_compared():
    class Event:
        events = ("first", "second")

    runs = []
    witness = Witness(None, None)
    place, outcome = witness.best(
        Event(), lambda place, inner: runs.append(inner) or (place, b"body")
    )
    assert (place, outcome) == (1, (1, b"body")) and runs == [witness, witness]


class Scores:
    """Exact scores of two worlds, by their names."""

    def __init__(self, one, other, claim):
        self.worlds, self.claim = {"one": one, "other": other}, claim

    def distance(self, norm):
        return self.claim

    def exact(self, world):
        return self.worlds[world]


class First:
    """A selection of the first candidate."""

    monotone = True

    def release(self, scores):
        return 0

    def release_each(self, scores):
        return (0,) * len(scores)


def test_selections_of_groups_add_up_and_move_one_way():
    claim = Distance(Norm.LINF, Fraction(2))
    grouped = Scores([[1, 2], [5, 5]], [[2, 2], [7, 4]], claim)
    witness = Witness("one", "other")
    assert witness.select_each(grouped, First()) == (0, 0)
    # 1 in the first group and 2 in the second
    assert witness.steps == [Step("select each", "Linf", Fraction(2), 3)]
    witness = Witness("one", "other")
    witness.select(Scores(np.array([1, 2]), np.array([2, 1]), claim), First())
    assert [step.holds for step in witness.steps] == [True, False]
    assert "moved 1, claimed 0" in str(witness.steps[1])


def test_the_integers_of_the_engine_are_those_of_the_reference():
    dataset = declared(BASE, ENTERS)
    plans = questions_of(sql_task(BY_W, dataset, price(epsilon=1)), dataset)
    rows = {"people": dataset.tables["people"].source.to_pylist()}
    with MadeUp([dataset.tables]) as worlds:
        assert worlds.integers(plans) == reference_integers(plans, rows)
        fewer = {"people": rows["people"][:-1]}
        assert worlds.integers(plans) != reference_integers(plans, {"people": fewer["people"][:3]})


def test_a_world_that_cannot_be_opened_leaves_nothing_open():
    bad = {"people": sf.Table("nowhere.csv", columns=COLUMNS)}
    with pytest.raises(SfumatoError):
        MadeUp([declared(BASE).tables, bad])
    with pytest.raises(UnsupportedSql):
        sql_task("SELECT * FROM people", declared(BASE), price(epsilon=1))


def test_no_session_reaches_a_witness():
    source = Path(sf.__file__).parent
    importers = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if "query.witness" in path.read_text("utf-8")
    }
    assert importers <= {"audit/system.py"}
