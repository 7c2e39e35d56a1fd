# SPDX-License-Identifier: Apache-2.0
"""Many random statements over random declarations: without noise they are those of plain DuckDB."""

from collections.abc import Callable

from tests.contracts.compared import compare

WORLDS, EACH = 800, 25


def test_statements_without_noise_are_those_of_plain_duckdb(report: Callable[[str], None]) -> None:
    found = compare(seed=7, worlds=WORLDS, each=EACH)
    assert found.wrong == []
    assert found.counts["compared"] > 0.9 * WORLDS * EACH
    report(
        f"{found.counts['compared']} statements agree with plain DuckDB to within what they tell of their steps"
    )
