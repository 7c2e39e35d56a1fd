# SPDX-License-Identifier: Apache-2.0
"""The places of a charge: each is begun once, appended once, and lost once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import WrongUse
from sfumato.ledger.pieces import Pieces, fence_of, gone_on, opened_pieces

PLACES = 6
STEPS = st.lists(
    st.tuples(st.sampled_from(["begin", "append", "take over"]), st.integers(-1, PLACES + 1)),
    max_size=30,
)


def lived(
    steps: list[tuple[str, int]], pieces: Pieces
) -> tuple[list[int], list[int], list[set[int]]]:
    """What was drawn and what was stored, in order, and what was lost each time that another worker
    took over.
    """
    drawn: list[int] = []
    stored: list[int] = []
    lost: list[set[int]] = []
    for step, place in steps:
        try:
            if step == "begin":
                before, pieces = pieces.begun, pieces.with_begun(place)
                drawn += range(before + 1, place + 1)
            elif step == "append":
                pieces = pieces.with_appended(place)
                stored.append(place)
            else:
                lost.append(set(drawn) - set(stored))
                pieces = pieces.taken_over()
        except WrongUse:
            pass
    return drawn, stored, lost


@given(STEPS)
def test_a_place_is_begun_once(steps: list[tuple[str, int]]) -> None:
    drawn, _, _ = lived(steps, Pieces(PLACES))
    assert drawn == sorted(set(drawn))
    assert set(drawn) <= set(range(1, PLACES + 1))


@given(STEPS)
def test_a_place_is_appended_once(steps: list[tuple[str, int]]) -> None:
    drawn, stored, _ = lived(steps, Pieces(PLACES))
    assert stored == sorted(set(stored))
    assert set(stored) <= set(drawn)


@given(STEPS)
def test_what_was_begun_and_not_appended_is_lost_when_another_worker_takes_over(
    steps: list[tuple[str, int]],
) -> None:
    _, stored, lost = lived(steps, Pieces(PLACES))
    # nothing that was lost once is stored later: the earlier part of the history had the same
    # losses
    for each in lost:
        assert not each & set(stored)


class Forgetful(Pieces):
    """A broken one: the next worker draws again what the last one had begun."""

    def taken_over(self) -> Pieces:
        return Forgetful(self.places, self.secret, self.fence + 1, self.last, self.last)


def test_places_that_are_drawn_again_would_be_noticed() -> None:
    drawn, _, _ = lived([("begin", 2), ("take over", 0), ("begin", 2)], Forgetful(PLACES))
    assert drawn != sorted(set(drawn))


@pytest.mark.parametrize("places", [0, -1, 1.0, True, "3"])
def test_what_is_no_number_of_places_is_refused(places: object) -> None:
    with pytest.raises(WrongUse, match="places="):
        Pieces(places)  # type: ignore[arg-type]


@pytest.mark.parametrize("place", [0, -1, 3, 1.0, True, "1", None])
def test_a_place_that_is_no_next_one_is_refused(place: object) -> None:
    with pytest.raises(WrongUse, match="up_to="):
        Pieces(2).with_begun(place)  # type: ignore[arg-type]
    with pytest.raises(WrongUse, match="place="):
        Pieces(2).with_begun(2).with_appended(place)  # type: ignore[arg-type]


def test_it_is_stored_as_text() -> None:
    pieces = Pieces(9, secret=True).with_begun(4).with_appended(2)
    assert Pieces.from_text(pieces.to_text()) == pieces
    assert (fence_of(pieces.to_text()), fence_of("")) == (1, 0)


def test_the_journal_tells_the_same() -> None:
    text = opened_pieces({"places": 5, "secret": False})
    for kind, body in [
        ("begin", {"up_to": 3}),
        ("append", {"place": 2}),
        ("suspend", {}),
        ("resume", {"fence": 2}),
    ]:
        text = gone_on(text, kind, body)
    assert Pieces.from_text(text) == Pieces(5).with_begun(3).with_appended(2).taken_over()
    assert opened_pieces({"charge": "c"}) == ""


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("begin", {"up_to": 3}),
        ("begin", {"up_to": 9}),
        ("append", {"place": 2}),
        ("append", {"place": 4}),
        ("resume", {"fence": 3}),
        ("execute", {}),
    ],
)
def test_what_no_ledger_would_have_written_is_none_of_them(
    kind: str, body: dict[str, object]
) -> None:
    text = Pieces(5).with_begun(3).with_appended(2).to_text()
    with pytest.raises(ValueError, match="no ledger"):
        gone_on(text, kind, body)


def test_one_with_secret_state_is_never_suspended() -> None:
    with pytest.raises(ValueError, match="no ledger"):
        gone_on(Pieces(2, secret=True).to_text(), "suspend", {})
