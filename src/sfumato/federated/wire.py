# SPDX-License-Identifier: Apache-2.0
"""Requests of a site or an analyst to the coordinator: each is signed, and sites connect out only."""

import http.client
import json
import ssl
import threading
import time
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from sfumato.errors import StudyFailed, StudyRefused
from sfumato.federated.messages import Message, request_text

# Seconds that one answer may take beyond what is waited for there, and between two tries.
_SLACK, _PAUSE = 10.0, 0.2
# The longest wait of one request; seconds after which a share is sent again.
LONGEST, _SHARE_AGAIN = 5, 5


class Wire:
    """The HTTP connection of a site or the analyst to the coordinator; repeats requests that fail.

    ``sent`` and ``received`` count the bytes of bodies.
    """

    def __init__(self, address: str, name: str, key: ec.EllipticCurvePrivateKey) -> None:
        self._address, self._name, self._key = urlsplit(address), name, key
        self._local = threading.local()
        self._open: set[http.client.HTTPConnection] = set()
        self.sent = self.received = 0

    def post(self, message: Message, within: float = 60.0) -> None:
        """Sends a signed message of the study to the coordinator, within so many seconds.

        Raises:
            StudyFailed: the coordinator cannot be reached in this time.
            StudyRefused: it takes no such message.
        """
        body = message.signed(self._key).encode()
        status, _ = self._request("POST", "/messages", body, time.monotonic() + within)
        if status != 202:
            raise StudyRefused("The coordinator takes no message of this party.")

    def messages(self, after: int, wait: int) -> list[str]:
        """Returns the coordinator's messages after the first ``after``; waits up to ``wait`` s for
        new ones.
        """
        path = f"/messages/{after}/{wait}"
        status, body = self._request("GET", path, b"", time.monotonic() + wait + _SLACK)
        return body.decode().split("\n") if status == 200 else []

    def exchanged(self, run: str, step: int, body: bytes, until: float) -> bytes:
        """Sends a site's masked share of step ``step`` of a run; returns the sum over all sites.

        The same bytes are sent again while there is no answer.

        Raises:
            StudyFailed: the run has ended, or there is no sum in time.
        """
        status = 204
        # 409: a coordinator that was started again has forgotten the share
        while status in (204, 409) and time.monotonic() < until:
            status, _ = self._request("POST", f"/steps/{run}/{step}", body, until)
            if status == 202:
                path = f"/sums/{run}/{step}/{_SHARE_AGAIN}"
                status, total = self._request("GET", path, b"", until)
                if status == 200:
                    return total
        raise StudyFailed("A step of the run has no sum.", remedy="Ask again: another run.")

    def heard(self) -> dict[str, float]:
        """Returns how many seconds ago the coordinator last received a request of each party, by
        name.
        """
        status, body = self._request("GET", "/sites", b"", time.monotonic() + _SLACK)
        return dict(json.loads(body)) if status == 200 else {}

    def leave(self) -> None:
        """Closes the calling thread's connection to the coordinator."""
        known = getattr(self._local, "connection", None)
        if known is not None:
            self._local.connection = None
            self._open.discard(known)
            known.close()

    def close(self) -> None:
        """Closes all connections to the coordinator."""
        while self._open:
            self._open.pop().close()

    def _request(self, method: str, path: str, body: bytes, until: float) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        is_old = getattr(self._local, "connection", None) is not None
        while True:
            try:
                return self._once(method, path, body)
            except (OSError, http.client.HTTPException):
                self.leave()
                if is_old:
                    # a connection that was idle is closed by the other end: no reason to wait
                    is_old = False
                    continue
                if time.monotonic() >= until:
                    raise StudyFailed(
                        f"The coordinator at {self._address.netloc} cannot be reached.",
                        remedy="sfumato study serve study.toml",
                    ) from None
                time.sleep(_PAUSE)

    def _once(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        at = int(time.time())
        signature = self._key.sign(request_text(method, path, at, body), ec.ECDSA(SHA256()))
        connection = self._connection()
        connection.request(
            method, path, body, {"authorization": f"{self._name} {at} {signature.hex()}"}
        )
        answer = connection.getresponse()
        found = answer.read()
        self.sent += len(body)
        self.received += len(found)
        return answer.status, found

    def _connection(self) -> http.client.HTTPConnection:
        """The open connection of this thread."""
        known: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if known is None:
            host, port = self._address.hostname or "", self._address.port
            seconds = LONGEST + _SLACK
            if self._address.scheme == "https":
                context = ssl.create_default_context()
                known = http.client.HTTPSConnection(host, port, timeout=seconds, context=context)
            else:
                known = http.client.HTTPConnection(host, port, timeout=seconds)
            self._local.connection = known
            self._open.add(known)
        return known
