# SPDX-License-Identifier: Apache-2.0
"""The rows of a group are those of the reference; a row in a wrong group is noticed."""

import pytest

from sfumato.engines import grouped_rows, sql_tree
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.expression import typed
from tests.contracts.conformance import noticed
from tests.contracts.verbatim import Verbatim

_in_group = grouped_rows._in_group
MUTANTS = {
    "keys in a type that is too narrow": (
        "narrow",
        lambda read: Verbatim(f"({printed(typed(read))} & 1)"),
    ),
    "rows that are in no group": ("_in_group", lambda key, column: None),
    "NULL in every group": (
        "_in_group",
        lambda key, column: sql_tree.Paren(
            sql_tree.Logic("OR", (sql_tree.IsNull(column), _in_group(key, column) or sql_tree.TRUE))
        ),
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_row_in_a_wrong_group_is_noticed(monkeypatch, telling, mutant):
    monkeypatch.setattr(grouped_rows, *MUTANTS[mutant])
    assert noticed(DuckDB, telling)
