# SPDX-License-Identifier: Apache-2.0
"""The service as an ASGI application: finds the route, the caller and the body, and paces it.

It takes paths as they were sent, so a name may have a slash (%2F). Charged questions run as jobs: a
lost connection stops nothing, and whoever asked fetches the result of the job.
"""

import asyncio
import logging
import os
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote_to_bytes

import sfumato as sf
from sfumato.errors import WrongUse, shown
from sfumato.privacy.event import Json
from sfumato.service.jobs import Job, JobState
from sfumato.service.opening import Service
from sfumato.service.people import Caller
from sfumato.service.refusals import NotAllowed, NotVisible, TooMany
from sfumato.web.bodies import MOST_BYTES, NoSuchMethod, TooLarge, read_form
from sfumato.web.openapi import description
from sfumato.web.problems import problem
from sfumato.web.proxy import Proxies, require_caller
from sfumato.web.reply import Reply, as_json
from sfumato.web.results import HeldReplies, HeldReply
from sfumato.web.routes import RESULT, ROUTES, Access, Pace, Route, Visit

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

_LONGEST_WAIT = 30
_SLOWEST_BODY = 10.0
_LONGEST_KEY = 255
_MOST_HEADERS = 100
_PIECE = 256 * 1024
_PREVIEWS_AT_ONCE = 2
_LOG = logging.getLogger("sfumato.service")
# a path is compared with the routes of its length only
_OF_LENGTH = {
    length: [route for route in ROUTES if len(route.segments) == length]
    for length in {len(route.segments) for route in ROUTES}
}
_SAFE = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; img-src data:"),
)


