# SPDX-License-Identifier: Apache-2.0
"""``sfumato collect`` as a process: it is killed, loses nothing that it acknowledged, and keeps
neither addresses nor times.
"""

import signal
import time
from pathlib import Path

import psycopg
import pytest

from sfumato.telemetry import SignedTask, report_task, signed_task
from tests.collector.batches import KEY, batch, counted
from tests.collector.processes import declare, sent, started
from tests.contracts.shell import Shell


def task_now() -> SignedTask:
    """A task whose first period is now."""
    day = int(time.time()) - 3600
    return signed_task(report_task("emoji", "?", ["a", "b"], epsilon=2, start=day, periods=4), KEY)


def test_what_was_acknowledged_survives_a_kill_and_a_stop(tmp_path: Path) -> None:
    signed = task_now()
    port = declare(tmp_path, signed)
    reports = batch(signed.task, 300, period=0)
    process = started(tmp_path, port)
    try:
        assert sent(port, b"".join(reports[:200])) == 202
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert counted(tmp_path / "reports", signed.task, 0) == 200
    process = started(tmp_path, port)
    try:
        assert sent(port, b"".join(reports[100:])) == 202
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
    assert counted(tmp_path / "reports", signed.task, 0) == 300
    said = (tmp_path / "said.log").read_text()
    assert "collecting emoji at http://127.0.0.1" in said and "everything that was ack" in said
    # it logs no request
    assert "POST" not in said and "GET" not in said


def test_reports_on_a_server_are_estimated_from_there(shell: Shell, database: str) -> None:
    signed = task_now()
    port = declare(shell.folder, signed, f'postgres = "{database}"')
    process = started(shell.folder, port)
    try:
        assert sent(port, b"".join(batch(signed.task, 1200, period=0))) == 202
        with psycopg.connect(database) as connection:
            connection.execute("ALTER TABLE sfumato_telemetry.reports RENAME TO away")
        assert sent(port, b"".join(batch(signed.task, 5, period=0))) == 503
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
    with psycopg.connect(database) as connection:
        connection.execute("ALTER TABLE sfumato_telemetry.away RENAME TO reports")
    ran = shell.run("telemetry", "estimate", "emoji.task", database, "--period", "0")
    assert ran.code == 0 and "1,200 reports, 0 duplicates" in ran.out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no [collector]"),
        ("[collector]\nfolder = 1", "collector: folder = 1"),
        ('[collector]\nfolder="r"\ntasks="a"\nkey="k"', "collector: tasks = 'a'"),
        ('[collector]\nfolder="r"\ntasks=["a"]\nkey="k"\nhots="x"', "Did you mean host?"),
        ('[collector]\nfolder="r"\ntasks=["a"]\nkey="k"\nport="x"', "collector: port = 'x'"),
        ('[collector]\ntasks=[]\nkey="k"', "where [collector] keeps reports"),
        ('[collector]\nfolder="r"\npostgres="p"\ntasks=[]\nkey="k"', "where [collector]"),
        ('[collector]\npostgres="mysql://u:secret@h/d"\ntasks=[]\nkey="k"', "where [collector]"),
        ('[collector]\npostgres=1\ntasks=[]\nkey="k"', "collector: postgres = 1"),
        ('[collector]\nfolder="r"\ntasks=["missing.task"]\nkey="k"', "cannot be read"),
        ("[collector", "is not TOML"),
    ],
)
def test_what_is_not_declared_is_refused(shell: Shell, text: str, words: str) -> None:
    shell.write("telemetry.toml", text)
    ran = shell.run("collect")
    assert ran.code == 2 and words in ran.err and "secret" not in ran.err


def test_a_task_of_another_key_is_refused(shell: Shell) -> None:
    signed = task_now()
    declare(shell.folder, signed)
    changed = signed.to_bytes().replace(b'"?"', b'"!"').replace(b'\\"?\\"', b'\\"!\\"')
    assert changed != signed.to_bytes()
    (shell.folder / "emoji.task").write_bytes(changed)
    ran = shell.run("collect")
    assert ran.code == 1 and "TaskRefused" in ran.err


def test_no_file(shell: Shell) -> None:
    assert "No file" in shell.run("collect", "-c", "nothing.toml").err
