# SPDX-License-Identifier: Apache-2.0
"""What was acknowledged is remembered, and what has forgotten it is noticed."""

from hypothesis import given
from hypothesis import strategies as st

from sfumato.ledger.store.acknowledged import Acknowledged, not_passed

CHAIN = [(seq, f"hash {seq}") for seq in range(1, 8)]
OTHER = [(seq, f"other {seq}") for seq in range(1, 8)]


def told(*ends: tuple[int, str]) -> Acknowledged:
    """What was acknowledged of one chain, in any order."""
    known = Acknowledged()
    for end in ends:
        known.note({"d": end})
    return known


@given(st.lists(st.sampled_from(CHAIN), min_size=1), st.sampled_from(CHAIN + OTHER))
def test_a_chain_that_ends_before_an_acknowledged_entry_is_noticed(
    ends: list[tuple[int, str]], found: tuple[int, str]
) -> None:
    newest = max(ends)
    lost = found[0] < newest[0] or (found[0] == newest[0] and found != newest)
    assert bool(told(*ends).missing_from({"d": found})) == lost
    assert told(*ends).missing_from({"another": found}) == ""


@given(st.lists(st.sampled_from(CHAIN), min_size=1), st.integers(0, 7), st.integers(0, 7))
def test_a_chain_that_does_not_pass_through_an_acknowledged_entry_is_noticed(
    ends: list[tuple[int, str]], forked: int, length: int
) -> None:
    """The server's chain is the acknowledged one up to ``forked``, and another one from there."""
    chain = (CHAIN[:forked] + OTHER[forked:])[:length]
    known = told(*ends).ends()
    at = [("d", seq, last) for seq, last in chain if seq == known["d"][0]]
    assert bool(not_passed(known, at)) == (max(ends) not in chain)
