# SPDX-License-Identifier: Apache-2.0
"""Reports of devices: their odds by enumeration of every output, and what is refused."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting import account
from sfumato.accounting.amplify import shuffled
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.privacy import Relation, Shuffled
from sfumato.privacy.event import (
    BitReport,
    CategoryReport,
    ChosenReport,
    HashedReport,
    JointReport,
    LineReport,
    ProjectiveReport,
    PureEvent,
    UnaryReport,
    WindowReport,
)

WHOLE = 1 << 64
QUARTER = 1 << 62


def worst(laws):
    """The largest ratio of one output under two of these laws: outputs and their probabilities."""
    return max(
        Fraction(one[output], other[output])
        for one, other in itertools.permutations(laws, 2)
        for output in one
    )


def unary_law(ones, kept, added, bits):
    """The law of independent bits, of which ``ones`` are the value's."""
    law = {}
    for report in itertools.product((0, 1), repeat=bits):
        chance = 1
        for bit, said in enumerate(report):
            one = kept if bit in ones else added
            chance *= one if said else WHOLE - one
        law[report] = chance
    return law


@given(
    kept=st.integers(1, WHOLE - 1),
    added=st.integers(1, WHOLE - 1),
    hashes=st.integers(1, 2),
)
def test_the_odds_of_a_unary_report_are_the_largest_ratio(kept, added, hashes):
    values = [set(range(start, start + hashes)) for start in (0, hashes)]
    laws = [unary_law(ones, kept, added, 2 * hashes) for ones in values]
    assert UnaryReport(kept, added, 2 * hashes, hashes).odds == worst(laws)


def test_hashes_that_meet_cost_no_more():
    laws = [unary_law(ones, 3 * QUARTER, QUARTER, 4) for ones in ({0, 1}, {1, 2}, {0}, {3})]
    assert worst(laws) <= UnaryReport(3 * QUARTER, QUARTER, 4, 2).odds == 81


@given(st.integers(2, 9), st.integers(1, WHOLE // 10))
def test_a_category_costs_what_its_weights_say(categories, other):
    truth = WHOLE - (categories - 1) * other
    laws = [
        {said: truth if said == value else other for said in range(categories)}
        for value in range(categories)
    ]
    assert CategoryReport(truth, other, categories).odds == worst(laws)
    assert HashedReport(truth, other, categories).odds == worst(laws)


@given(st.integers(1, WHOLE - 1))
def test_a_report_costs_the_logarithm_of_its_odds_rounded_up(truth):
    report = BitReport(truth)
    exact = max(Fraction(truth, WHOLE - truth), Fraction(WHOLE - truth, truth))
    assert report.odds == exact
    assert math.isclose(report.epsilon, math.log(exact), rel_tol=1e-9, abs_tol=1e-12)
    # e^epsilon >= odds: one last digit less would not be enough
    if exact > 1:
        assert account(report).epsilon == report.epsilon > 0


def test_a_device_hides_its_value_alone():
    assert account(BitReport(3 * QUARTER)).rho == BitReport(3 * QUARTER).epsilon ** 2 / 2
    assert BitReport(QUARTER).relation is Relation.REPLACE_ONE


@pytest.mark.parametrize(
    "make",
    [
        lambda: CategoryReport(QUARTER, QUARTER, 3),
        lambda: CategoryReport(WHOLE, 0, 2),
        lambda: CategoryReport(WHOLE, 1, 1),
        lambda: CategoryReport(3 * QUARTER, 0.25 * WHOLE, 2),
        lambda: CategoryReport(2 * QUARTER, QUARTER, True),
        lambda: HashedReport(QUARTER, QUARTER, 5),
        lambda: ProjectiveReport(QUARTER, QUARTER, 2, 2),
        lambda: ProjectiveReport(2 * QUARTER, QUARTER, 4, 2),
        lambda: ProjectiveReport(2 * QUARTER, QUARTER, 2, 1),
        lambda: ProjectiveReport(2 * QUARTER, QUARTER, 2, 40),
        lambda: UnaryReport(WHOLE, QUARTER, 8, 1),
        lambda: UnaryReport(QUARTER, 0, 8, 1),
        lambda: UnaryReport(QUARTER, QUARTER, 0, 1),
        lambda: UnaryReport(QUARTER, QUARTER, 2, 3),
        lambda: BitReport(0),
        lambda: BitReport(WHOLE),
        lambda: BitReport(True),
        lambda: LineReport(0, QUARTER),
        lambda: LineReport(QUARTER, WHOLE),
        lambda: WindowReport(QUARTER, QUARTER, 3, 2),
        lambda: WindowReport(QUARTER, QUARTER, 0, 4),
        lambda: ChosenReport((), ()),
        lambda: ChosenReport((BitReport(QUARTER),), (QUARTER,)),
        lambda: ChosenReport((BitReport(QUARTER),), (WHOLE, 0)),
        lambda: ChosenReport((PureEvent(Fraction(1)),), (WHOLE,)),
        lambda: JointReport(()),
        lambda: JointReport((PureEvent(Fraction(1)),)),
    ],
)
def test_a_law_that_no_device_can_draw_is_refused(make):
    with pytest.raises((InvalidDeclaration, InvalidNumber)):
        make()


def test_shuffled_reports_count_as_any_randomizer():
    report = CategoryReport(2 * QUARTER, QUARTER, 3)
    found = shuffled(Shuffled(report, 100_000), "1e-6")
    any_randomizer = PureEvent(report.epsilon, Relation.REPLACE_ONE)
    assert found.upper == shuffled(Shuffled(any_randomizer, 100_000), "1e-6").upper
    assert found.lower == 0
    assert shuffled(Shuffled(report, 100_000), 0).lower > 0.69


@given(st.integers(1, WHOLE - 1), st.integers(1, WHOLE - 1), st.integers(1, WHOLE - 1))
def test_a_choice_costs_what_its_dearest_report_does(low, high, weight):
    bit, line = BitReport(low), LineReport(low, high)
    chosen = ChosenReport((bit, line), (weight, WHOLE - weight))
    laws = []
    for truth, one in ((low, low), (WHOLE - low, high)):
        laws.append(
            {
                (0, 1): weight * truth,
                (0, 0): weight * (WHOLE - truth),
                (1, 1): (WHOLE - weight) * one,
                (1, 0): (WHOLE - weight) * (WHOLE - one),
            }
        )
    assert chosen.odds == worst(laws) == max(bit.odds, line.odds)


@given(st.integers(1, WHOLE - 1), st.integers(1, WHOLE - 1))
def test_joint_reports_cost_the_product_of_their_odds(one, other):
    bits = BitReport(one), BitReport(other)
    laws = []
    for first, second in ((one, other), (WHOLE - one, WHOLE - other)):
        pairs = itertools.product((first, WHOLE - first), (second, WHOLE - second))
        laws.append({place: a * b for place, (a, b) in enumerate(pairs)})
    # a value and its opposite: some pair of bits is the likeliest of both under the same value
    assert JointReport(bits).odds == worst(laws) == bits[0].odds * bits[1].odds


def test_a_window_costs_what_its_weights_say():
    near, far, window, moves = QUARTER, QUARTER // 2, 3, 2
    laws = [
        {place: near if start <= place < start + window else far for place in range(window + moves)}
        for start in range(moves + 1)
    ]
    assert all(sum(law.values()) == WHOLE for law in laws)
    assert WindowReport(near, far, window, moves).odds == worst(laws) == 2
