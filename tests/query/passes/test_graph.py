# SPDX-License-Identifier: Apache-2.0
"""A graph has the ends and the unit that are declared, and rows that are tested one by one."""

from dataclasses import replace

import pytest

import sfumato as sf
from sfumato.errors import InvalidDeclaration, UnsupportedSql, WrongUse
from sfumato.plan.owner import Owner
from sfumato.plan.relation import Scan, Semi
from sfumato.privacy.distance import Norm
from sfumato.query.claims import require_proved
from sfumato.query.passes import Context
from sfumato.query.passes.graph import bound_graph
from sfumato.query.pipeline import compile_graph
from sfumato.sql.lower import understand
from tests.contracts.graphs import EDGE, NODE, declared, replacing

BY_NODE = declared(sf.Node("a", "b", of="people"))


def test_the_unit_decides_whose_an_edge_is():
    assert (EDGE.unit, EDGE.ends, EDGE.nodes) == ("a, b", ("a", "b"), None)
    assert (NODE.unit, NODE.ends, NODE.nodes) == ("person", ("a", "b"), ("people", "id"))
    assert replacing(NODE).neighbours is sf.ReplaceOne


@pytest.mark.parametrize(
    "unit",
    [sf.Unit("a", max_rows_total=1), sf.Unit(["a", "b"], max_rows_total=1)],
)
def test_another_unit_names_both(unit):
    table = replace(declared().tables["ties"], unit=unit)
    dataset = replace(declared(), tables={"ties": table})
    with pytest.raises(InvalidDeclaration, match="no edge of a graph is") as refused:
        bound_graph(Scan("ties"), Context(dataset, Norm.L1))
    assert "sf.Edge" in refused.value.allowed and "sf.Node" in refused.value.allowed


def test_rows_that_depend_on_others_are_refused():
    for relation in (Semi(Scan("ties"), Scan("people")), Scan("people")):
        with pytest.raises((UnsupportedSql, InvalidDeclaration)):
            bound_graph(relation, Context(BY_NODE, Norm.L1))
    alone = replace(declared(), tables={"ties": replace(declared().tables["ties"], unit=None)})
    for text in ("SELECT kind, COUNT(*) FROM ties GROUP BY kind", "SELECT COUNT(kind) FROM ties"):
        with pytest.raises(UnsupportedSql, match="grouped"):
            compile_graph(understand(text, alone).raw, BY_NODE)


def other_ends():
    """A graph whose edges are between an end and something else."""
    scan = replace(NODE.scan, owner=Owner(("a", "kind"), unordered=True))
    return replace(NODE, relation=scan, ends=("a", "kind"))


FORGED = {
    "the other unit": lambda: replace(NODE, nodes=None),
    "a smaller unit's neighbours": lambda: replace(EDGE, unit="person"),
    "another relation": lambda: replacing(NODE),
    "other ends": lambda: other_ends(),
    "other nodes": lambda: replace(NODE, nodes=("ties", "a")),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_graph_that_claims_another_unit_is_refused(name):
    require_proved(NODE, BY_NODE)
    require_proved(EDGE, declared())
    with pytest.raises(WrongUse, match="not made for these declarations"):
        require_proved(FORGED[name](), BY_NODE)
    with pytest.raises(WrongUse):
        require_proved(EDGE, BY_NODE)
