# SPDX-License-Identifier: Apache-2.0
"""Streams through a session: charged once, never drawn twice, and what is wrong is refused free."""

import datetime
import os
import stat
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import (
    BudgetExceeded,
    EngineFailed,
    InProgress,
    InvalidDeclaration,
    UnknownName,
    WrongUse,
)
from sfumato.mechanisms.encoder import SquareRoot, Tree
from sfumato.query.session import Session
from sfumato.query.stream_state import Past
from sfumato.query.ticks import Ticks
from sfumato.synopsis import Stream, Windows, plan_stream, stream, stream_plan
from sfumato.synopsis.decoders import buffered
from sfumato.synopsis.tick_task import TickTask, unpacked

FIRST = datetime.date(2026, 11, 1)
DAYS = [FIRST + datetime.timedelta(days=day) for day in range(8)]
# rider r counts on days 0, 1, ..., r; each rides once a day, on line A if even
RIDES = [
    (f"r{rider}", DAYS[day], "AB"[rider % 2]) for rider in range(8) for day in range(rider + 1)
]
# noise of less than a hundredth of a count
EXACTLY = 20_000


def session(folder: Path, rides: list[tuple] = RIDES, **options: object) -> Session:
    """A session over the rides; riders are units."""
    riders, days, lines = zip(*rides, strict=True)
    source = pa.table({"rider": riders, "day": [str(day) for day in days], "line": lines})
    trips = sf.Table(
        source,
        unit=sf.Unit("rider"),
        columns={"day": sf.Date("2026-11-01", "2026-12-31"), "line": sf.Category("A", "B")},
    )
    return sf.connect(
        {"trips": trips},
        dataset="city",
        budget=sf.Budget(10**6, "1e-6"),
        ledger=folder / "l.db",
        **options,
    )


def opened(here: Session, **options: object) -> Stream:
    """A stream of all rides: every day of a rider counts."""
    chosen = {"horizon": 8, "rho": EXACTLY, "participations": 8, "by": ["line"], **options}
    return stream(here, "trips", time="day", **chosen)


def rides(first: int, last: int, line: str) -> int:
    """The number of rides of some days on a line."""
    days = DAYS[first : last + 1]
    return sum(day in days and own == line for _, day, own in RIDES)


ENCODERS = {
    "rho": [SquareRoot(8, 8), SquareRoot(8, 3), SquareRoot(8, 1), buffered(8)],
    "epsilon": [Tree(8, 2, (3, 1, 2, 1)), Tree(8, 3, (1, 2))],
}


@pytest.mark.parametrize(
    "price, encoder", [(price, each) for price, every in ENCODERS.items() for each in every]
)
def test_totals_windows_and_ranges_are_those_of_the_rides(tmp_path, monkeypatch, price, encoder):
    monkeypatch.setattr(stream_plan, "_encoders", lambda *_: [("this one", encoder)])
    cost = {"rho": None, price: EXACTLY}
    with session(tmp_path) as here, opened(here, **cost) as found:
        for place, day in enumerate(DAYS):
            counts = found.advance(day)
            for line in "AB":
                assert abs(counts[line].value - rides(0, place, line)) < 0.5
        assert found.left == 0 and found.ends == DAYS
        for first in range(8):
            for last in range(first, 8):
                counts = found.between(DAYS[first], str(DAYS[last]))
                assert abs(counts["A"].value - rides(first, last, "A")) < 0.5
        window = found.window(3, DAYS[5])
        assert abs(window["B"].value - rides(3, 5, "B")) < 0.5
        assert window.standard_error < 0.1
        assert window["B"].low < window["B"].value < window["B"].high
        table = found.to_arrow()
        assert table.num_rows == 8 * 3 and table.column_names[:3] == ["day", "line", "n"]


