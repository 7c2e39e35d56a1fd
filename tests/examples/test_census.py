# SPDX-License-Identifier: Apache-2.0
"""The declarations of the extract, and the questions of the demo."""

import csv
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.engines.duckdb import DuckDB
from sfumato.errors import UnsupportedSql
from sfumato.examples.census import PUBLISHED_SIZE, QUESTIONS, REFUSED, SOURCE, census
from sfumato.metadata.column import Category, Integer
from sfumato.metadata.dataset import Dataset
from sfumato.query.choose import plan_for_price
from sfumato.query.price import price
from sfumato.sql.lower import understand

DATASET = Dataset("acs", {"people": census()})


def rows() -> list[dict[str, str]]:
    """The extract."""
    with SOURCE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_extract_has_its_published_size_and_its_licence() -> None:
    assert len(rows()) == PUBLISHED_SIZE
    assert (SOURCE.parent / "LICENSE.nist.txt").stat().st_size > 100
    assert "NIST" in (SOURCE.parent / "README.md").read_text(encoding="utf-8")


def test_the_declared_columns_are_those_of_the_file() -> None:
    DuckDB({"people": census()}).close()


def test_every_value_is_declared_and_the_bounds_hold_nearly_all() -> None:
    found = rows()
    for name, kind in census().columns.items():
        values = [row[name] for row in found if row[name] != "N"]
        if isinstance(kind, Category):
            assert {value for value in values if value not in kind.values} <= {""}, name
        elif isinstance(kind, Integer):
            inside = [kind.lower_code <= float(value) <= kind.upper_code for value in values]
            assert sum(inside) > 0.9 * len(inside), name


def test_at_least_eight_priced_questions_are_understood_and_one_is_by_error() -> None:
    assert len(QUESTIONS) >= 9
    by_error = [asked for asked in QUESTIONS if "error" in dict(asked.price)]
    assert len(by_error) == 1
    for asked in QUESTIONS:
        question = understand(asked.sql, DATASET)
        if asked not in by_error:
            plan_for_price(question, DATASET, price(**dict(asked.price)))


def test_the_kinds_that_a_statistics_office_asks_are_there() -> None:
    text = " ".join(asked.sql for asked in QUESTIONS)
    for piece in (
        "COUNT(*)",
        "COUNT(PINCP)",
        "SUM(",
        "AVG(",
        "WHERE",
        "GROUP BY EDU, SEX",
        "HAVING",
        "ORDER BY",
        "LIMIT",
    ):
        assert piece in text
    assert any("rho" in dict(asked.price) for asked in QUESTIONS)


def test_all_of_them_fit_the_budget_of_the_demo() -> None:
    pure = sum(
        (Fraction(dict(asked.price).get("epsilon", "0")) for asked in QUESTIONS), Fraction(0)
    )
    assert pure <= 3


def test_the_refused_one_is_refused_with_a_remedy() -> None:
    with pytest.raises(UnsupportedSql) as refused:
        understand(REFUSED.sql, DATASET)
    assert refused.value.remedy


def test_a_price_is_shown_as_one_writes_it() -> None:
    assert QUESTIONS[0].shown_price == "epsilon=0.05"
    assert Path(SOURCE).suffix == ".csv"
