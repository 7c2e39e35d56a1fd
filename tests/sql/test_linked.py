# SPDX-License-Identifier: Apache-2.0
"""Joins through ``via``: a row meets the row that tells its unit, and answers are those of SQL."""

from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import Refused, UnknownName, UnsupportedSql
from sfumato.metadata.dataset import Dataset
from sfumato.plan.relation import KeyJoin, Scan, UnitJoin
from sfumato.sql import understand

WARD = {"ward": sf.Category("er", "icu"), "cost": sf.Integer(0, 9)}
TABLES = {
    "patients": sf.Table(
        "p.csv", unit=sf.Unit("pid", max_rows=1), columns={"sex": sf.Category("F", "M")}
    ),
    "visits": sf.Table("v.csv", unit=sf.Unit("pid", max_rows=9), columns=WARD),
    "drugs": sf.Table(
        "d.csv",
        unit=sf.Unit("visit", via="visits.pid", key="vid", max_rows=9),
        columns={"drug": sf.Category("x", "y")},
    ),
    "doses": sf.Table(
        "o.csv", unit=sf.Unit("drug_id", via="drugs.visit", key="did", max_rows=9), columns={}
    ),
}


def lowered(text: str) -> object:
    return understand(text, Dataset("d", TABLES)).raw.relation


@pytest.mark.parametrize(
    "text",
    [
        "drugs d JOIN visits v ON d.visit = v.vid",
        "visits v JOIN drugs d ON v.vid = d.visit",
        "drugs AS d INNER JOIN visits AS v ON (v.VID = d.Visit)",
        "drugs, visits WHERE drugs.visit = visits.vid",
        "drugs d JOIN visits v ON d.visit = v.vid AND d.pid = v.pid",
    ],
)
def test_a_declared_key_joins_a_row_to_the_one_that_tells_its_unit(text):
    found = lowered(f"SELECT ward, COUNT(*) AS n FROM {text} GROUP BY ward")
    assert isinstance(found, KeyJoin) and not found.outer
    assert isinstance(found.source, Scan)
    assert (found.source.table, found.table.table) == ("drugs", "visits")
    assert found.left.column.name.endswith("visit") and found.right.name.endswith("vid")
    # what leads to the key is read, for the join alone
    assert found.left.column in found.source.columns


def test_more_tables_are_joined_on_the_unit_or_along_the_way():
    found = lowered(
        "SELECT sex, ward, drug, COUNT(*) FROM doses o JOIN drugs d ON o.drug_id = d.did "
        "JOIN visits v ON d.visit = v.vid JOIN (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid)"
        " AS one ON one.pid = v.pid JOIN patients p USING (pid) GROUP BY sex, ward, drug"
    )
    assert isinstance(found, UnitJoin) and isinstance(found.source, UnitJoin)
    above = found.source.source
    assert isinstance(above, KeyJoin) and above.table.table == "visits"
    assert isinstance(above.source, KeyJoin) and above.source.table.table == "drugs"
    # the link of the second join is a column of the table that the first one brought
    assert above.left.column in above.source.table.columns


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("visits v LEFT JOIN drugs d ON d.visit = v.vid", "keeps the rows of 'visits'"),
        ("drugs d RIGHT JOIN visits v ON d.visit = v.vid", "keeps the rows of 'visits'"),
        ("drugs d LEFT JOIN visits v ON d.visit = v.vid AND v.cost > 3", "more than 'visit'"),
        ("drugs d SEMI JOIN visits v ON d.visit = v.vid", "not on the unit"),
        ("drugs d JOIN visits v ON d.visit = v.cost", "not on the unit"),
        ("drugs d JOIN visits v ON d.visit < v.vid", "not on the unit"),
        ("drugs d JOIN visits v USING (visit)", "not on the unit"),
        ("drugs d JOIN drugs e ON d.visit = e.visit", "not on the unit"),
        ("drugs d JOIN patients p ON d.visit = p.pid", "not on the unit"),
        ("drugs d JOIN (SELECT pid, ward FROM visits) v ON d.visit = v.vid", "visit|unit"),
    ],
)
def test_every_other_join_by_a_key_is_refused(text, words):
    with pytest.raises((UnsupportedSql, UnknownName), match=words):
        lowered(f"SELECT COUNT(*) AS n FROM {text}")


def test_keys_that_are_declared_apart_are_refused_with_the_remedy():
    declared = {**WARD, "vid": sf.Integer(0, 99)}
    tables = {
        **TABLES, "visits": sf.Table("v.csv", unit=sf.Unit("pid", max_rows=9), columns=declared)
    }  # fmt: skip
    text = "SELECT COUNT(*) AS n FROM drugs d JOIN visits v ON d.visit = v.vid"
    with pytest.raises(Refused, match="Declare both"):
        understand(text, Dataset("d", tables))


VISITS = {
    "pid": ["a", "a", "b", "b", "c"],
    "vid": [1, 2, 3, 3, 4],
    "ward": ["er", "icu", "er", "icu", None],
    "cost": [1, 2, 3, 4, 5],
}
DRUGS = {"visit": [1, 1, 2, 3, 4, 9, None], "drug": ["x", "y", "x", "y", "x", "x", "y"]}


@pytest.fixture
def study(tmp_path: Path):
    tables = {
        "visits": sf.Table(
            pa.table(VISITS), unit=sf.Unit("pid", max_rows=9, max_groups=3), columns=WARD
        ),
        "drugs": sf.Table(
            pa.table(DRUGS),
            unit=sf.Unit("visit", via="visits.pid", key="vid", max_rows=9, max_groups=3),
            columns={"drug": sf.Category("x", "y")},
        ),
    }
    budget = sf.Budget(10**6, "1e-6")
    with sf.connect(tables, dataset="d", budget=budget, ledger=tmp_path / "l.db") as session:
        yield session


# of the two visits numbered 3 the first in the order of what is read: icu comes after er
@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("drugs d JOIN visits v ON d.visit = v.vid", {"er": 3, "icu": 1}),
        ("drugs d JOIN visits v ON d.visit = v.vid WHERE v.cost > 1", {"er": 1, "icu": 1}),
        ("drugs d JOIN visits v ON d.visit = v.vid WHERE d.drug = 'y'", {"er": 2, "icu": 0}),
        ("drugs d LEFT JOIN visits v ON d.visit = v.vid", {"er": 3, "icu": 1, None: 1}),
        ("drugs d, visits v WHERE d.visit = v.vid AND v.pid = 'a'", {"er": 2, "icu": 1}),
    ],
)
def test_each_row_meets_its_own_at_most_once(study, text, counts):
    found = study.query(f"SELECT ward, COUNT(*) AS n FROM {text} GROUP BY ward", epsilon=50_000)
    shown = {row["ward"]: round(row["n"]) for row in found.to_dicts()}
    assert {ward: shown[ward] for ward in counts} == counts
    assert shown.get(None, 0) == counts.get(None, shown.get(None, 0))


def test_means_of_the_other_side_and_units_are_asked_too(study):
    text = "FROM drugs d JOIN visits v ON d.visit = v.vid"
    found = study.query(
        f"SELECT COUNT(DISTINCT v.pid) AS people, SUM(cost) AS cost {text}", epsilon=100_000
    )
    assert round(found["people"][0]) == 3 and round(found["cost"][0]) == 1 + 1 + 2 + 3 + 5
