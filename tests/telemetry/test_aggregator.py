# SPDX-License-Identifier: Apache-2.0
"""Sums count each good report of their task once, and are the same in whatever parts they are made."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration, TooFewReports, UnknownName, WrongUse
from sfumato.telemetry import Aggregator, aggregator, report_task
from sfumato.telemetry.oracles import bit, category, hashed, projective, unary
from sfumato.telemetry.oracles.category import CategoryOracle
from sfumato.telemetry.report import HEADER, Layout
from sfumato.testing import Replay

VALUES = [f"v{number}" for number in range(7)]
MAKERS = [category, projective, bit, hashed, unary]


def task(maker=category, epsilon=1, **fields):
    usual = {"oracle": maker(8, epsilon), "start": 0, "periods": 28, "min_batch": 10}
    return report_task("t", "?", VALUES, **(usual | fields))


def reports(asked, devices, period=0, seed=1):
    """Reports of devices that hold the values in turn."""
    layout, oracle = Layout.of(asked), asked.oracle
    payloads = oracle.encode_many(np.arange(devices) % oracle.values, Replay(seed))
    return [
        layout.report(period, (seed << 64 | device).to_bytes(16, "little"), payload.tobytes())
        for device, payload in enumerate(payloads)
    ]


@pytest.mark.parametrize("maker", MAKERS)
def test_parts_add_up_to_the_whole(maker):
    asked = task(maker)
    sent = reports(asked, 300)
    whole, one, other = (Aggregator(asked) for _ in range(3))
    assert whole.add_many(sent) == 300
    assert one.add_many(pa.array(sent[:100])) == 100
    assert sum(map(other.add, sent[100:])) == 200
    one.merge(other)
    assert one.reports == whole.reports == 300
    assert one.estimate().estimate.tolist() == whole.estimate().estimate.tolist()
    again = Aggregator.from_bytes(one.to_bytes())
    assert again.to_bytes() == one.to_bytes()
    assert again.add_many(sent) == 0 and again.duplicates == 300


def test_no_report_is_counted_twice():
    asked = task()
    sent = reports(asked, 20)
    sums = Aggregator(asked)
    assert sums.add_many([*sent, *sent[:5]]) == 20
    assert not sums.add(sent[0])
    assert (sums.reports, sums.duplicates) == (20, 6)


@pytest.mark.parametrize("maker", MAKERS)
def test_a_foreign_or_damaged_report_is_not_counted(maker):
    asked = task(maker)
    (good,) = reports(asked, 1)
    late = reports(asked, 1, period=28)[0]
    foreign = reports(task(maker, epsilon=2), 1)[0]
    sums = Aggregator(asked)
    wrong = [b"", good[:-1], good + b"\0", b"\x02" + good[1:], late, foreign, bytes(len(good))]
    if maker is not hashed and maker is not unary:
        wrong.append(good[:HEADER] + b"\xff" * asked.oracle.size)
    assert sums.add_many(wrong) == 0
    assert sum(sums.refused.values()) == len(wrong)
    # a damaged copy that came first does not keep the good one out
    assert sums.add(good)


def counted_wrong(asked):
    """Which wrong reports are counted, alone and in this order: a truncated, a foreign, a forged, a
    late one.
    """
    (good,) = reports(asked, 1)
    wrong = {
        "truncated": good[:-1],
        "foreign": reports(task(epsilon=2), 1)[0],
        "forged": good[:HEADER] + b"\x08" * asked.oracle.size,
        "late": reports(asked, 1, period=28)[0],
    }
    return [name for name, report in wrong.items() if Aggregator(asked).add(report)]


def padded(given, size):
    """The mutant fills up what is too short."""
    return HONEST_ROWS([each.ljust(size, b"\0") for each in given], size)


def all_of(*given):
    """The mutant takes every row."""
    return np.ones(len(given[-1]), np.bool_)


HONEST_ROWS = aggregator.rows_of


@pytest.mark.parametrize(
    ("place", "name", "mutant", "noticed"),
    [
        (aggregator, "rows_of", padded, "truncated"),
        (Layout, "are_ours", all_of, "foreign"),
        (CategoryOracle, "valid", all_of, "forged"),
        (Aggregator, "_in_time", all_of, "late"),
    ],
)
def test_an_aggregator_that_does_not_look_is_noticed(place, name, mutant, noticed, monkeypatch):
    asked = task()
    assert counted_wrong(asked) == []
    monkeypatch.setattr(place, name, mutant)
    # a sum of what does not exist has a cell too many
    monkeypatch.setattr(CategoryOracle, "tally", lambda self, rows: TALLY(self, rows)[:8])
    assert counted_wrong(asked) == [noticed]


TALLY = CategoryOracle.tally


@given(st.lists(st.binary(max_size=40)))
def test_no_bytes_make_it_fail(sent):
    sums = Aggregator(task(hashed))
    assert sums.add_many(sent) + sum(sums.refused.values()) + sums.duplicates == len(sent)


def test_periods_of_a_task_with_memory_are_not_added_up():
    asked = task(memory=7)
    with pytest.raises(WrongUse, match="period"):
        Aggregator(asked)
    sums = Aggregator(asked, period=3)
    assert sums.add_many(reports(asked, 20, period=3)) == 20
    assert sums.add_many(reports(asked, 20, period=4, seed=2)) == 0
    for period in (-1, 28, True, "0"):
        with pytest.raises(WrongUse):
            Aggregator(asked, period)


def test_reports_that_two_aggregators_counted_are_told():
    asked = task()
    one, other = Aggregator(asked), Aggregator(asked)
    sent = reports(asked, 30)
    one.add_many(sent[:20])
    other.add_many(sent[15:])
    one.merge(other)
    assert (one.reports, one.repeated) == (35, 5)
    assert "5 reports" in one.estimate().notes[0]
    with pytest.raises(WrongUse, match="another task"):
        one.merge(Aggregator(task(bit)))
    with pytest.raises(WrongUse, match="another task"):
        one.merge(Aggregator(asked, period=0))


@pytest.mark.parametrize("count", [0, 1, 9])
def test_fewer_reports_than_the_smallest_batch_are_not_looked_at(count):
    asked = task()
    sums = Aggregator(asked)
    sums.add_many(reports(asked, count))
    with pytest.raises(TooFewReports, match="10 or more"):
        sums.estimate()
    sums.add_many(reports(asked, 10, seed=2))
    assert len(sums.estimate().estimate) == 8


def shows_one(asked):
    """Whether the estimates of a batch of one report are shown."""
    sums = Aggregator(asked)
    sums.add_many(reports(asked, 1))
    try:
        return sums.estimate().estimate.argmax() >= 0
    except TooFewReports:
        return False


def test_an_aggregator_that_shows_a_batch_of_one_is_noticed(monkeypatch):
    assert not shows_one(task())
    monkeypatch.setattr(Aggregator, "_require_enough", lambda self, reports: None)
    assert shows_one(task())


def test_candidates_are_values_of_the_domain():
    asked = task()
    sums = Aggregator(asked)
    sums.add_many(reports(asked, 100))
    whole = sums.estimate()
    some = sums.estimate(["v3", "(other)", "v0"])
    assert some.values == ("v3", "(other)", "v0")
    assert some.estimate.tolist() == whole.estimate[[3, 7, 0]].tolist()
    with pytest.raises(UnknownName, match="never"):
        sums.estimate(["v9"])
    assert sums.estimate([]).estimate.tolist() == []


def test_simultaneous_intervals_are_wider():
    asked = task()
    sums = Aggregator(asked)
    sums.add_many(reports(asked, 1000))
    alone, together = sums.estimate(), sums.estimate(simultaneous=True)
    assert (together.low < alone.low).all() and (together.high > alone.high).all()
    assert together.confidence == "0.99375"


@pytest.mark.parametrize("body", [b"", b"sfumato telemetry sums 1\n", bytes(1000)])
def test_what_are_no_sums_is_refused(body):
    with pytest.raises(InvalidDeclaration):
        Aggregator.from_bytes(body)
    whole = Aggregator(task()).to_bytes()
    for cut in (10, 100, len(whole) - 1, len(whole) - 9):
        with pytest.raises(InvalidDeclaration):
            Aggregator.from_bytes(whole[:cut])
