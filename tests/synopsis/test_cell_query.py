# SPDX-License-Identifier: Apache-2.0
"""Statements as sums over the cells of single columns, against the rows of small tables."""

from collections.abc import Mapping

import numpy as np
import pytest

import sfumato as sf
from sfumato import synopsis
from sfumato.errors import MissingDeclaration, UnknownName, UnsupportedSql, WrongUse
from sfumato.metadata.dataset import Dataset
from sfumato.synopsis import cell_query as module
from sfumato.synopsis.workload import Cells

COLUMNS = {
    "age": sf.Integer(-1, 3),
    "sex": sf.Category("F", "M"),
    "pay": sf.Integer(0, 4, clip=2),
    "share": sf.Real(0, 1),
    "wide": sf.Integer(0, 2**40),
    "name": sf.Text(),
}
TABLES = {"people": sf.Table("p.csv", columns=COLUMNS), "pets": sf.Table("q.csv", columns=COLUMNS)}
DATA = Dataset("d", TABLES)


cell_query, resolved, passing = module.cell_query, module.resolved, module.weights_of


def listed(weights: Mapping[str, np.ndarray]) -> dict[str, list[float]]:
    return {name: each.tolist() for name, each in weights.items()}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("age >= 2", {"age": [0, 0, 0, 1, 1, 0]}),
        ("age IS NULL", {"age": [0, 0, 0, 0, 0, 1]}),
        ("age > 0 AND age <> 2 AND sex = 'M'", {"age": [0, 0, 1, 0, 1, 0], "sex": [0, 1, 0]}),
        ("age * age = 1 OR age = 0", {"age": [1, 1, 1, 0, 0, 0]}),
        ("sex IN ('F', 'M')", {"sex": [1, 1, 0]}),
        ("sex = 'F' OR sex <> 'F' OR sex IS NULL", {}),
        ("TRUE", {}),
    ],
)
def test_a_test_is_what_it_says_of_each_value(where, expected):
    assert listed(passing(where, DATA, "people", list(COLUMNS))) == expected


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("COUNT(*)", {}),
        ("COUNT(age)", {"age": [1, 1, 1, 1, 1, 0]}),
        ("SUM(age)", {"age": [-1, 0, 1, 2, 3, 0]}),
        ("SUM(2 * age + 1)", {"age": [-1, 1, 3, 5, 7, 0]}),
        ("COUNT(*) FILTER (WHERE age < 1)", {"age": [1, 1, 0, 0, 0, 0]}),
    ],
)
def test_an_aggregate_is_what_each_value_adds_to_it(aggregate, expected):
    asked = cell_query(f"SELECT {aggregate} AS n FROM people", DATA)
    assert listed(asked.aggregates[0]) == expected


def test_groups_are_cells_of_their_column_that_pass():
    asked = cell_query(
        "SELECT sex, age, COUNT(*) AS n FROM people WHERE age > 1 GROUP BY sex, age", DATA
    )
    found = [listed(weights) for weights in asked.weights(0)]
    assert len(found) == 4
    assert found[0] == {"sex": [1, 0, 0], "age": [0, 0, 0, 1, 0, 0]}
    assert found[3] == {"sex": [0, 1, 0], "age": [0, 0, 0, 0, 1, 0]}


def test_a_workload_of_statements_has_the_queries_of_each_column():
    asked = synopsis.queries(
        ["SELECT sex, COUNT(*), SUM(age) FROM people WHERE age >= 1 GROUP BY sex"]
    )
    count, total = resolved(3 * asked, DATA, "people").terms
    assert (count.names, count.weight, total.weight) == (("sex", "age"), 3, 3)
    kinds = dict(count.factors)
    assert kinds["sex"] is Cells
    assert kinds["age"](5).gram().diagonal().tolist() == [0, 0, 1, 1, 1, 0]
    assert dict(total.factors)["age"](5).gram().diagonal().tolist() == [0, 0, 1, 4, 9, 0]


def test_groups_that_no_value_passes_are_no_queries():
    asked = synopsis.queries(["SELECT sex, COUNT(*) FROM people WHERE sex <> 'F' GROUP BY sex"])
    (term,) = resolved(asked, DATA, "people").terms
    assert dict(term.factors)["sex"](2).queries == 1
    nobody = synopsis.queries(["SELECT COUNT(*) FROM people WHERE age > 90"])
    with pytest.raises(UnsupportedSql, match="No declared value of 'age'"):
        resolved(nobody, DATA, "people")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT AVG(age) FROM people", "COUNT"),
        ("SELECT SUM(pay) FROM people", "without clip"),
        ("SELECT SUM(share) FROM people", "whole numbers"),
        ("SELECT COUNT(DISTINCT age) FROM people", "COUNT"),
        ("SELECT SUM(age + pay) FROM people", "one column"),
        ("SELECT COUNT(*) FROM people WHERE age > pay", "one column"),
        ("SELECT COUNT(*) FROM pets", "table people"),
        ("SELECT COUNT(*) * 2 AS n FROM people", "GROUP BY keys"),
        ("SELECT COUNT(*) FROM people HAVING COUNT(*) > 1", "GROUP BY keys"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex)", "GROUP BY keys"),
        ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n", "GROUP BY keys"),
    ],
)
def test_what_cells_do_not_tell_is_refused_by_name(sql, said):
    with pytest.raises(UnsupportedSql, match=said):
        cell_query(sql, DATA, "people")


def test_what_is_not_declared_is_refused():
    for sql, error in [
        ("SELECT COUNT(*) FROM people WHERE name = 'x'", MissingDeclaration),
        ("SELECT COUNT(*) FROM people WHERE wide > 3", WrongUse),
        ("SELECT COUNT(*) FROM people WHERE weight > 3", UnknownName),
        ("SELECT COUNT(*) FROM nobody", UnknownName),
    ]:
        with pytest.raises(error):
            cell_query(sql, DATA, "people")


def test_a_test_is_no_more_than_a_test():
    for where in ("TRUE GROUP BY sex", "TRUE HAVING COUNT(*) > 1"):
        with pytest.raises(UnsupportedSql):
            passing(where, DATA, "people", list(COLUMNS))
