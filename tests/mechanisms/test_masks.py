# SPDX-License-Identifier: Apache-2.0
"""Masks cancel in a sum over all sites and hide every smaller one."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration
from sfumato.mechanisms.masks import FreshKey, roster_of
from sfumato.testing import assert_counts_follow
from tests.contracts.studies import RUN, identities, masks_of, publics, summed

KEYS = identities("a", "b", "c", "d")
WORDS = st.integers(-(2**62), 2**62 - 1)


@given(st.lists(st.lists(WORDS, min_size=3, max_size=3), min_size=4, max_size=4))
def test_masks_cancel_in_the_sum_over_all_sites_and_in_no_smaller_one(rows):
    masks = masks_of(KEYS)
    bodies = {
        name: masks[name].masked(1, np.array(row, np.int64))
        for name, row in zip(KEYS, rows, strict=True)
    }
    wrapped = [(sum(column) + 2**63) % 2**64 - 2**63 for column in zip(*rows, strict=True)]
    assert summed(*bodies.values()) == wrapped
    for name in KEYS:
        some = {other: row for other, row in zip(KEYS, rows, strict=True) if other != name}
        clear = [
            (sum(column) + 2**63) % 2**64 - 2**63 for column in zip(*some.values(), strict=True)
        ]
        # three words are equal by chance with probability 2^-192
        assert summed(*(bodies[other] for other in some)) != clear


def test_a_lone_vector_is_uniform_in_every_bit():
    draws = 4_000
    body = masks_of(KEYS)["b"].masked(1, np.full(draws, 123_456_789, np.int64))
    words = np.frombuffer(body, "<u8")
    for bit in range(64):
        ones = int(((words >> np.uint64(bit)) & np.uint64(1)).sum())
        # without masks a bit is the same in every word
        assert_counts_follow([draws - ones, ones], [0.5, 0.5], notices=[0.25, 0.75])


def test_a_step_is_masked_once():
    (masks, *_) = masks_of(KEYS).values()
    one = np.ones(1, np.int64)
    masks.masked(3, one)
    for step in (3, 2, 0, True, 4.0):
        with pytest.raises(InvalidDeclaration):
            masks.masked(step, one)
    masks.masked(4, one)


def test_steps_and_runs_have_streams_of_their_own():
    zeros = np.zeros(4, np.int64)
    first, second = masks_of(KEYS)["a"], masks_of(KEYS)["a"]
    bodies = [first.masked(1, zeros), first.masked(2, zeros), second.masked(1, zeros)]
    assert len(set(bodies)) == 3


def test_keys_of_others_and_for_other_runs_are_refused():
    sites = publics(KEYS)
    fresh = {name: FreshKey(name, key, RUN) for name, key in KEYS.items()}
    shown = {name: (key.public, key.signature) for name, key in fresh.items()}
    foreign = identities("z")["z"]
    other_run = FreshKey("b", KEYS["b"], b"s" * 32)
    another = FreshKey("a", KEYS["a"], RUN)
    unsigned = FreshKey("b", foreign, RUN)
    renamed = FreshKey("c", KEYS["b"], RUN)
    wrong = [
        shown | {"b": (other_run.public, other_run.signature)},
        shown | {"b": (unsigned.public, unsigned.signature)},
        shown | {"b": (renamed.public, renamed.signature)},
        shown | {"b": (fresh["b"].public, b"no signature")},
        # a key of this site's that is not this one: it would mask with itself
        shown | {"a": (another.public, another.signature)},
        {name: pair for name, pair in shown.items() if name != "a"},
        # nobody of the study
        shown | {"z": (unsigned.public, unsigned.signature)},
        # c presents the key of b as its own
        shown | {"c": (fresh["b"].public, FreshKey("c", KEYS["c"], RUN).signature)},
    ]
    for each in wrong:
        with pytest.raises(InvalidDeclaration):
            fresh["a"].masks(sites, each)
    assert fresh["a"].masks(sites, shown).sites == 4


def test_some_sites_of_a_roster_may_take_part():
    fresh = {name: FreshKey(name, KEYS[name], RUN) for name in "abc"}
    shown = {name: (key.public, key.signature) for name, key in fresh.items()}
    masks = {name: key.masks(publics(KEYS), shown) for name, key in fresh.items()}
    rows = {"a": 5, "b": -7, "c": 11}
    bodies = [masks[name].masked(1, np.array([row])) for name, row in rows.items()]
    assert summed(*bodies) == [9]
    assert {each.sites for each in masks.values()} == {3}
    assert {each.roster for each in masks.values()} == {roster_of(publics(KEYS))}


def test_a_roster_is_its_names_and_keys():
    sites = publics(KEYS)
    assert roster_of(sites) == roster_of(dict(reversed(sites.items())))
    renamed = {name.upper(): key for name, key in sites.items()}
    swapped = sites | {"a": sites["b"], "b": sites["a"]}
    fewer = {name: sites[name] for name in "abc"}
    assert len({roster_of(each) for each in (sites, renamed, swapped, fewer)}) == 4
    with pytest.raises(InvalidDeclaration):
        roster_of(sites | {"e": sites["a"]})


@pytest.mark.parametrize("leave", [pickle.dumps, copy.copy, copy.deepcopy])
def test_keys_and_masks_do_not_leave_the_process(leave):
    for secret in (FreshKey("a", KEYS["a"], RUN), masks_of(KEYS)["a"]):
        with pytest.raises(TypeError):
            leave(secret)
