# SPDX-License-Identifier: Apache-2.0
"""The client for browsers and Node: the same bytes as Python, and the tasks that it refuses."""

import base64
import gzip
import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from sfumato.errors import WrongUse
from sfumato.telemetry import Aggregator, opened
from sfumato.telemetry.signing import signed_task
from sfumato.telemetry.task import report_task
from tests.contracts.require import program
from tools import telemetry_conformance as conformance
from tools.telemetry_conformance import KEY, opening
from tools.telemetry_vectors import START

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "clients" / "typescript"
RUN = str(HERE / "run.mjs")
RANDOM = re.compile(r"Math\s*\.\s*random|\bseed\w*\s*\(|\[\s*[\"']random")


def asked(requests):
    return conformance.asked([program("node"), RUN], requests)


def small(**changes):
    given = {"epsilon": 1, "start": START, "periods": 7, "memory": 7} | changes
    return report_task("t", "?", ["a", "b"], **given)


def test_the_vectors_are_what_node_gives():
    assert conformance.failures([program("node"), RUN]) == []


def test_the_runner_notices_one_wrong_weight(tmp_path):
    shutil.copytree(SOURCES, tmp_path / "clients" / "typescript")
    (tmp_path / "tests" / "clients").mkdir(parents=True)
    shutil.copy(RUN, tmp_path / "tests" / "clients")
    source = tmp_path / "clients" / "typescript" / "oracles.js"
    text = source.read_text("utf-8")
    mutant = text.replace("w[1] < BigInt(o.truth) ? sign", "w[1] > BigInt(o.truth) ? sign")
    assert mutant != text
    source.write_text(mutant, "utf-8")
    wrong = conformance.failures([program("node"), str(tmp_path / "tests/clients/run.mjs")])
    assert len(wrong) >= 10


def test_tasks_that_a_device_must_not_answer():
    task = small()
    other = ec.generate_private_key(ec.SECP256R1())
    signed = json.loads(signed_task(task, KEY).to_bytes())
    unfit = json.loads(signed["task"])
    unfit["oracle"]["truth"] = str(int(unfit["oracle"]["truth"]) + 1)
    body = json.dumps(unfit, sort_keys=True, separators=(",", ":"))
    turn = [{"seconds": START - 1, "value": "a"}]
    late = [{"seconds": task.expires, "value": "a"}]
    changed = signed | {"task": signed["task"].replace('"?"', '"!"')}
    cases = [
        (opening(task), turn, None),
        (opening(task, maxEpsilon="1"), turn, None),
        (opening(task, maxEpsilon="0.999999"), turn, "dearer"),
        (opening(small(memory=1), maxEpsilon="6.999999"), turn, "dearer"),
        (opening(small(memory=1), maxEpsilon=7), turn, None),
        (opening(task, published=["00" * 32]), turn, "published list"),
        (opening(task), late, "expired"),
        (opening(task, signed=json.dumps(changed)), turn, "trusted key"),
        (opening(task, signed=signed_task(task, other).to_bytes().decode()), turn, "trusted key"),
        (opening(task, signed=json.dumps({"task": signed["task"]})), turn, "no signed task"),
        (opening(task, signed=signed_json(body)), turn, "do not fit"),
        (opening(task, secret="00" * 31), turn, "32 bytes"),
    ]
    requests = [{"ask": "reports", "open": given, "turns": turns} for given, turns, _ in cases]
    answers = asked(requests)
    for (_, _, reason), answer in zip(cases, answers, strict=True):
        if reason is None:
            assert answer == {"found": [None]}
        else:
            assert reason in answer["error"]


def signed_json(body):
    """Any text, signed as a task."""
    der = KEY.sign(b"sfumato telemetry task 1\n" + body.encode(), ec.ECDSA(SHA256()))
    parts = [part.to_bytes(32, "big") for part in decode_dss_signature(der)]
    return json.dumps({"signature": base64.b64encode(b"".join(parts)).decode(), "task": body})


def test_silence_and_size_do_not_depend_on_the_value():
    days = [-1, 0, 0.5, 1, 0, 3, 6, 7]
    turns = [START + round(86_400 * day) for day in days]
    task = small(memory=1)
    asking = []
    for value in ("a", "b", "unlisted", "x" * 10_000, 7, None):
        days = [{"seconds": seconds, "value": value} for seconds in turns]
        asking.append({"ask": "reports", "open": opening(task), "turns": days})
    shapes = {
        tuple(report and len(report) for report in answer["found"]) for answer in asked(asking)
    }
    # the clock goes back in the fifth turn: nothing is sent
    assert shapes == {(None, 60, None, 60, None, 60, 60, None)}


def test_sealed_reports_of_node_open_for_the_aggregator_alone():
    aggregator, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    task = small(memory=1, aggregator=aggregator.public_key())
    turns = [{"seconds": START + 86_400 * day, "value": "a"} for day in (-1, 0, 1, 2)]
    request = {"ask": "reports", "open": opening(task), "turns": turns}
    first, again = (asked([request])[0]["found"] for _ in range(2))
    assert first[0] is None and {len(bytes.fromhex(each)) for each in first[1:]} == {30 + 81}
    # the same reports, sealed anew
    assert not set(first[1:]) & set(again[1:])
    plain = [unsealed(task, aggregator, sent[1:]) for sent in (first, again)]
    assert plain[0] == plain[1] and len(set(plain[0])) == 3
    sums = Aggregator(task, period=1)
    assert sums.add_many(plain[0]) == 1 and sums.refused == {"period": 2}
    with pytest.raises(WrongUse):
        unsealed(task, other, first[1:])


def unsealed(task, key, sent):
    (found,) = opened(task, key, [bytes.fromhex(each) for each in sent])
    return found


@pytest.mark.parametrize("point", ["", "AAAA", "A" * 87 + "=", "B" + "A" * 86 + "=", None])
def test_a_task_with_another_key_of_an_aggregator_is_refused(point):
    form = json.loads(small().to_bytes()) | {"aggregator": point}
    body = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    published = [hashlib.sha256(body.encode()).hexdigest()]
    given = opening(small(), signed=signed_json(body), published=published)
    turns = [{"seconds": START - 1, "value": "a"}]
    (answer,) = asked([{"ask": "reports", "open": given, "turns": turns}])
    assert "error" in answer


def test_calls_at_once_give_one_report():
    asking = {"ask": "together", "open": opening(small(memory=1)), "values": ["a", "b", "c"]}
    assert asked([asking | {"turns": [START - 1, START]}]) == [{"found": 1}]


def test_no_generator_but_that_of_the_system():
    texts = [path.read_text("utf-8") for path in sorted(SOURCES.glob("*.js"))]
    assert len(texts) == 7
    assert not any(RANDOM.search(text) for text in texts)
    # what this check must notice
    mutant = texts[0] + "const bytes = () => Math.random() * 256;"
    assert RANDOM.search(mutant)
    assert sum(text.count("getRandomValues") for text in texts) == 1


def test_the_client_is_small():
    # as one bundle: no imports, comments, indentation. Names stay as they are: a minifier (esbuild
    # 0.28) makes 6,733 bytes of the 8,917 that these are
    lines = [
        line.strip()
        for path in sorted(SOURCES.glob("*.js"))
        for line in path.read_text("utf-8").splitlines()
        if line.strip() and not line.strip().startswith(("//", "/**", "import "))
    ]
    assert len(gzip.compress("\n".join(lines).encode(), 9)) < 9216
