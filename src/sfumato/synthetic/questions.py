# SPDX-License-Identifier: Apache-2.0
"""SQL on synthetic rows: the rows are released, so nothing here is private or charged."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa

from sfumato.errors import UnsupportedSql, shown
from sfumato.metadata.dataset import Dataset
from sfumato.plan.relation import Scan
from sfumato.plan.scalar import Key
from sfumato.plan.scope import nodes
from sfumato.privacy.distance import Norm
from sfumato.query.passes import Context
from sfumato.query.passes.prune import prune
from sfumato.sql.lower import understand

# The values of the keys of each row of a result, and its numbers.
Results: TypeAlias = dict[tuple[Any, ...], list[Any]]


def keys_of(sql: str, dataset: Dataset) -> list[int]:
    """Returns the indices of a statement's columns that are keys of its groups.

    Raises:
        UnsupportedSql: it is no statement that a session would answer.
    """
    items = understand(sql, dataset).output.items
    return [at for at, item in enumerate(items) if isinstance(item.expression, Key)]


def columns_read(sql: str, dataset: Dataset) -> dict[str, frozenset[str]]:
    """Returns the columns of each table that a statement reads.

    >>> from sfumato.metadata.column import Integer
    >>> from sfumato.metadata.table import Table
    >>> people = Table("p.csv", columns={"age": Integer(0, 9), "pay": Integer(0, 9)})
    >>> columns_read("SELECT AVG(age) AS a FROM people", Dataset("d", {"people": people}))
    {'people': frozenset({'age'})}
    """
    columns: dict[str, frozenset[str]] = {}
    read = prune(understand(sql, dataset).raw, Context(dataset, Norm.L1))
    for node in nodes(read.relation):
        if isinstance(node, Scan):
            names = frozenset(one.name.removeprefix(node.prefix) for one in node.columns)
            columns[node.table] = columns.get(node.table, frozenset()) | names
    return columns


def answered(sql: str, samples: Iterable[Mapping[str, pa.Table]]) -> Iterator[pa.Table]:
    """Runs a statement on each of several samples of the tables, and yields the results.

    All samples share a connection: opening one takes ten times as long as a query.

    Raises:
        UnsupportedSql: it cannot be computed on them.
    """
    with duckdb.connect(config={"enable_external_access": "false", "threads": "1"}) as public:
        for tables in samples:
            for name, rows in tables.items():
                public.register(name, rows)
            try:
                result = public.sql(sql).to_arrow_table()
            except duckdb.Error as failed:
                raise UnsupportedSql(
                    f"The synthetic rows do not answer {shown(sql)}: {failed}",
                    allowed="columns that were synthesised",
                ) from None
            yield result


def by_key(table: pa.Table, keys: Sequence[int]) -> Results:
    """Returns the rows of a result by their group keys.

    Raises:
        UnsupportedSql: two rows have the same keys, so copies cannot be compared group by group.
    """
    rows_by_key: Results = {}
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        key = tuple(row[at] for at in keys)
        if key in rows_by_key:
            raise UnsupportedSql(
                "Groups that the selected columns do not tell apart.",
                remedy="SELECT every column of GROUP BY, too; a missing value and a subtotal of "
                "ROLLUP look the same: leave one of them out.",
            )
        rows_by_key[key] = [value for at, value in enumerate(row) if at not in keys]
    return rows_by_key
