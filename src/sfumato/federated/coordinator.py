# SPDX-License-Identifier: Apache-2.0
"""The coordinator of a study as an ASGI application: it keeps signed messages, and adds.

It has no data, no key and no budget. It sees masked shares and their sums alone.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from sfumato.errors import InvalidDeclaration
from sfumato.federated.declaration import Declared
from sfumato.federated.encryption import added_ciphertexts
from sfumato.federated.messages import Message, request_text, verified
from sfumato.federated.round import ENDINGS
from sfumato.telemetry import asgi
from sfumato.telemetry.asgi import Receive, Send, answer, body_of

# The most bytes of a message, with an answer in it, and of a share.
_MOST = 1 << 28
# Seconds that a clock may be wrong, and that a caller is kept waiting.
_CLOCKS, _LONGEST = 300, 5.0
_BYTES = b"application/octet-stream"


class Coordinator:
    """The server of a study: stores the parties' messages in ``folder`` and sums the sites' shares.

    The shares of a step are added once all sites of its run have sent theirs; the sum is stored,
    and a share that comes again changes nothing. Every request is signed by a site or the analyst.

    Guarantees:
        a sum is of all sites of the run
        what was acknowledged is there after a crash
    """

    def __init__(
        self,
        study: Declared,
        folder: str | Path,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._study, self._clock = study, clock
        self._folder = Path(folder)
        (self._folder / "sums").mkdir(parents=True, exist_ok=True)
        self._lines: list[str] = []
        self._known: set[str] = set()
        self._sites: dict[str, frozenset[str]] = {}
        self._unready: dict[str, set[str]] = {}
        self._ended: set[str] = set()
        self._shares: dict[tuple[str, int], dict[str, bytes]] = {}
        self._heard: dict[str, float] = {}
        self._changed = asyncio.Event()
        for line in self._read():
            self._note(verified(line, study.keys), line)

    async def __call__(self, scope: asgi.Message, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
        if scope["type"] != "http":
            return
        body = await body_of(receive, _MOST)
        if body is None:
            await answer(send, 413, b"")
            return
        method, path = str(scope["method"]), str(scope["path"])
        headers = {bytes(name).lower(): bytes(value) for name, value in scope["headers"]}
        caller = self._caller(headers.get(b"authorization", b""), method, path, body)
        if caller is None:
            await answer(send, 403, b"")
            return
        self._heard[caller] = self._clock()
        status, made = await self._answered(method, path.strip("/").split("/"), caller, body)
        await answer(send, status, made, _BYTES)

    def _caller(self, header: bytes, method: str, path: str, body: bytes) -> str | None:
        """Who has signed a request now; None if nobody of the study."""
        with suppress(ValueError, KeyError, InvalidSignature):
            name, at, signature = header.decode().split(" ")
            signed = request_text(method, path, int(at), body)
            key = self._study.keys[name]
            key.verify(bytes.fromhex(signature), signed, ec.ECDSA(SHA256()))
            if abs(self._clock() - int(at)) <= _CLOCKS:
                return name
        return None

    async def _answered(
        self,
        method: str,
        parts: list[str],
        caller: str,
        body: bytes,
    ) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        match method, parts:
            case "POST", ["messages"]:
                return self._take_message(body)
            case "POST", ["steps", run, step] if step.isdecimal():
                return self._take_share(run, int(step), caller, body)
            case "GET", ["messages", after, wait]:
                return await self._waited(lambda: self._later(int(after)), wait)
            case "GET", ["sums", run, step, wait] if step.isdecimal():
                return await self._waited(lambda: self._sum_for(caller, run, int(step)), wait)
            case "GET", ["sites"]:
                now = self._clock()
                ages = {name: now - at for name, at in self._heard.items()}
                return 200, json.dumps(ages).encode()
            case _:
                return 404, b""

    def _take_message(self, body: bytes) -> tuple[int, bytes]:
        """Stores a message, then acknowledges it; one that is stored already is not again."""
        try:
            line = body.decode()
            message = verified(line, self._study.keys)
        except (InvalidDeclaration, UnicodeDecodeError):
            return 403, b""
        if line not in self._known:
            with (self._folder / "messages").open("a", encoding="utf-8") as file:
                file.write(line + "\n")
                file.flush()
                os.fsync(file.fileno())
            self._note(message, line)
            self._tell()
        return 202, b""

    def _note(self, message: Message, line: str) -> None:
        """What a message says about the sites and the end of its run."""
        self._lines.append(line)
        self._known.add(line)
        sites = message.body.get("sites")
        if message.kind == "proposed" and isinstance(sites, list):
            named = frozenset(str(name) for name in sites) & set(self._study.sites)
            self._sites.setdefault(message.run, named)
            self._unready.setdefault(message.run, set(named))
        elif message.run in self._sites:
            unready = self._unready[message.run]
            if message.kind == "ready":
                unready.discard(message.author)
            # what all have held is not cancelled any more
            is_its = message.author in self._sites[message.run] or (
                message.kind == "cancelled" and unready
            )
            if is_its and message.kind in ENDINGS and message.kind != "answered":
                self._ended.add(message.run)

    def _later(self, after: int) -> tuple[int, bytes] | None:
        """The messages after the first ones, a line each."""
        lines = self._lines[after:]
        return (200, "\n".join(lines).encode()) if lines else None

    def _take_share(self, run: str, step: int, caller: str, body: bytes) -> tuple[int, bytes]:
        """Takes a share; the last one makes the sum."""
        sites = self._sites.get(run, frozenset())
        if caller not in sites or run in self._ended:
            return 410, b""
        if self._sum(run, step) is not None:
            return 202, b""
        shares = self._shares.setdefault((run, step), {})
        # the first share of a site is its share
        shares.setdefault(caller, body)
        if set(shares) == sites:
            try:
                self._store(run, step, self._added(shares))
            except ValueError:
                self._ended.add(run)
            del self._shares[run, step]
            self._tell()
        return 202, b""

    def _added(self, shares: Mapping[str, bytes]) -> bytes:
        """The sum of shares, in the clear or encrypted.

        Raises:
            ValueError: they cannot be added.
        """
        if self._study.is_encrypted:
            return added_ciphertexts(shares, self._study.terms.sites)
        return added(shares)

    def _sum(self, run: str, step: int) -> tuple[int, bytes] | None:
        """The sum of a step; 410 where it will never be."""
        if run not in self._sites:
            return 410, b""
        with suppress(FileNotFoundError):
            return 200, self._place(run, step).read_bytes()
        return (410, b"") if run in self._ended else None

    def _sum_for(self, caller: str, run: str, step: int) -> tuple[int, bytes] | None:
        """The sum of a step; 409 where the caller's share is not known, as in a life before."""
        there = self._sum(run, step)
        if there is None and caller not in self._shares.get((run, step), {}):
            return 409, b""
        return there

    def _store(self, run: str, step: int, total: bytes) -> None:
        """Stores a sum, on disk before anybody gets it."""
        place = self._place(run, step)
        half = place.with_suffix(".part")
        with half.open("wb") as file:
            file.write(total)
            file.flush()
            os.fsync(file.fileno())
        half.replace(place)

    def _place(self, run: str, step: int) -> Path:
        return self._folder / "sums" / f"{run}.{step}"

    async def _waited(
        self,
        look: Callable[[], tuple[int, bytes] | None],
        wait: str,
    ) -> tuple[int, bytes]:
        """What there is, or will be within so many seconds; 204 if nothing."""
        end = time.monotonic() + min(float(wait) if wait.isdecimal() else 0, _LONGEST)
        while True:
            changed = self._changed
            there = look()
            left = end - time.monotonic()
            if there is not None or left <= 0:
                return there or (204, b"")
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), left)

    def _tell(self) -> None:
        """Wakes all that wait."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _read(self) -> list[str]:
        """The stored messages; a line that a crash has cut was never acknowledged."""
        place = self._folder / "messages"
        if not place.exists():
            return []
        # a cut may be inside of a letter
        whole, _, torn = place.read_bytes().rpartition(b"\n")
        if torn:
            with place.open("r+b") as file:
                file.truncate(place.stat().st_size - len(torn))
        return whole.decode().split("\n") if whole else []


def added(shares: Mapping[str, bytes]) -> bytes:
    """The sum of shares modulo 2^64.

    Raises:
        ValueError: they are not equally long, or no integers of 8 bytes.

    >>> added({"a": b"\\xff" * 8, "b": b"\\x02" + bytes(7)})
    b'\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00'
    """
    if len({len(share) for share in shares.values()}) > 1:
        raise ValueError("shares of unequal length")
    first, *others = (np.frombuffer(share, "<u8") for share in shares.values())
    total = first.copy()
    for share in others:
        total += share
    return total.tobytes()


async def _live(receive: Receive, send: Send) -> None:
    """Says that it is ready, and that it has ended."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return
