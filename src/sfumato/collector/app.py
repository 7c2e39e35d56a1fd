# SPDX-License-Identifier: Apache-2.0
"""The collector as an ASGI application: two addresses, and the same answer to every batch.

It writes no log and reads no header: it never learns the address of a device. A proxy or the
operating system can; run it without an access log, as ``sfumato collect`` does.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from sfumato.collector.intake import Intake, SealedIntake
from sfumato.collector.store import StoreFailed
from sfumato.errors import WrongUse, shown

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

# The most bytes of a batch.
MOST = 4 << 20
_JSON = b"application/json"
_RECEIVED = b'{"received":true}'
_AWAY = b'{"error":"The store is not available. Send the same batch again later."}'
_UNKNOWN = b'{"error":"No such address."}'
_LARGE = b'{"error":"A batch of more than 4 MiB."}'


class Collector:
    """The ASGI application of a collector: hands out signed tasks and takes batches of reports.

    ``GET /v1/tasks/ID`` returns a signed task; ``POST /v1/tasks/ID/reports`` takes a batch of
    concatenated reports. The answer to a batch is the same whether its reports were kept or
    dropped. Status 503 means that no report of the batch is acknowledged.

    Raises:
        WrongUse: two tasks with the same id.

    >>> Collector([]).tasks
    ()
    """

    def __init__(self, intakes: Iterable[Intake | SealedIntake]) -> None:
        self._intakes: dict[str, Intake | SealedIntake] = {}
        for intake in intakes:
            name = intake.signed.task.id
            if name in self._intakes:
                raise WrongUse(f"Two tasks {shown(name)}.", allowed="one task for each id")
            self._intakes[name] = intake
        # one thread writes, so batches are stored one after the other
        self._writer = ThreadPoolExecutor(1)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The ids of the tasks."""
        return tuple(self._intakes)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            return
        parts = str(scope["path"]).strip("/").split("/")
        intake = self._intakes.get(parts[2]) if len(parts) in (3, 4) else None
        if intake is None or parts[:2] != ["v1", "tasks"]:
            await _answer(send, 404, _UNKNOWN)
        elif scope["method"] == "GET" and len(parts) == 3:
            await _answer(send, 200, intake.signed.to_bytes())
        elif scope["method"] == "POST" and parts[3:] == ["reports"]:
            await self._take(intake, receive, send)
        else:
            await _answer(send, 404, _UNKNOWN)

    async def _take(
        self,
        intake: Intake | SealedIntake,
        receive: Receive,
        send: Send,
    ) -> None:
        """Stores a batch, then acknowledges it."""
        body = await _body(receive)
        if body is None:
            await _answer(send, 413, _LARGE)
            return
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._writer, intake.take, body)
        except StoreFailed:
            await _answer(send, 503, _AWAY)
            return
        await _answer(send, 202, _RECEIVED)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Handles start-up and shutdown; shutdown ends when all batches are stored."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                self._writer.shutdown()
                await send({"type": "lifespan.shutdown.complete"})
                return


async def _body(receive: Receive) -> bytes | None:
    """The body of a request; None if it is too large."""
    parts: list[bytes] = []
    length = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        parts.append(message.get("body", b""))
        length += len(parts[-1])
        if length > MOST:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


async def _answer(send: Send, status: int, body: bytes) -> None:
    """Sends an answer."""
    headers = [(b"content-type", _JSON), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
