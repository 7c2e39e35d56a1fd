# SPDX-License-Identifier: Apache-2.0
"""Runs in cyclic order: a stream a piece, all of them paid; what a crash takes is lost."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import sfumato as sf
from sfumato import learning as ln
from sfumato.accounting import account
from sfumato.errors import EngineFailed, WrongUse
from sfumato.learning import torch as lt
from sfumato.learning.additive import Additive
from sfumato.learning.budget import Budgeted
from sfumato.learning.torch.stream import NetworkStream, StreamPiece
from sfumato.ledger import Ledger
from sfumato.ledger.verify import verify
from sfumato.privacy import Relation, Stream
from sfumato.privacy.event import Block, Composed
from sfumato.query import statistic
from sfumato.query.curator import Curator
from sfumato.query.cycle import Turning
from tests.learning.rows import SELECT, connected, frame
from tests.learning.torch.nets import codes, linear, opened, sums

BUDGET = sf.Budget(10, "1e-5")
LOSS = nn.CrossEntropyLoss(reduction="none")
COST: dict[str, Any] = {"label": "ill", "epsilon": 2, "delta": "1e-6"}


def recipe(**settings: Any) -> lt.Network:
    torch.manual_seed(3)
    module = nn.Sequential(nn.Linear(3, 2))
    asked: dict[str, Any] = {"steps": 12, "size": 60, "checkpoints": 3}
    asked |= {"order": ln.Cyclic(4), "noise": ln.MatrixNoise(4)}
    return lt.Network(module, LOSS, lt.SGD(0.5), **(asked | settings))


def stream(bands: int = 4, budget: Any = None) -> NetworkStream:
    budget = budget or Budgeted(rho=Fraction(1, 10))
    sizes, sigma = (8, 3), Fraction(2**20)
    order = ln.Cyclic(4)
    network = sums(linear())
    return NetworkStream("made", network, order, bands, sizes, sigma, budget, lt.SGD(1.0), 100)


def test_the_pieces_do_what_is_charged() -> None:
    run = stream()
    assert isinstance(run.event, Composed)
    earlier: dict[int, bytes] = {}
    for place, part in enumerate(run.event.events, start=1):
        piece = run.piece(place, earlier)
        assert isinstance(part, Stream) and piece.event == part
        # twice in eight steps, once in three
        assert (part.steps, part.participations) == ((8, 2), (3, 1))[place - 1]
        assert piece.cells == (run.sums.lattice.size * run.sizes[place - 1],)
        earlier[place] = piece.state.to_bytes()
        assert len(earlier[place]) == piece.size
    assert piece.ready(None) is run.sums.plan  # type: ignore[arg-type]
    assert run.event.events[1].noise.distance.value < run.event.events[0].noise.distance.value  # type: ignore[union-attr]


def test_each_piece_is_paid_and_a_block_is_one() -> None:
    run = stream()
    assert isinstance(run.event, Composed)
    parts = [account(part).rho for part in run.event.events]
    assert account(run.event).rho == sum(parts) and min(parts) > 0
    block = stream(budget=Budgeted(epsilon=Fraction(1), delta=Fraction(1, 10**6))).event
    assert isinstance(block, Block) and block.event == run.event
    # other bands are another run, and cost something else
    assert stream(bands=1).form != run.form and stream(bands=1).event != run.event


@pytest.mark.parametrize("relation", list(Relation))
def test_a_run_is_charged_once_and_recalled_free(tmp_path: Path, relation: Relation) -> None:
    with connected(tmp_path, frame(60), BUDGET, relation=relation) as session:
        asked = recipe(steps=6, checkpoints=2)
        seen = ln.preview(session, asked, SELECT, **COST)
        assert seen.releases == 6 and seen.checkpoints == 2 and "epsilon = 2" in str(seen)
        model = ln.fit(session, asked, SELECT, **COST)
        assert session.budget.spent == "2"
        again = ln.fit(session, asked, SELECT, **COST)
        assert again.charge == model.charge and session.budget.spent == "2"
    assert not verify(Ledger.open(tmp_path / "ledger.db")).problems


def test_a_crash_closes_the_bands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    turns: list[Any] = []
    after, turn = lt.SGD.after, Curator.turn

    def dying(self: lt.SGD, state: Any, *gradient: Any) -> Any:
        steps.append(state.released)
        if len(steps) == 7:
            raise RuntimeError("dies")
        return after(self, state, *gradient)

    def noting(self: Curator, cycle: Any, mechanism: Any) -> Any:
        turns.append(turn(self, cycle, mechanism))
        return turns[-1]

    monkeypatch.setattr(lt.SGD, "after", dying)
    monkeypatch.setattr(Curator, "turn", noting)
    with connected(tmp_path, frame(60), BUDGET) as session:
        with pytest.raises(EngineFailed):
            ln.fit(session, recipe(), SELECT, **COST)
        model = ln.fit(session, recipe(), SELECT, **COST)
        assert session.budget.spent == "2" and model.charge
    # the three steps of the second piece are lost; the third begins a cycle of its own
    assert steps == [0, 1, 2, 3, 4, 5, 6, 4, 5, 6, 7] and len(set(map(id, turns))) == 3


def test_a_band_that_is_drawn_again_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = StreamPiece.run

    def again(self: StreamPiece, curator: Curator) -> bytes:
        honest(self, curator)
        return honest(self, curator)

    monkeypatch.setattr(StreamPiece, "run", again)
    with connected(tmp_path, frame(30), BUDGET) as session, pytest.raises(EngineFailed):
        ln.fit(session, recipe(size=30, checkpoints=1, steps=4), SELECT, **COST)


def exact_rows(run: NetworkStream, rows: Any, draws: Any, monkeypatch: Any) -> Any:
    """All rows of a cycle without noise, of units with given draws; weights change on the way."""
    monkeypatch.setattr(statistic, "below_many", lambda count, units: draws)
    cycle = run.cycle(8)
    nothing = np.zeros(8 * cycle.size, np.int64)
    turning = Turning(cycle, run.mechanism, opened(run.sums, rows), nothing)
    start = run.sums.network.start
    return np.stack([turning.next(run.sums.at(start * (1 + step / 9))) for step in range(8)])


def test_neighbours_are_as_near_as_their_distance_says(monkeypatch: pytest.MonkeyPatch) -> None:
    run = stream(bands=6)
    cycle = run.cycle(8)
    proved = float(cycle.distance(cycle.participations).value) ** 0.5
    rows = codes(40, seed=2)
    draws = np.arange(40) % 4
    every = exact_rows(run, rows, draws, monkeypatch)
    shares = []
    for unit in range(6):
        others = np.arange(40) != unit
        fewer = exact_rows(run, rows[others], draws[others], monkeypatch)
        shares.append(float(np.linalg.norm(every - fewer)) / proved)
    assert 0.4 < max(shares) <= 1
    # the broken version: a unit is in all four batches, and pays for one
    others = np.arange(40) != int(np.argmax(shares))
    copies = np.repeat(rows[~others], 4, axis=0)
    more = np.concatenate([rows[others], copies])
    doubled = exact_rows(run, more, np.append(draws[others], np.arange(4)), monkeypatch)
    fewer = exact_rows(run, rows[others], draws[others], monkeypatch)
    assert np.linalg.norm(doubled - fewer) > proved


def test_correlated_noise_goes_with_batches_that_take_turns() -> None:
    for order in (ln.FullBatch(), ln.Poisson("0.1"), ln.Fixed(10, 100)):
        with pytest.raises(WrongUse, match="MatrixNoise with order="):
            recipe(order=order)
    with pytest.raises(WrongUse, match="noise="):
        recipe(noise=4)
    with pytest.raises(WrongUse, match="order="):
        recipe(order=[1, 2], noise=None)


def test_a_recipe_without_streams_takes_no_turns(tmp_path: Path) -> None:
    with connected(tmp_path, frame(30), BUDGET) as session:
        with pytest.raises(WrongUse, match="without streams"):
            ln.fit(session, Additive(order=ln.Cyclic(4)), SELECT, **COST)  # type: ignore[arg-type]
        assert session.budget.spent == "0"


def test_an_empty_table_and_more_batches_than_units(tmp_path: Path) -> None:
    with connected(tmp_path, frame(0), BUDGET) as session:
        model = ln.fit(session, recipe(order=ln.Cyclic(50), steps=3), SELECT, **COST)
        assert len(model.predict(frame(3))) == 3
        assert np.isfinite(model.predict_proba(frame(3))).all()
