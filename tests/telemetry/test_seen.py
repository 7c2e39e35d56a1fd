# SPDX-License-Identifier: Apache-2.0
"""Ids are new once, in whatever batches they come."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

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


def test_runs_stay_few():
    seen = Seen()
    for start in range(0, 5000, 10):
        seen.fresh(np.arange(start, start + 10, dtype=np.uint64))
    assert len(seen._runs) < 12 and len(seen.all) == 5000
