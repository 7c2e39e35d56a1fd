# SPDX-License-Identifier: Apache-2.0
"""Runs the vectors of the telemetry format against any client.

``python -m tools.telemetry_conformance node tests/clients/run.mjs``: the program reads one JSON
request a line and answers ``{"found": ...}`` or ``{"error": "..."}`` (spec/telemetry/format.md).
``--lacks sketch,prefixes,fragments`` names kinds of oracles that a client does not have: it must refuse
their tasks, and the result says so.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.telemetry.client import Client
from sfumato.telemetry.oracles.form import oracle_to_json
from sfumato.telemetry.signing import SignedTask, signed_task
from sfumato.telemetry.store import MemoryStore
from sfumato.telemetry.task import ReportTask, report_task, task_from_bytes
from tools.telemetry_vectors import FOLDER, SECRET, START

KEY = ec.generate_private_key(ec.SECP256R1())
PUBLIC = KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)
Form: TypeAlias = dict[str, Any]
NAMES = sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "signed")
# Before everything that the vectors ask.
EARLIER = START - 1_000_000
# Longer is no answer.
PATIENCE = 120


@dataclass(frozen=True, slots=True)
class Case:
    """A request, and the answer that is due; None where the client must refuse."""

    request: Form
    due: object | None

    def holds(self, answer: Form) -> bool:
        """Whether an answer is the one that is due."""
        if self.due is None:
            return list(answer) == ["error"]
        return answer == {"found": self.due}


@dataclass(frozen=True, slots=True)
class Result:
    """The cases that were asked, those whose answers are wrong, and the files left out."""

    asked: int
    wrong: tuple[tuple[Case, Form], ...]
    lacks: tuple[str, ...]
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        files = len(NAMES) - len(self.left_out)
        found = f"{self.asked} requests of {files} files of vectors, {len(self.wrong)} wrong."
        if not self.lacks:
            return f"{found} No oracle is left out."
        return (
            f"{found} The client lacks {', '.join(self.lacks)}: "
            f"{len(self.left_out)} files left out, whose tasks it must refuse."
        )


def opening(task: ReportTask, **changes: object) -> Form:
    """What a client of a task is opened with."""
    given: Form = {
        "signed": signed_task(task, KEY, signed_at=EARLIER).to_bytes().decode(),
        "secret": SECRET.hex(),
        "trusted": [PUBLIC.decode()],
        "published": [task.hash.hex()],
        "maxEpsilon": 1000,
    }
    return given | changes


@lru_cache
def task_of(name: str) -> ReportTask:
    """The task of a file of vectors."""
    given = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return task_from_bytes(given["task"].encode())


def kinds_in(form: object) -> Iterator[str]:
    """The kinds of an oracle and of its parts."""
    if isinstance(form, dict):
        yield form["kind"]
        for part in form.get("parts", [form.get("part")]):
            yield from kinds_in(part)


def kinds_of(name: str) -> set[str]:
    """The kinds of oracles that a client needs for a file of vectors."""
    return set(kinds_in(oracle_to_json(task_of(name).oracle)))


def cases_of(name: str) -> Iterator[Case]:
    """What a file of vectors states."""
    given = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    form = json.loads(given["task"])
    for each in given["numbers"]:
        asking = {"ask": "number", "domain": form["domain"], "value": each["value"]}
        yield Case(asking, str(each["number"]))
    for each in given["encoded"]:
        asking = {"ask": "encode", "oracle": form["oracle"], "value": each["value"]}
        yield Case(asking | {"words": each["words"]}, each["payload"])
    turns = [told(each) for each in given["reports"]]
    asking = {"ask": "reports", "open": opening(task_of(name)), "turns": turns}
    yield Case(asking, [each["report"] for each in given["reports"]])


def told(turn: Form) -> Form:
    """A turn without its report."""
    return {key: part for key, part in turn.items() if key != "report"}


def opened_early(given: Form) -> Form:
    """The request to open a client before the start."""
    turns = [{"seconds": START - 1, "value": "a"}]
    return {"ask": "reports", "open": given, "turns": turns}


def common_cases() -> Iterator[Case]:
    """The signed task, and tasks that every client refuses."""
    given = json.loads((FOLDER / "signed.json").read_text("utf-8"))
    task = task_from_bytes(json.loads(given["signed"])["task"].encode())
    good = opening(task, signed=given["signed"], trusted=[given["key"]])
    yield Case(opened_early(good), [None])
    changes: list[Form] = [
        {"signed": given["changed"]},
        {"signed": json.dumps({"task": task.to_bytes().decode()})},
        {"trusted": [PUBLIC.decode()]},
        {"trusted": []},
        {"published": ["00" * 32]},
        {"maxEpsilon": "0.5"},
    ]
    for change in changes:
        yield Case(opened_early(good | change), None)
    late = [{"seconds": task.expires, "value": "a"}]
    yield Case({"ask": "reports", "open": good, "turns": late}, None)
    yield from clock_cases()


def reports_of(signed: SignedTask, turns: Sequence[Form]) -> list[str | None]:
    """What the client of this package sends, in hexadecimal."""
    seconds = iter([turns[0]["seconds"], *(turn["seconds"] for turn in turns)])
    client = Client(
        signed,
        SECRET,
        MemoryStore(),
        trusted=[KEY.public_key()],
        published=[signed.task.hash.hex()],
        max_epsilon=1000,
        clock=lambda: next(seconds),
    )
    reports = [client.report(turn["value"]) for turn in turns]
    return [None if report is None else report.hex() for report in reports]


def clock_cases() -> Iterator[Case]:
    """An empty store, and a clock before and at the moment at which a task was signed."""
    task = report_task("clock", "?", ["a", "b"], epsilon=1, start=START, periods=2, memory=1)
    signed_at = START - 100
    signed = signed_task(task, KEY, signed_at=signed_at)
    given = opening(task, signed=signed.to_bytes().decode())
    for first in (signed_at - 1, signed_at):
        turns: list[Form] = [
            {"seconds": second, "value": "a"} for second in (first, START, START + task.period)
        ]
        asking = {"ask": "reports", "open": given, "turns": turns}
        yield Case(asking, reports_of(signed, turns))
    changed = signed.to_bytes().decode().replace(str(signed_at), str(signed_at - 1))
    yield Case(opened_early(given | {"signed": changed}), None)


def answers_of(program: Sequence[str], requests: Sequence[Form]) -> list[Form]:
    """The answers of one process to all requests; of what it does not answer, none."""
    done = subprocess.run(
        program,
        input="".join(json.dumps(request) + "\n" for request in requests),
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE,
    )
    found = [answer_of(line) for line in done.stdout.splitlines()]
    missing = {"no answer": f"the program ended with status {done.returncode}"}
    return (found + [missing] * len(requests))[: len(requests)]


def answer_of(line: str) -> Form:
    """The answer in a line."""
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"no answer": line}


def run(program: Sequence[str], lacks: Collection[str] = ()) -> Result:
    """Asks a client for all that it should have, and whether it refuses what it lacks."""
    left_out = tuple(name for name in NAMES if kinds_of(name) & set(lacks))
    cases = list(common_cases())
    for name in NAMES:
        if name in left_out:
            cases.append(Case(opened_early(opening(task_of(name))), None))
        else:
            cases += cases_of(name)
    answers = answers_of(program, [case.request for case in cases])
    pairs = zip(cases, answers, strict=True)
    wrong = tuple((case, answer) for case, answer in pairs if not case.holds(answer))
    return Result(len(cases), wrong, tuple(sorted(lacks)), left_out)


def main(arguments: Sequence[str]) -> int:
    """The command; 0 if every answer is right."""
    known = set[str]().union(*map(kinds_of, NAMES))
    parser = argparse.ArgumentParser(prog="python -m tools.telemetry_conformance")
    parser.add_argument("--lacks", default="", help=f"some of {', '.join(sorted(known))}")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the client, as a command")
    given = parser.parse_args(arguments)
    lacks = {kind for kind in given.lacks.split(",") if kind}
    if lacks - known:
        parser.error(f"no oracle is of the kind {', '.join(sorted(lacks - known))}")
    if not given.program:
        parser.error("no program")
    result = run(given.program, lacks)
    for case, answer in result.wrong[:10]:
        due = "an error" if case.due is None else case.due
        shown = {"request": case.request, "due": due, "got": answer}
        print(json.dumps(shown, ensure_ascii=False))
    print(result)
    return int(bool(result.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
