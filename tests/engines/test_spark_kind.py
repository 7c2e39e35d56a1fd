# SPDX-License-Identifier: Apache-2.0
"""Types are joined as numbers are, and names and texts arrive as they are."""

import pytest

from sfumato.engines import spark_kind as module
from sfumato.engines.spark_kind import (
    Kind,
    Typed,
    alike,
    common,
    identifier,
    literal,
    required,
    widened,
)
from sfumato.engines.sql_tree import Constant

ODD = [
           "", "a", "it's", 'say "hi"', "back\\slash", "\\'", "a`b", "`", "${x}", "$", "\\u0041", "a\nb\tc\r",
           "\x00\x01\x7f", "空", "👩‍👧", "e\u0301", "\u2028", "--", "/*", "%_", "{{x}}", "a;b", "\\", "\\\\n",
       ]  # fmt: skip


def test_a_text_arrives_as_it_is(both):
    items = ", ".join(
        f"{literal(each)} AS {identifier(f'{place}{each}')}" for place, each in enumerate(ODD)
    )
    (row,) = both.session.sql(f"SELECT {items}").collect()
    assert list(row) == ODD
    assert row.__fields__ == [f"{place}{each}" for place, each in enumerate(ODD)]


@pytest.mark.parametrize("mutant", ["'{}'", '"{}"', "r'{}'"])
def test_a_text_that_is_not_escaped_is_noticed(both, mutant):
    odd = []
    for each in ODD:
        try:
            odd += (
                [each]
                if both.session.sql(f"SELECT {mutant.format(each)}").collect()[0][0] != each
                else []
            )
        except Exception:
            odd.append(each)
    assert odd


@pytest.mark.parametrize(
    ("kinds", "widest"),
    [
        ((), Kind.NULL),
        ((Kind.NULL, Kind.NULL), Kind.NULL),
        ((Kind.NULL, Kind.VARCHAR), Kind.VARCHAR),
        ((Kind.INTEGER, Kind.BIGINT), Kind.BIGINT),
        ((Kind.HUGEINT, Kind.BIGINT, Kind.NULL), Kind.HUGEINT),
        ((Kind.HUGEINT, Kind.DOUBLE), Kind.DOUBLE),
    ],
)
def test_the_type_that_holds_them_all(kinds, widest):
    assert common(kinds) is widest


@pytest.mark.parametrize(
    "kinds",
    [
        (Kind.VARCHAR, Kind.BIGINT),
        (Kind.BOOLEAN, Kind.BIGINT),
        (Kind.DECIMAL, Kind.BIGINT),
        (Kind.DATE, Kind.VARCHAR),
    ],
)
def test_what_no_type_holds_is_refused(kinds):
    with pytest.raises(TypeError, match="several types"):
        common(kinds)


class Constants:
    """Writes whole numbers and texts alone."""

    narrow = False

    def __call__(self, node):
        if isinstance(node.value, str):
            return Typed(node.value, Kind.VARCHAR)
        return Typed(str(node.value), Kind.BIGINT if node.value < 9 else Kind.HUGEINT)


def test_values_are_widened_alike():
    one, many = Constant(1), Constant(99)
    assert alike([one, one], Constants()) == (["1", "1"], Kind.BIGINT)
    assert alike([one, many], Constants()) == (["CAST(1 AS DECIMAL(38,0))", "99"], Kind.HUGEINT)
    with pytest.raises(TypeError, match="several types"):
        alike([one, Constant("a")], Constants())
    assert widened(Typed("x", Kind.DATE), Kind.DATE) == "x"


def test_a_value_of_another_type_is_refused():
    assert required(Typed("x", Kind.DATE), Kind.VARCHAR, Kind.DATE) == "x"
    with pytest.raises(TypeError, match="DATE where VARCHAR stands"):
        required(Typed("x", Kind.DATE), Kind.VARCHAR)


def test_every_type_has_its_name_on_spark(both):
    for kind in module.Kind:
        name = "DECIMAL(9,2)" if kind is Kind.DECIMAL else kind.value
        found = (
            both.session.sql(f"SELECT CAST(NULL AS {name}) AS x")
            .schema["x"]
            .dataType.simpleString()
        )
        shown = {Kind.INSTANT: "timestamp"}.get(kind, name.lower().replace(" ", ""))
        assert found == shown
