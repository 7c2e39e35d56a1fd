# SPDX-License-Identifier: Apache-2.0
"""The web server of the doors: what it is told, and what is said where it is not installed."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from sfumato.cli.web_server import serve
from sfumato.collector import Collector
from sfumato.errors import WrongUse
from tests.contracts.shell import Shell


def test_the_server_writes_no_access_log_and_names_no_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[object, dict[str, Any]]] = []
    server = SimpleNamespace(run=lambda app, **options: calls.append((app, options)))
    monkeypatch.setitem(sys.modules, "uvicorn", server)
    app = Collector([])
    serve(app, "127.0.0.1", 8081)
    ((served, options),) = calls
    assert served is app and (options["host"], options["port"]) == ("127.0.0.1", 8081)
    assert [options[name] for name in ("access_log", "proxy_headers", "server_header")] == [
        False
    ] * 3


def test_without_the_extra_its_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(WrongUse, match="uvicorn") as refused:
        serve(Collector([]), "127.0.0.1", 8081)
    assert refused.value.remedy == "pip install 'sfumato[collector]'"


@pytest.mark.parametrize("command", [("collect",), ("shuffle",), ("study", "serve")])
def test_a_command_without_the_extra_says_so_first(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    places = ("study.toml", "--folder", "sums") if command[0] == "study" else ()
    ran = shell.run(*command, *places)
    assert ran.code == 2 and not ran.out and "sfumato[collector]" in ran.err
