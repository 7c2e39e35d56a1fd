# SPDX-License-Identifier: Apache-2.0
"""Lowers a SELECT of rows for tasks that read rows; no row is ever shown."""

from dataclasses import replace

from sfumato.errors import UnknownName, UnsupportedSql
from sfumato.metadata.dataset import Dataset
from sfumato.plan.rows import RowList
from sfumato.plan.value import Value
from sfumato.sql.lower import tree
from sfumato.sql.names import Context
from sfumato.sql.relations import Relations
from sfumato.sql.tables import require_private, with_columns
from sfumato.sql.typed import Numbers, Person, value_of


def row_list(statement: str, dataset: Dataset) -> RowList:
    """Returns the columns that a SELECT computes for each row, for tasks on rows (a model fit,
    say).

    Joins, WHERE, WITH and sub-queries are as in a question. Columns that identify the unit are
    left out: the unit of each row is known.

    Raises:
        SqlSyntaxError, UnsupportedSql, UnknownName, MissingDeclaration: as ``understand``; a
            SELECT with LIMIT, ORDER BY or without columns.

    >>> from sfumato.metadata.column import Integer
    >>> from sfumato.metadata.table import Table
    >>> data = Dataset("study", {"people": Table("people.csv", columns={"age": Integer(0, 120)})})
    >>> rows = row_list("SELECT age, age >= 18 AS adult FROM people", data)
    >>> [value.name for value in rows.values]
    ['age', 'adult']
    """
    select = tree(statement)
    context = Context(dataset)
    rows = require_private(Relations(context).query(select, {}, "the rows"))
    (source,) = rows.sources
    values = []
    for name in source.shown:
        typed = source.columns.get(name.lower())
        if isinstance(typed, Numbers):
            values.append(Value(name, typed.expression.column.type, typed.expression))
        # a column that names persons is no value
        elif typed is not None and not isinstance(typed, Person):
            values.append(replace(value_of(typed, name), name=name))
    if not values:
        raise UnsupportedSql("Rows without columns.", remedy="SELECT a, b FROM t")
    relation = with_columns(rows.relation, context.units_read)
    return RowList(relation, tuple(values))


def place_of(rows: RowList, name: str) -> int:
    """Returns the position of a column in a row list, by name (UnknownName if there is none)."""
    names = [value.name for value in rows.values]
    places = [place for place, known in enumerate(names) if known.lower() == name.lower()]
    if len(places) != 1:
        raise UnknownName(f"No column {name!r} in the rows.", allowed=", ".join(names))
    return places[0]
