# SPDX-License-Identifier: Apache-2.0
"""The coordinator adds what all sites of a run have sent, and takes nothing from strangers."""

import asyncio

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from sfumato.errors import StudyFailed, StudyRefused
from sfumato.federated.coordinator import Coordinator, added
from sfumato.federated.declaration import read_study
from sfumato.federated.messages import ANALYST, Message, request_text, run_of
from sfumato.telemetry.keys import private_key
from tests.contracts.federation import NAMES, write_study
from tests.contracts.federation_world import BEGAN, Life, study_of

NOW = 1_000_000


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    found = tmp_path_factory.mktemp("study")
    write_study(found)
    return found


class Caller:
    """Requests to an application, signed by the parties."""

    def __init__(self, place, folder, now=NOW):
        self.study = read_study(place / "study.toml")
        self.keys = {name: private_key(place / f"{name}.pem") for name in (*NAMES, "analyst")}
        self.folder = folder
        self.app = Coordinator(self.study, folder, lambda: now)

    def restarted(self):
        self.app = Coordinator(self.study, self.folder, lambda: NOW)

    def ask(self, name, method, path, body=b"", *, at=NOW, signer=None, signed=None):
        text = request_text(method, path, at, body) if signed is None else signed
        signature = self.keys[signer or name].sign(text, ec.ECDSA(SHA256()))
        header = f"{name} {at} {signature.hex()}".encode()
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": [(b"Authorization", header)],
        }
        sent = []

        async def receive():
            return {"type": "http.request", "body": body}

        async def send(message):
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        return sent[0]["status"], sent[1]["body"]

    def say(self, name, kind, run, body=None):
        line = Message(kind, run, name, body or {}).signed(self.keys[name])
        return self.ask(name, "POST", "/messages", line.encode())

    def propose(self, sites=NAMES, attempt="1"):
        body = {"sites": list(sites), "attempt": attempt}
        run = run_of(body)
        assert self.say(ANALYST, "proposed", run, body) == (202, b"")
        return run


@pytest.fixture
def caller(place, tmp_path):
    return Caller(place, tmp_path / "rounds")


def share(number):
    return np.array([number, 2**64 - 1], np.uint64).tobytes()


def test_a_sum_is_of_all_sites_of_the_run(caller):
    run = caller.propose()
    for number, name in enumerate(NAMES):
        # its share is asked for
        assert caller.ask(name, "GET", f"/sums/{run}/1/0") == (409, b"")
        assert caller.ask(name, "POST", f"/steps/{run}/1", share(number + 1)) == (202, b"")
        assert number == 2 or caller.ask(name, "GET", f"/sums/{run}/1/0") == (204, b"")
        # the same share again, and another one in its place, change nothing
        caller.ask(name, "POST", f"/steps/{run}/1", share(number + 1))
        caller.ask(name, "POST", f"/steps/{run}/1", share(77))
    wanted = np.array([6, 2**64 - 3], np.uint64).tobytes()
    assert caller.ask("anne", "GET", f"/sums/{run}/1/0") == (200, wanted)
    caller.restarted()
    assert caller.ask("anne", "GET", f"/sums/{run}/1/0") == (200, wanted)
    assert caller.ask("anne", "POST", f"/steps/{run}/1", share(5)) == (202, b"")
    assert caller.ask("anne", "GET", f"/sums/{run}/1/0") == (200, wanted)


def test_what_was_acknowledged_is_there_after_a_crash(caller):
    run = caller.propose()
    caller.say("anne", "approved", run)
    with (caller.folder / "messages").open("a") as file:
        file.write('{"torn')
    caller.restarted()
    status, body = caller.ask("anne", "GET", "/messages/0/0")
    assert status == 200 and len(body.split(b"\n")) == 2
    assert caller.ask("anne", "GET", "/messages/2/0") == (204, b"")
    caller.say("northgate", "approved", run)
    caller.restarted()
    assert len(caller.ask("anne", "GET", "/messages/1/0")[1].split(b"\n")) == 2


def test_a_restarted_coordinator_asks_for_the_shares_again(caller):
    run = caller.propose()
    caller.ask("anne", "POST", f"/steps/{run}/1", share(1))
    assert caller.ask("anne", "GET", f"/sums/{run}/1/0") == (204, b"")
    caller.restarted()
    assert caller.ask("anne", "GET", f"/sums/{run}/1/0") == (409, b"")


def test_a_message_cut_inside_of_a_letter_was_never_acknowledged(caller):
    run = caller.propose()
    with (caller.folder / "messages").open("ab") as file:
        file.write("\u00e9".encode()[:1])
    caller.restarted()
    caller.say("anne", "approved", run)
    caller.restarted()
    assert len(caller.ask("anne", "GET", "/messages/0/0")[1].split(b"\n")) == 2


