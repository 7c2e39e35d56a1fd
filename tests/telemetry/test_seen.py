# SPDX-License-Identifier: Apache-2.0
"""Ids are new once, in whatever batches they come."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.telemetry import seen as module
from sfumato.telemetry.seen import Seen

BATCHES = st.lists(st.lists(st.integers(0, 40), max_size=30), max_size=12)


@given(BATCHES)
def test_no_report_is_counted_twice(batches):
    seen, known = Seen(), set()
    for batch in batches:
        wanted = []
        for each in batch:
            wanted.append(each not in known)
            known.add(each)
        assert seen.fresh(np.array(batch, np.uint64)).tolist() == wanted
    assert seen.all.tolist() == sorted(known)


# ids of the same first bits, which the filter cannot tell apart, and of others
LARGE = st.sampled_from([place + (low << 61) for place in range(6) for low in range(8)])


@given(st.lists(st.lists(LARGE, max_size=30), max_size=8))
def test_ids_that_the_filter_cannot_tell_apart_are_told_apart(batches):
    seen, known = Seen(), set()
    for batch in batches:
        wanted = [each not in known and each not in batch[:at] for at, each in enumerate(batch)]
        known.update(batch)
        assert seen.fresh(np.array(batch, np.uint64)).tolist() == wanted
    assert seen.all.tolist() == sorted(known)


def test_a_filter_that_grows_and_runs_that_are_longest_lose_no_id(monkeypatch):
    monkeypatch.setattr(module, "_LONGEST", 4_000)
    ids = np.random.default_rng(1).integers(0, 1 << 64, 30_000, np.uint64)
    seen = Seen()
    for part in np.split(ids, 30):
        assert seen.fresh(part).all()
    assert max(map(len, seen._runs)) <= 4_000
    again = np.concatenate((ids[::7], ids[:50] + np.uint64(1)))
    assert seen.fresh(again).sum() == 50


def test_a_filter_that_forgets_is_noticed(monkeypatch):
    monkeypatch.setattr(module._Filter, "add", lambda self, ids: None)
    seen = Seen()
    seen.fresh(np.array([5], np.uint64))
    assert seen.fresh(np.array([5], np.uint64)).tolist() == [True]


def test_runs_stay_few():
    seen = Seen()
    for start in range(0, 5000, 10):
        seen.fresh(np.arange(start, start + 10, dtype=np.uint64))
    assert len(seen._runs) < 12 and len(seen.all) == 5000
