# SPDX-License-Identifier: Apache-2.0
"""Queries are values, and every part of one is known to the printers."""

from dataclasses import FrozenInstanceError, fields

import pytest

from sfumato.engines import sql_tree as sql

ROWS = sql.Item(sql.Table("t"))


def test_a_query_cannot_be_changed():
    query = sql.Select((sql.Star(),), ROWS)
    with pytest.raises(FrozenInstanceError):
        query.where = sql.TRUE
    assert query == sql.Select((sql.Star(),), sql.Item(sql.Table("t")))
    assert query != sql.Select((sql.Star(),), ROWS, where=sql.TRUE)


# a part that is added and not printed would change what a statement means
@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        (sql.Select, "items source joins where group qualify breaks"),
        (sql.Join, "word item on"),
        (sql.Item, "source alias"),
        (sql.UnionAll, "queries"),
        (sql.Named, "name query materialized"),
        (sql.With, "tables query"),
        (sql.Lists, "columns"),
        (sql.Table, "sql"),
    ],
)
def test_the_parts_are_those_that_the_printers_read(kind, parts):
    assert [part.name for part in fields(kind)] == parts.split()
