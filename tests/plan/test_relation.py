# SPDX-License-Identifier: Apache-2.0
"""Filters over a scan, taken apart."""

from hypothesis import given
from hypothesis import strategies as st

from sfumato.plan.relation import Filter, Scan, predicates, scanned
from sfumato.plan.scalar import Constant


def test_a_scan_has_no_filter():
    assert scanned(Scan("people")) == Scan("people")
    assert predicates(Scan("people")) == []


@given(st.lists(st.integers(), max_size=6))
def test_filters_are_found_lowest_first_above_their_scan(values):
    relation = Scan("people")
    for value in values:
        relation = Filter(relation, Constant(value))
    assert scanned(relation) == Scan("people")
    assert predicates(relation) == [Constant(value) for value in values]
