# SPDX-License-Identifier: Apache-2.0
"""A few random statements agree with plain DuckDB (many: prove/test_numbers.py), and wrong numbers
are found.
"""

from dataclasses import replace
from fractions import Fraction

import pytest

from sfumato.query import answer_rows
from sfumato.sql import quotient
from tests.contracts import compared, unnoised
from tests.contracts.compared import compare

# seeds whose first statements ask for quantiles, for several grouping sets
QUANTILES, SETS = 2, 5


def test_a_few_statements_without_noise_are_those_of_plain_duckdb() -> None:
    found = compare(seed=3, worlds=1, each=16)
    assert found.wrong == [] and found.counts["compared"] > 13


def test_a_rounding_that_is_not_told_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # as if a quotient were compared on a lattice of its own
    exact = quotient._compare_exactly
    monkeypatch.setattr(
        quotient,
        "_compare_exactly",
        lambda op, above, below, value: exact(op, above, below, value + 1),
    )
    assert compare(seed=3, worlds=1, each=20).wrong


def test_sums_that_are_off_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = compared.rows_unnoised
    monkeypatch.setattr(
        compared,
        "rows_unnoised",
        lambda *asked: [
            (codes, [each and each * 2 for each in row]) for codes, row in honest(*asked)
        ],
    )
    assert compare(seed=3, worlds=1, each=5).wrong


def test_quantiles_that_are_a_row_off_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = unnoised._leaves
    monkeypatch.setattr(
        unnoised,
        "_leaves",
        lambda integers, levels: honest(
            integers, [min(each + Fraction(1, 8), Fraction(1)) for each in levels]
        ),
    )
    found = compare(seed=QUANTILES, worlds=1, each=12)
    assert any("MEDIAN" in each or "QUANTILE" in each for each in found.wrong)


def test_totals_that_lack_a_group_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = answer_rows._summed
    monkeypatch.setattr(
        answer_rows, "_summed", lambda part, rows: honest(part, [each[:1] for each in rows])
    )
    assert compare(seed=SETS, worlds=1, each=8).wrong


def test_a_grouping_set_that_is_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = unnoised.merged
    monkeypatch.setattr(
        unnoised,
        "merged",
        lambda output, *more: honest(replace(output, sets=output.sets[:-1] or output.sets), *more),
    )
    assert any("no row for" in each for each in compare(seed=SETS, worlds=1, each=8).wrong)
