# SPDX-License-Identifier: Apache-2.0
"""What is printed is the tree: DuckDB's grammar reads the same tree from the text."""

import duckdb
import pytest
from hypothesis import given, settings

from sfumato.engines import duckdb_printer, sql_tree
from sfumato.engines.cube import coded, counted
from sfumato.engines.duckdb_printer import printed, quote, text
from sfumato.engines.emit import queries
from sfumato.engines.value_sql import Source
from tests.contracts import cubes, world
from tests.contracts.examples import EXAMPLES
from tests.contracts.sql_text import Parsed, expression, plain

FAMILIES = ["VARCHAR", "BIGINT", "DOUBLE", "DATE", "DECIMAL(9,2)", "TIMESTAMP", "BOOLEAN", "UUID"]
OWNERS = ("who", "when", "patient", "id", "key", "stay")


def sources(mode):
    """The tables of the world, each column stored in one of the types in turn."""
    found = {}
    for name, table in world.TABLES.items():
        columns = [*table.columns, *OWNERS]
        kinds = {
            column: FAMILIES[(place + mode) % len(FAMILIES)] for place, column in enumerate(columns)
        }
        found[name] = Source(quote(name), kinds)
    return found


def misread(queries_of):
    """The queries whose text is another tree."""
    return [query for query in queries_of if plain(Parsed(printed(query)).query) != plain(query)]


def of_examples(mode, *, windows):
    for bounded, _ in EXAMPLES.values():
        for part in queries(bounded, sources(mode), "key", windows=windows):
            yield part.query


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize(
    "mode", [0, *(pytest.param(mode, marks=pytest.mark.long) for mode in range(1, 8))]
)
def test_a_tree_is_printed_as_the_statement_that_it_is(mode, windows):
    assert not misread(of_examples(mode, windows=windows))


@settings(deadline=None)
@given(cubes.cubes())
def test_the_text_of_a_cube_is_its_tree(plan):
    asked = [coded(plan, sources(0), windows=windows) for windows in (False, True)]
    assert not misread([*asked, counted(plan, "codes", (0,))])


def _bare(node):
    """A binary operator whose sides have lost their parentheses."""
    sides = [
        side.value if isinstance(side, sql_tree.Paren) else side for side in (node.left, node.right)
    ]
    return [sides[0], f" {node.sign} ", sides[1]]


MUTANTS = {
    "parentheses lost": (sql_tree.Binary, _bare),
    "NOT forgotten": (sql_tree.IsNull, lambda node: [node.value, " IS NULL"]),
    "another order": (sql_tree.Ordered, lambda node: [node.value]),
    "a filter forgotten": (sql_tree.Aggregate, lambda node: [f"{node.name}(", *node.operands, ")"]),
    "the last branch forgotten": (
        sql_tree.Case,
        lambda node: ["CASE WHEN ", node.branches[0][0], " THEN ", node.branches[0][1], " END"],
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_of_the_printer_is_noticed(monkeypatch, mutant):
    monkeypatch.setitem(duckdb_printer._RULES, *MUTANTS[mutant])
    assert misread(of_examples(0, windows=False))


def test_every_class_has_a_rule():
    classes = {
        kind
        for kind in vars(sql_tree).values()
        if isinstance(kind, type) and kind.__module__ == sql_tree.__name__
    }
    assert classes - {sql_tree.SqlType, sql_tree.Expression} <= {*duckdb_printer._RULES}


def test_a_class_without_a_rule_is_refused():
    class Other(sql_tree.Expression):
        pass

    with pytest.raises(KeyError):
        printed(sql_tree.Paren(Other()))


ODD = ["", "a", "it's", 'say "hi"', "back\\slash", "\x01", "空", "a\nb", "--", "$1", "{x}"]


def test_names_and_texts_arrive_as_they_are():
    items = ", ".join(
        f"{text(word)} AS {quote(word + str(place))}" for place, word in enumerate(ODD)
    )
    found = duckdb.connect().execute(f"SELECT {items}")
    assert [column[0] for column in found.description] == [
        word + str(place) for place, word in enumerate(ODD)
    ]
    assert list(found.fetchone()) == ODD


def test_idioms_mean_what_they_say():
    idioms = {
        sql_tree.RoundHalfEven(sql_tree.Typed(sql_tree.Constant(2.5), sql_tree.SqlType.DOUBLE)): 2,
        sql_tree.HexNumber(sql_tree.Constant("00ff"), 3, 2): 255,
        sql_tree.WholeNumber(sql_tree.Constant("-12")): -12,
        sql_tree.WholeNumber(sql_tree.Constant("012")): None,
        sql_tree.NonZero(sql_tree.number(0)): None,
        sql_tree.NonZero(sql_tree.number(-3)): -3,
        sql_tree.FirstOf((sql_tree.number(4), sql_tree.number(-3)), greatest=True): 4,
        sql_tree.FirstOf((sql_tree.number(4), sql_tree.NULL), greatest=False): None,
        sql_tree.Element(sql_tree.ListOf((sql_tree.number(5),)), sql_tree.number(2)): None,
        sql_tree.Opaque(sql_tree.number(7)): 7,
        sql_tree.CodePoints(sql_tree.Constant("a")): "a",
    }
    for node, value in idioms.items():
        assert duckdb.connect().execute(f"SELECT {printed(node)}").fetchone() == (value,)
        assert plain(expression(printed(node))) == plain(node)


def test_each_element_of_a_list_is_mapped():
    four_and_five = sql_tree.ListOf((sql_tree.number(4), sql_tree.number(5)))
    doubled = sql_tree.Each(four_and_five, "x", sql_tree.Column("x") * 2)
    assert printed(doubled) == "list_transform([4::BIGINT, 5::BIGINT], lambda x: x * 2)"
    assert duckdb.connect().execute(f"SELECT {printed(doubled)}").fetchone() == ([8, 10],)
