# SPDX-License-Identifier: Apache-2.0
"""Rows of relations in SQL: each step that can be forgotten is noticed."""

import pytest

from sfumato.engines import relation
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.relation import Tables, rows, stored_columns
from sfumato.engines.value_sql import Source
from sfumato.plan.owner import Owner
from sfumato.plan.relation import PublicJoin, Scan, Semi, Union
from sfumato.plan.scalar import Field
from tests.contracts.conformance import differing, noticed
from tests.contracts.examples import EXAMPLES
from tests.contracts.verbatim import Verbatim, changed
from tests.contracts.world import scan


# one by one they are in tests/engines/test_conformance.py
@pytest.mark.long
def test_every_relation_has_the_rows_of_the_reference():
    assert not list(differing(DuckDB, EXAMPLES))


MUTANTS = {
    "NULL units kept": changed(relation, "_scan", " WHERE s.unit IS NOT NULL"),
    "a key of several units": changed(relation, "_units_of_keys", "min(unit)", "max(unit)"),
    "every claimant": changed(relation, "_units_of_keys", "GROUP BY key", "GROUP BY key, unit"),
    "public rows multiplied": changed(relation, "_first_of_key", ") = 1", ") >= 1"),
    "the last public row": changed(relation, "_first_of_key", "NULLS FIRST", "DESC"),
    "rows of a key multiplied": changed(
        relation, "_first_of_key", "(PARTITION BY unit", "(PARTITION BY 1"
    ),
    "a key of anybody": changed(relation, "_key_join", "l.unit = r.unit", "TRUE"),
    "an inner join for an outer": ("_join_word", lambda *, outer: "JOIN"),
    "an outer join for an inner": ("_join_word", lambda *, outer: "LEFT JOIN"),
    "no cut": ("_clip_column", relation.alias),
    "a mean truncated toward zero": (
        "_mean",
        lambda computed, read: Verbatim(
            f"sum({read.name})::HUGEINT // nullif(count({read.name}), 0)"
        ),
    ),
    "counted twice": changed(relation, "_summary", "DISTINCT"),
    "NULLs first in an order": changed(relation, "_select_ranks", "NULLS LAST", "NULLS FIRST"),
    "ascending for descending": changed(relation, "_select_ranks", "DESC", "ASC"),
    "ties as they come": changed(relation, "_select_ranks", "row_number()", "rank()"),
    "the most for the least": changed(relation, "_first_of_unit", "min(", "max("),
    "the least of all": changed(
        relation, "_first_of_unit", " GROUP BY unit", ' GROUP BY unit, "c_people.t"'
    ),
    "every row for the first": changed(relation, "_first_of_unit", " = 1", " >= 1"),
    "ranks of everybody": changed(relation, "_select_ranks", "PARTITION BY unit", ""),
    "a semi-join for an anti-join": changed(relation, "rows", "ANTI JOIN", "SEMI JOIN"),
    "a union of sets": changed(relation, "rows", "UNION ALL", "UNION"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_forgotten_step_is_noticed(monkeypatch, telling, mutant):
    monkeypatch.setattr(relation, *MUTANTS[mutant])
    if mutant.startswith(("a semi-join", "a union")):
        monkeypatch.setattr("sfumato.engines.grouped_rows.rows", relation.rows)
    assert noticed(DuckDB, telling)


SHORT = Source("s", {"who": "INTEGER", "key": "VARCHAR", "day": "DATE"})
WORDY = Source("w", {"who": "VARCHAR"})


@pytest.mark.parametrize(
    ("owners", "numbered"),
    [
        ([("s", Owner(("who",)))], True),
        ([("w", Owner(("who",)))], False),
        ([("s", Owner(("who",))), ("w", Owner(("who",)))], False),
        ([("s", Owner(("who", "day")))], False),
        ([("w", Owner(("x",), "s", ("key",), Owner(("who",))))], True),
        ([("s", Owner(("key",), "w", ("who",), Owner(("who",))))], False),
    ],
)
def test_units_are_numbers_only_where_every_table_holds_them_so(owners, numbered):
    scans = tuple(
        Scan(table, f"{index}.", (), owner) for index, (table, owner) in enumerate(owners)
    )
    found = Tables.of(Union(scans, ((),) * len(scans), ()), {"s": SHORT, "w": WORDY})
    assert found.numbered is numbered


def test_rows_that_are_units_have_no_unit():
    assert "unit" not in printed(rows(Scan("s"), Tables({"s": SHORT}, numbered=False)))


def test_what_is_read_of_each_table_leads_to_its_units_too():
    notes, drugs = scan("notes", "n."), scan("drugs", "d.")
    read = Scan("notes", "n.", notes.columns[:1], notes.owner)
    joined = PublicJoin(
        read, Scan("drugs", "d.", drugs.columns[1:2]), Field(notes.columns[0]), drugs.columns[0]
    )
    assert stored_columns(Semi(joined, Scan("days", "", (), scan("days").owner))) == {
        "notes": {"n", "stay"},
        "stays": {"id", "patient"},
        "people": {"who"},
        "drugs": {"n", "x"},
        "days": {"who", "when"},
    }
