# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo federation``: the tables are split, and five processes tell one story."""

import multiprocessing
import socket
import time
from importlib.util import find_spec

import pyarrow.parquet as parquet
import pytest

from sfumato.config.load import load
from sfumato.examples import demo_federation as demo
from sfumato.federated import read_study
from sfumato.federated.declaration import differences, read_site
from sfumato.federated.question import Question, compiled
from tests.contracts.federation import write_study
from tests.contracts.shell import Shell


def test_the_hospitals_have_all_rows_between_them(tmp_path):
    study = read_study(demo.write_study(tmp_path))
    for table in ("patients", "visits", "prescriptions"):
        whole = parquet.read_table(tmp_path / f"{table}.parquet").num_rows
        parts = [parquet.read_table(tmp_path / f"{each}.{table}.parquet") for each in study.sites]
        assert sum(part.num_rows for part in parts) == whole
        assert all(part.num_rows for part in parts)
    for name in study.sites:
        site = read_site(tmp_path / f"{name}.site.toml")
        with load(site.data) as session:
            assert differences(study.dataset, session.dataset) == ()
    made = compiled(Question.of(demo.QUESTION, "0.02"), study)
    assert made.cost.rho.startswith("0.0199")


def test_both_encodings_are_counted(tmp_path, monkeypatch):
    sums = tmp_path / "rounds" / "sums"
    sums.mkdir(parents=True)
    for step, numbers in enumerate((3, 1025)):
        (sums / f"run.{step}").write_bytes(bytes(8 * numbers))
    masked = "2 steps; each site sent 8,224 bytes of masked shares"
    assert demo._sent(tmp_path).startswith(masked)
    if find_spec("tenseal") is not None:
        # a ciphertext holds 1,024 integers in about 88 kB
        size = int(demo._sent(tmp_path).split()[-2].replace(",", ""))
        assert 3 * 80_000 < size < 3 * 100_000
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    assert demo._sent(tmp_path) == masked


def is_open(port):
    """Whether somebody listens at a port."""
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def test_a_process_ends_in_order_and_its_words_are_kept(tmp_path, monkeypatch):
    # a fork of this process: one that imports everything takes longer
    monkeypatch.setattr(demo, "_PROCESSES", multiprocessing.get_context("fork"))
    monkeypatch.setattr(demo, "_PATIENCE", 20.0)
    study = write_study(tmp_path)
    port = int(read_study(study).coordinator.rpartition(":")[2])
    end = time.monotonic() + 30
    with demo.process(tmp_path, "study", "serve", study.name, "--folder", "rounds") as running:
        while not is_open(port) and running.is_alive() and time.monotonic() < end:
            time.sleep(0.01)
    # by a signal it would be below 0
    assert running.exitcode == 0
    assert "trial" in (tmp_path / "processes.log").read_text()


@pytest.mark.long
def test_five_processes_tell_one_story(shell: Shell) -> None:
    ran = shell.run("demo", "federation")
    assert (ran.code, ran.err) == (0, "")
    for words in ("The same of the pooled tables", "broke off", "goes on, free", "no problem"):
        assert words in ran.out
    page = (shell.folder / "demo-federation.html").read_text("utf-8")
    assert "<svg" in page and "Three ledgers" in page
