# SPDX-License-Identifier: Apache-2.0
"""Requests are tried again with the same bytes until their time is up."""

import http.client
import time

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.errors import StudyFailed, StudyRefused
from sfumato.federated.messages import Message
from sfumato.federated.wire import Wire

KEY = ec.generate_private_key(ec.SECP256R1())


class Scripted(Wire):
    """A wire whose answers are given; an error is raised."""

    def __init__(self, *answers):
        super().__init__("http://127.0.0.1:1", "anne", KEY)
        self.answers, self.asked = list(answers), []

    def _once(self, method, path, body):
        self.asked.append((method, path, body))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def soon(seconds=5.0):
    return time.monotonic() + seconds


def test_a_share_is_sent_again_as_it_was(monkeypatch):
    monkeypatch.setattr("sfumato.federated.wire._PAUSE", 0.0)
    wire = Scripted(
        OSError(),
        (202, b""),
        http.client.BadStatusLine("x"),
        (204, b""),
        (202, b""),
        (200, b"sums"),
    )
    assert wire.exchanged("run", 3, b"mask", soon()) == b"sums"
    posts = [body for method, _, body in wire.asked if method == "POST"]
    assert posts == [b"mask"] * 3


def test_a_connection_that_was_closed_while_idle_costs_no_pause(monkeypatch):
    pauses = []
    monkeypatch.setattr("sfumato.federated.wire.time.sleep", pauses.append)
    wire = Scripted(http.client.RemoteDisconnected(), (200, b"a"))
    wire._local.connection = http.client.HTTPConnection("127.0.0.1", 1)
    assert wire.messages(0, 0) == ["a"] and pauses == []
    wire.answers = [ConnectionRefusedError(), (200, b"a")]
    assert wire.messages(0, 0) == ["a"] and len(pauses) == 1


def test_a_run_that_has_ended_has_no_sum():
    for answers in ([(410, b"")], [(202, b""), (410, b"")]):
        with pytest.raises(StudyFailed):
            Scripted(*answers).exchanged("run", 3, b"mask", soon())
    with pytest.raises(StudyFailed):
        Scripted().exchanged("run", 3, b"mask", soon(-1))


def test_a_coordinator_that_is_away_is_said_in_time():
    wire = Wire("http://127.0.0.1:1", "anne", KEY)
    with pytest.raises(StudyFailed, match=r"127\.0\.0\.1:1 cannot be reached"):
        wire.post(Message("approved", "r", "anne", {}), within=0)
    wire.close()


def test_messages_come_as_lines():
    assert Scripted((200, b"a\nb")).messages(0, 1) == ["a", "b"]
    assert Scripted((204, b"")).messages(0, 1) == []
    with pytest.raises(StudyRefused):
        Scripted((403, b"")).post(Message("approved", "r", "anne", {}))
    assert Scripted((200, b'{"anne": 1.5}')).heard() == {"anne": 1.5}
    assert Scripted((404, b"")).heard() == {}
