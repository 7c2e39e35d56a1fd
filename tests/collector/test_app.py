# SPDX-License-Identifier: Apache-2.0
"""The addresses of the collector; one answer to all batches; nothing of who sent them is kept."""

import asyncio
from pathlib import Path

import pytest

from sfumato.collector import Collector, Folder
from sfumato.collector import app as module
from sfumato.collector.store import StoreFailed
from sfumato.errors import WrongUse
from sfumato.telemetry import verified
from tests.collector.batches import KEY, asked, batch, counted, intake, request

SIGNED = asked()
TASK = SIGNED.task
REPORTS = "/v1/tasks/emoji/reports"


def test_a_task_is_given_as_it_was_signed(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        status, body = request(Collector([intake(folder, SIGNED)]), "GET", "/v1/tasks/emoji")
    assert status == 200 and verified(body, [KEY.public_key()]).task == TASK


def test_kept_and_dropped_batches_have_the_same_answer(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        app = Collector([intake(folder, SIGNED)])
        good = b"".join(batch(TASK, 10))
        answers = [
            request(app, "POST", REPORTS, body)
            for body in (
                good,
                good,
                good[:-1],
                b"",
                b"nonsense",
                b"".join(batch(TASK, 3, period=0)),
            )
        ]
    assert len(set(answers)) == 1 and answers[0][0] == 202
    assert counted(tmp_path, TASK) == 10


def test_a_store_that_fails_acknowledges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = b"".join(batch(TASK, 10))
    with Folder(tmp_path) as folder:
        app = Collector([intake(folder, SIGNED)])
        with monkeypatch.context() as patch:

            def full(self: Folder, *given: object) -> None:
                raise StoreFailed("full")

            patch.setattr(Folder, "append", full)
            assert request(app, "POST", REPORTS, good)[0] == 503
        assert request(app, "POST", REPORTS, good)[0] == 202
    assert counted(tmp_path, TASK) == 10


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1/tasks/other", 404),
        ("POST", "/v1/tasks/other/reports", 404),
        ("GET", REPORTS, 404),
        ("DELETE", "/v1/tasks/emoji", 404),
        ("POST", "/v1/tasks/emoji/reports/more", 404),
        ("GET", "/v2/tasks/emoji", 404),
    ],
)
def test_other_addresses_are_unknown(tmp_path: Path, method: str, path: str, status: int) -> None:
    with Folder(tmp_path) as folder:
        assert request(Collector([intake(folder, SIGNED)]), method, path)[0] == status


def test_a_batch_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 100)
    with Folder(tmp_path) as folder:
        app = Collector([intake(folder, SIGNED)])
        assert request(app, "POST", REPORTS, bytes(101))[0] == 413


def test_no_address_and_no_header_is_in_any_file(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        request(Collector([intake(folder, SIGNED)]), "POST", REPORTS, b"".join(batch(TASK, 5)))
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"203.0.113" not in path.read_bytes() and b"forwarded" not in path.read_bytes()


def test_two_tasks_of_one_id_are_refused(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder, pytest.raises(WrongUse, match="Two tasks 'emoji'"):
        Collector([intake(folder, SIGNED), intake(folder, asked())])


def test_a_server_may_start_and_stop_it() -> None:
    sent: list[str] = []
    waiting = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

    async def receive() -> dict[str, str]:
        return waiting.pop(0)

    async def send(message: dict[str, str]) -> None:
        sent.append(message["type"])

    asyncio.run(Collector([])({"type": "lifespan"}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
