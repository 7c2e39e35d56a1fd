# SPDX-License-Identifier: Apache-2.0
"""The rows of a group are those of the reference; a row in a wrong group is noticed."""

import pytest

from sfumato.engines import grouped_rows
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.expression import typed
from tests.contracts.conformance import differs
from tests.contracts.examples import EXAMPLES

_in_group = grouped_rows._in_group
MUTANTS = {
    "keys in a type that is too narrow": ("narrow", lambda read: f"({typed(read)} & 1)"),
    "rows that are in no group": ("_in_group", lambda key, name: ""),
    "NULL in every group": (
        "_in_group",
        lambda key, name: f"({name} IS NULL OR {_in_group(key, name) or 'TRUE'})",
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_row_in_a_wrong_group_is_noticed(monkeypatch, mutant):
    monkeypatch.setattr(grouped_rows, *MUTANTS[mutant])
    assert any(differs(DuckDB, name) for name in EXAMPLES)