class App:
    """The ASGI application that serves an open ``Service`` over HTTP.

    Guarantees:
        nothing that may be charged is answered with what clients repeat
        a reply of a question leaves at a multiple of the quantum
        what is read beside a question leaves at a multiple of the quantum
        a read only token charges and changes nothing
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._light = ThreadPoolExecutor(8, "light")
        self._threads = {
            Pace.LIGHT: self._light,
            Pace.HEAVY: ThreadPoolExecutor(4, "heavy"),
            Pace.SIGN_IN: ThreadPoolExecutor(2, "sign-in"),
        }
        self._results = HeldReplies(service.settings.state.parent)
        self._proxies = Proxies(service.settings)
        self._paces = Previews(service.settings.previews_per_minute)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            return
        try:
            reply = await self._reply(scope, receive)
        except Exception as error:  # noqa: BLE001 - its text could quote what was sent
            reply = problem(error)
            if reply.status == 500:
                _LOG.error("an internal failure (%s)", type(error).__name__)
        headers = [("Content-Type", reply.type), ("Content-Length", str(reply.length))]
        with reply.file or nullcontext():
            await send(
                {
                    "type": "http.response.start",
                    "status": reply.status,
                    "headers": [
                        *(
                            (name.lower().encode(), text.encode())
                            for name, text in (*headers, *reply.headers)
                        ),
                        *_SAFE,
                    ],
                }
            )
            if reply.file is not None:
                await self._send_file(reply.file.fileno(), reply.length, send)
        await send({"type": "http.response.body", "body": reply.body})

    async def _send_file(self, file: int, length: int, send: Send) -> None:
        """Sends a file in pieces; a slow reader holds one of them in memory, not all."""
        loop, sent = asyncio.get_running_loop(), 0
        while sent < length:
            piece = await loop.run_in_executor(self._light, os.pread, file, _PIECE, sent)
            sent += len(piece)
            await send({"type": "http.response.body", "body": piece, "more_body": True})

    async def _reply(self, scope: Message, receive: Receive) -> Reply:
        headers = _headers(scope)
        peer = str((scope.get("client") or ("",))[0])
        route, names = _find(str(scope["method"]), bytes(scope.get("raw_path") or b""))
        caller = None
        if route.access is not Access.OPEN:
            name = self._proxies.name(peer, scope["headers"])
            caller = require_caller(self._service.people, name, route.method, headers)
            self._require(route, caller)
        visit = Visit(
            self._service,
            caller,
            names,
            _options(bytes(scope.get("query_string") or b""), route.options),
            read_form(await _body(receive), route.fields),
            self._proxies.address(peer, scope["headers"]),
        )
        return await self._paced(route, visit, headers)

    def _require(self, route: Route, caller: Caller) -> None:
        """Refuses a role or a token that the route does not take; the trail names who tried."""
        roles = route.access.value
        assert roles is not None, "an open route asks for no caller"
        if caller.person.role not in roles:
            self._service.trail.record("refused", caller.name, f"{route.method} {route.path}")
            raise NotAllowed("Your role does not do this.")
        if caller.read_only and route.method != "GET" and not route.reads:
            self._service.trail.record("refused", caller.name, f"{route.method} {route.path}")
            raise NotAllowed("This token only reads.")

    async def _paced(self, route: Route, visit: Visit, headers: dict[str, str]) -> Reply:
        if route.pace is Pace.JOB and not visit.is_preview:
            return await self._ask(route, visit, headers)
        if route.call is None:
            if route.access is Access.OPEN:
                return as_json(description())
            return await self._job(route, visit)
        if visit.caller is not None:
            await _pause(self._service.jobs.seconds_to_read(visit.who.name))
        loop = asyncio.get_running_loop()
        if route.pace in (Pace.PREVIEW, Pace.JOB):
            async with self._paces.previewing(visit.who.name):
                return await loop.run_in_executor(self._light, route.call, visit)
        return await loop.run_in_executor(self._threads[route.pace], route.call, visit)

    async def _ask(self, route: Route, visit: Visit, headers: dict[str, str]) -> Reply:
        """Asks a charged question as a job; replies with the answer, or with 202 and the job."""
        key = headers.get("idempotency-key")
        if key is not None and not route.takes_key:
            raise WrongUse(
                "An Idempotency-Key of what takes none.",
                remedy="Leave it out: asked again, it finds what it has paid for.",
            )
        if key is not None and (not 0 < len(key) <= _LONGEST_KEY or not key.isprintable()):
            raise WrongUse("An Idempotency-Key of another form.", allowed="1 to 255 characters")
        seconds, call = _wait(visit), route.call
        assert call is not None, "a charged route has a call"

        def work(stop: sf.Stop) -> HeldReply:
            return HeldReply(call(replace(visit, key=key, stop=stop)))

        person = visit.who.name
        job = self._service.jobs.admit(person, work)
        if await _is_seen(job, seconds):
            return job.ended.result().reply()

        def hold(ended: Future[HeldReply]) -> None:
            if ended.exception() is None:
                self._results.hold(person, ended.result())

        # it may have ended just now; a large result is written to a file
        await asyncio.get_running_loop().run_in_executor(
            self._light, job.ended.add_done_callback, hold
        )
        self._service.jobs.show(job)
        return _goes_on(job, visit.names["dataset"])

    async def _job(self, route: Route, visit: Visit) -> Reply:
        """The state of a job, its stop, or the reply that its question would have had at once."""
        job: Job[Any] = self._service.jobs.find(visit.who.name, visit.names["job"])
        if route.method == "DELETE":
            job.stop.stop()
            return as_json(_shown(job))
        is_seen = await _is_seen(job, _wait(visit, 0))
        if route.path != RESULT:
            return as_json(_shown(job))
        if not is_seen:
            return _goes_on(job)
        error = job.ended.exception()
        if error is not None:
            # raised again and again it would gather frames
            assert isinstance(error, Exception), "a job that failed has an error"
            return problem(error)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._light, job.ended.result().reply)

    def close(self) -> None:
        """Ends the application's worker threads, and drops the results that it holds."""
        for threads in self._threads.values():
            threads.shutdown(wait=True)
        self._results.close()


class Previews:
    """Previews are free and may be dear to plan: two at once, one a person, so many a minute."""

    _REMEMBERED = 10_000

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._all = asyncio.Semaphore(_PREVIEWS_AT_ONCE)
        self._busy: set[str] = set()
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    @asynccontextmanager
    async def previewing(self, person: str) -> AsyncIterator[None]:
        """A context in which one preview of a person runs.

        Raises:
            TooMany: another of the person is running, or there were too many in this minute.
        """
        await self._begin(person)
        try:
            yield
        finally:
            self._all.release()
            self._busy.discard(person)

    async def _begin(self, person: str) -> None:
        """Waits for its turn."""
        now = self._clock()
        times = self._times.setdefault(person, deque())
        self._times.move_to_end(person)
        while len(self._times) > self._REMEMBERED:
            self._times.popitem(last=False)
        while times and times[0] <= now - 60:
            times.popleft()
        if len(times) >= self.per_minute:
            raise TooMany(f"{self.per_minute} previews in a minute.", int(times[0] + 61 - now))
        if person in self._busy:
            raise TooMany("Another preview of yours is being planned.")
        times.append(now)
        self._busy.add(person)
        try:
            await self._all.acquire()
        except BaseException:
            self._busy.discard(person)
            raise


