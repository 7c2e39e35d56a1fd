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
from cryptography.hazmat.primitives.asymmetric import ec

import sfumato as sf
from sfumato.errors import InvalidDeclaration, SfumatoError, UnsupportedSql
from sfumato.federated.coordinator import added
from sfumato.federated.joint import Exchange, JointTask, Terms
from sfumato.graph.questions import Triangles
from sfumato.graph.task import graph_task
from sfumato.graph.triangles import TriangleLadder
from sfumato.mechanisms import laplace
from sfumato.mechanisms.masks import FreshKey, roster_of
from sfumato.metadata.dataset import Dataset
from sfumato.noise import DiscreteGaussian
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Repeated
from sfumato.query.allowance import allowance
from sfumato.query.cells import Cells, Units
from sfumato.query.curator import Curator
from sfumato.query.cycle import Cycle
from sfumato.query.price import price
from sfumato.query.statistic import NO_PLAN
from sfumato.query.ticks import Ticks
from sfumato.query.witness import (
    MadeUp,
    Step,
    Witness,
    questions_of,
    reference_integers,
    sql_task,
)
from sfumato.synopsis.stream_plan import plan_stream
from sfumato.synopsis.tick_task import StreamSeries
from tests.query.test_cycle import APART, NOISE, PLAN, Present

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
    for name in sorted(methods(Curator)):
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


def test_a_plan_of_what_reads_no_rows_is_refused():
    class Reports:
        def ready(self, declarations):
            return NO_PLAN

    with MadeUp([declared(BASE).tables] * 2) as worlds, pytest.raises(InvalidDeclaration):
        worlds.steps(Reports(), declared(BASE))
    witness = Witness(None, None)
    assert witness.end() == "" and witness.sample("design") == "design"


def ties(*pairs):
    """Edges of a graph as a dataset."""
    first, second = zip(*pairs, strict=True)
    table = sf.Table(pa.table({"a": first, "b": second}), unit=sf.Edge("a", "b"))
    return Dataset("made-up", {"ties": table})


# the edge xy closes a triangle with each of five others, and their most common neighbours grow
SPOKES = [(hub, leaf) for leaf in "abcde" for hub in "xy"]


def laddered():
    one, other = ties(*SPOKES), ties(*SPOKES, ("x", "y"))
    task = graph_task(one, "ties", Triangles(), allowance(epsilon=1))
    with MadeUp([one.tables, other.tables]) as worlds:
        return worlds.steps(task, one)[-1]


def test_the_rung_of_each_integer_is_compared():
    assert laddered() == Step("ladder", "Linf", Fraction(1), 1)


@pytest.mark.parametrize("mutant", ["of neighbours alone", "half the claim"])
def test_mutant_of_a_ladder(mutant, monkeypatch):
    if mutant == "half the claim":
        honest = TriangleLadder.rung_distance
        half = lambda self: replace(honest(self), value=Fraction(1, 2))  # noqa: E731
        monkeypatch.setattr(TriangleLadder, "rung_distance", half)
    else:
        # the local sensitivity over pairs that are neighbours already: at first there is none
        triangles = TriangleLadder.exact
        monkeypatch.setattr(TriangleLadder, "exact", lambda *given: (triangles(*given)[0], 0))
    assert not laddered().holds


def brute_rung(integer, exact, width):
    """The rung of an integer, counted outward."""
    left, rung = abs(integer - exact), 0
    while left > 0:
        left -= width + rung
        rung += 1
    return rung


@pytest.mark.parametrize(("one", "other"), [((0, 5), (5, 6)), ((3, 0), (9, 1)), ((0, 9), (0, 4))])
def test_rungs_are_those_that_are_counted_outward(one, other):
    far = range(-3000, 3000)
    moved = max(abs(brute_rung(r, *one) - brute_rung(r, *other)) for r in far)
    assert WITNESS._rungs_moved(one, other) == moved


DAYS = {"day": sf.Integer(1, 6)}


def dated(*rows):
    """Rows of persons on days."""
    who, day = zip(*rows, strict=True)
    unit = sf.Unit("who", max_rows_total=6)
    table = sf.Table(pa.table({"who": who, "day": day}), columns=DAYS, unit=unit)
    return Dataset("made-up", {"visits": table})


class Daily(StreamSeries):
    """A stream that is advanced by a day with each piece."""

    def piece(self, place, earlier):
        self.until = place
        return super().piece(place, earlier)


def ticked(**limits):
    rows = [("p", 1), ("q", 2), ("q", 4)]
    one, other = dated(*rows), dated(*rows, *(("v", day) for day in range(1, 7)))
    plan = plan_stream(one, "visits", time="day", horizon=6, **limits)
    with MadeUp([one.tables, other.tables]) as worlds:
        return worlds.steps(Daily(plan, one), one)


