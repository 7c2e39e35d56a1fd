# SPDX-License-Identifier: Apache-2.0
"""The made-up country: the same on every machine, and its rows are its counts."""

from collections import Counter

from sfumato.examples.made_up_census import made_up


def test_its_rows_are_its_counts():
    country = made_up(persons=2000)
    rows = country.table.source
    assert rows.num_rows == country.counts.sum()
    assert abs(rows.num_rows - 2000) < 400
    tracts = Counter(rows["tract"].to_pylist())
    codes = country.spine.codes[-1]
    by_tract = country.counts.sum(axis=(1, 2, 3))
    assert all(tracts[code] == count for code, count in zip(codes, by_tract, strict=True))
    assert country.spine.tree.levels == 4


def test_it_is_the_same_every_time():
    one, other = made_up(persons=1000), made_up(persons=1000)
    assert (one.counts == other.counts).all()
