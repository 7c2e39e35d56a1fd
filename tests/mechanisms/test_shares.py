# SPDX-License-Identifier: Apache-2.0
"""A share is cut, noisy and masked: the sum of all shares is the pooled sum plus all noise."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration, SfumatoError
from sfumato.mechanisms.masks import roster_of
from sfumato.mechanisms.shares import ShareMechanism
from sfumato.noise import DiscreteGaussian
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation
from tests.contracts.studies import identities, masks_of, publics, summed

KEYS = identities("a", "b", "c")
ROSTER = roster_of(publics(KEYS))
NOISE = DiscreteGaussian(10)


def sharing(**fields):
    stated = {"least": 3, "colluders": 1, "cells": 5, "overlap": 1, "roster": ROSTER}
    return ShareMechanism(NOISE, **(stated | fields))


@given(
    st.lists(st.lists(st.integers(-(2**70), 2**70), min_size=4, max_size=4), min_size=3, max_size=3)
)
def test_the_sum_of_the_shares_is_the_sum_of_the_integers_and_the_noise(rows):
    masks = masks_of(KEYS)
    drawn = {name: NOISE.sample(5) for name in KEYS}
    bodies = [
        sharing().release(row, drawn[name], masks[name], 1)
        for name, row in zip(KEYS, rows, strict=True)
    ]
    most = 2**62 // 3
    wanted = [
        sum(max(-most, min(most, row[place])) for row in rows)
        + sum(int(noise[place]) for noise in drawn.values())
        for place in range(4)
    ]
    assert summed(*bodies) == wanted


def test_arrays_and_lists_are_shared_alike():
    row = [2**61, -(2**61), 0, -1]
    none = np.zeros(5, np.int64)
    first, second = masks_of(KEYS), masks_of(KEYS)
    from_list = [sharing().release(row, none, first[name], 1) for name in KEYS]
    from_array = [sharing().release(np.array(row), none, second[name], 1) for name in KEYS]
    assert summed(*from_list) == summed(*from_array) == [3 * (2**62 // 3), -3 * (2**62 // 3), 0, -3]


@given(st.integers(-(2**65), 2**65), st.integers(0, 2**63))
def test_a_share_is_cut_so_that_no_two_move_apart(low, step):
    none = np.zeros(5, np.int64)

    def cut(value):
        masks = masks_of(KEYS)
        zero = [sharing().release([0], none, masks[name], 1) for name in "bc"]
        return summed(sharing().release([value], none, masks["a"], 1), *zero)[0]

    assert 0 <= cut(low + step) - cut(low) <= step


def test_masks_of_another_roster_or_of_too_few_sites_are_refused():
    row, noise = [1, 2], NOISE.sample(5)
    others = masks_of(identities("a", "b", "c"))["a"]
    for mechanism, masks in (
        (sharing(), others),
        (sharing(least=4), masks_of(KEYS)["a"]),
    ):
        with pytest.raises(InvalidDeclaration):
            mechanism.release(row, noise, masks, 1)


def test_more_integers_than_are_charged_or_drawn_are_refused():
    masks = masks_of(KEYS)["a"]
    for count, drawn in ((6, 9), (4, 3)):
        with pytest.raises(InvalidDeclaration):
            sharing().release([0] * count, NOISE.sample(drawn), masks, 1)
    with pytest.raises(InvalidDeclaration):
        sharing().release([0], NOISE.sample(1).astype(object), masks, 1)
    sharing().release([0] * 5, NOISE.sample(5), masks, 1)


def test_the_event_holds_all_that_the_mechanism_states():
    where = Distance(Norm.L2, Fraction(7))
    event = sharing(overlap=2).event(where)
    assert (event.noise, event.distance, event.cells) == (NOISE, where, 5)
    assert (event.least, event.colluders, event.overlap, event.roster) == (3, 1, 2, ROSTER)
    for wrong in (
        Distance(Norm.L1, Fraction(1)),
        Distance(Norm.L2, Fraction(1), Relation.REPLACE_ONE),
    ):
        with pytest.raises(InvalidDeclaration):
            sharing().event(wrong)
    for fields in ({"least": 2}, {"colluders": 0}, {"colluders": 2}, {"overlap": 0}, {"cells": 0}):
        with pytest.raises(SfumatoError):
            sharing(**fields).event(where)
