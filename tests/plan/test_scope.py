# SPDX-License-Identifier: Apache-2.0
"""What each node provides, brings and reads."""

import pytest

import sfumato as sf
from sfumato.metadata.column import Column
from sfumato.plan.relation import (
    Computed,
    Filter,
    KeyJoin,
    PerUnit,
    PublicJoin,
    Ranked,
    Scan,
    Semi,
    Sort,
    Summary,
    Union,
    UnitJoin,
    Windowed,
    WindowFunction,
    first,
)
from sfumato.plan.scalar import Arithmetic, Constant, Estimate, Field, IsNull, Operation
from sfumato.plan.scope import expressions, introduced, nodes, provided, read_of, same_in_unit
from sfumato.plan.value import Value
from tests.plan.expressions import NAME, X, Y

VISITS, PEOPLE = Scan("visits", columns=(X, NAME)), Scan("people", columns=(Y,))
KEY, PRICE = Column("d.key", X.type), Column("d.price", sf.Integer(0, 9))
DRUGS = Scan("drugs", "d.", columns=(KEY, PRICE))
RANK, TOTAL, GROUP, BOTH = (
    Column(name, sf.Integer(-5, 7)) for name in ("rank", "total", "group", "both")
)
SUMMED = PerUnit(VISITS, ((GROUP, Value.of(X)),), (Computed(TOTAL, Summary.SUM, Value.of(X)),))
SINGLE = PerUnit(PEOPLE, (), (Computed(TOTAL, Summary.COUNT),))
TEST = IsNull(Field(X))
NODES = {
    "scan": (VISITS, (X, NAME), (X, NAME), []),
    "filter": (Filter(VISITS, TEST), (X, NAME), (), [(VISITS, (TEST,))]),
    "public join": (
        PublicJoin(VISITS, DRUGS, Field(X), KEY),
        (X, NAME, KEY, PRICE),
        (KEY, PRICE),
        [(VISITS, (Field(X),))],
    ),
    "key join": (
        KeyJoin(VISITS, PEOPLE, Field(X), KEY),
        (X, NAME, Y),
        (),
        [(VISITS, (Field(X),))],
    ),
    "unit join": (UnitJoin(VISITS, SINGLE), (X, NAME, TOTAL), (), []),
    "semi": (Semi(VISITS, PEOPLE), (X, NAME), (), []),
    "per unit": (SUMMED, (GROUP, TOTAL), (GROUP, TOTAL), [(VISITS, (Field(X), Field(X)))]),
    "a count": (SINGLE, (TOTAL,), (TOTAL,), [(PEOPLE, ())]),
    "ranked": (
        Ranked(VISITS, (Sort(Field(X)),), (Field(NAME),), RANK),
        (X, NAME, RANK),
        (RANK,),
        [(VISITS, (Field(X),))],
    ),
    "windowed": (
        Windowed(VISITS, WindowFunction.RANK, (Field(NAME),), (Sort(Field(X)),), (), RANK),
        (X, NAME, RANK),
        (RANK,),
        [(VISITS, (Field(NAME), Field(X)))],
    ),
    "looked up": (
        Windowed(VISITS, WindowFunction.LAG, (), (), (Field(NAME),), TOTAL, Value.of(X)),
        (X, NAME, TOTAL),
        (TOTAL,),
        [(VISITS, (Field(X),))],
    ),
    "union": (
        Union((VISITS, PEOPLE), ((Field(X),), (Field(Y),)), (BOTH,)),
        (BOTH,),
        (BOTH,),
        [(VISITS, (Field(X),)), (PEOPLE, (Field(Y),))],
    ),
}


@pytest.mark.parametrize("name", NODES)
def test_every_node_says_what_it_provides_brings_and_reads(name):
    relation, above, own, reads = NODES[name]
    assert (provided(relation), introduced(relation), expressions(relation)) == (above, own, reads)


def test_nodes_are_all_that_belongs_to_units():
    tree = Semi(UnitJoin(VISITS, SINGLE), PEOPLE)
    assert list(nodes(tree)) == [tree, UnitJoin(VISITS, SINGLE), VISITS, SINGLE, PEOPLE, PEOPLE]


OLDEST = first(VISITS, (Sort(Field(X)),), (Field(NAME),), RANK.name)
SAME = {
    "rows of a unit": (VISITS, ()),
    "one row a unit": (SINGLE, (TOTAL,)),
    "the first row": (OLDEST, provided(OLDEST)),
    "joined to one row": (Filter(UnitJoin(VISITS, SINGLE), TEST), (TOTAL,)),
    "joined and chosen from": (
        Semi(Ranked(UnitJoin(VISITS, SINGLE), (), (), RANK), PEOPLE),
        (TOTAL,),
    ),
    "joined and looked up": (
        Windowed(UnitJoin(VISITS, SINGLE), WindowFunction.LAG, (), (), (), BOTH, Value.of(TOTAL)),
        (TOTAL,),
    ),
    "beside a public table": (PublicJoin(UnitJoin(VISITS, SINGLE), DRUGS, Field(X), KEY), (TOTAL,)),
    "beside a row of the unit by key": (KeyJoin(VISITS, PEOPLE, Field(X), KEY), ()),
    "one row beside another by key": (KeyJoin(SINGLE, PEOPLE, Field(TOTAL), KEY), (TOTAL, Y)),
    "groups of a unit": (SUMMED, ()),
    "a union of single rows": (Union((SINGLE, SINGLE), ((Field(TOTAL),),) * 2, (BOTH,)), ()),
}


@pytest.mark.parametrize("name", SAME)
def test_what_a_unit_has_one_row_of_is_the_same_in_all_its_rows(name):
    relation, columns = SAME[name]
    assert same_in_unit(relation) == frozenset(columns)


def test_what_a_semi_join_tests_cannot_be_read_above_it():
    with pytest.raises(TypeError, match="not provided"):
        read_of(Semi(VISITS, PEOPLE), (Field(Y),))


def test_a_column_is_read_as_it_is_provided():
    both = Arithmetic(Operation.ADD, Field(X), Constant(1))
    assert read_of(VISITS, (both, IsNull(Field(NAME)))) == {"x", "name"}
    for wrong in (Field(Y), Field(Column("x", sf.Integer(0, 1))), Estimate(0)):
        with pytest.raises(TypeError, match="not provided"):
            read_of(VISITS, (both, IsNull(wrong)))
