# SPDX-License-Identifier: Apache-2.0
"""What a device tells in its life: one answer an epoch, and silence that says nothing."""

import hashlib
import hmac
import struct
from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import TaskRefused, WrongUse
from sfumato.telemetry import (
    Client,
    MemoryStore,
    SignedTask,
    Texts,
    report_task,
    signed_task,
)
from sfumato.telemetry.client import _State
from sfumato.telemetry.oracles import bit, category, hashed, projective, rappor, unary
from sfumato.telemetry.report import HEADER
from sfumato.testing import Replay

# Where the period and the id stand in a report.
PERIOD, ID = slice(9, 13), slice(13, 29)

KEY = ec.generate_private_key(ec.SECP256R1())
SECRET = bytes(range(32))
DAY = 86_400
VALUES = [f"v{number}" for number in range(7)]
MAKERS = [category, projective, bit, hashed, unary]


class Clock:
    """A clock that is set by hand, in days since the start."""

    def __init__(self, days=-1.0):
        self.days = days

    def __call__(self):
        return 1_000_000 + self.days * DAY


def task(maker=category, **fields):
    usual = {"oracle": maker(8, 1), "start": 1_000_000, "periods": 28}
    return report_task("t", "?", VALUES, **(usual | fields))


def client(asked, clock, store=None, secret=SECRET, **fields):
    usual = {
        "trusted": [KEY.public_key()],
        "published": {asked.hash.hex()},
        "max_epsilon": 10_000,
        "clock": clock,
    }
    return Client(
        signed_task(asked, KEY, signed_at=0), secret, store or MemoryStore(), **(usual | fields)
    )


def begun(asked, store=None, secret=SECRET):
    """A client that was there before the start, and its clock at the start."""
    clock = Clock()
    made = client(asked, clock, store, secret)
    assert made.report("v1") is None
    clock.days = 0.0
    return made, clock


@pytest.mark.parametrize("maker", MAKERS)
def test_an_epoch_has_one_answer_whatever_the_values_are(maker):
    made, clock = begun(task(maker, memory=7))
    payloads = []
    for day in range(28):
        clock.days = day + 0.5
        payloads.append(made.report(VALUES[day % 7])[HEADER:])
    weeks = [set(payloads[start : start + 7]) for start in range(0, 28, 7)]
    assert all(len(week) == 1 for week in weeks)


class DrawnAnew(Client):
    """Draws the permanent step anew for every report."""

    def _permanent(self, number, epoch):
        words = [Replay(self._clock().__hash__()).bits(64)] * self.task.oracle.draws
        return self.task.oracle.encode(number, words)

    def _state(self):
        state = super()._state()
        return state and replace(state, epoch=(1 << 32) - 1, answer=b"")


def averaged(kind):
    """How many different answers a device gives to one value in 1,000 periods of one epoch."""
    asked = task(projective, periods=1000, memory=1000, expires=1_000_000 + 2000 * DAY)
    clock = Clock()
    made = kind(
        signed_task(asked, KEY, signed_at=0),
        SECRET,
        MemoryStore(),
        trusted=[KEY.public_key()],
        published={asked.hash.hex()},
        max_epsilon=2,
        clock=clock,
    )
    made.report("v3")
    seen = set()
    for day in range(1000):
        clock.days = day
        seen.add(made.report("v3")[HEADER:])
    return len(seen)


def test_a_thousand_reports_of_a_device_average_to_nothing_more():
    assert averaged(Client) == 1
    # a permanent step that is drawn anew is noticed
    assert averaged(DrawnAnew) > 5


def test_a_period_has_at_most_the_stated_reports():
    made, clock = begun(task(reports=3))
    for day in range(3):
        clock.days = day
        sent = [made.report("v2") for _ in range(5)]
        assert [report is not None for report in sent] == [True] * 3 + [False] * 2
        assert len({report[ID] for report in sent[:3]}) == 3


@pytest.mark.parametrize("memory", [0, 7])
@pytest.mark.parametrize("loss", [None, b"", b"damaged", b"\x00" * 80])
def test_a_lost_store_is_silent_until_the_next_epoch(memory, loss):
    store = MemoryStore()
    made, clock = begun(task(memory=memory), store)
    assert made.report("v1") is not None
    store._state = loss
    clock.days = 0.5
    assert made.report("v2") is None
    epoch = memory or 1
    clock.days = epoch - 0.1
    assert made.report("v2") is None
    clock.days = epoch
    assert made.report("v2") is not None


class Forgetful(Client):
    """Takes a lost store for a new one that may begin at once."""

    def _state(self):
        return super()._state() or _State(0)


