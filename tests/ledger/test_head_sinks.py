# SPDX-License-Identifier: Apache-2.0
"""Where heads are kept away from the ledger: a file, a web server of this test, the system's
log.
"""

import ssl
import syslog
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.errors import WrongUse
from sfumato.ledger import head_sinks
from sfumato.ledger.head_sinks import FileSink, Patient, Silent, sink_at
from sfumato.ledger.signed_heads import Head, Signer
from tests.contracts.charges import opened
from tests.contracts.head_server import HeadServer, certificate, serving


@pytest.fixture
def server() -> Iterator[HeadServer]:
    with serving() as running:
        yield running


@pytest.fixture
def head(tmp_path: Path) -> Head:
    ledger = opened(tmp_path / "l.db")
    made = ledger.store.read(
        lambda rows: Signer(tmp_path / "key").sign(ledger.store.identity, rows)
    )
    ledger.close()
    return made


@pytest.mark.parametrize("kind", ["file", "web"])
def test_a_sink_gives_what_it_was_given_last(
    kind: str, tmp_path: Path, server: HeadServer, head: Head
) -> None:
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
def test_a_server_that_fails_or_sends_elsewhere_is_no_reply(
    server: HeadServer, head: Head, status: int
) -> None:
    sink = sink_at(f"http://127.0.0.1:{server.server_port}/study")
    server.content["/elsewhere"] = head.to_text().encode()
    server.status = status
    with pytest.raises(Silent, match=str(status)):
        sink.newest()
    with pytest.raises(Silent, match=str(status)):
        sink.put(head)


def test_a_server_that_is_not_there_is_no_reply(server: HeadServer) -> None:
    sink = sink_at(f"http://127.0.0.1:{server.server_port}/study")
    server.shutdown()
    server.server_close()
    with pytest.raises(Silent):
        sink.newest()


def test_a_server_with_a_trusted_certificate_keeps_heads(
    tmp_path: Path, head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = certificate(tmp_path / "made")
    monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
    with serving(made) as server:
        sink = sink_at(server.url())
        assert sink.newest() is None
        sink.put(head)
        assert sink.newest() == head


@pytest.mark.parametrize("wrong", ["authority", "name", "ended"])
def test_a_server_whose_certificate_is_wrong_gets_nothing(
    tmp_path: Path, head: Head, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    made = certificate(
        tmp_path / "made",
        name="elsewhere.example" if wrong == "name" else "127.0.0.1",
        ended=wrong == "ended",
    )
    trusted = certificate(tmp_path / "other") if wrong == "authority" else made
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted.authority))
    with serving(made) as server:
        sink = sink_at(server.url().replace("//", "//ann:secret@"))
        with pytest.raises(Silent, match=r"its certificate is not trusted \(.+\)$"):
            sink.newest()
        with pytest.raises(Silent, match="certificate"):
            sink.put(head)
        assert (server.authorization, server.content) == ("", {})


def test_a_sink_that_trusts_every_certificate_is_noticed(
    tmp_path: Path, head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssl, "_create_default_https_context", ssl._create_unverified_context)
    with pytest.raises(pytest.fail.Exception):
        test_a_server_whose_certificate_is_wrong_gets_nothing(tmp_path, head, monkeypatch, "ended")


def test_nobody_waits_for_a_sink_longer_than_its_patience(
    server: HeadServer, head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_sinks, "PATIENCE", 0.2)
    sink, start = sink_at(server.url()), time.monotonic()
    sink.put(head)
    server.drips.set()  # each byte comes within the timeout of the connection
    threading.Timer(1, server.drips.clear).start()
    with pytest.raises(Silent, match=r"no reply in 0\.2 seconds"):
        sink.newest()
    with pytest.raises(Silent, match="owes a reply"):
        sink.put(head)
    assert time.monotonic() - start < 1
    end = time.monotonic() + 5
    while time.monotonic() < end:  # it replies again, and is asked again
        try:
            sink.put(head)
            break
        except Silent:
            time.sleep(0.01)
    assert sink.newest() == head


def test_a_sink_that_is_waited_for_is_noticed(
    server: HeadServer, head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Patient, "_within", lambda _, call: call())
    with pytest.raises(pytest.fail.Exception):
        test_nobody_waits_for_a_sink_longer_than_its_patience(server, head, monkeypatch)


def test_a_head_that_arrives_late_replaces_no_newer_one(
    tmp_path: Path, head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_sinks, "PATIENCE", 0.05)
    plain, stuck, put = FileSink(tmp_path / "study.head"), threading.Event(), []

    class Slow(FileSink):
        def put(self, each: Head) -> None:
            assert stuck.wait(5)
            put.append(each.at)
            plain.put(each)

    sink = Patient(Slow(tmp_path / "study.head"))
    for _ in range(3):
        with pytest.raises(Silent):
            sink.put(head)
    stuck.set()
    end = time.monotonic() + 5
    while not put and time.monotonic() < end:
        time.sleep(0.01)
    assert put == [head.at]


def test_a_password_is_sent_and_not_shown(server: HeadServer) -> None:
    sink = sink_at(f"http://ann:s%3Acret@127.0.0.1:{server.server_port}/study?token=x")
    assert sink.name == f"http://127.0.0.1:{server.server_port}/study"
    sink.newest()
    assert server.authorization == "Basic YW5uOnM6Y3JldA=="  # ann:s:cret


def test_the_log_of_a_real_system_takes_a_head(head: Head) -> None:
    sink_at("syslog:").put(head)  # nobody has to read it: a machine without a log is no failure
    with pytest.raises(Silent, match="cannot be read"):
        sink_at("syslog:").newest()


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
