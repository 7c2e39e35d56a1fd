# SPDX-License-Identifier: Apache-2.0
"""Kills while a head is published, and what the next opening says; ``chaos`` does it for longer."""

from pathlib import Path

import pytest

from tests.contracts.head_kills import FILE, SINKS, head_kills


@pytest.mark.parametrize("sink", SINKS)
def test_a_kill_while_a_head_is_published_refuses_an_older_ledger_and_no_other(
    tmp_path: Path, sink: str
) -> None:
    found = head_kills(place=str(tmp_path), sink=sink, every=3)
    assert [each for each in found if each.wrong] == []
    # the older ledger was behind the head at some kills and not at others
    assert {each.refused for each in found} == {False, True}


@pytest.mark.parametrize("mutant", ["no comparison", "in place"])
def test_a_sink_that_is_not_compared_or_not_replaced_at_once_is_noticed(
    tmp_path: Path, mutant: str
) -> None:
    assert any(
        each.wrong for each in head_kills(place=str(tmp_path), sink=FILE, every=3, mutant=mutant)
    )
