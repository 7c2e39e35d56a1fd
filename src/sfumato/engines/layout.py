# SPDX-License-Identifier: Apache-2.0
"""DuckDB SQL that writes a prepared layout: codes of a table, and the rank of each row in its unit.

``prepare`` runs it. The rank comes from a keyed hash of the row's content and its unit, computed
once, so the first t rows of every unit are a sample of it, for any t. Equal rows of a unit are
numbered, since their hashes would be equal and all or none of them would be in the sample. Proof:
layout.proof.md.
"""

from sfumato.engines import sql_tree as sql
from sfumato.engines.duckdb_printer import printed, text
from sfumato.engines.expression import alias
from sfumato.engines.relation import Tables, first_in_layout, in_layout, rows
from sfumato.engines.value_sql import narrowest
from sfumato.errors import unknown
from sfumato.metadata.column import Array, Column, Real, Text
from sfumato.metadata.dataset import Dataset
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import (
    Filter,
    KeyJoin,
    PerUnit,
    PublicJoin,
    Ranked,
    Scan,
    Semi,
    Union,
    UnitJoin,
    Windowed,
)
from sfumato.plan.scalar import Field, leaves
from sfumato.plan.stages import Raw

# The largest place; it is stored in 32 bits.
MOST = 2**31 - 1
MOST_GROUPS = 100_000


def whole(dataset: Dataset, table: str) -> Scan:
    """Returns the scan of a table with all columns that its prepared layout stores.

    Columns of arrays are left out, as no question reads them.
    """
    declared = dataset.tables[table].columns.items()
    columns = tuple(Column(name, kind) for name, kind in declared if not isinstance(kind, Array))
    return Scan(table, "", columns, owner_of(dataset, table))


def layout_statements(
    scan: Scan,
    tables: Tables,
    key: str,
    most: int,
    path: str,
) -> list[str]:
    """Returns the SQL statements that write a prepared layout: a Parquet file with the first
    ``most`` rows of each unit, in a pseudorandom order by ``key``.

    Rows are sorted by rank first, so a question that reads fewer rows of each unit reads only the
    beginning of the file. Units are numbered in arbitrary order; only the equality of numbers is
    used. A unit has the same number in all tables that are written over one connection, so these
    tables can be joined. For each column that may be a key, a Boolean column marks the first row of
    each unit with each value; the number of units in a group is the number of these marks.

    Guarantees:
        a layout has the rows of the reference
    """
    items = []
    for column in scan.columns:
        stored = sql.Cast(alias(column), narrowest(column.type))
        items.append(printed(stored.named(in_layout(scan, column))))
    items += [_mark(scan, column) for column in scan.columns if _is_marked(column)]
    items += ["u.number AS unit", "CAST(place AS INTEGER) AS place"]
    # as strings, because one table may store an integer where another one stores a string
    units = "SELECT CAST(unit AS VARCHAR) AS id FROM placed WHERE place = 1"
    numbered = "SELECT id, row_number() OVER () + (SELECT count(*) FROM units) AS number"
    joined = "placed AS p JOIN units AS u ON CAST(p.unit AS VARCHAR) = u.id"
    written = f"SELECT {', '.join(items)} FROM {joined} ORDER BY p.place, u.number"
    return [
        f"CREATE OR REPLACE TEMP TABLE placed AS {placed(scan, tables, key, most)}",
        "CREATE TEMP TABLE IF NOT EXISTS units (id VARCHAR, number BIGINT)",
        f"INSERT INTO units {numbered} FROM ({units}) AS f ANTI JOIN units USING (id)",
        f"COPY ({written}) TO {text(path)} (FORMAT parquet)",
        "DROP TABLE placed",
    ]


def placed(
    scan: Scan,
    tables: Tables,
    key: str,
    most: int,
) -> str:
    """Selects the rows of a table with their rank; rows of rank beyond ``most`` are left out."""
    names = [printed(alias(column)) for column in scan.columns]
    number = f"row_number() OVER (PARTITION BY {', '.join(['unit', *names])}) AS number"
    numbered = f"SELECT *, {number} FROM ({printed(rows(scan, tables))})"
    words = [text(key)]
    words += [f"coalesce(CAST({name} AS VARCHAR), 'N')" for name in names]
    words += ["CAST(unit AS VARCHAR)", "CAST(number AS VARCHAR)"]
    joined = " || '|' || ".join(words)
    order = ", ".join([f"md5({joined})", *(f"{name} NULLS FIRST" for name in names), "number"])
    place = f"row_number() OVER (PARTITION BY unit ORDER BY {order}) AS place"
    return f"SELECT * EXCLUDE (number), {place} FROM ({numbered}) QUALIFY place <= {most}"


def _mark(scan: Scan, column: Column) -> str:
    """Returns the item that is TRUE of the first row of its unit with its value of a column."""
    number = f"row_number() OVER (PARTITION BY p.unit, {printed(alias(column))} ORDER BY place)"
    return f"{number} = 1 AS {printed(first_in_layout(scan, column))}"


def _is_marked(column: Column) -> bool:
    """Whether a column can be a key itself: GROUP BY of a column with more values is refused."""
    kind = column.type
    return isinstance(kind, Text) or (not isinstance(kind, Real) and kind.size <= MOST_GROUPS)


def key_alone(raw: Raw) -> Column | None:
    """Returns the single GROUP BY column on which alone the count of units depends, if a prepared
    layout marks its first rows.

    None if the count also depends on other columns.
    """
    key = raw.keys[0].value.expression if len(raw.keys) == 1 else None
    if not isinstance(key, Field) or not _is_marked(key.column):
        return None
    relation = raw.relation
    while not isinstance(relation, Scan):
        match relation:
            case Filter(_, test) if all(leaf == key for leaf in leaves(test)):
                relation = relation.source
            case Semi():
                # a semi-join keeps all rows of a unit, or none
                relation = relation.source
            case Filter() | PublicJoin() | KeyJoin() | UnitJoin() | PerUnit() | Union():
                return None
            case Ranked() | Windowed():
                return None
            case _:
                raise unknown(relation)
    return key.column
