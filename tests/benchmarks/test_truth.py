# SPDX-License-Identifier: Apache-2.0
"""How far answers are off: worked out by hand."""

import pytest

from benchmarks.systems import truth


def test_the_middle_group_tells_and_a_group_that_is_missing_is_off_by_all(monkeypatch):
    monkeypatch.setattr(truth, "exact", lambda name, n: {"a": 10.0, "b": 100.0, "c": 1.0})
    assert truth.error("W2", 1, {"a": 12, "b": 99, "other": 7}) == pytest.approx(20)
    works = truth.errors(
        {"W2": lambda scale, n: lambda: [("a", 10), ("b", 50), ("c", 2)]}, {"W2": dict}
    )
    assert works["W2 error"](1.0, 1)() == pytest.approx(50)
