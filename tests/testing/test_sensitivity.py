# SPDX-License-Identifier: Apache-2.0
"""Sensitivity by enumeration, and a local one that nothing takes for a distance."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration
from sfumato.mechanisms.additive import gaussian, laplace
from sfumato.mechanisms.bounds import bounds
from sfumato.mechanisms.moments import mean
from sfumato.mechanisms.quantile import median, quantiles
from sfumato.mechanisms.representative import mode, representative
from sfumato.mechanisms.selection import exponential
from sfumato.mechanisms.vector import vector
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import AdditiveNoise, Distance, Norm, Relation
from sfumato.testing import sensitivity as module
from sfumato.testing.sensitivity import LocalSensitivity, global_sensitivity, local_sensitivity

BOTH = pytest.mark.parametrize("relation", list(Relation))
DOMAIN = (0, 1, 5)


def middle(rows):
    return sorted(rows)[len(rows) // 2] if rows else 0


def histogram(rows):
    return [sum(row == value for row in rows) for value in DOMAIN]


def last(rows):
    """Depends on the order."""
    return rows[-1] if rows else 0


STATISTICS = [
    sum,
    len,
    middle,
    histogram,
    last,
    lambda rows: [sum(rows), sum(row * row for row in rows)],
]


def entries(value):
    return list(value) if isinstance(value, list) else [value]


def apart(one, other, norm):
    """By the definition of the norms; L2 squared."""
    moves = [abs(a - b) for a, b in zip(entries(one), entries(other), strict=True)]
    return {Norm.L1: sum(moves), Norm.L2: sum(move**2 for move in moves), Norm.LINF: max(moves)}[
        norm
    ]


def are_neighbours(one, other, relation):
    """By definition: the one with a row taken out, or with one row of the other's."""
    if relation is Relation.REPLACE_ONE:
        return len(one) == len(other) and sum(a != b for a, b in zip(one, other, strict=True)) <= 1
    longer, shorter = sorted((one, other), key=len, reverse=True)
    return len(longer) == len(shorter) + 1 and any(
        longer[:place] + longer[place + 1 :] == shorter for place in range(len(longer))
    )


def tuples(most, least=0):
    return [data for rows in range(least, most + 1) for data in product(DOMAIN, repeat=rows)]


@BOTH
@given(
    st.lists(st.sampled_from(DOMAIN), max_size=3).map(tuple),
    st.sampled_from(STATISTICS),
    st.sampled_from(Norm),
)
@settings(deadline=None)
def test_a_local_sensitivity_is_that_of_the_neighbours_of_the_data(relation, data, statistic, norm):
    moves = [
        apart(statistic(data), statistic(other), norm)
        for other in tuples(4)
        if are_neighbours(data, other, relation)
    ]
    assert local_sensitivity(statistic, data, DOMAIN, relation, norm).amount == max(
        moves, default=0
    )


def expected(statistic, relation, norm):
    data = tuples(3, least=3 if relation is Relation.REPLACE_ONE else 0)
    pairs = [
        (one, other)
        for one, other in product(data, repeat=2)
        if are_neighbours(one, other, relation)
    ]
    return max(apart(statistic(one), statistic(other), norm) for one, other in pairs)


@BOTH
@pytest.mark.parametrize("norm", list(Norm))
@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_global_sensitivity_is_that_of_all_neighbours(statistic, relation, norm):
    largest = expected(statistic, relation, norm)
    if largest == 0:
        with pytest.raises(InvalidDeclaration, match="same on all"):
            global_sensitivity(statistic, DOMAIN, 3, relation, norm)
    else:
        found = global_sensitivity(statistic, DOMAIN, 3, relation, norm)
        assert found == Distance(norm, Fraction(largest), relation)


@BOTH
def test_a_search_that_skips_neighbours_is_noticed(relation, monkeypatch):
    for name in ("_removed", "_replaced"):
        whole = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, whole=whole: list(whole(*given))[:1])
    # only the first row is taken out, or replaced by the first value
    found = global_sensitivity(of_the_ends, DOMAIN, 3, relation)
    assert found.value < expected(of_the_ends, relation, Norm.L1)


def of_the_ends(rows):
    """Moves furthest where the last of three rows goes."""
    return [10 if rows[-1] == 5 else -10, rows[0]] if len(rows) >= 2 else [0, 0]


@given(
    st.lists(st.sampled_from(DOMAIN), min_size=1, max_size=4),
    st.sampled_from(STATISTICS),
    st.sampled_from(Relation),
)
@settings(deadline=None)
def test_a_local_sensitivity_is_at_most_the_global_one(data, statistic, relation):
    local = local_sensitivity(statistic, data, DOMAIN, relation).amount
    rows = len(data) + (relation is Relation.ADD_REMOVE)
    if local > 0:
        assert local <= global_sensitivity(statistic, DOMAIN, rows, relation).value


