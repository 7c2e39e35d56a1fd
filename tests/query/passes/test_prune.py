# SPDX-License-Identifier: Apache-2.0
"""Of every table the columns that are read, and orders that nothing read leaves open."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.reference_rows import rows
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import CountRows, Sum
from sfumato.plan.relation import (
    Computed,
    Filter,
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
from sfumato.plan.scalar import Field, IsNull
from sfumato.plan.scope import nodes, provided
from sfumato.plan.stages import Raw
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Norm
from sfumato.query.passes import Context
from sfumato.query.passes.prune import prune
from tests.contracts import plans as world

CONTEXT = Context(Dataset("data", {"people": sf.Table("nowhere.csv")}), Norm.L1)


def columns(prefix):
    return tuple(Column(prefix + name, sf.Integer(0, 9)) for name in "abc")


def table(name, prefix):
    return Scan(name, prefix, columns(prefix))


def pruned(relation, *values, keys=()):
    aggregates = tuple(Sum(Value.of(each)) for each in values) or (CountRows(),)
    return prune(Raw(relation, keys, aggregates), CONTEXT).relation


V, D = table("visits", "v."), table("drugs", "d.")
VA, VB, VC = V.columns
DA, DB, DC = D.columns
N = Column("n", sf.Integer(0, 9))
ONE = PerUnit(D, (), (Computed(N, Summary.MAXIMUM, Value.of(DB)),))


def names(relation):
    """The columns that each scan keeps, and each public table."""
    scans = [each for each in nodes(relation) if isinstance(each, Scan)]
    publics = [each.table for each in nodes(relation) if isinstance(each, PublicJoin)]
    return ["".join(column.name[-1] for column in each.columns) for each in (*scans, *publics)]


def test_a_column_that_nothing_reads_is_dropped():
    assert names(pruned(V)) == [""]
    assert names(pruned(V, VB)) == ["b"]
    assert names(pruned(V, keys=(GroupKey(Value.of(VC), None),))) == ["c"]


@pytest.mark.parametrize(
    ("relation", "kept"),
    [
        (Filter(V, IsNull(Field(VC))), ["c"]),
        (PublicJoin(V, D, Field(VB), DA), ["b", ""]),
        (UnitJoin(V, ONE), ["", "b"]),
        (Semi(V, Filter(D, IsNull(Field(DC)))), ["", "c"]),
        (PerUnit(V, ((N, Value.of(VA)),), ()), ["a"]),
        (PerUnit(V, (), (Computed(N, Summary.SUM, Value.of(VB)),)), ["b"]),
        (first(V, (Sort(Field(VB)),), (Field(VA), Field(VB), Field(VC)), "r"), ["b"]),
        (Union((V, D), ((Field(VA),), (Field(DC),)), (N,)), ["a", "c"]),
    ],
)
def test_what_a_node_reads_stays(relation, kept):
    assert names(pruned(relation)) == kept


def test_what_is_read_of_a_public_table_stays():
    assert names(pruned(PublicJoin(V, D, Field(VB), DA), DC, VA)) == ["ab", "c"]


def test_ties_are_those_that_are_read_and_none_is_missing():
    ranked = Ranked(V, (), (Field(VC), Field(VB), Field(VA)), N)
    assert pruned(ranked, VA, VC).ties == (Field(VC), Field(VA))
    forgotten = Ranked(V, (), (Field(VC),), N)
    assert pruned(forgotten, VA, VB, VC).ties == (Field(VC), Field(VA), Field(VB))
    lag = Windowed(V, WindowFunction.LAG, (), (), (Field(VC),), N, Value.of(VB))
    assert pruned(lag, VC).ties == (Field(VC), Field(VB)), "what is looked up is a tie, too"
    joined = Ranked(PublicJoin(V, D, Field(VB), DA), (), (), N)
    assert pruned(joined, DC).ties == (Field(VB), Field(DC))


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_is_read_stays_and_nothing_else(data):
    raw = data.draw(world.questions())
    made = prune(raw, CONTEXT)
    assert prune(made, CONTEXT) == made
    if any(isinstance(each, Ranked | Windowed) for each in nodes(raw.relation)):
        return  # which of two rows of one order comes first depends on what is read: see the ties above
    # of several public rows with one key the choice depends on what is read, too
    content = data.draw(world.data(4))
    content["drugs"] = content["drugs"][:1]
    kept = {column.name for column in provided(made.relation)}
    assert seen(made.relation, content, kept) == seen(
        tied(raw.relation, made.relation), content, kept
    )


def tied(relation, made):
    """The relation with the ties of the pruned one: which of several rows is first depends on what
    is read.
    """
    if isinstance(relation, Ranked | Windowed):
        return replace(relation, source=tied(relation.source, made.source), ties=made.ties)
    if isinstance(relation, Union):
        return replace(relation, sources=tuple(map(tied, relation.sources, made.sources)))
    names = [name for name in ("source", "other", "units") if hasattr(relation, name)]
    return replace(
        relation, **{name: tied(getattr(relation, name), getattr(made, name)) for name in names}
    )


def test_of_rows_that_the_order_does_not_tell_apart_the_first_depends_on_what_is_read():
    ranked = first(V, (), (Field(VA), Field(VB)), "r")
    made = prune(Raw(ranked, (), (Sum(Value.of(VB)),)), CONTEXT).relation
    assert tied(ranked, made).source.ties == made.source.ties == (Field(VB),)
    assert tied(V, V) == V


def seen(relation, content, names):
    found = [
        (row.unit, sorted((name, row.values.get(name)) for name in names))
        for row in rows(relation, content)
    ]
    return sorted(found, key=repr)


def test_a_column_provided_twice_is_refused():
    with pytest.raises(TypeError, match=r"provided twice: v\.a"):
        pruned(Semi(V, Scan("drugs", "v.", (VA,))))
    with pytest.raises(TypeError, match=r"provided twice: v\.b"):
        pruned(Ranked(V, (), (), VB))


@pytest.mark.parametrize("wrong", [DA, Column("v.a", sf.Integer(0, 1))])
def test_a_column_that_is_not_provided_is_refused(wrong):
    with pytest.raises(TypeError, match="not provided"):
        pruned(Semi(V, D), wrong)
    with pytest.raises(TypeError, match="not provided"):
        pruned(Filter(V, IsNull(Field(wrong))))
