# SPDX-License-Identifier: Apache-2.0
"""The server as a process: it starts, answers, keeps connections, and ends in order."""

import gc
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.errors import WrongUse
from sfumato.ledger import Ledger
from sfumato.service.opening import Service
from sfumato.service.settings import Settings
from sfumato.web import server as module
from tests.contracts.clinic import COUNT, granted, written
from tests.contracts.service_process import ServiceProcess


def test_it_starts_answers_and_ends_with_0(tmp_path: Path) -> None:
    granted(tmp_path)
    with ServiceProcess(tmp_path) as process:
        token = process.person("ann")
        ann = sf.remote(process.address, dataset="clinic", purpose="study", token=token)
        answer = ann.query(COUNT, epsilon="0.1")
        # a head that never ends, and a body that never comes, hold up nobody
        with socket.create_connection(
            ("127.0.0.1", int(process.address.rpartition(":")[2]))
        ) as raw:
            raw.sendall(b"GET /v1/me HTTP/1.1\r\nx-" + b"y" * 40_000)
            assert ann.query(COUNT, epsilon="0.1").bytes == answer.bytes
            assert b"400" in raw.recv(100)
        assert process.stop() == 0
    assert stat.S_IMODE((tmp_path / "service.db").stat().st_mode) == 0o600
    log = (tmp_path / "errors.txt").read_text()
    assert "first owner" in log and token not in log and "COUNT" not in log
    # the ledger is free again
    Ledger.open(tmp_path / "ledger.db").close()


def test_an_address_in_use_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = Settings((written(tmp_path),), tmp_path / "s.db", port=taken.getsockname()[1])
        with Service(settings) as service, pytest.raises(WrongUse, match="cannot be listened on"):
            module.serve(service)
    assert gc.get_freeze_count() == 0


def test_a_collection_walks_nothing_that_was_open_when_it_began_to_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = []

    async def run(*_: object) -> None:
        frozen.append(gc.get_freeze_count())

    monkeypatch.setattr(module, "_run", run)
    with Service(Settings((written(tmp_path),), tmp_path / "s.db", port=0)) as service:
        module.serve(service)
    assert frozen[0] > 10_000 and gc.get_freeze_count() == 0


def test_a_reply_waits_for_no_acknowledgement(tmp_path: Path) -> None:
    with module._listening(Settings((), tmp_path, port=0)) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_options_follow_the_settings(tmp_path: Path) -> None:
    plain: dict[str, Any] = module._options(Settings((), tmp_path))
    assert not plain["proxy_headers"] and not plain["access_log"] and "ssl_keyfile" not in plain
    proxied = module._options(Settings((), tmp_path, behind_proxy=("10.0.0.5",)))
    # it would put the client's address in the place of the proxy's
    assert not proxied["proxy_headers"]
    with_tls = module._options(Settings((), tmp_path, tls=(tmp_path / "c", tmp_path / "k")))
    assert with_tls["ssl_certfile"] == str(tmp_path / "c")
