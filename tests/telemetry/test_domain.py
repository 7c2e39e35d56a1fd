# SPDX-License-Identifier: Apache-2.0
"""Every value that a device can hold has a number, and no two listed texts look alike."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidDeclaration, UnknownName
from sfumato.telemetry import Words
from sfumato.telemetry.domain import Lattice, Listed, domain_from_json, domain_of

ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.lists(st.none()),
)
DOMAINS = [
    Listed(("a", "b", "1")),
    Lattice(-3, 5, Fraction(1)),
    Lattice(0, 8, Fraction(1, 4)),
    Lattice(1, 9, Fraction(1, 10)),
]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@given(value=ANYTHING)
def test_no_value_makes_a_report_fail(domain, value):
    assert 0 <= domain.number(value) < domain.size == len(domain.labels)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_every_label_has_its_number_and_the_form_gives_the_same_domain(domain):
    assert [domain.known(label) for label in domain.labels] == list(range(domain.size))
    assert [domain.number(label) for label in domain.labels] == list(range(domain.size))
    assert domain_from_json(domain.to_json()) == domain


def test_texts_are_compared_in_one_unicode_form():
    domain = Listed(("caf\u00e9",))
    assert domain.number("cafe\u0301") == 0
    assert Listed(("cafe\u0301",)) == domain
    with pytest.raises(InvalidDeclaration, match="twice"):
        Listed(("caf\u00e9", "cafe\u0301"))


@pytest.mark.parametrize(
    "values", [(), ("a", "a"), ("(other)",), ("",), (3,), ("\ud800",), (None,)]
)
def test_a_list_that_is_no_domain_is_refused(values):
    with pytest.raises(InvalidDeclaration):
        Listed(values)


def test_what_is_not_listed_is_other():
    domain = domain_of(sf.Category("on", "off"), "neither")
    assert domain.labels == ("on", "off", "neither")
    assert domain.number("half") == domain.number(None) == domain.number(b"on") == 2
    with pytest.raises(UnknownName, match="never"):
        domain.known("half")


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([1, 2, 4, 10]))
def test_numbers_are_rounded_half_to_even_and_clipped(value, parts):
    domain = Lattice(-20, 20, Fraction(1, parts))
    wanted = round(Fraction(value) * parts)
    assert domain.number(value) == min(max(wanted, -20), 20) + 20


def test_what_is_no_number_counts_as_the_least():
    domain = domain_of(sf.Integer(0, 120))
    assert [domain.number(value) for value in (math.nan, "3", None, -math.inf)] == [0] * 4
    assert domain.number(math.inf) == 120
    with pytest.raises(UnknownName):
        domain.known(121)
    with pytest.raises(UnknownName):
        domain.known(0.5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Lattice(3, 3, Fraction(1)),
        lambda: Lattice(0, 1 << 31, Fraction(1)),
        lambda: Lattice(0, 5, Fraction(0)),
        lambda: Lattice(1 << 54, (1 << 54) + 1, Fraction(1)),
        lambda: Lattice(0.0, 5, Fraction(1)),
        lambda: domain_of("abc"),
        lambda: domain_of(sf.Text()),
        lambda: domain_of(None),
    ],
)
def test_what_is_no_domain_is_refused(make):
    with pytest.raises(InvalidDeclaration):
        make()


def test_a_real_column_has_its_lattice():
    domain = domain_of(sf.Real(0, 100, step="0.5"))
    assert (domain.size, domain.number(0.75), domain.labels[-1]) == (201, 2, 100.0)


def test_integers_of_every_length_and_kind_are_taken():
    listed = Listed(("5",))
    assert listed.number(5) == listed.number(np.int64(5)) == 0
    assert listed.number(10**5000) == listed.number(True) == 1
    ages = Lattice(0, 120, Fraction(1))
    assert [ages.number(value) for value in (np.int32(7), np.float32(7), Fraction(7))] == [7] * 3
    assert ages.number(10**5000) == 120 and ages.number(True) == 0
    assert ages.number(np.float64("nan")) == 0 and ages.number(np.float32("inf")) == 120


@given(st.text("abé\0", max_size=5))
def test_words_are_the_texts_of_their_numbers(text):
    # the end of a text is no letter, even where U+0000 is one
    words = Words("\0abé", 5)
    assert words.text(words.number(text)) == text
    assert words.number(text + "zz") == 0
    assert words.known(text) == words.number(text) < 5**5


@pytest.mark.parametrize(
    ("letters", "length"),
    [("aa", 3), ("e\u0301", 3), ("ab", 0), ("ab", 65), ("ab", 10**12), ("ab", True), ("ab", "3")],
)
def test_words_that_cannot_be_numbered_are_refused(letters, length):
    with pytest.raises(InvalidDeclaration):
        Words(letters, length)


def test_no_float_is_too_far_for_a_lattice():
    far = [np.longdouble("1e4000"), np.longdouble("-1e4000"), np.float16(3), np.float32("inf")]
    assert [Lattice(0, 8, Fraction(1)).number(value) for value in far] == [8, 0, 3, 8]
