# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo learning``: a boundary, a training that is killed and resumed, and a page."""

import pytest

from sfumato.errors import Failed
from sfumato.examples import demo_learning
from sfumato.examples.demo_learning import page
from sfumato.learning.frontier import Frontier, Point
from tests.contracts.shell import Shell

BOUNDARY = Frontier((Point("1", 0.85, 0.84, 0.86, 0.7311),), 0.87, 0.6, None, 3)


def test_the_page_has_the_picture_and_what_was_printed() -> None:
    shown = page(BOUNDARY, [("A <title>", "a & b")])
    assert "<svg" in shown and "A &lt;title&gt;" in shown and "a &amp; b" in shown
    assert "<script" not in shown


def test_a_training_that_is_not_killed_is_a_failure(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(demo_learning, "_DIES_AFTER", "no number")
    with pytest.raises(Failed, match="not by SIGKILL"):
        demo_learning._train_and_kill(tmp_path / "ledger.db")


@pytest.mark.long
def test_it_chooses_trains_and_resumes(shell: Shell) -> None:
    ran = shell.run("demo", "learning")
    assert (ran.code, ran.err) == (0, "")
    for words in ("attacker right at most", "2 of 4 pieces stored", "1 charge", "epsilon 1 of 2"):
        assert words in ran.out
    assert "<svg" in (shell.folder / "demo-learning.html").read_text("utf-8")
