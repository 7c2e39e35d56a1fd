# SPDX-License-Identifier: Apache-2.0
"""The algebra of workloads."""

from fractions import Fraction

import pytest

from sfumato.errors import InvalidNumber, WrongUse
from sfumato.synopsis.wanted import cells, marginals, prefixes, queries, ranges
from sfumato.synopsis.workload import Cells, Ranges


def test_products_distribute_over_sums():
    left = (ranges("a") + prefixes("b")) * cells("c")
    assert left == ranges("a") * cells("c") + prefixes("b") * cells("c")
    assert left.names == ("a", "c", "b")


def test_weights_multiply():
    both = 3 * (cells("a") * Fraction(1, 2)) * (2 * cells("b"))
    assert [term.weight for term in both.terms] == [3]
    with pytest.raises(InvalidNumber):
        cells("a") * 0


def test_marginals_are_all_small_tables():
    names = [term.names for term in marginals(["a", "b", "c"], up_to=2).terms]
    assert names == [("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c")]
    assert marginals(["a"], up_to=5).single == ("a", Cells)
    assert ranges("a").single == ("a", Ranges)
    assert (ranges("a") * cells("b")).single is None


def test_a_hundred_columns_are_a_few_kilobytes():
    wanted = ranges("income") * marginals([f"c{k}" for k in range(100)], up_to=2)
    assert len(wanted.terms) == 5050


def test_statements_are_added_and_weighed():
    both = 2 * (queries(["SELECT 1"]) * 3) + cells("a")
    assert [statement.weight for statement in both.statements] == [6]
    assert both.names == ("a",)
    assert both.single is None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: queries([]),
        lambda: queries("SELECT COUNT(*) FROM people"),
        lambda: queries([3]),
        lambda: queries(["SELECT 1"]) * cells("a"),
        lambda: ranges("a") * cells("a"),
        lambda: marginals("ab", up_to=1),
        lambda: marginals([], up_to=1),
        lambda: marginals(["a", "a"], up_to=1),
        lambda: marginals(["a"], up_to=0),
        lambda: marginals(["a"], up_to=True),
        lambda: marginals([f"c{k}" for k in range(100)], up_to=4),
        lambda: cells("a", "a"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(WrongUse):
        wrong()
