# SPDX-License-Identifier: Apache-2.0
"""Ticks: what a unit can change in all rows together, on histories with and without it."""

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engines.base import UnitRows
from sfumato.errors import InvalidDeclaration
from sfumato.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from sfumato.mechanisms.buffered import Buffered
from sfumato.mechanisms.encoder import Encoder, SquareRoot, Tree
from sfumato.metadata.column import Category, Column, Integer
from sfumato.plan.relation import Scan
from sfumato.plan.rows import MISSING, BoundedRows, RowList
from sfumato.plan.value import Value
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Stream
from sfumato.privacy.unit import Relation
from sfumato.query.statistic import Opened
from sfumato.query.stream_state import Past, State
from sfumato.query.ticks import Ticks

TIME, LINE = Column("day", Integer(0, 100)), Column("line", Category("A", "B"))
SCAN = Scan("trips", columns=(TIME, LINE))
VALUES = tuple(map(Value.of, (TIME, LINE)))
STEPS = 6
ENCODERS = [
    SquareRoot(STEPS, STEPS),
    SquareRoot(STEPS, 2),
    Buffered(STEPS, (2**48, 2**46), (2**46, 2**47)),
    Tree(STEPS, 2, (2, 1, 3)),
]

# A row: unit, day, line; a day of None is missing.
Trip = tuple[str, int | None, int | None]


@dataclass
class Given(Opened):
    """Rows as an engine gives them: the first ``most`` of each unit."""

    trips: list[Trip]
    unit: str | None = "rider"

    def unit_rows(self, plan: BoundedRows) -> UnitRows:
        units = sorted({trip[0] for trip in self.trips})
        codes: list[list[int]] = []
        starts = [0]
        for unit in units:
            own = [trip[1:] for trip in self.trips if trip[0] == unit][: plan.most]
            codes += [[MISSING if code is None else code for code in row] for row in own]
            starts.append(len(codes))
        names = np.array([unit.encode() for unit in units], "S32")
        return UnitRows(np.array(codes, np.int64).reshape(-1, 2), np.array(starts), names)


def ticks(
    encoder: Encoder = ENCODERS[0],
    participations: int = 1,
    separation: int = 1,
    *,
    most: int = 1,
    unit: str | None = "rider",
    neighbours: Relation = Relation.ADD_REMOVE,
) -> Ticks:
    """Ticks of one day each; ``until`` is set for each."""
    plan = BoundedRows(RowList(SCAN, VALUES), unit, most, neighbours, "key")
    return Ticks(plan, encoder, participations, separation, 0)


def exact_rows(asked: Ticks, days: list[list[Trip]]) -> list[int]:
    """All exact rows of a history: what is in the table at the end of each day."""
    state = State.fresh(asked.form, asked.encoder.begin(asked.cells))
    found: list[int] = []
    for day, trips in enumerate(days):
        state, row = replace(asked, until=day)._moved(state, Given(trips))
        found += row
    return found


def moved(asked: Ticks, one: list[list[Trip]], other: list[list[Trip]]) -> int:
    """How far apart the rows of two histories are: L1, or squared L2."""
    pairs = zip(exact_rows(asked, one), exact_rows(asked, other), strict=True)
    differences = [left - right for left, right in pairs]
    if asked.encoder.norm is Norm.L1:
        return sum(map(abs, differences))
    return sum(each * each for each in differences)


# a unit's rows may come late, change and vanish: any rows at all at each tick
OWN = st.lists(
    st.lists(
        st.tuples(st.integers(0, STEPS) | st.none(), st.integers(0, 1) | st.none()), max_size=3
    ),
    min_size=STEPS,
    max_size=STEPS,
)
SETTINGS = st.tuples(
    st.sampled_from(ENCODERS), st.integers(1, 3), st.integers(1, 2), st.integers(1, 3)
)