async def _is_seen(job: Job[Any], seconds: float) -> bool:
    """Waits for the end of a job, then for its quantum; False if the end cannot be seen by then."""
    ends = time.monotonic() + seconds
    loop = asyncio.get_running_loop()
    woken = loop.create_future()

    def wake() -> None:
        # the loop may be closed by then
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_wake, woken)

    timer = loop.call_later(seconds, _wake, woken)
    with job.waking(wake):
        await woken
    timer.cancel()
    # a reply without an answer leaves at a multiple too
    leaves = job.visible_at if job.ended.done() else job.leaves(time.monotonic())
    if job.ended.done() and leaves > job.leaves(ends):
        leaves = job.leaves(ends)
    await _pause(leaves - time.monotonic())
    return job.ended.done() and job.visible_at <= time.monotonic()


async def _pause(seconds: float) -> None:
    # to sleep for no time is a turn of the loop
    if seconds > 0:
        await asyncio.sleep(seconds)


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)


def _goes_on(job: Job[Any], dataset: str | None = None) -> Reply:
    """Says that a question goes on as a job, and where."""
    place = ("Location", f"/v1/jobs/{job.id}")
    return Reply(as_json(_shown(job, dataset)).body, 202, headers=(place,))


def _shown(job: Job[Any], dataset: str | None = None) -> dict[str, Json]:
    """Returns the state of a job, and the charge of its answer or why it has none."""
    state = job.state
    told: dict[str, Json] = {
        "job": job.id,
        "state": state.value,
        "result": f"/v1/jobs/{job.id}/result",
    }
    if dataset is not None:
        told["dataset"] = dataset
    if state is JobState.DONE:
        told["charge"] = job.ended.result().charge
    elif state in (JobState.FAILED, JobState.STOPPED):
        error = job.ended.exception()
        assert isinstance(error, Exception), "a job that failed has an error"
        told["problem"] = problem(error).body.decode()
    return told


def _find(method: str, path: bytes) -> tuple[Route, dict[str, str]]:
    """The route of a path, and the names in it.

    Raises:
        NotVisible: there is no such path.
        NoSuchMethod: the path takes other methods.
    """
    segments = []
    for raw in path.partition(b"?")[0].strip(b"/").split(b"/"):
        try:
            segments.append(unquote_to_bytes(raw).decode("utf-8"))
        except UnicodeDecodeError:
            raise NotVisible from None
    allowed = []
    for route in _OF_LENGTH.get(len(segments), ()):
        names = route.match(tuple(segments))
        if names is not None and route.method == method:
            return route, names
        if names is not None:
            allowed.append(route.method)
    if not allowed:
        raise NotVisible
    raise NoSuchMethod(f"No {shown(method[:20])} here.", allowed=", ".join(allowed))


def _headers(scope: Message) -> dict[str, str]:
    """The headers by name; one that counts may stand once only."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"][:_MOST_HEADERS]:
        key = name.decode("latin-1").lower()
        if key in headers and key in ("authorization", "idempotency-key"):
            raise WrongUse(f"Two headers {key}.")
        headers[key] = value.decode("latin-1")
    return headers


def _options(query: bytes, allowed: tuple[str, ...]) -> dict[str, str]:
    """The options after the question mark, each once."""
    options: dict[str, str] = {}
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict",
                          max_num_fields=20)  # fmt: skip
    except ValueError:
        raise WrongUse("Options that cannot be read.") from None
    for name, value in pairs:
        if name not in allowed or name in options:
            raise WrongUse(f"The option {shown(name)}.", allowed=", ".join(allowed) or "none")
        options[name] = value
    return options


def _wait(visit: Visit, default: int = _LONGEST_WAIT) -> float:
    return min(visit.number("wait", default), _LONGEST_WAIT)


async def _body(receive: Receive) -> bytes:
    """The body of a request.

    Raises:
        TooLarge: more than 64 KiB.
        WrongUse: it did not come within 10 seconds, or not to its end.
    """
    parts: list[bytes] = []
    length = 0
    try:
        async with asyncio.timeout(_SLOWEST_BODY):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise WrongUse("The body did not come to its end.")
                parts.append(message.get("body", b""))
                length += len(parts[-1])
                if length > MOST_BYTES:
                    raise TooLarge("A large body.", allowed="at most 64 KiB")
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise WrongUse(f"The body took more than {_SLOWEST_BODY:.0f} seconds.") from None