@pytest.mark.parametrize("cost", [{"epsilon": 1}, {"rho": 1}])
def test_all_rows_of_a_stream_are_compared_together(cost):
    steps = ticked(participations=2, separation=2, **cost)
    assert len(steps) == 6 and {step.kind for step in steps} == {"ticks"}
    assert all(step.holds for step in steps)
    moved = [step.moved for step in steps]
    # it is counted on the days 1 and 3; later rows of a tree or of bands may still move
    assert moved == sorted(moved) and moved[-1] * 2 > steps[-1].claimed


def test_mutant_of_a_unit_in_every_tick(monkeypatch):
    def everybody(self, state, names, tick):
        return np.ones(len(names), bool), state

    monkeypatch.setattr(Ticks, "_taking_part", everybody)
    steps = ticked(participations=2, separation=2, rho=1)
    assert steps[0].holds and not steps[-1].holds


def test_mutant_of_a_stream_that_forgets_its_last_tick(monkeypatch):
    monkeypatch.setattr(WITNESS._Past, "save", lambda self, state: None)
    assert not all(step.holds for step in ticked(participations=1, epsilon=1))


class Turns:
    """A task of a cycle: who is there, in each step."""

    def __init__(self, cycle):
        self.cycle = cycle

    def ready(self, declarations):
        return PLAN

    def run(self, curator):
        turn = curator.turn(self.cycle, NOISE)
        there = Present(self.cycle.size, self.cycle.apart)
        rows = [curator.row(turn, there) for _ in range(self.cycle.steps)]
        assert all(row.shape == (self.cycle.size,) for row in rows)
        return b""


def turned(cycle):
    columns = {"place": sf.Integer(0, 99)}
    worlds = [
        {"people": sf.Table(pa.table({"place": list(range(count))}), columns=columns)}
        for count in (3, 4)
    ]
    with MadeUp(worlds) as both:
        return both.steps(Turns(cycle), Dataset("made-up", worlds[0]))


def test_all_rows_of_a_cycle_are_compared_together():
    # a unit moves a sum by one; it takes part in three of five steps
    near = Cycle(replace(APART, value=Fraction(1)), 5, 5, 2, 1)
    steps = turned(near)
    assert [step.moved for step in steps] == [1, 1, 2, 2, 3]
    assert {(step.kind, step.norm, step.claimed) for step in steps} == {("cycle", "L2", 3)}
    assert all(step.holds for step in turned(replace(near, bands=3)))


def test_mutant_of_a_unit_that_takes_part_once(monkeypatch):
    near = Cycle(replace(APART, value=Fraction(1)), 5, 5, 2, 1)
    honest = Cycle.distance
    monkeypatch.setattr(Cycle, "distance", lambda self, times: honest(self, 1))
    assert not turned(near)[-1].holds


def silent(noise, cells):
    """No noise, so that a share is an exact number."""
    return np.zeros(cells, np.int64)


def shared(monkeypatch):
    """The steps of a question of three sites, at one of them."""
    monkeypatch.setattr(DiscreteGaussian, "sample", silent)
    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("a", "b", "c")}
    sites = {name: key.public_key() for name, key in keys.items()}
    fresh = {name: FreshKey(name, key, b"run") for name, key in keys.items()}
    shown = {name: (key.public, key.signature) for name, key in fresh.items()}
    masks = {name: key.masks(sites, shown) for name, key in fresh.items()}

    def send(step, body):
        zeros = np.zeros(len(body) // 8, np.int64)
        return added({"a": body} | {name: masks[name].masked(step, zeros) for name in "bc"})

    exchange = Exchange("run")
    exchange.masks, exchange.send = masks["a"], send
    terms = Terms("study", roster_of(sites), sites=3, least=3, colluders=1, overlap=1)
    one, other = declared(BASE), declared(BASE, ENTERS)
    task = JointTask(sql_task(BY_W, one, price(rho=1)), terms, 3, exchange)
    with MadeUp([one.tables, other.tables]) as worlds:
        return worlds.steps(task, one)


def test_a_share_is_compared_before_it_is_masked(monkeypatch):
    count, total = shared(monkeypatch)
    assert count.holds and total.holds and count.kind == total.kind == "share"
    assert count.norm == "L2" and total.claimed == 100 * count.claimed
    assert count.moved > 0.9999 * count.claimed


def test_mutant_of_a_share_that_claims_half(monkeypatch):
    honest = Cells.distance

    def halved(self, norm):
        claim = honest(self, norm)
        return replace(claim, value=claim.value / 2)

    monkeypatch.setattr(Cells, "distance", halved)
    assert not any(step.holds for step in shared(monkeypatch))


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
