# SPDX-License-Identifier: Apache-2.0
"""Answers about graphs read what was stored, and nothing else."""

import pytest

from sfumato.errors import WrongUse
from sfumato.graph.answer import Count, DegreeTable, degree_chart
from sfumato.query.task import Stored

COST = {"epsilon": "1", "rho": "0.5", "delta": "0", "items": []}
FACTS = {"question": "edges", "charge_id": "c" * 32, "cost": COST, "protected": ["Protected: x."]}


def test_a_number_has_an_interval_a_cost_and_notes():
    count = Count({**FACTS, "value": 7, "low": 5, "high": 9, "limit": 4}, Stored(b"", "d" * 32))
    assert (count.value, count.low, count.high, count.limit) == (7, 5, 9, 4)
    assert (count.charge_id, count.recalled, count.cost.epsilon) == ("d" * 32, False, "1")
    assert count.notes[0] == "Protected: x." and "more than 4 edges" in count.notes[1]
    recalled = Count({**FACTS, "value": 7, "low": 5, "high": 9}, Stored(b"", "", recalled=True))
    assert (recalled.charge_id, recalled.recalled, recalled.notes) == (
        "c" * 32,
        True,
        ("Protected: x.",),
    )


def test_degrees_are_a_histogram_and_a_falling_sequence():
    table = DegreeTable({**FACTS, "degrees": [[1, 2], [5, 1]]}, Stored(b"", ""))
    assert table.histogram == {1: 2, 5: 1}
    assert table.sequence.tolist() == [5, 1, 1]
    assert table.to_arrow().to_pydict() == {"degree": [1, 5], "nodes": [2, 1]}
    long = DegreeTable({**FACTS, "degrees": [[at, 1] for at in range(30)]}, Stored(b"", ""))
    assert "... 10 more degrees" in repr(long)
    huge = DegreeTable({**FACTS, "degrees": [[1, 10**12]]}, Stored(b"", ""))
    with pytest.raises(WrongUse, match=r"10\^9"):
        _ = huge.sequence


def test_a_chart_has_ranges_that_double():
    svg = degree_chart({"true": {0: 1, 1: 2, 5: 3, 9: 4}, "synthetic": {1: 2}}).svg
    for label in ("4 to 7", "8 to 15", "2 to 3"):
        assert label in svg
    assert degree_chart({"empty": {}}).svg.startswith("<svg")
