# SPDX-License-Identifier: Apache-2.0
"""A training whose process is killed: what is paid stays paid, and no step is drawn again."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.examples.killed_fit import COST, RECIPE, STATEMENT, main, opened, trained
from sfumato.learning.fit import preview


def killed(ledger: Path, last: int) -> int:
    command = [sys.executable, "-m", "sfumato.examples.killed_fit", str(ledger), str(last)]
    return subprocess.run(command, check=False).returncode


@pytest.mark.long
@pytest.mark.parametrize("last", [1, 3])
def test_a_killed_training_goes_on_from_its_last_checkpoint(tmp_path: Path, last: int) -> None:
    ledger = tmp_path / "ledger.db"
    assert killed(ledger, last) == -signal.SIGKILL
    with opened(ledger) as session:
        paid = preview(session, RECIPE, STATEMENT, label="income", **COST).paid
        assert f"{last} of 4 pieces stored, 0 lost" in str(paid)
        places: list[int] = []
        trained(session, lambda place, of: places.append(place))
        assert places == list(range(last + 1, 5)) and session.budget.spent == "1"


def test_it_dies_after_the_checkpoint_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    monkeypatch.setattr("os.kill", lambda _, how: sent.append(how))
    main(str(tmp_path / "ledger.db"), "2")
    assert sent == [signal.SIGKILL]
