# SPDX-License-Identifier: Apache-2.0
"""One SELECT, or a refusal that shows where."""

import logging
import sys
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from sfumato.errors import SqlSyntaxError, UnsupportedSql
from sfumato.sql import parse as parsing
from sfumato.sql.parse import _MOST_NODES, _SHORT, _size, _statements, built, parse
from tests.contracts.people import session


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "select 1;",
        "  SELECT 1 -- why\n",
        "/* why */ SELECT 1",
        "SELECT 1;;",
        "FROM t SELECT 1",
    ],
)
def test_one_select_is_parsed(text):
    assert isinstance(parse(text), exp.Select)


@pytest.mark.parametrize("text", ["", " ", ";", ";;", "-- nothing", "/* nothing */"])
def test_nothing_is_no_statement(text):
    with pytest.raises(SqlSyntaxError, match="empty") as refusal:
        parse(text)
    assert (refusal.value.line, refusal.value.column) == (1, 1)
    assert refusal.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE t",
        "DROP TABLE t; SELECT 1",
        "SELECT 1;\n;SELECT 2",
    ],
)
def test_several_statements_are_refused(text):
    with pytest.raises(UnsupportedSql, match="2 statements") as refusal:
        parse(text)
    assert "one SELECT" in refusal.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 /* ; DROP TABLE t */",
        "SELECT ';'",
        "SELECT 1 -- ; DROP TABLE t",
        'SELECT ";" FROM t',
    ],
)
def test_a_semicolon_that_separates_nothing_is_none(text):
    assert isinstance(parse(text), exp.Select)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (
            "SELECT TOP 5 a, COUNT(*) FROM t GROUP BY a",
            "SELECT a, COUNT(*) FROM t GROUP BY a LIMIT 5",
        ),
        ("  select distinct top 2 a from t; -- x", "SELECT DISTINCT a FROM t LIMIT 2"),
        ("SELECT TOP (3) a FROM t", "SELECT a FROM t LIMIT 3"),
        ("SELECT TOP( 3 )\na FROM t", "SELECT a FROM t LIMIT 3"),
        ("SELECT TOP 3\n* FROM t ORDER BY a", "SELECT * FROM t ORDER BY a LIMIT 3"),
    ],
)
def test_top_is_a_limit(text, same):
    assert parse(text).sql("duckdb") == same


@pytest.mark.parametrize(
    "text",
    [
        "SELECT TOP 5 PERCENT a FROM t",
        "SELECT TOP 5 WITH TIES a FROM t",
        "SELECT TOP 5 a FROM t LIMIT 2",
        "SELECT TOP 5 a FROM t; SELECT TOP 5 a FROM t",
        "WITH t AS (SELECT 1 AS a) SELECT TOP 5 a FROM t",
        "SELECT a FROM (SELECT DISTINCT TOP 5 a FROM t)",
    ],
)
def test_another_top_is_refused_with_limit(text):
    with pytest.raises(SqlSyntaxError, match="LIMIT n at the end"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [("SELECT (\n\n  1 +", 3, 5), ("SELECT FROM WHERE", 1, 17), ("SELECT\n1\nFROM\nt t t", 4, 5)],
)
def test_a_syntax_error_shows_where(text, line, column):
    with pytest.raises(SqlSyntaxError, match=f"Not SQL: .*line {line}, column {column}") as refusal:
        parse(text)
    assert (refusal.value.line, refusal.value.column) == (line, column)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT SUM(--x) FROM t", "Not SQL: Something is missing at '(', line 1"),
        ("SELECT COUNT(*) FROM t WHERE x >", "Not SQL: Something is missing at '>', line 1"),
        ("SELECT COUNT(*) FROM", "Not SQL: Expected table name at 'FROM', line 1"),
        ("SELECT SUM(x FROM t", "Not SQL: Expecting ) at 'FROM', line 1"),
    ],
)
def test_a_syntax_error_says_nothing_of_the_parsers_inside(text, told):
    with pytest.raises(SqlSyntaxError) as refusal:
        parse(text)
    assert str(refusal.value).startswith(told)


@pytest.mark.parametrize(
    "text", ["SELECT 'never closed", 'SELECT "never closed', "SELECT 1 /* never closed"]
)
def test_an_open_quote_is_a_syntax_error(text):
    with pytest.raises(SqlSyntaxError):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 3000 + "1" + ")" * 3000,
        "SELECT " + "NOT " * 3000 + "TRUE",
        "SELECT 1 " * 20_000,
        None,
        5,
    ],
)
def test_too_deep_too_long_or_no_text_is_refused(text):
    with pytest.raises(UnsupportedSql):
        parse(text)


def nested(names):
    """A chain of so many names after the first."""
    chain = "".join(f", t{n + 1} AS (SELECT a FROM t{n})" for n in range(names))
    return f"WITH t0 AS (SELECT a FROM t){chain} SELECT a FROM t{names}"


