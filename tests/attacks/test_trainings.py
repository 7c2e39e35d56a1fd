# SPDX-License-Identifier: Apache-2.0
"""Attacks on trainings, each with a broken version of the code that it sees through."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import EngineFailed
from sfumato.learning.additive import Additive
from sfumato.learning.descent import Descent, State
from sfumato.learning.run import Training
from sfumato.ledger.spend import Ledger
from sfumato.noise import Integers
from sfumato.privacy.event import Design, PoissonSample
from sfumato.query import statistic as statistic_module
from sfumato.query.curator import Curator
from sfumato.query.reserved import Reserved
from sfumato.testing import assert_counts_follow
from tests.learning.rows import SELECT, connected, frame

LIMIT = sf.Budget(10, "1e-5")
RECIPE = Additive(bins=4, steps=5, checkpoints=3)
ASKED: dict[str, Any] = {"label": "ill", "rho": "0.01"}


def seen(monkeypatch: pytest.MonkeyPatch) -> list[Integers]:
    """The releases of a run, as whoever reads its state could compute them."""
    found: list[Integers] = []
    plain = Descent.after

    def after(self: Descent, state: State, released: Integers, scale: float) -> State:
        found.append(released)
        # a model that stands still: every later release is of the same exact integers
        moved = plain(self, state, released, scale)
        return State(
            moved.released, 0, moved.counts, 0 * moved.weights, 0 * moved.speed, moved.total
        )

    monkeypatch.setattr(Descent, "after", after)
    return found


def repeats(released: Sequence[Integers]) -> float:
    """The share of numbers that two releases of the same exact integers have in common."""
    gradients = np.array(released[1:])
    return float((gradients[1:] == gradients[:-1]).mean())


def fitted(folder: Path) -> None:
    folder.mkdir()
    with connected(folder, frame(300), LIMIT) as session:
        ln.fit(session, RECIPE, SELECT, **ASKED)


def test_each_step_has_noise_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The difference of two steps at the same weights is that of their noise: never nothing."""
    found = seen(monkeypatch)
    fitted(tmp_path / "sound")
    # noise of thousands of steps: two draws are equal with a chance far below 1%
    assert len(found) == 6 and repeats(found) < 0.3
    kept: dict[int, Integers] = {}
    plain = Reserved.take

    def take(self: Reserved, *rest: Any, **more: Any) -> tuple[Any, Integers | None]:
        step, noise = plain(self, *rest, **more)
        return step, None if noise is None else kept.setdefault(noise.size, noise)

    # the mutant hands out the first noise of a size again and again
    monkeypatch.setattr(Reserved, "take", take)
    found.clear()
    fitted(tmp_path / "mutant")
    assert repeats(found) == 1


def drawn_after_a_crash(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many steps are measured in all, if the second piece dies at its end and is resumed."""
    folder.mkdir()
    steps: list[int] = []
    plain = Curator.measure

    def measure(self: Curator, *rest: Any, **more: Any) -> Any:
        steps.append(len(steps))
        released = plain(self, *rest, **more)
        if len(steps) == 4:
            raise RuntimeError("killed after its last step, before its checkpoint")
        return released

    monkeypatch.setattr(Curator, "measure", measure)
    with connected(folder, frame(200), LIMIT) as session:
        with pytest.raises(EngineFailed):
            ln.fit(session, RECIPE, SELECT, **ASKED)
        with suppress(EngineFailed):
            ln.fit(session, RECIPE, SELECT, **ASKED)
    return len(steps)


def test_a_step_that_may_have_been_seen_is_never_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six steps are paid; the two of the piece that died are lost."""
    with monkeypatch.context() as patch:
        assert drawn_after_a_crash(tmp_path / "sound", patch) == 6
    plain = Ledger.resume

    def resume(self: Ledger, charge: str) -> Any:
        pieces = plain(self, charge)
        return type(pieces)(**{**fields_of(pieces), "begun": pieces.begun - 1})

    # the mutant forgets that the piece was begun, and the ledger that it may be begun once
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "resume", resume)
        patch.setattr(Ledger, "begin", lambda *_, **__: None)
        patch.setattr(Ledger, "append", lambda *_, **__: None)
        patch.setattr(Ledger, "commit", lambda *_, **__: None)
        assert drawn_after_a_crash(tmp_path / "mutant", patch) > 6


def fields_of(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def told(folder: Path, count: int) -> tuple[Any, ...]:
    """All that is known of a run before it is charged, over so many persons."""
    folder.mkdir()
    with connected(folder, frame(count), LIMIT) as session:
        preview = ln.preview(session, RECIPE, SELECT, **ASKED)
        return repr(preview), preview.cost, preview.noise


def test_no_size_is_read_off_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise, cost and scale are the same whoever is there."""
    assert told(tmp_path / "few", 20) == told(tmp_path / "many", 2000)
    shown = []
    for count in (20, 2000):
        # the mutant scales by the number of rows, which a preview shows
        with monkeypatch.context() as patch:
            patch.setattr(Training, "example", property(lambda self, count=count: float(count)))
            shown.append(told(tmp_path / f"mutant {count}", count))
    assert shown[0] != shown[1]


def sizes(chosen: Callable[[Design, int], Integers], times: int) -> Counter[int]:
    return Counter(len(chosen(PoissonSample("1/4"), 12)) for _ in range(times))


def shuffled() -> Callable[[Design, int], Integers]:
    """Batches of equal size of one random permutation, as loaders make them."""
    random = np.random.default_rng(1)
    left: list[int] = []

    def chosen(design: Design, units: int) -> Integers:
        if not left:
            left.extend(random.permutation(units).tolist())
        batch = [left.pop() for _ in range(units // 4)]
        return np.array(sorted(batch), np.int64)

    return chosen


def test_a_sample_that_is_priced_as_poisson_has_a_binomial_size() -> None:
    """The size of a shuffled batch never changes, so it is noticed at once."""
    times = 600
    binomial = [comb(12, k) * 0.25**k * 0.75 ** (12 - k) for k in range(13)]
    fixed = [float(k == 3) for k in range(13)]

    def check(chosen: Callable[[Design, int], Integers]) -> None:
        counts = sizes(chosen, times)
        assert_counts_follow([counts[k] for k in range(13)], binomial, notices=fixed)

    check(statistic_module.chosen_units)
    with pytest.raises(AssertionError):
        check(shuffled())
