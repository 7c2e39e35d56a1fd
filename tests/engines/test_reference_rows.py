# SPDX-License-Identifier: Apache-2.0
"""Rows of every relation against ones worked out by hand."""

import pytest

import sfumato as sf
from sfumato.engines.reference_rows import Row, rows
from sfumato.metadata.column import Column, Integer
from sfumato.plan.owner import Owner
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
from sfumato.plan.scalar import Compare, Comparison, Constant, Estimate, Field, IsNull
from sfumato.plan.value import Value

N, T = Column("n", Integer(0, 9)), Column("t", sf.Text())
WHO = Owner(("who",))
SCAN = Scan("t", "", (N,), WHO)


def table(*cells):
    """Rows of (unit, number) or (unit, number, text)."""
    return {"t": [dict(zip(("who", "n", "t"), row, strict=False)) for row in cells]}


def numbers(relation, tables, name="n"):
    """Unit and value of each row."""
    return [(row.unit, row.values.get(name)) for row in rows(relation, tables)]


def test_a_scan_has_codes_and_drops_what_nobody_owns():
    assert rows(Scan("t", "e.", (Column("e.n", N.type),), WHO), table(("p", "12"), (None, 1))) == [
        Row("p", {"e.n": 9})
    ]
    assert rows(Scan("t", "", (N,)), table((None, "x"))) == [Row(None, {"n": None})]


def test_a_unit_of_several_columns_has_the_length_of_each():
    tables = {"t": [{"a": 1, "b": "11"}, {"a": 11, "b": "1"}, {"a": None, "b": "1"}]}
    assert [row.unit for row in rows(Scan("t", "", (), Owner(("a", "b"))), tables)] == [
        "1:12:11",
        "2:111:1",
    ]


def test_the_way_to_a_unit_ends_at_the_smallest():
    stays = [
        {"id": 1, "who": "q"},
        {"id": "1", "who": "p"},
        {"id": 2.0, "who": None},
        {"id": None, "who": "z"},
    ]
    notes = [{"stay": key} for key in (1, "1", 1.0, 2, 3, None)]
    owner = Owner(("stay",), "stays", ("id",), WHO)
    assert [
        row.unit for row in rows(Scan("notes", "", (), owner), {"stays": stays, "notes": notes})
    ] == ["p"] * 3
    above = Owner(("note",), "notes", ("key",), owner)
    lines = {
        "stays": stays,
        "notes": [{"stay": 1, "key": "k"}],
        "lines": [{"note": "k"}, {"note": "x"}],
    }
    assert [row.unit for row in rows(Scan("lines", "", (), above), lines)] == ["p"]


def test_a_filter_keeps_what_is_true():
    above = Filter(SCAN, Compare(Comparison.GT, Field(N), Constant(1)))
    assert numbers(above, table(("p", 1), ("p", 2), ("p", None))) == [("p", 2)]


def test_a_public_join_takes_the_first_row_of_a_key():
    key, price = Column("d.key", Integer(0, 9)), Column("d.price", Integer(0, 9))
    drugs = [
        {"key": 1, "price": 5},
        {"key": 1, "price": 3},
        {"key": 2, "price": None},
        {"key": 2, "price": 1},
        {"key": None, "price": 7},
    ]
    tables = {**table(("p", 1), ("p", 2), ("p", 3), ("p", None)), "drugs": drugs}
    inner = PublicJoin(SCAN, Scan("drugs", "d.", (price,)), Field(N), key)
    assert numbers(inner, tables, "d.price") == [("p", 3), ("p", None)]
    outer = PublicJoin(SCAN, Scan("drugs", "d.", (price,)), Field(N), key, outer=True)
    assert numbers(outer, tables, "d.price") == [("p", 3), ("p", None), ("p", None), ("p", None)]
    # the order is that of the columns that are read, the key among them or not
    assert numbers(
        PublicJoin(SCAN, Scan("drugs", "d.", (key, price)), Field(N), key), tables, "d.price"
    )[0] == ("p", 3)


def test_a_key_join_takes_the_first_row_of_its_unit_and_key():
    key, price = Column("o.key", Integer(0, 9)), Column("o.price", Integer(0, 9))
    others = [
        {"who": "p", "key": 1, "price": 5},
        {"who": "p", "key": 1, "price": 3},
        {"who": "q", "key": 1, "price": 0},
        {"who": "q", "key": 2, "price": 1},
        {"who": "p", "key": None, "price": 7},
    ]
    tables = {**table(("p", 1), ("p", 2), ("q", 2), ("r", 1), ("p", None)), "o": others}
    inner = KeyJoin(SCAN, Scan("o", "o.", (price,), WHO), Field(N), key)
    assert numbers(inner, tables, "o.price") == [("p", 3), ("q", 1)]
    outer = KeyJoin(SCAN, Scan("o", "o.", (price,), WHO), Field(N), key, outer=True)
    assert numbers(outer, tables, "o.price") == [
        ("p", 3), ("p", None), ("q", 1), ("r", None), ("p", None),
    ]  # fmt: skip


COUNT = PerUnit(SCAN, (), (Computed(Column("count", Integer(0, 2)), Summary.COUNT),))


def test_a_join_of_units_and_semi_joins():
    tables = {
        **table(("p", 1), ("p", 2), ("q", 3)),
        "o": [{"who": "p", "m": 4}, {"who": "r", "m": 5}],
    }
    other = Scan("o", "", (Column("m", Integer(0, 9)),), WHO)
    assert numbers(UnitJoin(other, COUNT), tables, "count") == [("p", 2)]
    assert numbers(UnitJoin(other, COUNT, outer=True), tables, "count") == [("p", 2), ("r", None)]
    assert numbers(Semi(SCAN, other), tables) == [("p", 1), ("p", 2)]
    assert numbers(Semi(SCAN, other, negated=True), tables) == [("q", 3)]


