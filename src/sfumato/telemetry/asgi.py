# SPDX-License-Identifier: Apache-2.0
"""Requests and answers of ASGI: what a collector and the coordinator of a study share."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

JSON = b"application/json"


async def body_of(receive: Receive, most: int) -> bytes | None:
    """The body of a request; None if it is longer than ``most`` bytes."""
    parts: list[bytes] = []
    length = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        parts.append(message.get("body", b""))
        length += len(parts[-1])
        if length > most:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


async def answer(send: Send, status: int, body: bytes, kind: bytes = JSON) -> None:
    """Sends an answer."""
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
