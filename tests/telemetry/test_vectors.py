# SPDX-License-Identifier: Apache-2.0
"""The vectors of the format: ours, and those of a client written from the page alone."""

import json
import random
from fractions import Fraction

import pytest

from sfumato.errors import InvalidDeclaration, TaskRefused
from sfumato.telemetry import task_from_bytes, verified
from sfumato.telemetry.oracles import bit, category, hashed, projective, unary
from sfumato.telemetry.oracles.form import oracle_to_json
from tests.telemetry.fourth_client import FourthClient, encode, number
from tools.telemetry_vectors import FOLDER, vectors

FILES = sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "signed")


def read(name):
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))


def test_the_vectors_are_what_this_client_gives():
    made = vectors()
    assert sorted(made) == FILES
    for name, content in made.items():
        assert read(name) == content, name


@pytest.mark.parametrize("name", FILES)
def test_a_stranger_gives_the_same_bytes(name):
    given = read(name)
    body = given["task"].encode()
    form = json.loads(body)
    assert task_from_bytes(body).hash.hex() == given["hash"]
    for each in given["numbers"]:
        assert number(form["domain"], each["value"]) == each["number"]
    for each in given["encoded"]:
        words = [int(word, 16) for word in each["words"]]
        assert encode(form["oracle"], each["value"], words).hex() == each["payload"]
    stranger = FourthClient(form, body, bytes.fromhex(given["secret"]))
    for each in given["reports"]:
        words = [int(word, 16) for word in each.get("words", ())]
        report = stranger.report(each["value"], each["seconds"], words)
        assert (None if report is None else report.hex()) == each["report"]
    sent = [each["report"] for each in given["reports"]]
    assert None in sent and sum(report is not None for report in sent) >= 3


@pytest.mark.parametrize("make", [category, projective, bit, hashed, unary])
def test_a_stranger_encodes_every_value_alike(make):
    source = random.Random(7)
    for values, epsilon in ((2, "0.3"), (9, 1), (100, 2), (100, "0.7"), (300, 4)):
        oracle = make(values, Fraction(epsilon))
        form = oracle_to_json(oracle)
        for value in range(0, values, max(1, values // 20)):
            words = [source.getrandbits(64) for _ in range(oracle.draws)]
            assert encode(form, value, words) == oracle.encode(value, words)


def test_the_signed_task_is_verified_and_the_changed_one_refused():
    given = read("signed")
    signed = verified(given["signed"].encode(), [given["key"].encode()])
    assert signed.task.id == "signed"
    with pytest.raises((TaskRefused, InvalidDeclaration)):
        verified(given["changed"].encode(), [given["key"].encode()])