def test_a_client_that_begins_at_once_would_answer_twice():
    asked = task(memory=28)
    clock, answers = Clock(0), set()
    for value in VALUES:
        made = Forgetful(
            signed_task(asked, KEY, signed_at=0),
            SECRET,
            MemoryStore(),
            trusted=[KEY.public_key()],
            published={asked.hash.hex()},
            max_epsilon=2,
            clock=clock,
        )
        answers.add(made.report(value)[HEADER:])
    # the values of one epoch show in several answers: what the silence prevents
    assert len(answers) > 1


def told_with_losses(asked, signed_at, kind=Client):
    """The answers of each epoch, where each day the store is lost, and the clock is at 1970."""
    clock, store, answers = Clock(), MemoryStore(), {}
    made = kind(
        signed_task(asked, KEY, signed_at=signed_at),
        SECRET,
        store,
        trusted=[KEY.public_key()],
        published={asked.hash.hex()},
        max_epsilon=28,
        clock=clock,
    )
    for day in range(-1, 28):
        clock.days = day
        sent = made.report(VALUES[day % 7])
        if sent is not None:
            answers.setdefault(day // 7, set()).add(sent[HEADER:])
        store._state = None
        clock.days = -1_000_000 / DAY
        assert made.report(VALUES[day % 7]) is None
    return answers


class Trusting(Client):
    """Takes every clock for a true one."""

    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self._earliest = 0


def test_a_clock_that_is_known_to_be_wrong_begins_nothing():
    asked = task(memory=7, oracle=category(8, "3"))
    # with the store of a day lost, no day may answer: who answers may have answered before
    assert told_with_losses(asked, 1_000_000 - 2 * DAY) == {}
    told = told_with_losses(asked, 1_000_000 - 2 * DAY, Trusting)
    assert max(len(answers) for answers in told.values()) > 1


@pytest.mark.parametrize("named", [{"signed_at": 900_000}, {"signed_at": 0, "installed": 900_000}])
def test_a_clock_from_the_signing_on_begins_the_first_epoch(named):
    asked, clock, store = task(memory=7), Clock(), MemoryStore()
    more = dict(named)
    signed = signed_task(asked, KEY, signed_at=more.pop("signed_at"))
    usual = {"trusted": [KEY.public_key()], "published": {asked.hash.hex()}, "max_epsilon": 28}
    made = Client(signed, SECRET, store, clock=clock, **usual, **more)
    clock.days = -100_001 / DAY
    assert made.report("v1") is None and store.load() is None
    clock.days = -100_000 / DAY
    assert made.report("v1") is None and _State.from_bytes(store.load(), asked).first == 0
    clock.days = 0
    assert made.report("v1") is not None
    assert made.device(SECRET[::-1], MemoryStore())._earliest == 900_000


def test_a_task_of_an_earlier_version_keeps_its_rule():
    asked, clock, store = task(memory=7), Clock(-11), MemoryStore()
    der = KEY.sign(b"sfumato telemetry task 1\n" + asked.to_bytes(), ec.ECDSA(hashes.SHA256()))
    signature = b"".join(part.to_bytes(32, "big") for part in decode_dss_signature(der))
    usual = {"trusted": [KEY.public_key()], "published": {asked.hash.hex()}, "max_epsilon": 28}
    made = Client(SignedTask(asked, signature), SECRET, store, clock=clock, **usual)
    assert made.signed_at is None and made.report("v1") is None and store.load() is not None


def test_a_clock_that_goes_back_draws_nothing_again():
    made, clock = begun(task())
    clock.days = 5
    assert made.report("v1") is not None
    for day in (4, 0, -3, 5):
        clock.days = day
        assert made.report("v1") is None
    clock.days = 6
    assert made.report("v1") is not None


@given(
    days=st.lists(st.floats(-2, 32), max_size=12),
    values=st.lists(st.one_of(st.sampled_from(VALUES), st.text(), st.none()), min_size=12),
    memory=st.sampled_from([0, 1, 7]),
    losses=st.sets(st.integers(0, 11)),
)
def test_silence_does_not_depend_on_the_value(days, values, memory, losses):
    def shape(told):
        clock, store, found = Clock(), MemoryStore(), []
        made = client(task(memory=memory), clock, store)
        for turn, day in enumerate(days):
            if turn in losses:
                store._state = None
            clock.days = day
            report = made.report(told[turn])
            found.append(report and (report[:HEADER], len(report)))
        return found

    assert shape(values) == shape(["v0"] * 12)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("memory", [0, 7])
def test_every_report_of_a_task_has_the_same_size(maker, memory):
    sizes = set()
    for value in [*VALUES, "unheard", None, 10**30, "x" * 10_000]:
        made, _ = begun(task(maker, memory=memory))
        sizes.add(len(made.report(value)))
    assert sizes == {HEADER + maker(8, 1).size}


def test_periods_and_devices_cannot_be_linked_by_ids():
    ids = set()
    for secret in (SECRET, bytes(32)):
        made, clock = begun(task(memory=28), secret=secret)
        for day in range(10):
            clock.days = day
            report = made.report("v1")
            assert report[PERIOD] == struct.pack(">I", day)
            ids.add(report[ID])
    assert len(ids) == 20


def test_the_permanent_answer_is_the_keyed_function_of_the_format():
    asked = task(unary, memory=7)
    made, _ = begun(asked)
    blocks = [
        hmac.new(
            SECRET,
            b"sfumato telemetry answer 1" + asked.hash + struct.pack(">III", 0, 4, counter),
            hashlib.sha256,
        ).digest()
        for counter in range(2)
    ]
    words = struct.unpack(">8Q", b"".join(blocks))
    report = made.report("v4")
    assert report[HEADER:] == asked.oracle.encode(4, words)
    wanted = hmac.new(
        SECRET, b"sfumato telemetry id 1" + asked.hash + struct.pack(">II", 0, 0), hashlib.sha256
    )
    assert report[ID] == wanted.digest()[:16]


def test_a_life_ends_at_a_public_moment():
    made, clock = begun(task(periods=3))
    clock.days = 2.999
    assert made.report("v1") is not None
    clock.days = 3
    assert made.report("v1") is None
    made, clock = begun(task(periods=3, expires=1_000_000 + DAY))
    clock.days = 1
    assert made.report("v1") is None


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"trusted": []}, "signed"),
        ({"published": set()}, "one person"),
        ({"max_epsilon": 27}, "costs epsilon 28"),
        ({"clock": Clock(28)}, "expired"),
    ],
)
def test_a_task_that_is_not_for_everybody_or_too_dear_is_refused(fields, text):
    with pytest.raises(TaskRefused, match=text):
        client(task(), **({"clock": Clock()} | fields))


