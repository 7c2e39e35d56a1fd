# SPDX-License-Identifier: Apache-2.0
"""Which steps stand beside which ordinary one, how flushes are counted, what a share is."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import learning, learning_scale
from benchmarks.compare import Sample
from benchmarks.driver import Unavailable
from benchmarks.learning import JAX, OPACUS, OURS
from benchmarks.systems import pictures


class Steps:
    """Each step takes so many milliseconds of the processor; what is not listed it cannot do."""

    def __init__(self, **milliseconds):
        self.milliseconds = milliseconds

    def ask(self, work, kind):
        network, step = work.name.split(", ")
        if network != "MLP" or step not in self.milliseconds:
            raise Unavailable("cannot")
        return Sample(0, self.milliseconds[step] / 1000)


def test_a_step_in_jax_stands_beside_an_ordinary_one_in_jax(monkeypatch):
    monkeypatch.setattr(learning, "STEPS", (("MLP", 256, 1.35, 1.9), ("MLP", 2048, None, 1.4)))
    workers = {
        OURS: Steps(ordinary=10, clipped=13, noisy=20),
        OPACUS: Steps(hooks=150),
        JAX: Steps(ordinary=8, vmap=64),
    }
    found = {(row.case, row.peer, row.holds): row.ratio for row in learning.steps(workers)}
    assert found == {
        ("step of MLP, 256 rows, clipped", 10.0, True): 0.7692,
        ("step of MLP, 256 rows, noisy", 10.0, False): 0.5,
        ("step of MLP, 256 rows, hooks", 10.0, None): 0.06667,
        ("step of MLP, 256 rows, vmap", 8.0, None): 0.125,
        ("step of MLP, 2,048 rows, clipped", 10.0, None): 0.7692,
        ("step of MLP, 2,048 rows, noisy", 10.0, False): 0.5,
    }


TRACE = """12 fsync(7)                          = 0
13 fdatasync(6 <unfinished ...>
12 rename("a.fsync", "b")             = 0
13 <... fdatasync resumed>)           = 0
"""


def test_flushes_of_all_threads_count_once_each(monkeypatch):
    def traced(*words, before):
        Path(before[-1]).write_text(TRACE * int(words[-1]), encoding="utf-8")

    monkeypatch.setattr(learning_scale, "_child", traced)
    assert learning_scale.flushes("strace", 3) == 6
    monkeypatch.setattr(learning_scale.shutil, "which", lambda name: None)
    with pytest.raises(learning_scale.Skipped, match="not installed"):
        list(learning_scale.checkpoint())


def test_the_share_of_directions_is_that_of_their_space(monkeypatch):
    parts = np.diag([5.0, 3.0, 2.0]), np.array([5.0, 3.0, 2.0])
    monkeypatch.setattr(pictures, "_covariance", lambda: parts)
    # neither of length 1 nor at right angles: the space of the first and the last number
    assert pictures.share(np.array([[2.0, 0, 0], [1, 0, 1]])) == pytest.approx(7 / 8)
    # half of the first and half of the second
    assert pictures.share(np.array([[1.0, 1, 0]])) == pytest.approx(4 / 5)
