# SPDX-License-Identifier: Apache-2.0
"""Random SQL over private answers: a session gives what DuckDB gives over the same answers."""

import duckdb
import pyarrow as pa
import pytest

from sfumato.errors import OuterFailed, Refused
from sfumato.query import outer as module
from tests.attacks import shop
from tests.sql.test_outer_random import NAMES, Writer

# The private questions, with the columns g, k, n and x.
INNER = (
    (
        "SELECT region AS g, EXTRACT(MONTH FROM day) AS k, COUNT(*) AS n, SUM(amount) AS x "
        "FROM events GROUP BY 1, 2"
    ),
    (
        "SELECT age_band AS g, EXTRACT(MONTH FROM joined) AS k, COUNT(*) AS n, COUNT(*) * 0.5 AS x "
        "FROM users GROUP BY 1, 2"
    ),
)
TYPES = {"integer": pa.int64(), "real": pa.float64(), "text": pa.string()}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    with shop.connected(tmp_path_factory.mktemp("random"), shop.data()) as opened:
        yield opened


def arrow(answer):
    """The table of a private answer."""
    columns = [[row[place] for row in answer.told] for place in range(4)]
    kinds = [TYPES[str(column["type"])] for column in answer.columns]
    return pa.table(
        {
            name: pa.array(cells, kind)
            for name, cells, kind in zip("gknx", columns, kinds, strict=True)
        }
    )


def ordered(rows):
    """Rows as texts, in an order of their own; numbers with 9 digits, since sums may differ."""

    def shown(cell):
        return "none" if cell is None else cell if isinstance(cell, str) else f"{float(cell):.9g}"

    return sorted(tuple(map(shown, row)) for row in rows)


def is_same(session, own, seed):
    """Whether a session and a DuckDB over the same answers give the same rows; None if the
    statement is not answered.
    """
    text = Writer(seed).query(2)
    asked = text
    for name, question in zip(NAMES, INNER, strict=True):
        asked = asked.replace(f'"{name}"', f"({question})")
    try:
        answer = session.query(asked, epsilon=1)
    except (Refused, OuterFailed):
        return None
    for inner in answer.inner:
        if inner.statement.count("SELECT") > 1 or len(inner.columns) != 4:
            # a larger part was one question
            return None
        own.register(NAMES["users" in inner.statement], arrow(inner))
    try:
        expected = own.execute(text).fetchall()
    except duckdb.Error:
        # it fails over these numbers, and does not in the session
        return False
    return ordered(answer.rows) == ordered(expected)


def compared(session, seeds):
    """The number of statements that were compared; fails where one has other rows."""
    with duckdb.connect() as own:
        results = {seed: is_same(session, own, seed) for seed in seeds}
    assert False not in results.values(), [s for s, same in results.items() if same is False]
    return sum(same is not None for same in results.values())


def test_random_statements_give_what_duckdb_gives_over_the_answers(session):
    assert compared(session, range(6)) == 6


@pytest.mark.long
def test_many_random_statements_give_what_duckdb_gives_over_the_answers(session):
    assert compared(session, range(6, 500)) > 450


def test_a_statement_over_one_row_too_few_is_noticed(session, monkeypatch):
    true = module._held

    def without_the_last(*rest, **options):
        held = true(*rest, **options)
        return module.Held(held.columns, [values[:-1] for values in held.values])

    monkeypatch.setattr(module, "_held", without_the_last)
    with pytest.raises(AssertionError):
        compared(session, range(3))
