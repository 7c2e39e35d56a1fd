# SPDX-License-Identifier: Apache-2.0
"""Somebody who tries telemetry with Node: from a signed task over made-up devices to a chart, by
the page's own commands.
"""

import datetime
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.architecture.structure import ROOT
from tests.contracts.require import program
from tests.journeys.person import Person, ended

PAGE = (ROOT / "docs" / "collector.md").read_text("utf-8").partition("### A trial with Node")[2]
HEAD = """\
dataset = "phones"
relation = "replace-one"
ledger = "ledger.db"
[budget]
epsilon = "8"
"""


def block(language: str) -> str:
    """The first block of code of the trial in a language."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_commands_of_the_page_install_what_they_need() -> None:
    commands = block("console")
    assert "pip install 'sfumato[collector]'" in commands.partition("sfumato collect")[0]


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def prints(folder: Path, *command: str) -> str:
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True, timeout=120
    ).stdout


@pytest.mark.long
def test_a_trial_with_node_leads_from_signing_to_a_chart(tmp_path: Path) -> None:
    person = Person(tmp_path)
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=30)
    task = re.sub(r"start = \S+", f"start = {soon:%Y-%m-%dT%H:%M:%SZ}", block("toml"))
    (tmp_path / "sfumato.toml").write_text(HEAD + task)
    openssl = program("openssl")
    prints(
        tmp_path,
        openssl,
        *["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "owner.key"],
    )
    prints(tmp_path, openssl, *["ec", "-in", "owner.key", "-pubout", "-out", "owner.pem"])
    signing = "telemetry sign lunch --key owner.key -o lunch.task --published published.json"
    assert "first report epsilon 2, for ever 4" in person.types(*signing.split())
    port = free_port()
    (tmp_path / "telemetry.toml").write_text(
        '[collector]\nfolder = "reports"\ntasks = ["lunch.task"]\n'
        f'key = "owner.pem"\nport = {port}\n'
    )
    for source in (ROOT / "clients" / "typescript").glob("*.js*"):
        shutil.copy(source, tmp_path)
    (tmp_path / "trial.mjs").write_text(block("js"), "utf-8")
    collector = person.begins("collect")
    try:
        for _ in range(300):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        address = f"http://127.0.0.1:{port}/v1/tasks/lunch/reports"
        assert prints(tmp_path, program("node"), "trial.mjs", address).startswith(
            "600 reports: 202"
        )
    finally:
        collector.terminate()
    ended(collector)
    estimating = "telemetry estimate lunch.task reports --period 0 --save-plot lunch.svg"
    said = person.types(*estimating.split())
    # 400 had rice; the error of 600 reports at epsilon 2 has a standard deviation of about 17
    count = re.search(r"rice +([0-9]+)", said)
    assert count is not None and abs(int(count[1]) - 400) < 120, said
    assert "rice" in (tmp_path / "lunch.svg").read_text()
    assert person.typed == 3
