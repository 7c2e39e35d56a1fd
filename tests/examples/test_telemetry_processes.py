# SPDX-License-Identifier: Apache-2.0
"""The processes of the demo: what is missing is named, what fails says so, and all of them end."""

import sys
from pathlib import Path

import pytest

from sfumato.errors import Failed
from sfumato.examples import telemetry_processes as processes
from sfumato.examples.telemetry_processes import (
    Sender,
    Sent,
    free_port,
    java_sender,
    node_sender,
    sending,
    sent_by,
    serving,
    shown,
)


def test_without_node_or_javac_python_sends_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    for made, word in ((node_sender, "node"), (java_sender, "javac")):
        sender = made(tmp_path)
        assert sender.title == "Python" and sender.note.startswith(f"{word} is not installed")
        assert sender.command[0] == sys.executable


def test_without_the_sources_of_a_client_python_sends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(processes, "CLIENTS", tmp_path)
    assert node_sender(tmp_path).note.startswith("there is no clients/typescript")
    assert java_sender(tmp_path).note.startswith("there is no clients/java")


def test_what_a_client_sent_is_added_up_and_a_failure_is_told() -> None:
    good = Sender("Good", (sys.executable, "-S", "-c", "print('a\\t5\\t1.5\\nb\\t2\\t0.5')"))
    bad = Sender("Bad", (sys.executable, "-S", "-c", "raise SystemExit('no collector')"))
    with sending([good, bad]) as running:
        assert sent_by(good, running[0]) == Sent("Good", 7, 2.0)
        with pytest.raises(Failed, match="no collector"):
            sent_by(bad, running[1])


def test_clients_end_with_the_block() -> None:
    endless = Sender("Endless", (sys.executable, "-S", "-c", "import time; time.sleep(60)"))
    with pytest.raises(KeyboardInterrupt), sending([endless]) as (process,):
        raise KeyboardInterrupt
    assert process.poll() is not None


def test_a_door_that_does_not_start_says_why(tmp_path: Path) -> None:
    refused = pytest.raises(Failed, match="No file")
    with refused, serving(tmp_path, "collect", free_port(), "emoji"):
        pass


def test_a_command_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="No such command"):
        shown(tmp_path, "nothing")
