# SPDX-License-Identifier: Apache-2.0
"""Files that are lost, linked, copied and cut after a kill: each case ends whole or refused."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.errors import SfumatoError
from sfumato.ledger.archive import lines, load
from sfumato.ledger.migrate import migrate
from sfumato.ledger.signed_heads import Signer
from sfumato.ledger.store.sqlite import SQLite
from tests.contracts.charges import opened, paid, pure
from tests.contracts.losses import MIGRATING, live, lost, run

ROUNDS = 50


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_done_to_the_files_after_a_kill_nothing_acknowledged_is_forgotten(
    tmp_path: Path, report: Callable[[str], None], seed: int
) -> None:
    outcomes = lost(tmp_path, ROUNDS, seed)
    assert "nothing: refused" not in outcomes
    report(f"files, seed {seed}: {outcomes}")


def test_an_export_that_is_cut_at_any_byte_is_refused(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    ledger = opened(tmp_path / "l.db")
    for number in range(10):
        paid(ledger, pure("0.01", f"q{number}"))
    signer = Signer(tmp_path / "key")
    text = ledger.store.read(
        lambda rows: "\n".join(lines(rows, signer.sign(ledger.store.identity, rows)))
    )
    store = SQLite(tmp_path / "copy.db")
    cuts = range(0, len(text), len(text) // 500)
    for cut in cuts:
        with pytest.raises(SfumatoError):
            load(store, text[:cut].splitlines())
    load(store, text.splitlines())
    report(f"an export of {len(text)} bytes: {len(cuts)} cuts, all refused")


def test_a_migration_killed_at_every_write_and_sync_never_leaves_two(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    outcomes = Counter[str]()
    for fatal in range(1, 10**6):
        source, target = tmp_path / f"source {fatal}.db", tmp_path / f"target {fatal}.db"
        ledger = opened(source)
        paid(ledger, pure("0.1", "a"), b"first")
        ledger.close()
        done = run(MIGRATING, source, target, fatal)
        alive = [live(source), target.exists() and live(target)]
        assert sum(alive) <= 1
        outcomes[json.dumps(alive)] += 1
        migrate(source, target)
        assert [live(source), live(target)] == [False, True]
        if done.returncode == 0:
            break
    report(f"a migration killed at {fatal - 1} points: source and target charge {dict(outcomes)}")
