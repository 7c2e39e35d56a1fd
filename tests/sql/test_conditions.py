# SPDX-License-Identifier: Apache-2.0
"""A conjunction is taken apart and put together; the test of the first row is a filter by itself."""

from sqlglot import parse_one

import sfumato as sf
from sfumato.metadata.column import Column
from sfumato.plan.relation import Filter, Ranked, Scan, is_single
from sfumato.plan.scalar import And, Field, IsNull, Member
from sfumato.sql.conditions import conjunction, conjuncts, passing

RANK = Column("rank", sf.Integer(1, 9))
FIRST, OTHER = Member(Field(RANK), (1,)), IsNull(Field(RANK))


def test_a_conjunction_is_taken_apart():
    parts = conjuncts(parse_one("a = 1 AND (b = 2 AND (c = 3 OR d = 4)) AND NOT e = 5"))
    assert [part.sql() for part in parts] == ["a = 1", "b = 2", "c = 3 OR d = 4", "NOT e = 5"]


def test_tests_are_put_together():
    assert conjunction([FIRST]) == FIRST
    assert conjunction([FIRST, OTHER]) == And((FIRST, OTHER))


def test_the_first_row_is_a_filter_by_itself():
    ranked = Ranked(Scan("t"), (), (), RANK)
    assert passing(ranked, []) is ranked
    assert passing(ranked, [OTHER, FIRST]) == Filter(Filter(ranked, FIRST), OTHER)
    assert is_single(passing(ranked, [OTHER, FIRST]))
    assert passing(Scan("t"), [OTHER, FIRST]) == Filter(Scan("t"), And((OTHER, FIRST)))
