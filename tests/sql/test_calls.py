# SPDX-License-Identifier: Apache-2.0
"""Aggregate calls are found where they stand, and keys where they are written again."""

import pytest

from sfumato.errors import UnsupportedSql
from sfumato.sql.calls import calls, keys_of_all, placed, same_nodes
from sfumato.sql.names import Context
from sfumato.sql.parse import parse
from sfumato.sql.relations import Relations


def select(shop, text):
    tree = parse(text)
    return tree, Relations(Context(shop)).source(tree, {}).scope(Context(shop))


def found(text):
    tree = parse(f"SELECT {text} FROM events")
    return [node.sql(dialect="duckdb") for node in calls([*tree.expressions, None])]


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("COUNT(*), SUM(a) / 2", ["COUNT(*)", "SUM(a)"]),
        ("SUM(SUM(a))", ["SUM(SUM(a))"]),
        ("COUNT(*) FILTER(WHERE MAX(a) > 1)", ["COUNT(*) FILTER(WHERE MAX(a) > 1)"]),
        ("ANY_VALUE(a)", ["ANY_VALUE(a)"]),
        ("SUM(a) OVER ()", []),
        ("(SELECT COUNT(*) FROM t)", []),
        ("a + b, LEAST(a, b)", []),
        ("CASE WHEN COUNT(*) > 1 THEN MIN(a) END", ["COUNT(*)", "MIN(a)"]),
    ],
)
def test_the_outermost_calls_are_found(text, nodes):
    assert found(text) == nodes


def test_a_quantile_is_found_with_its_order():
    text = "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a)"
    (node,) = calls(parse(f"SELECT {text} FROM events").expressions)
    assert type(node).__name__ == "WithinGroup"


@pytest.mark.parametrize(
    ("key", "stands_for"),
    [
        ("1", "e.region"),
        ("2", "age + 1"),
        ("(1)", "e.region"),
        ("older", "age + 1"),
        ("OLDER", "age + 1"),
        ("age", "age"),
        ("day", "day"),
    ],
)
def test_a_place_or_an_alias_stands_for_its_column(shop, key, stands_for):
    tree, scope = select(
        shop, f"SELECT e.region, age + 1 AS older, amount AS day FROM events e GROUP BY {key}"
    )
    # a column of the table comes before an alias of the same name
    assert (
        placed(tree.args["group"].expressions[0], tree, scope).sql(dialect="duckdb") == stands_for
    )


@pytest.mark.parametrize("key", ["0", "4", "1.5", "'a'", "-1"])
def test_a_place_that_is_none_is_refused(shop, key):
    tree, scope = select(shop, f"SELECT region, age, COUNT(*) FROM events GROUP BY {key}")
    with pytest.raises(UnsupportedSql, match="GROUP BY") as refusal:
        placed(tree.args["group"].expressions[0], tree, scope)
    assert refusal.value.allowed == "a column of SELECT, 1 to 3"


def test_a_key_that_is_written_again_is_the_key():
    tree = parse(
        "SELECT age + 1, 2 * (age + 1) FROM events GROUP BY age + 1 HAVING age + 1 > 3 ORDER BY age"
    )
    key = tree.args["group"].expressions[0]
    assert [place for _, place in same_nodes(tree, [key])] == [0, 0, 0]
    assert not list(same_nodes(tree, [parse("SELECT age FROM t").expressions[0]]))


def test_the_keys_of_all_are_the_items_with_columns_and_no_aggregates():
    tree = parse("SELECT a, b + 1 AS c, SUM(d), 1, COUNT(*) / a FROM t GROUP BY ALL")
    assert [node.sql() for node in keys_of_all(tree)] == ["a", "b + 1"]