def test_only_a_site_of_the_run_ends_it_and_nobody_cancels_what_all_have_held(caller):
    run = caller.propose(NAMES[:2])
    caller.say(NAMES[2], "withdrawn", run)
    for name in NAMES[:2]:
        caller.say(name, "ready", run)
    caller.say(ANALYST, "cancelled", run)
    assert caller.ask(NAMES[0], "POST", f"/steps/{run}/1", share(1)) == (202, b"")
    other = caller.propose(NAMES[:2], attempt="2")
    caller.say(NAMES[0], "ready", other)
    caller.say(ANALYST, "cancelled", other)
    caller.say(NAMES[1], "ready", other)
    assert caller.ask(NAMES[0], "POST", f"/steps/{other}/1", share(1)) == (410, b"")


@pytest.mark.parametrize(("places", "away"), [(1, 15.0), (2, 1.0)])
def test_wherever_the_coordinator_dies_a_question_ends_and_is_paid_once(
    place, tmp_path, places, away
):
    """Its parties wait for it; who asked in vain was not charged, and gets the answer next time."""
    declared, keys = study_of(place)
    fatal = events = 1
    while fatal <= events:
        with pytest.MonkeyPatch.context() as patch:
            folder = tmp_path / str(fatal)
            world = Life(patch, declared, keys, folder, places=places, fatal=fatal, away=away)
            try:
                answer = world.ask()
            except StudyRefused:
                assert away > 10
                answer = world.ask()
            assert answer == 111
            assert world.now - BEGAN < away + 10
            for book in world.books.values():
                assert book.paid == 1 and len(set(book.drawn)) == len(book.drawn) == places
            events = world.events
            world.stop()
        fatal += 1
    assert events > 40


@pytest.mark.parametrize("patience", [60, 0])
def test_an_analyst_who_does_not_wait_gives_up_a_run_that_goes_on(
    place, tmp_path, monkeypatch, patience
):
    """The mutant of the test above: with no patience the run that is being paid is not awaited."""
    declared, keys = study_of(place)
    monkeypatch.setattr("sfumato.federated.study._AWAY", patience)
    world = Life(monkeypatch, declared, keys, tmp_path, fatal=47, away=30.0)
    if patience:
        assert world.ask() == 111
    else:
        with pytest.raises(StudyFailed, match="cannot be reached"):
            world.ask()
    assert [book.paid for book in world.books.values()] == [1, 1, 1]
    world.stop()


def test_a_run_that_has_ended_takes_no_share(caller):
    run = caller.propose()
    caller.say("anne", "withdrawn", run)
    assert caller.ask("northgate", "POST", f"/steps/{run}/1", share(1))[0] == 410
    assert caller.ask("northgate", "GET", f"/sums/{run}/1/0")[0] == 410


def test_shares_of_unequal_length_end_the_run(caller):
    run = caller.propose()
    for number, name in enumerate(NAMES):
        caller.ask(name, "POST", f"/steps/{run}/1", bytes(8 * (1 + number)))
    assert caller.ask("anne", "GET", f"/sums/{run}/1/0")[0] == 410


def test_who_does_not_take_part_is_not_added(caller):
    run = caller.propose(NAMES[:2])
    assert caller.ask(NAMES[2], "POST", f"/steps/{run}/1", share(1))[0] == 410
    assert caller.ask(ANALYST, "POST", f"/steps/{run}/1", share(1))[0] == 410
    assert caller.ask(NAMES[0], "POST", f"/steps/{'0' * 64}/1", share(1))[0] == 410


def test_strangers_old_requests_and_foreign_messages_are_refused(caller):
    run = caller.propose()
    path = "/messages/0/0"
    assert caller.ask("anne", "GET", path)[0] == 200
    for wrong in (
        {"signer": "northgate"},
        {"at": NOW - 301},
        {"at": NOW + 301},
        {"signed": request_text("GET", "/messages/1/0", NOW, b"")},
        {"signed": request_text("GET", path, NOW, b"more")},
    ):
        assert caller.ask("anne", "GET", path, **wrong)[0] == 403
    line = Message("approved", run, "anne", {}).signed(caller.keys["northgate"])
    assert caller.ask("northgate", "POST", "/messages", line.encode())[0] == 403
    assert caller.ask("northgate", "POST", "/messages", b"\xff")[0] == 403
    for unknown in ("/", "/steps/x/y", "/rounds"):
        assert caller.ask("anne", "GET", unknown)[0] == 404


def test_a_sum_is_modulo_the_ring():
    top = np.array([2**64 - 1], np.uint64).tobytes()
    assert np.frombuffer(added({"a": top, "b": top, "c": top}), "<u8")[0] == 2**64 - 3


def test_heard_sites_are_told(caller):
    caller.propose()
    assert caller.ask("anne", "GET", "/sites")[1] == b'{"analyst": 0, "anne": 0}'
