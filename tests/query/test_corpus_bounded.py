# SPDX-License-Identifier: Apache-2.0
"""What stands below each statement of the corpus is what it becomes today, and as far apart as was
worked out by hand.
"""

import re

import duckdb
import pytest

from sfumato.metadata.column import Date
from sfumato.query import stability
from tests.contracts.corpus import DATASET, FOLDER, statements
from tools import corpus

ANSWERED = [each.name for each in statements() if each.verdict == "answered"]


@pytest.fixture(scope="module")
def engine():
    """The declared tables, empty."""
    opened = corpus.opened()
    yield opened
    opened.close()


def below(name):
    """What stands below a statement: the distances by the titles of parts, and the SQL."""
    lines = [
        line[3:] for line in (FOLDER / f"{name}.sql").read_text().split(corpus.HEAD)[1].splitlines()
    ]
    start = max(place for place, line in enumerate(lines) if line.startswith("  replace-one")) + 1
    parts = {}
    for title, one, other in zip(*[iter(lines[1:start])] * 3, strict=True):
        parts[title] = [re.findall(r"(?:L1|sqrt\(|Linf) ?([\d.]+)", line) for line in (one, other)]
    return parts, "\n".join(lines[start:])


def test_the_corpus_is_not_stale(engine):
    assert sorted(path.name for path in corpus.stale(engine)) == [], (
        "make corpus; then read: git diff tests/query/corpus"
    )


def test_a_distance_that_changes_makes_the_corpus_stale(engine, monkeypatch):
    monkeypatch.setattr(stability, "_replaced", lambda aggregate, plan, norm, one: one + 1)
    assert len(corpus.stale(engine)) > 30


def test_check_shows_what_changed_and_how_to_write_it(engine, monkeypatch, capsys):
    monkeypatch.setattr(
        corpus, "written", lambda path, opened: path.read_text() + "more\n" * (path.stem == "A01")
    )
    assert corpus.main(["check"]) == 1
    told = capsys.readouterr().err
    assert "+++ now" in told and "+more" in told and "make corpus" in told and "A02" not in told


def test_a_refused_statement_becomes_nothing():
    for each in statements():
        assert (corpus.HEAD in (FOLDER / f"{each.name}.sql").read_text()) is (
            each.verdict == "answered"
        )


# A user has at most 10 rows in each of 5 groups; an amount is 0 to 500 in steps of 500 / 2048000;
# there are 4 regions.
# Title, L1, L2 squared, and how much farther a replaced unit goes: one integer that is never
# negative moves no farther.
STEPS = 2_048_000
BY_HAND = {
    "A01": ("COUNT(*)", 10, 10**2, 1),
    "A02": ("COUNT(DISTINCT unit)", 1, 1, 1),
    "A03": ("SUM(amount)", 10 * STEPS, (10 * STEPS) ** 2, 1),
    "A05": ("AVG(amount)", 10 * STEPS, (10 * STEPS) ** 2, 2),
    "A06": ("COUNT(*)", 4 * 10, 4 * 10**2, 2),
    "A07": ("COUNT(*)", 5 * 10, 5 * 10**2, 2),
    "A09": ("AVG(amount)", 4 * 10 * STEPS, 4 * (10 * STEPS) ** 2, 2),
    "A10": ("COUNT(DISTINCT unit)", 5, 5, 2),
    "A12": ("QUANTILE(amount, 0.5, 0.9)", 10, 10, 1),
    "A28": ("COUNT(DISTINCT product)", 10, 10**2, 1),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_distance_is_the_one_worked_out_by_hand(name):
    title, pure, squared, farther = BY_HAND[name]
    parts, _ = below(name)
    assert [[float(each) for each in line] for line in parts[title]] == [
        [pure, squared],
        [farther * pure, farther * squared],
    ]


@pytest.mark.parametrize("name", ANSWERED)
def test_the_sql_that_is_shown_runs(name):
    parts, sql = below(name)
    assert parts
    connection = duckdb.connect()
    for table, declared in DATASET.tables.items():
        columns = dict.fromkeys(
            [*(declared.unit.columns if declared.unit else ()), *declared.columns], "VARCHAR"
        )
        columns |= {
            name: "DATE" for name, kind in declared.columns.items() if isinstance(kind, Date)
        }
        connection.execute(
            f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})"
        )
    for each in sql.split(";\n"):
        assert connection.execute(each).fetchall() is not None
    connection.close()
