# SPDX-License-Identifier: Apache-2.0
"""Sinks: places outside the ledger that store its signed heads.

A sink is a file, a web server or the system log. It survives if the ledger's folder, or its
machine, is rolled back.
"""

import base64
import json
import ssl
import syslog
import threading
from collections.abc import Callable
from concurrent.futures import Future
from http import HTTPStatus
from pathlib import Path
from typing import Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from sfumato.errors import LedgerCorrupt, SfumatoError, WrongUse, shown
from sfumato.ledger.signed_heads import Head, write_durably

ALLOWED = "file:///folder/name, https://host/path, or syslog:"
_TIMEOUT = 10.0
# The longest time to wait for a sink, in seconds: a reply can come byte by byte, a mount can hang.
PATIENCE = 15.0
_LONGEST = 16 * 2**20
_HERE = ("127.0.0.1", "localhost", "::1")


class Silent(Exception):
    """A place outside the ledger for its signed heads gave no usable reply; the message says
    why.
    """


class Sink(Protocol):
    """A storage outside the ledger for its newest signed head: a file or HTTP server, to detect
    rollback.
    """

    @property
    def name(self) -> str:
        """The sink's address for messages, without passwords."""
        ...

    @property
    def readable(self) -> bool:
        """Whether the sink can return the signed head that it stores, and not only receive one."""
        ...

    def newest(self) -> Head | None:
        """Returns the signed head that the sink stores; None if none was ever stored.

        Raises:
            Silent: the sink gave no usable reply.
        """
        ...

    def put(self, head: Head) -> None:
        """Replaces the signed head that the sink stores.

        Raises:
            Silent: the sink gave no usable reply.
        """
        ...


def sink_at(address: str) -> Sink:
    """Returns the sink at an address, without opening it.

    Raises:
        WrongUse: the address is not that of a sink, or is http: to another machine.

    >>> sink_at("https://user:secret@heads.example/study").name
    'https://heads.example/study'
    >>> sink_at("http://heads.example/study")
    Traceback (most recent call last):
    ...
    sfumato.errors.WrongUse: ledger_heads has 'http://heads.example/study'.
    Allowed: file:///folder/name, https://host/path, or syslog:
    """
    if not isinstance(address, str):
        raise WrongUse(f"ledger_heads has {shown(address)}.", allowed=ALLOWED)
    try:
        parts = urlsplit(address)
        local = parts.hostname in _HERE
        _ = parts.port
    except ValueError:
        raise WrongUse(f"ledger_heads has {shown(address)}.", allowed=ALLOWED) from None
    if (
        parts.scheme == "file"
        and not parts.netloc
        and parts.path.startswith("/")
        and not parts.path.endswith("/")
    ):
        return Patient(FileSink(Path(unquote(parts.path))))
    if parts.hostname and (parts.scheme == "https" or (parts.scheme == "http" and local)):
        return Patient(_WebSink(parts))
    if address == "syslog:":
        return Patient(_SyslogSink())
    raise WrongUse(f"ledger_heads has {shown(_named(parts) or address)}.", allowed=ALLOWED)


class Patient:
    """A sink with a timeout. While one reply is outstanding, no other request is sent.

    So a head that arrives late never replaces a newer one.

    Guarantees:
        nobody waits for a sink longer than its patience
    """

    def __init__(self, sink: Sink) -> None:
        self.name, self.readable = sink.name, sink.readable
        self._sink = sink
        self._pending: Future[Head | None] | None = None

    def newest(self) -> Head | None:
        """Returns the stored head; raises ``Silent`` if the reply does not come in time."""
        return self._within(self._sink.newest)

    def put(self, head: Head) -> None:
        """Replaces the stored head; raises ``Silent`` if the reply does not come in time."""
        self._within(lambda: self._sink.put(head))

    def _within(self, call: Callable[[], Head | None]) -> Head | None:
        if self._pending is not None and not self._pending.done():
            raise Silent("it owes a reply since it was asked before")
        pending: Future[Head | None] = Future()
        self._pending = pending
        threading.Thread(
            target=_reply, args=(pending, call), name="sfumato-sink", daemon=True
        ).start()
        try:
            return pending.result(PATIENCE)
        except TimeoutError:
            raise Silent(f"no reply in {PATIENCE:g} seconds") from None


