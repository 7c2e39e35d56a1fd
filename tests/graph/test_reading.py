# SPDX-License-Identifier: Apache-2.0
"""A graph is read from the rows of one table, by a condition on single rows."""

import pytest

import sfumato as sf
from sfumato.errors import SfumatoError, UnknownName, UnsupportedSql, WrongUse
from sfumato.graph.reading import graph_of, protection_of
from sfumato.plan.relation import Filter
from tests.contracts.graphs import EDGE, NODE, declared, replacing

BY_NODE = declared(sf.Node("a", "b", of="people"))


def test_a_condition_is_one_of_single_rows():
    plan = graph_of(BY_NODE, "ties", "kind = 'close' -- the others are not asked")
    assert isinstance(plan.relation, Filter)
    assert plan == graph_of(BY_NODE, "ties", "kind IN ('close')")
    assert plan != graph_of(BY_NODE, "ties", None)


@pytest.mark.parametrize(
    "where",
    [
        "kind = 'close') OR (a = 'ann'",
        "kind = 'close' GROUP BY kind",
        "a = 'ann'",
        "b IN (SELECT id FROM people)",
        "EXISTS (SELECT 1 FROM ties t WHERE t.kind = kind)",
        "COUNT(*) > 3",
        "ROW_NUMBER() OVER (ORDER BY kind) = 1",
        "1; DROP TABLE ties",
        "",
        "  ",
        3,
    ],
)
def test_any_other_condition_is_refused(where):
    for dataset in (declared(), BY_NODE):
        with pytest.raises(SfumatoError) as refused:
            graph_of(dataset, "ties", where)
        assert isinstance(refused.value, WrongUse | UnsupportedSql) or refused.value.exit_code == 1


def test_a_table_that_is_not_there_is_named():
    for table in ("tie", None, 3):
        with pytest.raises(UnknownName, match="No table"):
            graph_of(BY_NODE, table, None)


def test_who_is_protected_is_said():
    (edge, many) = protection_of(EDGE)
    assert "a pair of 'a' and 'b' in either order" in edge and "added or removed" in edge
    assert many.startswith("Not protected: that a person has many edges")
    (node,) = protection_of(replacing(NODE))
    assert "each 'person' (people.id) with all edges" in node and "replaced by another" in node
