# SPDX-License-Identifier: Apache-2.0
"""A few random statements agree with plain DuckDB (many: prove/test_numbers.py), and wrong numbers are found."""

import pytest

from sfumato.sql import quotient
from tests.contracts import compared
from tests.contracts.compared import compare


def test_a_few_statements_without_noise_are_those_of_plain_duckdb() -> None:
    found = compare(seed=3, worlds=1, each=16)
    assert found.wrong == [] and found.counts["compared"] > 13


def test_a_rounding_that_is_not_told_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # as if a quotient were compared on a lattice of its own
    exact = quotient._exactly
    monkeypatch.setattr(quotient, "_exactly", lambda op, above, below, value: exact(op, above, below, value + 1))
    assert compare(seed=3, worlds=1, each=20).wrong


def test_sums_that_are_off_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = compared.unnoised
    monkeypatch.setattr(
        compared, "unnoised", lambda *asked: [[each and each * 2 for each in row] for row in plain(*asked)]
    )
    assert compare(seed=3, worlds=1, each=5).wrong
