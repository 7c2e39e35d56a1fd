# SPDX-License-Identifier: Apache-2.0
"""The names of accounts: no two share an id, whatever they are called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import WrongUse
from sfumato.ledger.account_path import LONGEST_KEY, LONGEST_NAME, Scope

names = st.text(
    st.characters(categories=("L", "N", "P", "S"), include_characters="/% "), min_size=1, max_size=6
)
scopes = (
    st.builds(Scope, names) | st.builds(Scope, names, names) | st.builds(Scope, names, names, names)
)


@given(scopes, scopes)
def test_two_scopes_never_share_an_id(one: Scope, other: Scope) -> None:
    assert (one.id == other.id) == (one == other)


@given(scopes)
def test_an_id_tells_its_scope(scope: Scope) -> None:
    assert Scope.of(scope.id) == scope


@given(scopes)
def test_a_path_leads_from_the_dataset_to_the_account(scope: Scope) -> None:
    lineage = scope.lineage
    assert lineage[0] == scope.root == Scope(scope.dataset).id
    assert lineage[-1] == scope.id
    parents = [Scope.of(each).parent for each in lineage]
    assert parents == ["", *lineage[:-1]]
    assert list(lineage) == sorted(lineage)


def test_slashes_and_percents_are_quoted() -> None:
    assert Scope("a/b", "50%", "x").id == "a%2Fb/50%25/x"
    assert Scope("a%2Fb").id == "a%252Fb"


@pytest.mark.parametrize(
    "wrong",
    [("",), ("d", "", "ann"), ("d\n",), ("d", "p\0"), ("d", "p", "\ud800"), (None,), ("d", 3)],
)
def test_what_cannot_be_stored_is_no_name(wrong: tuple[object, ...]) -> None:
    with pytest.raises(WrongUse):
        Scope(*wrong)


@pytest.mark.parametrize("letter", ["a", "/", "%", "é", "数", "\U0001f4d6"])
def test_a_name_may_be_so_long_and_no_longer(letter: str) -> None:
    most = 200 // len(letter.encode())
    longest = Scope(letter * most, letter * most, letter * most)
    assert Scope.of(longest.id) == longest
    for names in (
        ("d" * 201,),
        (letter * (most + 1),),
        ("d", letter * (most + 1)),
        ("d", "p", letter * (most + 1)),
    ):
        with pytest.raises(WrongUse, match=r"has \d+ bytes"):
            Scope(*names)


def test_the_longest_names_and_key_fit_into_an_index_row_of_postgresql() -> None:
    # PostgreSQL 15, nbtree.h: BTMaxItemSize of a page of 8,192 bytes
    room = 2_704
    header, each = 8, 4 + 3  # of the row; length word and alignment of each text
    longest = Scope("/" * LONGEST_NAME, "%" * LONGEST_NAME, "/" * LONGEST_NAME).id
    assert header + (each + len(longest)) + (each + LONGEST_KEY) < room