def histories(name: str, own: list[list[tuple]], others: list[list[tuple]]) -> list[list[Trip]]:
    """The table at the end of each day: the rows of one unit beside those of another."""
    days = []
    for mine, theirs in zip(own, others, strict=True):
        rows = [(name, *row) for row in mine] + [("b", *row) for row in theirs]
        days.append(rows)
    return days


@given(SETTINGS, OWN, OWN)
@settings(deadline=None)
def test_all_rows_together_move_by_at_most_their_proved_distance(kind, own, others):
    encoder, participations, separation, most = kind
    asked = ticks(encoder, participations, separation, most=most)
    nobody: list[list[tuple]] = [[] for _ in range(STEPS)]
    with_unit = histories("a", own, others)
    without = histories("a", nobody, others)
    assert moved(asked, with_unit, without) <= asked.distance(participations).value
    replaced = replace(asked, plan=replace(asked.plan, neighbours=Relation.REPLACE_ONE))
    another = histories("c", list(reversed(own)), others)
    assert moved(replaced, with_unit, another) <= replaced.distance(participations).value


@pytest.mark.parametrize("encoder", ENCODERS)
def test_the_distance_is_reached(encoder):
    asked = ticks(encoder, 2, 2, most=2)
    days: list[list[Trip]] = [[("a", day, 0)] * 2 if day in (0, 2) else [] for day in range(STEPS)]
    nothing: list[list[Trip]] = [[] for _ in range(STEPS)]
    far = moved(asked, days, nothing)
    assert 0.8 * float(asked.distance(2).value) <= far <= asked.distance(2).value