LOCAL = LocalSensitivity(Fraction(1))
ROW = Distance(Norm.L1, Fraction(1))
USES = {
    "laplace": lambda: laplace(LOCAL, 1),
    "gaussian": lambda: gaussian(LOCAL, 1),
    "event": lambda: laplace(ROW, 1).event(LOCAL),
    "vector": lambda: vector(LOCAL, 3, epsilon=1),
    "vector_event": lambda: vector(ROW, 3, epsilon=1).event(LOCAL),
    "exponential": lambda: exponential(LOCAL, 1),
    "median": lambda: median(LOCAL, 1, lower=0, upper=1),
    "quantiles": lambda: quantiles(LOCAL, 1, q=["0.5"], lower=0, upper=1),
    "bounds": lambda: bounds(LOCAL, 1, lower=0, upper=1, failure="0.1"),
    "mean": lambda: mean(LOCAL, 1, lower=0, upper=1),
    "mode": lambda: mode(LOCAL, 1, "ab"),
    "representative": lambda: representative(LOCAL, 1, [0], lambda c, r: 0, cap=1),
    "over": lambda: LOCAL.over(3, Norm.L1),
    "account": lambda: account(AdditiveNoise(DiscreteLaplace(1), LOCAL)),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_local_sensitivity_is_refused_wherever_a_distance_is_needed(use):
    with pytest.raises(InvalidDeclaration, match="local sensitivity") as caught:
        use()
    assert "Nissim" in caught.value.remedy


def test_a_local_sensitivity_with_the_attributes_of_a_distance_would_be_taken(monkeypatch):
    for name, value in (
        ("value", Fraction(1)),
        ("norm", Norm.LINF),
        ("relation", Relation.ADD_REMOVE),
    ):
        monkeypatch.setattr(LocalSensitivity, name, property(lambda local, value=value: value))
    # the accountant reads attributes only, so these are what refuses
    assert account(exponential(LOCAL, 1).event(LOCAL)).epsilon == 1


def test_noise_of_the_local_size_would_tell_neighbours_apart():
    quiet, loud = (0, 0, 0, 0, 10), (0, 0, 0, 10, 10)
    found = [
        local_sensitivity(middle, data, (0, 10), Relation.REPLACE_ONE).amount
        for data in (quiet, loud)
    ]
    assert found == [0, 10]
    assert global_sensitivity(middle, (0, 10), 5, Relation.REPLACE_ONE).value == 10


@BOTH
def test_too_much_work_is_refused_before_the_statistic_is_called(relation):
    def never(rows):
        raise AssertionError("the statistic was called")

    for domain, size in ((range(10), 7), (range(2), 10**9), ((0,), 10**9), (range(10**7), 1)):
        with pytest.raises(InvalidDeclaration, match="1000000"):
            global_sensitivity(never, domain, size, relation)
    with pytest.raises(InvalidDeclaration, match="More than 3 "):
        global_sensitivity(never, (0, 1), 2, relation, work=3)


@pytest.mark.parametrize(
    ("relation", "work"),
    [
        # 8 tuples of 3 rows, 3 x 2 pairs each
        (Relation.REPLACE_ONE, 8 + 48),
        # 1 + 2 + 4 + 8 tuples, 0 + 2 + 8 + 24 pairs
        (Relation.ADD_REMOVE, 15 + 34),
    ],
)
def test_the_work_is_what_is_counted(relation, work):
    assert global_sensitivity(sum, (0, 1), 3, relation, work=work).value == 1
    with pytest.raises(InvalidDeclaration, match="More than"):
        global_sensitivity(sum, (0, 1), 3, relation, work=work - 1)


@BOTH
@pytest.mark.parametrize(
    ("domain", "size"), [((), 1), ((0,), 0), ((0,), -1), ((0,), True), ((0,), 2.0)]
)
def test_an_empty_search_is_refused(domain, size, relation):
    with pytest.raises(InvalidDeclaration, match="one or more"):
        global_sensitivity(sum, domain, size, relation)


def test_a_statistic_that_is_not_integer_or_changes_its_length_is_refused():
    with pytest.raises(InvalidDeclaration, match="integer"):
        global_sensitivity(lambda rows: sum(rows) / 2, DOMAIN, 2, Relation.ADD_REMOVE)
    with pytest.raises(InvalidDeclaration, match="integer"):
        local_sensitivity(lambda rows: ["a"], (0,), DOMAIN, Relation.ADD_REMOVE)
    with pytest.raises(InvalidDeclaration, match="number of entries"):
        global_sensitivity(list, DOMAIN, 2, Relation.ADD_REMOVE)