CELLS = table(("p", 2), ("p", 2), ("p", 9), ("p", None), ("q", None))
SUMMARIES = {
    Summary.COUNT: (4, 1),
    Summary.COUNT_VALUES: (3, 0),
    Summary.COUNT_DISTINCT: (2, 0),
    Summary.SUM: (13, None),
    Summary.MEAN: (4, None),
    Summary.MINIMUM: (2, None),
    Summary.MAXIMUM: (9, None),
}


@pytest.mark.parametrize("summary", Summary)
@pytest.mark.parametrize("bounds", [(-99, 99), (1, 8), (3, 5)])
def test_a_summary_of_a_unit_is_cut(summary, bounds):
    value = None if summary is Summary.COUNT else Value.of(N)
    relation = PerUnit(SCAN, (), (Computed(Column("s", Integer(*bounds)), summary, value),))
    cut = [
        None if each is None else min(max(each, bounds[0]), bounds[1])
        for each in SUMMARIES[summary]
    ]
    assert numbers(relation, CELLS, "s") == [("p", cut[0]), ("q", cut[1])]


def test_null_is_a_group_of_a_unit():
    word = Column("word", sf.Text())
    relation = PerUnit(Scan("t", "", (N, T), WHO), ((word, Value.of(T)),), COUNT.columns)
    found = rows(relation, table(("p", 1, "x"), ("p", 1, None), ("p", 1, "x"), ("q", 1, None)))
    assert found == [
        Row("p", {"word": "x", "count": 2}),
        Row("p", {"word": None, "count": 1}),
        Row("q", {"word": None, "count": 1}),
    ]


BOTH = Scan("t", "", (N, T), WHO)
MIXED = table(("p", 2, "b"), ("p", None, "a"), ("p", 1, "c"), ("q", 5, "x"), ("p", 2, "a"))


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ((Sort(Field(N)),), ["c", "a", "b", "a"]),
        ((Sort(Field(N), True),), ["a", "b", "c", "a"]),
        ((Sort(Field(T), True), Sort(Field(N))), ["c", "b", "a", "a"]),
        ((), ["c", "a", "b", "a"]),
    ],
)
def test_rows_of_a_unit_are_ranked_with_null_last(order, expected):
    ranked = Ranked(BOTH, order, (Field(N), Field(T)), Column("rank", Integer(1, 3)))
    found = [(row.values["rank"], row.values["t"]) for row in rows(ranked, MIXED)]
    # the fourth number is the third, the end of the range
    assert found == [*zip((1, 2, 3, 3), expected, strict=True), (1, "x")]
    assert numbers(first(BOTH, order, (Field(N), Field(T)), "rank"), MIXED, "t") == [
        ("p", expected[0]),
        ("q", "x"),
    ]


# in the order of n: (1, c), (2, a), (2, b), (NULL, a) of p, and (5, x) of q
WINDOWS = [
    (WindowFunction.ROW_NUMBER, (), None, 1, [1, 2, 3, 3, 1]),
    (WindowFunction.ROW_NUMBER, (Field(T),), None, 1, [1, 1, 1, 2, 1]),
    (WindowFunction.RANK, (), None, 1, [1, 2, 2, 3, 1]),
    (WindowFunction.DENSE_RANK, (), None, 1, [1, 2, 2, 3, 1]),
    (WindowFunction.LAG, (), Value.of(N), 1, [None, 1, 2, 2, None]),
    (WindowFunction.LAG, (), Value.of(N), 9, [None] * 5),
    (WindowFunction.LEAD, (), Value.of(N), 2, [2, None, None, None, None]),
    (WindowFunction.LEAD, (Field(T),), Value.of(N), 1, [None] * 5),
    (WindowFunction.LAG, (Field(T),), Value.of(N), 1, [None, None, None, 2, None]),
]


@pytest.mark.parametrize(("function", "by", "value", "offset", "expected"), WINDOWS)
def test_a_window_reads_the_rows_of_its_unit_and_part(function, by, value, offset, expected):
    column = Column("w", N.type if value else Integer(1, 3))
    order, ties = (Sort(Field(N)),), (Field(N), Field(T))
    relation = Windowed(BOTH, function, by, order, ties, column, value, offset)
    cells = {(row.values["n"], row.values["t"]): row.values["w"] for row in rows(relation, MIXED)}
    assert [
        cells[n, t] for n, t in ((1, "c"), (2, "a"), (2, "b"), (None, "a"), (5, "x"))
    ] == expected


def test_a_union_reads_each_source_as_the_same_columns():
    both = Union(
        (SCAN, COUNT),
        ((Field(N),), (Field(COUNT.columns[0].column),)),
        (Column("v", Integer(0, 9)),),
    )
    assert numbers(both, table(("p", 7)), "v") == [("p", 7), ("p", 1)]


@pytest.mark.parametrize("wrong", [Field(N), IsNull(Field(N))])
def test_what_has_no_code_is_refused(wrong):
    row = Row("p", {"n": True})
    with pytest.raises(TypeError, match="no code"):
        row.code(wrong)


def test_a_released_number_is_no_part_of_a_row():
    with pytest.raises(TypeError, match="reads columns only"):
        Row("p", {}).read(Estimate(0))
