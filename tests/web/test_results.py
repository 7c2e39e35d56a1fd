# SPDX-License-Identifier: Apache-2.0
"""Held replies: the same bytes each time, bounded in number, large ones in files without names."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.service.refusals import ResultDropped
from sfumato.web.reply import Reply
from sfumato.web.results import HeldReplies, HeldReply


@pytest.fixture
def results(tmp_path: Path) -> Iterator[HeldReplies]:
    opened = HeldReplies(tmp_path)
    yield opened
    opened.close()


LARGE = bytes(range(256)) * 1024


def whole(reply: Reply) -> bytes:
    """The body of a reply, which may be a file."""
    if reply.file is None:
        return reply.body
    with reply.file as file:
        return os.pread(file.fileno(), 10 * len(LARGE), 0)


def held(body: bytes) -> HeldReply:
    return HeldReply(Reply(body, type="text/csv", headers=(("Sfumato-Charge", "a, b"),)))


@pytest.mark.parametrize("body", [b"", b"small", LARGE])
def test_a_reply_is_the_same_each_time(results: HeldReplies, tmp_path: Path, body: bytes) -> None:
    kept = held(body)
    assert whole(kept.reply()) == body
    results.hold("ann", kept)
    for _ in range(2):
        reply = kept.reply()
        assert (reply.length, reply.status, reply.type) == (len(body), 200, "text/csv")
        assert whole(reply) == body
    assert kept.charge == "a, b"
    # nobody finds it there, and it ends with the process
    assert list(tmp_path.iterdir()) == []


def test_a_large_one_is_not_in_memory(results: HeldReplies) -> None:
    large, small = held(LARGE), held(b"small")
    for kept in (large, small):
        results.hold("ann", kept)
    assert large._body is None and small._body == b"small"


def test_of_each_person_a_bounded_number_of_results_is_held(results: HeldReplies) -> None:
    own, other = [held(LARGE) for _ in range(6)], held(b"x")
    results.hold("bob", other)
    for kept in own:
        results.hold("ann", kept)
    for dropped in own[:2]:
        with pytest.raises(ResultDropped):
            dropped.reply()
    assert all(whole(kept.reply()) == LARGE for kept in own[2:])
    assert whole(other.reply()) == b"x"
    results.close()
    with pytest.raises(ResultDropped):
        other.reply()


def test_a_reply_that_is_being_sent_outlives_its_place(results: HeldReplies) -> None:
    kept = held(LARGE)
    results.hold("ann", kept)
    reply = kept.reply()
    kept.drop()
    assert whole(reply) == LARGE


def test_on_a_full_disk_a_result_is_dropped(
    results: HeldReplies, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sfumato.web.results.tempfile.TemporaryFile", full)
    kept = held(LARGE)
    results.hold("ann", kept)
    with pytest.raises(ResultDropped):
        kept.reply()