def test_a_stream_without_a_known_end_is_charged_once_and_goes_on(tmp_path):
    endless = {"horizon": None, "rho": None, "epsilon": 1000}
    with session(tmp_path) as here:
        with opened(here, **endless) as found:
            paid = taken(here)
            assert paid > 0 and found.left == 2**21
            found.advance(DAYS[0])
        with opened(here, **endless) as again:
            for place, day in enumerate(DAYS):
                assert abs(again.advance(day)["A"].value - rides(0, place, "A")) < 0.5
            assert again.left == 2**21 - 8
        assert taken(here) == paid


def taken(here: Session) -> int:
    """The rho that is spent and reserved, in units of the ledger."""
    return here._ledger.balance("city").taken.rho


@pytest.mark.parametrize("price", [{"rho": EXACTLY}, {"rho": None, "epsilon": 1000}])
def test_the_whole_stream_is_charged_once(tmp_path, price):
    with session(tmp_path) as here:
        with opened(here, **price) as found:
            paid = taken(here)
            assert paid in (EXACTLY * 10**12, 1000**2 // 2 * 10**12)
            for day in DAYS[:3]:
                found.advance(day)
            assert taken(here) == paid
        with opened(here, **price) as again:
            assert again.charge == found.charge and again.ends == DAYS[:3]
            assert abs(again.advance(DAYS[3])["A"].value - rides(0, 3, "A")) < 0.5
        assert taken(here) == paid and here.verify().problems == ()


def test_a_tick_that_is_stored_is_not_drawn_again(tmp_path):
    with session(tmp_path) as here:
        with opened(here, rho=1) as found:
            shown = found.advance(DAYS[0]).values.tolist()
            found.advance(DAYS[1])
            assert found.advance(DAYS[0]).values.tolist() == shown
            assert found.left == 6
        with opened(here, rho=1) as again:
            assert again.advance(DAYS[0]).values.tolist() == shown and again.left == 6


def test_a_unit_counts_in_as_many_ticks_as_stated(tmp_path):
    with session(tmp_path) as here:
        with opened(here, participations=1) as once:
            for day in DAYS:
                last = once.advance(day)
            # everybody rides on the first day
            assert [round(value) for value in last.values] == [4, 4, 0]
        with opened(here, participations=2, separation=3) as twice:
            for day in DAYS:
                last = twice.advance(day)
            # again from the fourth day on: those who still ride then
            assert [round(value) for value in last.values] == [4 + 2, 4 + 3, 0]


def test_days_that_were_left_out_are_in_the_next_tick(tmp_path):
    with session(tmp_path) as here, opened(here) as found:
        found.advance(DAYS[1])
        counts = found.advance(DAYS[5])
        # of each rider one row a tick
        assert round(counts["A"].value + counts["B"].value) == 8 + 6
        with pytest.raises(WrongUse, match="No tick ends at"):
            found.totals(DAYS[3])
        with pytest.raises(WrongUse, match="within the first tick"):
            found.between(DAYS[1], DAYS[5])
        assert round(found.between(DAYS[2], DAYS[5])["A"].value) == 3
        assert found.left == 6


def test_the_picture_of_a_stream_shows_its_totals(tmp_path):
    with session(tmp_path) as here, opened(here) as found:
        with pytest.raises(WrongUse, match="No tick yet"):
            found.plot("A")
        for day in DAYS[:3]:
            found.advance(day)
        drawn = found.plot("A").svg
        ElementTree.fromstring(drawn)
        assert "running total of A" in drawn and drawn.count("<rect") == 3
        for day in DAYS[:3]:
            assert f"{day}: {found.totals(day)['A']!r}" in drawn
        with pytest.raises(UnknownName):
            found.plot("C")
        with pytest.raises(UnknownName):
            found.plot()


def test_a_day_without_rows_is_a_tick_of_zero(tmp_path):
    with session(tmp_path, RIDES[:1]) as here, opened(here) as found:
        found.advance(DAYS[0])
        assert round(found.advance("2026-12-24")["A"].value) == 1
        assert round(found.window(1)["A"].value) == 0


def test_a_late_row_belongs_to_the_tick_at_which_it_arrives(tmp_path):
    """By the column of its arrival it counts; by its own date it would come too late."""
    rows = pa.table(
        {
            "day": ["2026-11-01", "2026-11-02", "2026-11-01"],
            "arrived": ["2026-11-01", "2026-11-02", "2026-11-02"],
        }
    )
    declared = {name: sf.Date("2026-11-01", "2026-12-31") for name in ("day", "arrived")}
    ledger, budget = tmp_path / "l.db", sf.Budget(10**6, "1e-6")
    table = sf.Table(rows, columns=declared)
    with (
        sf.connect({"trips": table}, dataset="city", budget=budget, ledger=ledger) as here,
        stream(here, "trips", time="arrived", horizon=8, rho=EXACTLY) as found,
    ):
        assert [round(found.advance(day).value) for day in DAYS[:2]] == [1, 3]
        assert round(found.between(DAYS[1], DAYS[1]).value) == 2


def test_a_row_that_is_dated_into_a_tick_that_is_over_never_counts(tmp_path):
    with session(tmp_path, RIDES[:1]) as here, opened(here) as found:
        found.advance(DAYS[0])
    late = [*RIDES[:1], ("late", DAYS[0], "A"), ("new", DAYS[1], "B")]
    with session(tmp_path, late) as here, opened(here) as found:
        counts = found.advance(DAYS[1])
        assert (round(counts["A"].value), round(counts["B"].value)) == (1, 1)


def test_a_missed_tick_widens_the_error_of_its_days_and_breaks_no_later_one(tmp_path):
    """Two days in one tick have one interval; afterwards errors are those of the ticks so far."""
    with session(tmp_path) as here:
        with opened(here, rho=1) as whole:
            for day in DAYS[:6]:
                whole.advance(day)
        with opened(here, rho=2) as missed:
            for day in (DAYS[0], DAYS[1], DAYS[3], DAYS[4], DAYS[5]):
                counts = missed.advance(day)
            scale = 2**0.5
            single = whole.between(DAYS[2], DAYS[2]).standard_error
            both = missed.between(DAYS[2], DAYS[3]).standard_error * scale
            # of a day alone nothing is known, and both days are no more exact than one tick
            assert both >= single * 0.99
            fifth = whole.totals(DAYS[4]).standard_error / scale
            assert counts.standard_error == pytest.approx(fifth, rel=1e-6)


HOURS = [f"2026-10-{day} {hour:02}:30:00" for day in (24, 25) for hour in (0, 5, 23)]


def test_moments_may_be_times(tmp_path):
    """A day of 25 hours; a moment may be given by its offset, its zone, or a day alone."""
    moments = sf.Timestamp("2026-10-24", "2026-10-31", zone="Europe/London", step=60)
    hours = [*HOURS, "2026-10-25 01:30:00+01:00", "2026-10-25 01:30:00+00:00"]
    table = sf.Table(pa.table({"at": hours}), columns={"at": moments})
    budget, ledger = sf.Budget(10**6, "1e-6"), tmp_path / "l.db"
    with (
        sf.connect({"calls": table}, dataset="desk", budget=budget, ledger=ledger) as here,
        stream(here, "calls", time="at", horizon=8, rho=EXACTLY) as found,
    ):
        assert round(found.advance("2026-10-24").value) == 3
        # before the clocks go back, and after
        assert round(found.advance("2026-10-25 01:45:00+01:00").value) == 5
        end = datetime.datetime(2026, 10, 25, 1, 45, tzinfo=datetime.UTC)
        assert round(found.advance(end).value) == 6
        assert round(found.advance("2026-10-25").value) == 8
        assert round(found.between("2026-10-25", "2026-10-25").value) == 5
        assert found.to_arrow().num_rows == 4
        # of two moments with one local time it is the earlier one
        assert round(found.totals("2026-10-25 01:45:00").value) == 5
        for wrong in ("2026-11-01", "noon", 7, "2026-10-24 12:00:00"):
            with pytest.raises(WrongUse):
                found.advance(wrong)


# --- what goes wrong -------------------------------------------------------------------------------


def test_a_tick_that_fails_after_its_draw_is_in_the_next_one(tmp_path, monkeypatch):
    """The row was drawn and not stored; asked again, it is the same row."""
    with session(tmp_path) as here:
        found = opened(here)
        found.advance(DAYS[0])
        with monkeypatch.context() as patch:
            honest = TickTask.run

            def failing(self, curator):
                honest(self, curator)
                raise RuntimeError

            patch.setattr(TickTask, "run", failing)
            with pytest.raises(EngineFailed):
                found.advance(DAYS[1])
        again = found.advance(DAYS[1])
        assert found.ends == DAYS[:2] and round(again["A"].value) == rides(0, 1, "A")
        assert round(found.advance(DAYS[2])["A"].value) == rides(0, 2, "A")
        # one place was lost, no row
        assert found.left == 4
        found.close()


def test_a_tick_that_fails_before_its_draw_loses_a_place_and_no_rows(tmp_path, monkeypatch):
    with session(tmp_path) as here:
        found = opened(here)

        def failing(*_):
            raise OSError

        with monkeypatch.context() as patch:
            patch.setattr(Past, "save", failing)
            with pytest.raises(EngineFailed):
                found.advance(DAYS[0])
        assert round(found.advance(DAYS[1])["A"].value) == 4
        assert found.left == 6 and found.ends == [DAYS[1]]
        found.close()


def test_a_state_that_is_lost_closes_the_stream_free(tmp_path):
    with session(tmp_path) as here:
        found = opened(here)
        shown = found.advance(DAYS[0]).values.tolist()
        (state,) = (tmp_path / "l.db.streams").glob("*.state")
        assert stat.S_IMODE(state.stat().st_mode) == 0o600
        assert stat.S_IMODE(state.parent.stat().st_mode) == 0o700
        kept = state.read_bytes()
        found.advance(DAYS[1])
        state.write_bytes(kept)
        with pytest.raises(WrongUse, match="not that of its last tick"):
            found.advance(DAYS[2])
        state.unlink()
        with pytest.raises(WrongUse, match="lost"):
            found.advance(DAYS[2])
        # no place was used, and what is stored stays
        assert found.left == 6 and found.advance(DAYS[0]).values.tolist() == shown
        found.close()


def test_a_complete_stream_leaves_no_state(tmp_path):
    with session(tmp_path) as here, opened(here, horizon=2, participations=2) as found:
        found.advance(DAYS[0])
        found.advance(DAYS[1])
        assert not [*(tmp_path / "l.db.streams").iterdir()]
        with pytest.raises(WrongUse, match="No piece is left"):
            found.advance(DAYS[2])
        assert round(found.advance(DAYS[1])["A"].value) == rides(0, 1, "A")


def test_two_processes_do_not_advance_one_stream(tmp_path):
    with session(tmp_path) as here, opened(here) as found:
        found.advance(DAYS[0])
        with pytest.raises(InProgress):
            opened(here)
        found.close()
        with opened(here) as other:
            other.advance(DAYS[1])
            with pytest.raises(InProgress):
                found.advance(DAYS[2])
        # it takes what the other has stored
        assert round(found.advance(DAYS[2])["A"].value) == rides(0, 2, "A")
        assert found.ends == DAYS[:3]
        found.close()


def test_the_ledger_and_other_files_hold_no_exact_count(tmp_path):
    """With much noise, the exact counts are in the secret state alone."""
    with session(tmp_path) as here, opened(here, rho="0.0001") as found:
        found.advance(DAYS[0])
        rows = here._ledger.instalments(found.charge)
        exact = (4 * 2**18).to_bytes(16, "little", signed=True)
        assert all(exact not in body for _, body in rows)
        names = {each.name for each in tmp_path.iterdir() if each.is_dir()}
        assert names == {"l.db.streams"}


def test_a_folder_for_states_can_be_named(tmp_path):
    with session(tmp_path, states=tmp_path / "elsewhere") as here, opened(here) as found:
        found.advance(DAYS[0])
        assert len([*(tmp_path / "elsewhere").glob("*.state")]) == 1
    with pytest.raises(WrongUse, match="states="):
        session(tmp_path, states=7)


# --- refused free ----------------------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, object], type[Exception]]] = {
    "no ticks": ({"horizon": 0}, WrongUse),
    "too many ticks": ({"horizon": 2**40}, WrongUse),
    "ticks that are no number": ({"horizon": "8"}, WrongUse),
    "no participation": ({"participations": 0}, WrongUse),
    "no separation": ({"separation": 0}, WrongUse),
    "no rows": ({"rows": 0}, WrongUse),
    "a time that is no time": ({"time": "line"}, WrongUse),
    "a column that is not there": ({"by": ["zone"]}, UnknownName),
    "a column twice": ({"by": ["line", "line"]}, WrongUse),
    "columns as text": ({"by": "line"}, WrongUse),
    "several tables": ({"table": ["trips", "rides"]}, WrongUse),
    "no table": ({"table": "rides"}, UnknownName),
    "a test that is no SQL": ({"where": "line ="}, Exception),
    "two prices": ({"rho": 1, "epsilon": 1}, WrongUse),
    "more than the budget": ({"rho": 10**12}, Exception),
    "wanted as text": ({"wanted": "totals"}, WrongUse),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_free(tmp_path, name):
    options, error = WRONG[name]
    asked = {"time": "day", "horizon": 8, "rho": 1, **options}
    if "epsilon" in options:
        asked["epsilon"] = 1
    table = asked.pop("table", "trips")
    with session(tmp_path) as here:
        with pytest.raises(error) as refused:
            stream(here, table, **asked)
        assert isinstance(refused.value, sf.SfumatoError)
        assert taken(here) == 0


def test_a_stream_that_the_budget_does_not_allow_is_refused(tmp_path):
    with session(tmp_path) as here:
        with pytest.raises(BudgetExceeded):
            opened(here, rho=10**6)
        assert not (tmp_path / "l.db.streams").exists()


@pytest.mark.parametrize(
    "advance",
    [
        lambda found: found.advance("2026-11-01"),
        lambda found: found.advance("2026-10-31"),
        lambda found: found.advance("2027-01-01"),
        lambda found: found.advance("yesterday"),
        lambda found: found.advance(5),
        lambda found: found.advance(None),
        lambda found: found.window(0),
        lambda found: found.window(99),
        lambda found: found.totals("2026-11-03"),
        lambda found: found.between("2026-11-04", "2026-11-02"),
        lambda found: found.between("2026-11-01", "2026-11-03"),
        lambda found: found.totals()["C"],
        lambda found: found.totals().value,
        lambda found: found.totals(confidence=1),
    ],
)
def test_what_a_stream_cannot_answer_is_refused_free(tmp_path, advance: Callable[[Stream], object]):
    with session(tmp_path) as here, opened(here) as found:
        found.advance(DAYS[1])
        with pytest.raises((WrongUse, UnknownName)):
            advance(found)
        assert found.left == 7


def test_windows_as_the_wanted_counts_choose_another_encoder(tmp_path):
    with session(tmp_path) as here, opened(here, wanted=Windows(2), participations=1) as found:
        assert found.plan.best.name != opened_name(here)


def opened_name(here: Session) -> str:
    with opened(here, participations=1) as totals:
        return totals.plan.best.name


def test_replaced_units_cost_more(tmp_path):
    variances = []
    for relation in (sf.AddRemove, sf.ReplaceOne):
        folder = tmp_path / relation.value
        folder.mkdir()
        with session(folder, relation=relation) as here:
            planned = plan_stream(here.dataset, "trips", time="day", horizon=8, rho=1)
            variances.append(planned.best.mean)
    assert 1.9 < variances[1] / variances[0] < 2.1


def test_the_continual_release_attack_on_a_user_who_stops(tmp_path):
    """Who rode until day 3 and stops: the difference of windows before and after tells one ride.

    Every answer is a combination of the stored rows. None is more accurate than the best test of
    one ride on all rows, whose standard deviation is sigma over the norm of its column.
    """
    with session(tmp_path) as here, opened(here, rho="0.5", participations=1) as found:
        for day in DAYS:
            found.advance(day)
        least = found.plan.best.mechanism.noise.sigma_squared
        column = float(found.plan.best.ticks.distance(1).value)
        bound = (float(least) / column) ** 0.5
        for first in range(8):
            for last in range(first, 8):
                asked = found.between(DAYS[first], DAYS[last])
                assert asked.standard_error >= bound * 0.999


def test_a_tick_that_draws_again_is_no_worse_and_a_mutant_is_caught(tmp_path, monkeypatch):
    """A row that was drawn and not stored is handed out again; a mutant draws new noise."""
    for mutant in (False, True):
        folder = tmp_path / str(mutant)
        folder.mkdir()
        assert (_drawn_twice(folder, monkeypatch, mutant=mutant) == 1) is not mutant


def _drawn_twice(folder: Path, monkeypatch: pytest.MonkeyPatch, *, mutant: bool) -> int:
    """How many different rows the task of one tick has seen, where its first answer is lost."""
    seen = []
    honest, moving = TickTask.run, Past.moving

    def losing(self, curator):
        body = honest(self, curator)
        seen.extend(row for _, row in unpacked(body).values())
        if len(seen) == 1:
            raise RuntimeError
        return body

    @contextmanager
    def forgetting(self, fresh):
        with moving(self, fresh):
            yield fresh

    with session(folder) as here, monkeypatch.context() as patch:
        patch.setattr(TickTask, "run", losing)
        if mutant:
            patch.setattr(Past, "moving", forgetting)
        with opened(here, rho="0.1") as found:
            with pytest.raises(EngineFailed):
                found.advance(DAYS[0])
            found.advance(DAYS[0])
    return len(set(seen))


def test_a_mutant_that_forgets_who_has_taken_part_is_caught(tmp_path, monkeypatch):
    """Riders would count on each day, at the price of one."""
    monkeypatch.setattr(Ticks, "_is_limited", property(lambda self: False))
    with session(tmp_path) as here, opened(here, participations=1) as found:
        for day in DAYS:
            last = found.advance(day)
        assert sum(last.values.tolist()) > 30


def test_text_columns_are_refused(tmp_path):
    table = sf.Table(
        pa.table({"day": ["2026-11-01"], "note": ["x"]}),
        columns={"day": sf.Date("2026-11-01", "2026-12-31"), "note": sf.Text()},
    )
    with (
        sf.connect(
            {"t": table}, dataset="d", budget=sf.Budget(9), ledger=tmp_path / "l.db"
        ) as here,
        pytest.raises(InvalidDeclaration, match="A text or an array as an axis"),
    ):
        stream(here, "t", time="day", by=["note"], horizon=8, epsilon=1)


def test_a_kill_of_the_process_loses_at_most_a_place(tmp_path):
    """Killed inside a tick, before and after its state is saved; the next process goes on."""
    for point, expected in (("before", [DAYS[1]]), ("after", DAYS[:2])):
        folder = tmp_path / point
        folder.mkdir()
        with session(folder) as here:
            opened(here).close()
        child = os.fork()
        if child == 0:
            _killed(folder, point)
        os.waitpid(child, 0)
        with session(folder) as here, opened(here) as found:
            found.advance(DAYS[1])
            assert found.ends == expected
            # before: one row of each rider for both days
            assert round(found.totals()["A"].value) == (4 if point == "before" else 7)


def _killed(folder: Path, point: str) -> None:
    """Ends this process inside the first tick, as a kill does."""
    honest = Past.save

    def save(self, state):
        if point == "after":
            honest(self, state)
        os._exit(9)

    Past.save = save
    try:
        opened(session(folder)).advance(DAYS[0])
    finally:
        os._exit(1)
