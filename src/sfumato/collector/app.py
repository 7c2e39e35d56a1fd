# SPDX-License-Identifier: Apache-2.0
"""The collector as an ASGI application: two addresses, and the same answer to every batch.

It writes no log and reads no header: it never learns the address of a device. A proxy or the
operating system can; run it without an access log, as ``sfumato collect`` does.
"""

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from sfumato.collector.intake import Intake, SealedIntake
from sfumato.collector.store import StoreFailed
from sfumato.errors import WrongUse, shown
from sfumato.telemetry.asgi import Message, Receive, Send, answer, body_of

# The most bytes of a batch.
MOST = 4 << 20
_RECEIVED = b'{"received":true}'
_AWAY = b'{"error":"The store is not available. Send the same batch again later."}'
_UNKNOWN = b'{"error":"No such address."}'
_LARGE = b'{"error":"A batch of more than 4 MiB."}'


class Collector:
    """The ASGI application of a telemetry collector: hands out signed tasks and takes batches of
    reports.

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
            await answer(send, 404, _UNKNOWN)
        elif scope["method"] == "GET" and len(parts) == 3:
            await answer(send, 200, intake.signed.to_bytes())
        elif scope["method"] == "POST" and parts[3:] == ["reports"]:
            await self._take(intake, receive, send)
        else:
            await answer(send, 404, _UNKNOWN)

    async def _take(
        self,
        intake: Intake | SealedIntake,
        receive: Receive,
        send: Send,
    ) -> None:
        """Stores a batch, then acknowledges it."""
        body = await body_of(receive, MOST)
        if body is None:
            await answer(send, 413, _LARGE)
            return
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._writer, intake.take, body)
        except StoreFailed:
            await answer(send, 503, _AWAY)
            return
        await answer(send, 202, _RECEIVED)

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