def test_a_name_is_as_deep_as_its_query():
    # SELECT, FROM and the table: three levels for each query, and one for the name of the last
    # table
    assert [parsing._depth(parse(nested(names)), {}) for names in (0, 1, 5)] == [7, 10, 22]
    # a name hides the one outside, and is not known outside
    inner = "SELECT a FROM (WITH t AS (SELECT a FROM t) SELECT a FROM t)"
    assert parsing._depth(parse(inner), {}) == 10
    assert parsing._depth(parse(f"SELECT a FROM t WHERE a IN ({inner})"), {}) == 14
    parse(nested(37))
    with pytest.raises(UnsupportedSql, match="nested too deeply") as refusal:
        parse(nested(38))
    assert "WITH" in refusal.value.remedy


def test_the_parser_keeps_quiet(caplog, capfd):
    with caplog.at_level(logging.DEBUG), pytest.raises(UnsupportedSql):
        parse("EXPLAIN SELECT secret FROM t")
    assert "secret" not in caplog.text + "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("SELECT ? + ?", "SELECT $1 + $2"),
        ("SELECT :a, :b_1", "SELECT $a, $b_1"),
        ("SELECT x::INT, '?', ':a', \"?\" /* ? */", "SELECT x::INT, '?', ':a', \"?\" /* ? */"),
        (
            "WITH c AS (SELECT ? FROM t) SELECT ? FROM c LIMIT ?",
            "WITH c AS (SELECT $1 FROM t) SELECT $2 FROM c LIMIT $3",
        ),
        ("SELECT {'a': 1}['a']", "SELECT {'a': 1}['a']"),
    ],
)
def test_parameters_are_numbered_in_the_order_of_the_text(text, same):
    assert parse(text).sql(dialect="duckdb") == parse(same).sql(dialect="duckdb")


def test_a_tree_that_lacks_a_part_is_refused():
    for node in (
        exp.GT(this=exp.column("a")),
        exp.Abs(),
        exp.Abs(this=exp.column("a"), more=exp.column("b")),
    ):
        with pytest.raises(UnsupportedSql, match="lacks a part"):
            built(exp.select(exp.Paren(this=node)))
    with pytest.raises(UnsupportedSql, match="The statement DROP"):
        built(sqlglot.parse_one("DROP TABLE t"))


def test_a_copy_is_given_of_a_tree():
    tree = exp.select("1")
    assert built(tree) == tree and built(tree) is not tree


def sized(count: int) -> str:
    """A statement of so many comparisons, each of five nodes."""
    return "SELECT COUNT(*) FROM people WHERE " + " OR ".join(
        f"age = {each * 1000}" for each in range(count)
    )


def test_a_statement_of_too_many_parts_is_refused_by_its_size_alone() -> None:
    parse(sized(650))
    for text in (sized(720), sized(2400)):
        with pytest.raises(UnsupportedSql, match="3,500 parts"):
            parse(text)
    with pytest.raises(UnsupportedSql, match="3,500 parts"):
        built(_statements(sized(720))[0])
    # a list is one node a value
    parse(
        f"SELECT COUNT(*) FROM people WHERE age IN ({', '.join(str(each) for each in range(3400))})"
    )


def test_what_with_repeats_counts_as_often_as_it_is_read() -> None:
    def repeated(times: int) -> str:
        arms = " UNION ALL ".join(["SELECT age FROM a"] * times)
        listed = " OR ".join(f"age = {each}" for each in range(100))
        return f"WITH a AS (SELECT * FROM people WHERE {listed}) SELECT COUNT(*) FROM ({arms}) AS u"

    parse(repeated(5))
    with pytest.raises(UnsupportedSql, match="3,500 parts"):
        parse(repeated(9))


def test_a_short_text_has_few_parts() -> None:
    texts = [
        "SELECT " + "1," * 480 + "1 FROM t",
        "SELECT COUNT(*) FROM t WHERE " + "a=1 OR " * 130 + "a=1",
    ]
    for text in texts:
        assert len(text) <= _SHORT
        assert _size(_statements(text)[0], {}) <= _MOST_NODES


def test_a_statement_within_the_limits_is_planned_in_few_steps(tmp_path: Path) -> None:
    # the seconds are the benchmark's; here is what they are made of
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    counted = []
    with session(tmp_path) as asking:
        for comparisons in (100, 400):
            asking.preview(sized(comparisons), epsilon=1)
            calls = 0
            sys.setprofile(count)
            asking.preview(sized(comparisons), epsilon=1)
            sys.setprofile(None)
            counted.append(calls)
    assert counted[1] <= 5 * counted[0]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("SELECT first school year, COUNT(*) FROM t", "school year"),
        ("SELECT COUNT(*) FROM t WHERE net income > 5", "net income"),
        ("SELECT AVG(Netto Größe) FROM t", "Netto Größe"),
        ("SELECT SUM(x FROM t", None),
        ("SELECT COUNT(*) AS n FRM patients", None),
        ("SELECT COUNT(*) FROM t WHERE x >", None),
        ("SELEC COUNT(*) FROM t", None),
    ],
)
def test_a_name_with_a_blank_is_told_to_be_quoted(text, name):
    with pytest.raises(SqlSyntaxError) as refusal:
        parse(text)
    hint = f'A name with a blank stands in double quotes: "{name}".'
    assert refusal.value.remedy.endswith(hint) is (name is not None)
    assert ("double quotes" in refusal.value.remedy) is (name is not None)