def test_a_unit_is_in_no_more_ticks_than_stated():
    every: list[list[Trip]] = [[("a", day, 0)] for day in range(STEPS)]
    for participations, separation, expected in (
        (1, 1, [0]),
        (2, 1, [0, 1]),
        (2, 3, [0, 3]),
        (6, 1, [0, 1, 2, 3, 4, 5]),
        (3, 2, [0, 2, 4]),
    ):
        asked = ticks(SquareRoot(STEPS, 1), participations, separation)
        row = exact_rows(asked, every)
        counted = [place // 3 for place, number in enumerate(row) if number]
        assert counted == expected


def test_a_mutant_that_lets_a_unit_in_one_tick_more_is_caught(monkeypatch):
    every: list[list[Trip]] = [[("a", day, 0)] for day in range(STEPS)]
    nothing: list[list[Trip]] = [[] for _ in range(STEPS)]
    asked = ticks(ENCODERS[0], 2, 1)
    assert moved(asked, every, nothing) <= asked.distance(2).value
    honest = Ticks._taking_part

    def once_more(self, state, names, tick):
        return honest(replace(self, participations=self.participations + 1), state, names, tick)

    monkeypatch.setattr(Ticks, "_taking_part", once_more)
    assert moved(asked, every, nothing) > asked.distance(2).value


def test_rows_count_in_one_tick_by_their_time_where_each_row_is_a_unit():
    days: list[list[Trip]] = [[("r1", 0, 0), ("r2", 1, 1), ("r3", None, 0)]] * STEPS
    asked = ticks(SquareRoot(STEPS, 1), unit=None)
    assert exact_rows(asked, days)[:6] == [2**18, 0, 0, 0, 2**18, 0]
    assert not any(exact_rows(asked, days)[6:])


def test_missing_values_have_a_cell():
    asked = ticks(SquareRoot(STEPS, 1))
    days: list[list[Trip]] = [[("a", 0, None)], *([] for _ in range(STEPS - 1))]
    assert exact_rows(asked, days)[:3] == [0, 0, 2**18]


# --- drawing ---------------------------------------------------------------------------------------


def mechanism(asked: Ticks) -> AdditiveMechanism:
    """Noise of a standard deviation of about a hundredth of a count."""
    distance = asked.distance(asked.participations)
    if asked.encoder.norm is Norm.L1:
        return laplace(distance, 10_000)
    return gaussian(distance, 10_000)


def drawn(asked: Ticks, folder: Path, stored: int, place: int, trips: list[Trip]):
    """The rows that a tick hands out."""
    past = Past(folder, "charge", stored, place)
    past.create()
    return replace(asked, until=place).drawn(Given(trips), past, mechanism(asked), None)


def test_a_row_that_was_not_stored_is_handed_out_again_as_it_was(tmp_path):
    asked = ticks()
    first = drawn(asked, tmp_path, 0, 1, [("a", 1, 0)])
    # the first was not stored
    second = drawn(asked, tmp_path, 0, 2, [("b", 2, 1)])
    assert second == first
    third = drawn(asked, tmp_path, 2, 3, [])
    assert list(third) == [3]


def test_no_row_of_a_stream_is_drawn_twice(tmp_path):
    """The end of the last tick again, after its row was drawn and not stored."""
    asked = ticks()
    first = drawn(asked, tmp_path, 0, 1, [("a", 1, 0)])
    past = Past(tmp_path, "charge", 0, 2)
    again = replace(asked, until=1).drawn(Given([("a", 1, 0)]), past, mechanism(asked), None)
    assert again == first
    # the place is used up, and the next tick is the second row
    third = drawn(asked, tmp_path, 2, 3, [("b", 3, 1)])
    assert list(third) == [3]
    with Past(tmp_path, "charge", 3, 4).moving(
        State.fresh(asked.form, asked.encoder.begin(3))
    ) as state:
        assert (state.tick, state.place, state.until) == (2, 3, 3)


def test_a_mutant_that_hands_out_a_row_before_its_state_is_saved_is_caught(tmp_path, monkeypatch):
    """A crash between the two would draw the first row again, with new noise."""
    asked = ticks()
    noisy = gaussian(asked.distance(1), Fraction(1, 10**4))

    def first_rows(folder: Path) -> set[tuple[int, ...]]:
        found = set()
        for place in (1, 2, 3):
            past = Past(folder, "charge", 0, place)
            past.create()
            rows = replace(asked, until=1).drawn(Given([("a", 1, 0)]), past, noisy, None)
            found |= {row for _, row in rows.values()}
        return found

    assert len(first_rows(tmp_path / "honest")) == 1
    monkeypatch.setattr(Past, "save", lambda self, state: None)
    assert len(first_rows(tmp_path / "mutant")) == 3


def test_the_event_is_that_of_all_ticks():
    for encoder in ENCODERS:
        asked = ticks(encoder, 2, 2, most=3)
        event = asked.event(mechanism(asked))
        assert isinstance(event, Stream) and event.steps == STEPS
        assert event.noise.distance == asked.distance(2)
        assert event.column == asked.distance(1).value
        assert (event.participations, event.separation) == (2, 2)


def test_what_is_no_tick_is_refused():
    with pytest.raises(InvalidDeclaration, match="more ticks"):
        ticks(participations=4, separation=2)
    with pytest.raises(InvalidDeclaration, match="without names"):
        replace(ticks(), plan=replace(ticks().plan, naming=""))


def test_the_form_names_all_that_ticks_share_and_not_their_time():
    one = ticks()
    assert replace(one, until=5).form == one.form
    others = [ticks(SquareRoot(STEPS, 2)), ticks(participations=2), ticks(most=2), ticks(unit=None)]
    assert len({one.form, *(other.form for other in others)}) == 5


def test_a_failure_before_the_state_is_saved_loses_nothing(tmp_path, monkeypatch):
    asked = ticks()

    def failing(self, state):
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(Past, "save", failing)
        with pytest.raises(OSError):
            drawn(asked, tmp_path, 0, 1, [("a", 1, 0)])
    rows = drawn(asked, tmp_path, 0, 2, [("a", 1, 0), ("b", 2, 0)])
    assert list(rows) == [2]
    counted = rows[2][1][0] / 2**18
    assert abs(counted - 2) < 0.2
