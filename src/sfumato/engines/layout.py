# SPDX-License-Identifier: Apache-2.0
"""What a prepared layout holds: the codes of a table, and the place of each row among its unit's.

The place is fixed once for all by a keyed hash of what the row holds and of its unit, so the
first t rows of every unit are a sample whatever t is. Equal rows of a unit are numbered, or
a hash of what they hold would keep all of them or none. Proof: layout.proof.md.
"""

from sfumato.engines.expression import alias
from sfumato.engines.relation import Tables, first_in_layout, in_layout, rows
from sfumato.engines.value_sql import narrowest, text
from sfumato.errors import unknown
from sfumato.metadata.column import Column, Real, Text
from sfumato.metadata.dataset import Dataset
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Filter, PerUnit, PublicJoin, Ranked, Scan, Semi, Union, UnitJoin
from sfumato.plan.scalar import Field, leaves
from sfumato.plan.stages import Raw

# The largest place: it is stored in 32 bits.
MOST = 2**31 - 1
MOST_GROUPS = 100_000


def whole(dataset: Dataset, table: str) -> Scan:
    """A declared table with all its columns: what a layout holds."""
    columns = tuple(Column(name, kind) for name, kind in dataset.tables[table].columns.items())
    return Scan(table, "", columns, owner_of(dataset, table))


def layout_statements(scan: Scan, tables: Tables, key: str, most: int, path: str) -> list[str]:
    """Writes the first ``most`` rows of each unit to a Parquet file.

    By place first: a question that counts fewer rows of a unit reads the beginning of the file.
    Units are numbered in no order; nothing but their being different is ever asked of them. A
    unit has one number in all tables that are written over one connection, so that they can be joined.
    For each column that may be a key it is marked which row of a unit is the first with its value:
    how many units a group has is then how many marks.

    Guarantees:
        a layout has the rows of the reference
    """
    columns = [
        f"CAST({alias(each)} AS {narrowest(each.type)}) AS {in_layout(scan, each)}"
        for each in scan.columns
    ]
    marks = [_mark(scan, each) for each in scan.columns if is_marked(each)]
    items = ", ".join([*columns, *marks, "u.number AS unit", "CAST(place AS INTEGER) AS place"])
    # as texts, for one table may hold as a number what another one holds as a text
    found = "SELECT CAST(unit AS VARCHAR) AS id FROM placed WHERE place = 1"
    numbered = "SELECT id, row_number() OVER () + (SELECT count(*) FROM units) AS number"
    joined = "placed AS p JOIN units AS u ON CAST(p.unit AS VARCHAR) = u.id"
    return [
        f"CREATE OR REPLACE TEMP TABLE placed AS {placed(scan, tables, key, most)}",
        "CREATE TEMP TABLE IF NOT EXISTS units (id VARCHAR, number BIGINT)",
        f"INSERT INTO units {numbered} FROM ({found}) AS f ANTI JOIN units USING (id)",
        f"COPY (SELECT {items} FROM {joined} ORDER BY p.place, u.number) TO {text(path)} (FORMAT parquet)",
        "DROP TABLE placed",
    ]


def placed(scan: Scan, tables: Tables, key: str, most: int) -> str:
    """The rows of a table with their place; those beyond ``most`` are left out."""
    names = [alias(each) for each in scan.columns]
    number = f"row_number() OVER (PARTITION BY {', '.join(['unit', *names])}) AS number"
    numbered = f"SELECT *, {number} FROM ({rows(scan, tables)})"
    parts = [
        text(key),
        *(f"coalesce(CAST({name} AS VARCHAR), 'N')" for name in names),
        "CAST(unit AS VARCHAR)",
        "CAST(number AS VARCHAR)",
    ]
    joined = " || '|' || ".join(parts)
    order = ", ".join([f"md5({joined})", *(f"{name} NULLS FIRST" for name in names), "number"])
    place = f"row_number() OVER (PARTITION BY unit ORDER BY {order}) AS place"
    return f"SELECT * EXCLUDE (number), {place} FROM ({numbered}) QUALIFY place <= {most}"


def _mark(scan: Scan, column: Column) -> str:
    """Whether a row is the first of its unit, by place, to have its value of a column."""
    number = f"row_number() OVER (PARTITION BY p.unit, {alias(column)} ORDER BY place)"
    return f"{number} = 1 AS {first_in_layout(scan, column)}"


def is_marked(column: Column) -> bool:
    """Whether a column may be a key as it is: GROUP BY of more values is refused."""
    kind = column.type
    return isinstance(kind, Text) or (not isinstance(kind, Real) and kind.size <= MOST_GROUPS)


def key_alone(raw: Raw) -> Column | None:
    """The marked column that is the key, if nothing else decides whether and where a row counts."""
    key = raw.keys[0].value.expression if len(raw.keys) == 1 else None
    if not isinstance(key, Field) or not is_marked(key.column):
        return None
    relation = raw.relation
    while not isinstance(relation, Scan):
        match relation:
            case Filter(_, test) if all(leaf == key for leaf in leaves(test)):
                relation = relation.source
            case Semi():
                # all rows of a unit, or none
                relation = relation.source
            case Filter() | PublicJoin() | UnitJoin() | PerUnit() | Ranked() | Union():
                return None
            case _:
                raise unknown(relation)
    return key.column