class FileSink:
    """A sink that is a file in an existing folder, on another disk or machine.

    A missing folder counts as no reply.
    """

    readable = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = f"file://{path}"

    def newest(self) -> Head | None:
        """Returns the head in the file; None if the folder exists and the file does not."""
        try:
            if not self._path.parent.is_dir():
                raise Silent("its folder is not there")
            return _read(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Silent(str(error.strerror)) from None

    def put(self, head: Head) -> None:
        """Replaces the file durably."""
        try:
            write_durably(self._path, head.to_text().encode())
        except OSError as error:
            raise Silent(str(error.strerror)) from None


class _WebSink:
    """A URL: PUT stores the head, GET returns it, 404 means that there is none.

    Redirections are not followed. A user and password in the URL are sent as Basic authentication.
    """

    readable = True

    def __init__(self, parts: SplitResult) -> None:
        self.name = _named(parts)
        host = parts.netloc.rpartition("@")[2]
        self._url = parts._replace(netloc=host, fragment="").geturl()
        self._headers = {"Content-Type": "application/json"}
        if parts.username is not None:
            secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(secret).decode()}"

    def newest(self) -> Head | None:
        """The head that GET returns; None for 404."""
        content = self._reply(Request(self._url, headers=self._headers, method="GET"))  # noqa: S310
        return None if content is None else _read(content)

    def put(self, head: Head) -> None:
        """Sends the head with PUT."""
        content = head.to_text().encode()
        request = Request(self._url, content, self._headers, method="PUT")  # noqa: S310
        if self._reply(request) is None:
            raise Silent("status 404")

    def _reply(self, request: Request) -> bytes | None:
        try:
            with build_opener(_Stay).open(request, timeout=_TIMEOUT) as reply:
                content: bytes = reply.read(_LONGEST)
                return content
        except HTTPError as error:
            error.close()
            if error.code == HTTPStatus.NOT_FOUND:
                return None
            raise Silent(f"status {error.code}") from None
        except URLError as error:
            raise Silent(_cause(error.reason)) from None
        except Exception as error:  # noqa: BLE001 - whatever a network or a server does is no reply
            raise Silent(type(error).__name__) from None


class _SyslogSink:
    """The system log, which another machine collects; nothing can be read back."""

    readable = False
    name = "syslog:"

    def newest(self) -> Head | None:
        """Always None."""
        raise Silent("it cannot be read")

    def put(self, head: Head) -> None:
        """Logs the head as one line of JSON."""
        line = json.dumps(json.loads(head.to_text()), ensure_ascii=True, separators=(",", ":"))
        syslog.syslog(syslog.LOG_NOTICE, f"sfumato-head {line}")


class _Stay(HTTPRedirectHandler):
    """Refuses redirections, since the owner named another address."""

    def redirect_request(self, *_: object) -> None:
        return None


def _reply(pending: "Future[Head | None]", call: Callable[[], Head | None]) -> None:
    try:
        pending.set_result(call())
    except BaseException as error:  # noqa: BLE001 - raised again where the reply is awaited
        pending.set_exception(error)


def _cause(reason: object) -> str:
    """Returns the reason why a connection failed; for a certificate, what is wrong with it."""
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({reason.verify_message.rstrip('.')})"
    return type(reason).__name__


def _read(content: bytes) -> Head:
    try:
        return Head.from_text(content.decode("utf-8", errors="replace"))
    except (LedgerCorrupt, RecursionError) as error:
        what = error.problem if isinstance(error, SfumatoError) else "this is no head"
        raise Silent(what.rstrip(".")) from None


def _named(parts: SplitResult) -> str:
    """A URL without password and query."""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" if host else ""
