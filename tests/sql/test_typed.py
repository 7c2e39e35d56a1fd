# SPDX-License-Identifier: Apache-2.0
"""What a code means: a value keeps its declared type only where it is the column itself."""

from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Boolean, Category, Column, Date, Integer, Real, Text
from sfumato.plan.evaluate import LAST_DAY, evaluate
from sfumato.plan.scalar import Arithmetic, Constant, Field, Lookup, Operation
from sfumato.plan.value import Value
from sfumato.sql import typed as room
from sfumato.sql.typed import (
    Day,
    Interval,
    Label,
    Null,
    Number,
    Person,
    Truth,
    Words,
    category,
    code_of,
    known,
    number,
    number_type,
    read,
    recoded,
    require_small,
    text,
    truth_of,
    value_of,
)

KINDS = {
    "i": sf.Integer(-4, 4),
    "r": sf.Real(0, 1, step="0.25"),
    "d": sf.Date("2024-01-01", "2024-01-31"),
    "c": sf.Category({"1": "one", "2": "two"}),
    "b": sf.Boolean(missing="N"),
    "t": sf.Text(),
}
COLUMNS = {name: Column(name, kind) for name, kind in KINDS.items()}
FIELDS = {name: Field(column) for name, column in COLUMNS.items()}


@pytest.mark.parametrize("name", KINDS)
def test_a_column_read_as_it_is_keeps_its_type(name):
    assert value_of(read(COLUMNS[name]), "other") == Value.of(COLUMNS[name])


def test_a_column_that_means_something_else_has_another_type():
    # the same code, but twice the value; the same codes, but other texts
    doubled = value_of(Number(FIELDS["i"], Fraction(2)), "i * 2")
    assert (doubled.type, doubled.expression) == (Real(-8, 8, step=2), FIELDS["i"])
    upper = value_of(Label(FIELDS["c"], ("ONE", "TWO")), "UPPER(c)")
    assert (upper.type, upper.expression) == (Category("ONE", "TWO"), FIELDS["c"])


@pytest.mark.parametrize(
    ("typed", "kind"),
    [
        (number(3), Integer(0, 3)),
        (number(-3), Integer(-3, 0)),
        (number(0), Integer(0, 1)),
        (number(Fraction(1, 4)), Real(0, "0.25", step="0.25")),
        (
            Number(Arithmetic(Operation.ADD, FIELDS["r"], Constant(1)), Fraction(1, 4)),
            Real("0.25", "1.25", step="0.25"),
        ),
        (Day(Constant(0)), Date("1970-01-01", "1970-01-02")),
        (Day(Constant(LAST_DAY)), Date("9999-12-30", "9999-12-31")),
        (text("x"), Category("x")),
        (Truth(Constant(value=True)), Boolean()),
        (Words(FIELDS["t"]), Text()),
    ],
)
def test_a_computed_value_has_the_type_of_its_range(typed, kind):
    assert value_of(typed, "v").type == kind


def test_what_is_always_null_has_no_type():
    for typed in (Number(Constant(None), Fraction(1)), Day(Constant(None))):
        with pytest.raises(UnsupportedSql, match="always NULL"):
            value_of(typed, "v")


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        (number(Fraction(3, 7)), Fraction(3, 7)), (text("a"), "a"), (Day(Constant(0)), "1970-01-01"),
        (Truth(Constant(value=True)), True),
        (Null(), None), (read(COLUMNS["i"]), None), (Interval(1, 0), None), (truth_of(FIELDS["b"]), None), (Person("p", None), None),
    ],
)  # fmt: skip
def test_a_constant_is_known(typed, value):
    assert known(typed) == value


def test_a_truth_has_codes_and_codes_have_a_truth():
    truth = Truth(Constant(value=True))
    assert evaluate(truth.codes, lambda leaf: None) == 1
    assert evaluate(Truth(Constant(value=False)).codes, lambda leaf: None) == 0
    assert evaluate(Truth(Constant(None)).codes, lambda leaf: None) is None
    assert truth_of(FIELDS["b"]).codes == FIELDS["b"]


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        (Person("user", None), "user names single persons"),
        (Interval(1, 0), "INTERVAL"),
        (Null(), "NULL"),
    ],
)
def test_what_has_no_code_is_refused(typed, word):
    with pytest.raises(UnsupportedSql, match=word) as refusal:
        code_of(typed)
    assert refusal.value.remedy


def test_texts_are_recoded_among_others():
    label = read(COLUMNS["c"])
    assert recoded(label, ("one", "two")) == FIELDS["c"]
    assert recoded(label, ("one", "two", "three")) == FIELDS["c"]
    assert recoded(label, ("two", "one")) == Lookup(FIELDS["c"], 0, (1, 0))
    assert recoded(label, ("two",)) == Lookup(FIELDS["c"], 0, (None, 0))
    assert recoded(text("two"), ("one", "two")) == Constant(1)
    assert recoded(text("three"), ("one", "two")) == Constant(None)


def test_an_empty_text_is_no_group():
    with pytest.raises(UnsupportedSql, match="empty"):
        category(("a", ""))
    assert category(["a", "b"]) == Category("a", "b")


def test_a_tree_that_doubles_is_refused():
    scalar = FIELDS["i"]
    for _ in range(13):
        scalar = Arithmetic(Operation.ADD, scalar, scalar)
    require_small(Number(scalar, Fraction(1)))
    with pytest.raises(UnsupportedSql, match="20,000 parts"):
        require_small(Number(Arithmetic(Operation.ADD, scalar, scalar), Fraction(1)))
    for typed in (Null(), Interval(1, 1), Person("p", None)):
        require_small(typed)


def test_a_tree_that_is_deep_is_refused():
    scalar = FIELDS["i"]
    for _ in range(119):
        scalar = Arithmetic(Operation.ADD, scalar, Constant(1))
    require_small(Number(scalar, Fraction(1)))
    with pytest.raises(UnsupportedSql, match="more than 120 inside one another"):
        require_small(Number(Arithmetic(Operation.ADD, scalar, Constant(1)), Fraction(1)))


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [(0, 9, 10**300), (0, 9, Fraction(1, 10**301)), (-(2**52), 2**52, 10**299)],
)
def test_numbers_that_no_float_can_hold_are_refused_as_a_question(low, high, step):
    with pytest.raises(UnsupportedSql, match="too large or too small for a float"):
        number_type(low, high, Fraction(step))


def test_a_column_of_a_sub_query_is_called_as_the_question_calls_it():
    value = value_of(read(Column("per_unit.sum", KINDS["i"])), "total")
    assert (value.name, value_of(read(COLUMNS["i"]), "other").name) == ("total", "i")


def test_a_type_taken_from_the_code_alone_is_noticed(monkeypatch):
    monkeypatch.setattr(room, "read", lambda column: Number(FIELDS["i"], Fraction(2)))
    assert value_of(Number(FIELDS["i"], Fraction(2)), "i * 2").type == KINDS["i"]