@pytest.mark.parametrize("secret", [b"", bytes(31), bytes(33), "x" * 32, None])
def test_a_secret_of_another_length_is_refused(secret):
    with pytest.raises(WrongUse, match="32 bytes") as refused:
        client(task(), Clock(), secret=secret)
    assert "xxx" not in str(refused.value)


def test_another_device_reports_as_if_it_had_been_opened():
    asked, secret = task(memory=7), b"another secret" + bytes(18)
    due, _ = begun(asked, secret=secret)
    one, clock = begun(asked)
    clock.days = -1
    other = one.device(secret, MemoryStore())
    assert other.report("v3") is None
    clock.days = 0
    sent = due.report("v3")
    assert other.report("v3") == sent != one.report("v3")
    with pytest.raises(WrongUse, match="32 bytes"):
        one.device(secret[1:], MemoryStore())


def test_a_client_shows_neither_secret_nor_value():
    made, _ = begun(task(memory=7))
    made.report("v3")
    assert repr(made) == "Client('t')"


def test_a_store_that_cannot_be_written_sends_nothing():
    class Full(MemoryStore):
        def save(self, state):
            if self.load() is not None:
                raise OSError("disk full")
            super().save(state)

    made, _ = begun(task(), Full())
    with pytest.raises(OSError, match="disk full"):
        made.report("v1")


def words_of(**fields):
    usual = {"oracle": rappor(), "start": 1_000_000, "periods": 1000, "memory": 1000}
    return report_task("words", "?", Texts(), **(usual | fields))


def test_reports_of_rappor_are_blurred_from_one_permanent_answer():
    store = MemoryStore()
    made, clock = begun(words_of(), store)
    sums, cohorts = np.zeros(32), set()
    for day in range(1000):
        clock.days = day
        payload = made.report("a word" if day % 2 else "another")[HEADER:]
        cohorts.add(payload[:2])
        sums += np.unpackbits(np.frombuffer(payload[2:], np.uint8), bitorder="little")
    assert len(cohorts) == 1
    # the average shows the permanent bits, and nothing that is not in them
    kept = np.frombuffer(made._state().answer[2:], np.uint8)
    permanent = np.unpackbits(kept, bitorder="little")
    assert np.abs(sums / 1000 - np.where(permanent, 0.75, 0.25)).max() < 6.2 / 2 / 1000**0.5
