# SPDX-License-Identifier: Apache-2.0
"""Runs the vectors of the telemetry format against any client.

``python -m tools.telemetry_conformance node tests/clients/run.mjs``: the program reads one JSON
request a line and answers ``{"found": ...}`` or ``{"error": "..."}`` (spec/telemetry/format.md).
"""

import json
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeAlias

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.telemetry.signing import signed_task
from sfumato.telemetry.task import ReportTask, task_from_bytes
from tools.telemetry_vectors import FOLDER, SECRET

KEY = ec.generate_private_key(ec.SECP256R1())
PUBLIC = KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)
Form: TypeAlias = dict[str, Any]


def opening(task: ReportTask, **changes: object) -> Form:
    """What a client of a task is opened with."""
    given: Form = {
        "signed": signed_task(task, KEY).to_bytes().decode(),
        "secret": SECRET.hex(),
        "trusted": [PUBLIC.decode()],
        "published": [task.hash.hex()],
        "maxEpsilon": 1000,
    }
    return given | changes


def task_of(name: str) -> ReportTask:
    """The task of a file of vectors."""
    given = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return task_from_bytes(given["task"].encode())


def requests_of(name: str) -> Iterator[tuple[Form, object]]:
    """The requests of a file of vectors, each with the answer that it states."""
    given = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    form = json.loads(given["task"])
    for each in given["numbers"]:
        asking = {"ask": "number", "domain": form["domain"], "value": each["value"]}
        yield asking, str(each["number"])
    for each in given["encoded"]:
        yield {"ask": "encode", "oracle": form["oracle"]} | each, each["payload"]
    turns = {"ask": "reports", "open": opening(task_of(name)), "turns": given["reports"]}
    yield turns, [each["report"] for each in given["reports"]]


def asked(program: Sequence[str], requests: Sequence[Form]) -> list[Form]:
    """The answers of one process to all requests."""
    done = subprocess.run(
        program,
        input="".join(json.dumps(request) + "\n" for request in requests),
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=True,
        timeout=120,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def failures(
    program: Sequence[str], lacks: Collection[str] = ()
) -> list[tuple[Form, object, Form]]:
    """The requests whose answer is another than the vectors state, but of oracles that it lacks."""
    names = sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "signed")
    asked_for = [name for name in names if task_of(name).oracle.kind not in lacks]
    pairs = [pair for name in asked_for for pair in requests_of(name)]
    answers = asked(program, [asking for asking, _ in pairs])
    found = zip(pairs, answers, strict=True)
    return [(asking, due, got) for (asking, due), got in found if got != {"found": due}]


if __name__ == "__main__":
    wrong = failures(sys.argv[1:])
    for asking, due, got in wrong[:10]:
        print(json.dumps({"request": asking, "due": due, "got": got}, ensure_ascii=False))
    print(f"{len(wrong)} answers are wrong.")
    sys.exit(bool(wrong))
