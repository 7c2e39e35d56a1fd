# SPDX-License-Identifier: Apache-2.0
"""A stand-in for an S3 store on loopback: what a reader asks of one, and nothing else."""

import hashlib
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY, SECRET = "reader", "canary-secret"


class Store:
    """Objects by bucket and key. ``asked`` lists the requests, ``before`` is called in each.

    Requests are not verified, but one without a signature of the key is refused, unless the store
    is ``public``. So many bytes at the end of each answer are ``lost`` on the way.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []
        self.before: Callable[[str], object] = lambda method: None
        self.public = False
        self.lost = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def address(self, name: str) -> str:
        """The address of an object."""
        return f"s3://{name}?endpoint={self.endpoint}&region=somewhere"

    def close(self) -> None:
        """Stops to answer; a request that is sent afterwards is refused."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(store: Store) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        # one request a connection: none is left when the store is closed
        protocol_version = "HTTP/1.0"

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

        def _answer(self) -> None:
            store.asked.append((self.command, self.headers.get("Range", "")))
            store.before(self.command)
            signed = f"Credential={KEY}/" in self.headers.get("Authorization", "")
            content = store.objects.get(self.path.partition("?")[0].removeprefix("/"))
            if not (signed or store.public):
                self._send(403, b"")
            elif content is None:
                self._send(404, b"")
            else:
                self._give(content)

        def _give(self, content: bytes) -> None:
            tag = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"'}
            wanted = self.headers.get("Range", "")
            if not wanted:
                self._send(200, content, tag)
                return
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            part = content[int(first) : int(last) + 1]
            tag["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
            self._send(206, part, tag)

        def _send(self, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(code)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", "Mon, 23 Nov 2026 10:00:00 GMT")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body[: len(body) - store.lost])

    return Handler
