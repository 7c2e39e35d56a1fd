# SPDX-License-Identifier: Apache-2.0
"""Attacks on devices and on the sums of their reports, each with a broken version that it notices.

Others are beside what they attack: averaging and silence in tests/telemetry/test_client.py,
linking in test_linking.py, forged and replayed reports in tests/collector/test_intake.py, the order
of a batch in test_folder.py and test_shuffler.py, the other clients in tests/clients.
"""

import ast
import contextlib
import http.client
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

import sfumato.telemetry
from sfumato.errors import TaskRefused
from sfumato.telemetry import Aggregator, Client, MemoryStore, Texts, Words, report_task
from sfumato.telemetry.oracles import (
    bit,
    category,
    count_mean,
    prefixes,
    rappor,
    sketch,
    unary,
)
from sfumato.telemetry.report import Layout
from sfumato.telemetry.signing import signed_task
from sfumato.testing import Replay
from tests.collector.batches import asked, batch
from tests.collector.processes import declare

KEY = ec.generate_private_key(ec.SECP256R1())
VALUES = [f"v{number}" for number in range(7)]
START = 1_000_000
SOURCES = Path(sfumato.telemetry.__file__).parent


def task(oracle, domain=VALUES, **fields):
    return report_task("t", "?", domain, oracle=oracle, **({"start": START, "periods": 9} | fields))


def opened(kind, asked, published, clock=lambda: START - 1):
    return kind(
        signed_task(asked, KEY, signed_at=0),
        bytes(32),
        MemoryStore(),
        trusted=[KEY.public_key()],
        published=published,
        max_epsilon=1000,
        clock=clock,
    )


class Anything(Client):
    """Takes every signed task as one that everybody gets."""

    def __init__(self, task, *given, published, **fields):
        every = {part.hash.hex() for part in (PERSONAL, COMMON)}
        super().__init__(task, *given, published=every, **fields)


COMMON = task(category(8, 1))
# the same question with another end: its hash shows whose report it is
PERSONAL = task(category(8, 1), expires=START + 9 * 86_400 - 1)


def is_taken(kind, asked):
    try:
        opened(kind, asked, {COMMON.hash.hex()})
    except TaskRefused:
        return False
    return True


def test_a_task_made_for_one_person_is_refused():
    assert is_taken(Client, COMMON) and not is_taken(Client, PERSONAL)
    # a client that does not look is noticed
    assert is_taken(Anything, PERSONAL)


class Counted(Replay):
    """Words that are counted."""

    def __init__(self):
        super().__init__(3)
        self.count = 0

    def fill(self, buffer):
        self.count += buffer.size
        super().fill(buffer)


