# SPDX-License-Identifier: Apache-2.0
"""Wrote the pinned files, once: ``python -m tests.stored.write``.

It shows how they were made, and how those of a new dataset of questions are made, in a folder of
their own. It never writes over a file: what was stored by an earlier version stays as it was.
"""

import gzip
import json
import shutil
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sfumato as sf
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import (
    Distance,
    NoisyMax,
    Norm,
    PoissonSample,
    PureEvent,
    Relation,
    Sampled,
)
from sfumato.telemetry import Texts, Words, oracles, report_task, task_from_bytes
from tests.contracts.events import FORMS
from tests.stored import asking, numbers, parts, questions, signatures

# The questions whose models are kept as files.
FITS = (
    "additive",
    "linear",
    "ridge",
    "naive bayes",
    "decision tree",
    "forest",
    "clusters",
    "components",
)
ONE = Fraction(1)
SYNOPSES = ("synopsis of a column", "synopsis of two columns")
NETWORK = "network"
# Texts that are files, or in one of their own.
FILED = ("event", "telemetry", "model")

# Events with what FORMS leaves at its default.
MORE_EVENTS = {
    "noisy max, monotone": NoisyMax(DiscreteLaplace(2), Distance(Norm.LINF, ONE), monotone=True),
    "pure, replaced": PureEvent(ONE, Relation.REPLACE_ONE),
    "poisson, replaced": Sampled(
        PoissonSample(Fraction(1, 100), Relation.REPLACE_ONE), PureEvent(ONE)
    ),
}


def main() -> None:
    """Writes every file."""
    if questions.FOLDER.exists():
        sys.exit(f"{questions.FOLDER.name} is there: what was stored is never written again.")
    questions.MODELS.mkdir(parents=True)
    with TemporaryDirectory() as name, questions.without_torch():
        folder = Path(name)
        for dataset in questions.QUESTIONS:
            first_asked(dataset, folder)
        pack(folder)
        counts: dict[str, Any] = {}
        for dataset in questions.QUESTIONS:
            write(f"forms/{dataset}.json", asked_again(dataset, folder, counts))
    write("numbers.json", {**numbers.numbers(), **counts})
    events = {each: event for each, (_, event) in FORMS.items()} | MORE_EVENTS
    write("events.json", {each: parts.event_text(event) for each, event in events.items()})
    tasks = telemetry()
    write("telemetry.json", tasks)
    hashes = {each: task_from_bytes(text.encode()).hash.hex() for each, text in tasks.items()}
    write("hashes.json", hashes)
    others = {each: make() for each, make in parts.makers() if each.split()[0] not in FILED}
    write("parts.json", others)
    given = "".join(f"{line}\n" for line in signatures.lines())
    (questions.FOLDER / "signatures.txt").write_text(given, encoding="utf-8")


def first_asked(dataset: str, folder: Path) -> None:
    """Asks the questions of a dataset, and keeps some models as files."""
    with questions.connect(dataset, folder) as session:
        for name, question in questions.QUESTIONS[dataset].items():
            if name == questions.INTERRUPTED:
                question = interrupted(question)
            answer = question(session)
            path = questions.MODELS / f"{name.replace(' ', '_')}.json"
            if name in FITS:
                answer.save(path)
            elif name == NETWORK:
                answer.save(path.with_suffix(".sfm"))
            elif name in SYNOPSES:
                path.write_text(answer.to_json(), encoding="utf-8")


def interrupted(question: questions.Question) -> questions.Question:
    """The question, which ends after its first checkpoint."""

    def stop(place: int, places: int) -> None:
        raise KeyboardInterrupt

    def ask(here: sf.Session) -> None:
        with suppress(KeyboardInterrupt):
            question(here, progress=stop)

    return ask


def asked_again(dataset: str, folder: Path, counts: dict[str, Any]) -> dict[str, Any]:
    """What is stored of each question of a dataset, when it is recalled."""
    stored = {}
    with questions.connect(dataset, folder) as session:
        for name, question in questions.QUESTIONS[dataset].items():
            answer, of_question = asking.ask(question, session)
            stored[name] = of_question.to_json()
            if name in numbers.COUNTS:
                counts[name] = numbers.of_fit(name, answer)
    return stored


def pack(folder: Path) -> None:
    """The ledger and the states of streams, without the space that nothing uses."""
    with sqlite3.connect(folder / questions.LEDGER) as ledger:
        ledger.execute("VACUUM")
    ledger.close()
    body = (folder / questions.LEDGER).read_bytes()
    (questions.FOLDER / f"{questions.LEDGER}.gz").write_bytes(gzip.compress(body, mtime=0))
    (questions.FOLDER / "states").mkdir()
    for state in (folder / "states").glob("*.state"):
        shutil.copy(state, questions.FOLDER / "states")


def telemetry() -> dict[str, str]:
    """A task of each oracle, as its canonical JSON."""
    parts_of = [oracles.category(3, 1), oracles.bit(10, 1)]
    record = {"lang": ["en", "de"], "age": sf.Integer(0, 9)}
    words = Words("ab", 4)
    given: dict[str, tuple[Any, Any]] = {
        "category": (["on", "off"], oracles.category(3, 1)),
        "bit": (["on", "off"], oracles.bit(3, 1)),
        "hashed": (["on", "off"], oracles.hashed(3, 1)),
        "projective": (["on", "off"], oracles.projective(3, 1)),
        "unary": (["on", "off"], oracles.unary(3, 1)),
        "attributes": (record, oracles.attributes(parts_of)),
        "mean": (sf.Integer(0, 9), oracles.mean(10, 1)),
        "mean, hybrid": (sf.Integer(0, 9), oracles.mean(10, 4)),
        "levels": (sf.Real(0, 4, step="0.5"), oracles.levels(9, 1)),
        "rappor": (Texts(), oracles.rappor()),
        "sketch": (Texts(), oracles.sketch(1)),
        "count mean": (Texts(), oracles.count_mean(1)),
        "hadamard count mean": (Texts(), oracles.hadamard_count_mean(1)),
        "prefixes": (words, oracles.prefixes(words.symbols, words.length, 1)),
        "fragments": (words, oracles.fragments(words.symbols, words.length, 1)),
    }
    tasks = {}
    for name, (domain, oracle) in given.items():
        task = report_task(
            "pinned",
            f"A question of {name}?",
            domain,
            oracle=oracle,
            start=1_800_000_000,
            periods=4,
            memory=2,
        )
        tasks[name] = task.to_bytes().decode()
    return tasks


def write(name: str, content: Mapping[str, Any]) -> None:
    """Writes a file of JSON that is not there yet."""
    path = questions.FOLDER / name
    path.parent.mkdir(exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        json.dump(content, file, indent=1, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
