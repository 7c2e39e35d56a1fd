# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo telemetry``, whole, once, and with few devices."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.examples import demo_telemetry
from sfumato.examples.made_up_devices import SENT, questions
from tests.contracts.shell import Shell


@pytest.mark.long
def test_a_million_devices_are_counted_and_a_page_is_written(shell: Shell) -> None:
    ran = shell.run("demo", "telemetry")
    assert (ran.code, ran.err) == (0, "")
    for words in ("50,600 reports acknowledged", "1,200 reports, 0 duplicates", "snoozle", "True"):
        assert words in ran.out
    page = (shell.folder / "demo-telemetry.html").read_text()
    assert page.startswith("<!doctype html>") and page.count("<svg") == 4


def test_the_devices_of_both_clients_and_the_rest_are_all_devices(tmp_path: Path) -> None:
    asked = questions(1_800_000_000, ec.generate_private_key(ec.SECP256R1()).public_key())
    rest = demo_telemetry._write_devices(tmp_path, asked, [1, 2])
    for question in asked:
        task = question.task
        found = dict(rest[task.id])
        for name in ("node", "java"):
            rows = (tmp_path / f"{task.id}.{name}.tsv").read_text().splitlines()
            counts = [line.split("\t") for line in rows]
            assert sum(int(count) for count, _ in counts) == (600 if task.aggregator else SENT)
            for count, value in counts:
                found[int(value) if question.is_number else value] += int(count)
        assert found == question.truth[question.period]
    lines = (tmp_path / "tasks.tsv").read_text().splitlines()
    # sealed reports go to the shuffler, the others to the collector
    assert [":2/" in line for line in lines] == [True, False, False, False, False]


def test_no_folder_for_the_page(shell: Shell) -> None:
    assert shell.run("demo", "telemetry", "--report", "none/page.html").code == 2
