# SPDX-License-Identifier: Apache-2.0
"""Where heads are kept away from the ledger: a file, a web server of this test, the system's log."""

import syslog
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sfumato.errors import WrongUse
from sfumato.ledger.head_sinks import Silent, sink_at
from sfumato.ledger.seal import Head, Signer
from tests.contracts.charges import opened


class _Server(ThreadingHTTPServer):
    """Keeps what was PUT, and can be told to fail."""

    content: dict[str, bytes]
    status = 0
    authorization = ""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.server.authorization = self.headers.get("Authorization", "")
        found = self.server.content.get(self.path)
        self.send_response(self.server.status or (404 if found is None else 200))
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(found or b"")

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.server.status:
            self.server.content[self.path] = content
        self.send_response(self.server.status or 204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[_Server]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.content = {}
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def head(tmp_path: Path) -> Head:
    ledger = opened(tmp_path / "l.db")
    made = ledger.store.read(lambda rows: Signer(tmp_path / "key").sign(ledger.store.identity, rows))
    ledger.close()
    return made


@pytest.mark.parametrize("kind", ["file", "web"])
def test_a_sink_gives_what_it_was_given_last(kind: str, tmp_path: Path, server: _Server, head: Head) -> None:
    web = f"http://127.0.0.1:{server.server_port}/heads/study"
    sink = sink_at(web if kind == "web" else f"file://{tmp_path}/study.head")
    assert sink.newest() is None
    sink.put(head)
    assert sink.newest() == head


def test_a_missing_folder_is_no_reply(tmp_path: Path, head: Head) -> None:
    sink = sink_at(f"file://{tmp_path}/not-mounted/study.head")
    with pytest.raises(Silent, match="folder is not there"):
        sink.newest()
    with pytest.raises(Silent):
        sink.put(head)


def test_what_is_no_head_or_was_altered_is_no_reply(tmp_path: Path, head: Head) -> None:
    sink = sink_at(f"file://{tmp_path}/study.head")
    for text in ("", "{}", replace(head, chains={"d": (1, "00")}).to_text()):
        (tmp_path / "study.head").write_text(text)
        with pytest.raises(Silent, match="no head"):
            sink.newest()


@pytest.mark.parametrize("status", [301, 307, 403, 500])
def test_a_server_that_fails_or_sends_elsewhere_is_no_reply(server: _Server, head: Head, status: int) -> None:
    sink = sink_at(f"http://127.0.0.1:{server.server_port}/study")
    server.content["/elsewhere"] = head.to_text().encode()
    server.status = status
    with pytest.raises(Silent, match=str(status)):
        sink.newest()
    with pytest.raises(Silent, match=str(status)):
        sink.put(head)


def test_a_server_that_is_not_there_is_no_reply(server: _Server) -> None:
    sink = sink_at(f"http://127.0.0.1:{server.server_port}/study")
    server.shutdown()
    server.server_close()
    with pytest.raises(Silent):
        sink.newest()


def test_a_password_is_sent_and_not_shown(server: _Server) -> None:
    sink = sink_at(f"http://ann:s%3Acret@127.0.0.1:{server.server_port}/study?token=x")
    assert sink.name == f"http://127.0.0.1:{server.server_port}/study"
    sink.newest()
    assert server.authorization == "Basic YW5uOnM6Y3JldA=="  # ann:s:cret


def test_the_log_of_the_system_gets_one_line(monkeypatch: pytest.MonkeyPatch, head: Head) -> None:
    lines: list[str] = []
    monkeypatch.setattr(syslog, "syslog", lambda _, line: lines.append(line))
    sink_at("syslog:").put(head)
    (line,) = lines
    assert Head.from_text(line.removeprefix("sfumato-head ")) == head


@pytest.mark.parametrize(
    "address",
    ["", "x", "file://host/a", "file:a", "file:///a/", "http://heads.example/a", "https:///a", "ftp://h/a", "syslog:x",
     "http://localhost.example/a", "https://[", None],
)  # fmt: skip
def test_what_is_no_address_of_a_sink_is_refused(address: str) -> None:
    with pytest.raises(WrongUse, match="ledger_heads"):
        sink_at(address)