class Stored(MemoryStore):
    """A store that notes the sizes of what it is given."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    def save(self, state):
        self.sizes.append(len(state))
        super().save(state)


class Again(Client):
    """Draws once more for the values that it likes less."""

    def report(self, value, entropy):
        if value == VALUES[1]:
            entropy.fill(np.zeros(8, np.uint8))
        return super().report(value, entropy)


def traces(kind, asked):
    """What a device does for each of several values: words drawn, bytes stored, bytes sent."""
    found = set()
    for value in ("v0", "v1", "", "not listed", None, 10**30, "x" * 1000):
        now = [START - 1]
        made = opened(kind, asked, {asked.hash.hex()}, clock=lambda now=now: now[0])
        store, words = Stored(), Counted()
        device = made.device(bytes(32), store)
        device.report(value, words)
        now[0] = START
        report = device.report(value, words)
        found.add((words.count, tuple(store.sizes), len(report or b"")))
    return found


TREE = prefixes(5, 4, 1)
ASKED = [
    task(category(8, 1)),
    task(unary(8, 1), memory=3),
    task(sketch(1), Texts()),
    task(count_mean(1, buckets=64), Texts(), memory=3),
    task(rappor(), Texts(), memory=3),
    task(TREE, Words("v01x", 4)),
]


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.oracle.kind)
def test_what_a_device_does_does_not_depend_on_the_value(asked):
    assert len(traces(Client, asked)) == 1


class Silent(Client):
    """Sends nothing where the value is not in the domain."""

    def report(self, value, entropy):
        sent = super().report(value, entropy)
        return sent if value in VALUES else None


@pytest.mark.parametrize("mutant", [Again, Silent])
def test_a_device_that_draws_again_or_sends_nothing_for_a_value_is_noticed(mutant):
    assert len(traces(mutant, ASKED[0])) == 2


def test_a_value_outside_the_domain_is_the_public_other_one(monkeypatch):
    def numbers():
        return [ASKED[0].domain.number(value) for value in ("v0", "not listed", None, 10**30)]

    assert numbers() == [0, 7, 7, 7]
    # a client that reads it as one of the values
    monkeypatch.setattr(type(ASKED[0].domain), "number", lambda self, value: hash(value) % 7)
    assert numbers() != [0, 7, 7, 7] and max(numbers()) < 7


def lied(oracle, honest, target, supports):
    """How far the estimate of a value moves when these devices send another report."""
    every = (row[None] for row in oracle.encode_many(np.arange(200) % 8, Replay(5)))
    lie = next(row for row in every if oracle.support(oracle.tally(row), 1)[target] == supports)
    lies = np.repeat(lie, len(honest), axis=0)
    before, after = (oracle.support(oracle.tally(rows), len(rows)) for rows in (honest, lies))
    return float((after - before)[target] / (oracle.own - oracle.other))


@pytest.mark.parametrize("oracle", [category(8, 1), unary(8, 1), bit(8, 1)])
@pytest.mark.parametrize("share", [0.01, 0.1])
def test_lying_devices_reach_the_stated_bound_and_no_more(oracle, share):
    asked = task(oracle, min_batch=2)
    sums = Aggregator(asked, period=0)
    layout = Layout.of(asked)
    payloads = oracle.encode_many(np.full(2000, 3), Replay(9))
    ids = [place.to_bytes(8, "big") + bytes(8) for place in range(2000)]
    pairs = zip(ids, payloads, strict=True)
    sums.add_many([layout.report(0, name, row.tobytes()) for name, row in pairs])
    table = sums.estimate()
    # the bound is that of 1% of these; it grows with the number of liars
    liars = round(2000 * share)
    scale = liars / 20
    # 7 standard deviations of the honest reports that the lies replace: less often than 1e-9
    apart = float(oracle.own - oracle.other)
    chance = 7 * (liars / 4) ** 0.5 / apart
    up = lied(oracle, payloads[:liars], 5, supports=1)
    down = -lied(oracle, payloads[:liars], 3, supports=0)
    assert abs(up - scale * table.liars_up) < chance
    assert abs(down - scale * table.liars_down) < chance
    # a bound that counts each liar once is exceeded
    if share == 0.1:
        assert up > liars + chance or down > liars + chance


def seeded(source):
    """The generators with a seed that a module of Python imports or calls."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [part.name for part in node.names if part.name.split(".")[0] == "random"]
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[-1] == "random":
            found.append("random")
        if isinstance(node, ast.Attribute) and node.attr in ("random", "default_rng", "Replay"):
            found.append(node.attr)
    return found


def test_no_generator_with_a_seed_is_in_the_python_client():
    texts = [path.read_text("utf-8") for path in SOURCES.rglob("*.py")]
    assert len(texts) > 30 and [text for text in texts if seeded(text)] == []
    for line in (
        "import random",
        "from random import getrandbits",
        "from numpy.random import default_rng",
        "words = np.random.default_rng(1)",
        "entropy = testing.Replay(1)",
    ):
        assert seeded(texts[0] + "\n" + line)


# uvicorn as it is by default: an access log
LOGGING = """
import sys, uvicorn
run = uvicorn.run
uvicorn.run = lambda app, **given: run(app, **(given | {"access_log": True, "log_level": "info"}))
sys.argv[1:] = ["collect"]
from sfumato.cli.main import main
main()
"""


def found_by(folder, program):
    """The files of a collector that show the address of a device, or what stood before it."""
    port = declare(folder, asked())
    with (folder / "said.log").open("wb") as said:
        process = subprocess.Popen(program, cwd=folder, stdout=said, stderr=said)
    try:
        assert send(port, b"".join(batch(asked().task, 20))) == 202
    finally:
        process.terminate()
        process.wait(20)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) >= 5
    marks = (b"127.0.0.7", b"203.0.113.9")
    return {path.name for path in files if any(mark in path.read_bytes() for mark in marks)}


def send(port, body):
    """The status of a batch of a device with an address of its own."""
    headers = {"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9"}
    for _ in range(300):
        door = http.client.HTTPConnection(
            "127.0.0.1", port, timeout=10, source_address=("127.0.0.7", 0)
        )
        with contextlib.closing(door):
            try:
                door.request("POST", "/v1/tasks/emoji/reports", body, headers)
                return door.getresponse().status
            except OSError:
                time.sleep(0.05)
    raise AssertionError("the collector did not start")


@pytest.mark.long
def test_the_log_and_the_files_of_a_collector_hold_no_address(tmp_path):
    for name in ("ours", "mutant"):
        (tmp_path / name).mkdir()
    assert found_by(tmp_path / "ours", [sys.executable, "-m", "sfumato", "collect"]) == set()
    # an access log is noticed
    assert found_by(tmp_path / "mutant", [sys.executable, "-c", LOGGING]) == {"said.log"}
