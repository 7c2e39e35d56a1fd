# SPDX-License-Identifier: Apache-2.0
"""What is read again and refused is counted, in entries of a bounded size."""

import threading

import pytest

from sfumato.ledger import tally as tally_module
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.tally import Counts, Tally, entry_body


def test_nothing_that_was_counted_is_lost_without_a_crash() -> None:
    tally = Tally()
    tally.read("d", "d/p/a", ["c1", "c2"])
    tally.read("d", "d/p/a", ["c1"])
    tally.refused("d", "d", "NotListed")
    tally.refused("e", "e/p/a", "BudgetExceeded")
    taken = tally.take("d")
    assert (tally.datasets(), tally.take("d")) == (["e"], Counts())
    tally.refused("d", "d", "NotListed")
    tally.give_back("d", taken)
    assert entry_body(tally.take("d")) == {
        "accounts": {"d": {"refusals": {"NotListed": 2}}, "d/p/a": {"reads": {"c1": 2, "c2": 1}}}
    }


def test_an_entry_has_a_bounded_size() -> None:
    tally = Tally()
    for number in range(5000):
        tally.read("d", f"d/p/{'x' * 150}{number}", [f"c{number}"])
        tally.refused("d", f"d/q/{number}", "BudgetExceeded")
    counts = tally.take("d")
    body = entry_body(counts)
    assert len(canonical_json(body)) < 80_000
    assert counts.total() == 10_000
    assert (
        body["accounts"]["d"]["reads"]["others"] + body["accounts"]["d"]["refusals"]["others"]
        == 10_000 - 256
    )


def test_an_entry_that_names_everything_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally_module, "_MOST_NAMED", 10**9)
    with pytest.raises((AssertionError, KeyError)):
        test_an_entry_has_a_bounded_size()


def test_it_is_time_after_enough_and_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    tally, clock = Tally(), [0.0]
    monkeypatch.setattr(tally_module.time, "monotonic", lambda: clock[0])
    assert not tally.is_due("d")
    for _ in range(1000):
        tally.read("d", "d/p/a", ["c"])
    clock[0] = 599.0
    assert not tally.is_due("d")
    clock[0] = 600.0
    assert tally.is_due("d")
    tally.take("d")
    tally.read("d", "d/p/a", ["c"])
    clock[0] = 10_000.0
    assert not tally.is_due("d"), "too few"


def test_threads_count_together() -> None:
    tally = Tally()
    threads = [
        threading.Thread(target=lambda: [tally.read("d", "d/p/a", ["c"]) for _ in range(500)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tally.take("d").total() == 4000
