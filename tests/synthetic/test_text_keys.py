# SPDX-License-Identifier: Apache-2.0
"""The place of a string among released ones, against a list."""

from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.metadata.column import Category, Column, Text
from sfumato.metadata.dataset import Dataset
from sfumato.plan.evaluate import evaluate
from sfumato.synthetic.schema import Schema, TextAxis
from sfumato.synthetic.text_keys import place_of

HOME = Column("home", Text())
WORDS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=4)


@given(st.sets(WORDS, max_size=40), st.lists(st.none() | WORDS, max_size=5))
def test_the_place_of_a_string_is_that_in_the_list(keys, others):
    listed = sorted(keys)
    expression = place_of(HOME, listed)
    for value in [*listed, *others]:
        found = evaluate(expression, lambda leaf, value=value: value)
        expected = None if value is None else len(listed)
        if value in keys:
            expected = listed.index(value)
        assert found == expected


def test_every_string_is_in_one_cell():
    keys = sorted(f"k{place}" for place in range(30))
    one = TextAxis(Column("home", Category(*keys, "(else)")))
    schema = Schema.over(
        Dataset("d", {"t": sf.Table("t.csv", columns={"home": Text()})}), "t", [one]
    )
    rows = [{"home": key} for key in (*keys, *keys[:3], "other", "zz", "(else)", "", None)]
    with Reference({"t": rows}).cube(schema.plan) as opened:
        (counts,) = opened.marginals([("home",)])
    assert counts.tolist() == [2, 2, 2, *[1] * 27, 4, 1]


def test_a_place_that_ignores_the_order_is_noticed():
    """The mutant is given its keys in another order than it tells them apart by."""
    keys = [f"k{place:02}" for place in range(20)][::-1]
    expression = place_of(HOME, keys)
    found = [evaluate(expression, lambda leaf, key=key: key) for key in keys]
    assert found != list(range(20))
