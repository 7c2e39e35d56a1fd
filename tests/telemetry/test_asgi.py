# SPDX-License-Identifier: Apache-2.0
"""Bodies of requests are whole or too large, and answers have a length."""

import asyncio

import pytest

from sfumato.telemetry.asgi import answer, body_of


def received(*messages):
    """What ``body_of`` makes of messages, at most 5 bytes."""
    left = list(messages)

    async def receive():
        return left.pop(0)

    return asyncio.run(body_of(receive, 5))


def part(body, *, more=False):
    return {"type": "http.request", "body": body, "more_body": more}


@pytest.mark.parametrize(
    ("messages", "wanted"),
    [
        ([part(b"abc")], b"abc"),
        ([part(b"ab", more=True), part(b"cde")], b"abcde"),
        ([part(b"ab", more=True), part(b"cdef")], None),
        ([part(b"", more=True), part(b"")], b""),
        ([part(b"a", more=True), {"type": "http.disconnect"}], b""),
    ],
)
def test_a_body_is_all_of_its_parts_or_too_large(messages, wanted):
    assert received(*messages) == wanted


def test_an_answer_states_its_length_and_kind():
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(answer(send, 202, b"{}"))
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent[0]["status"] == 202 and sent[1]["body"] == b"{}"
    assert dict(sent[0]["headers"]) == {
        b"content-type": b"application/json",
        b"content-length": b"2",
    }
