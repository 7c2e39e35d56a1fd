# SPDX-License-Identifier: Apache-2.0
"""Writes the vectors of the telemetry format: ``python -m tools.telemetry_vectors``.

Clients in other languages must give the same bytes. The words come from SHA-256, not from a
generator, so that anybody can make them again. The key of ``signed.json`` signs nothing else.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

import sfumato as sf
from sfumato.exact.rational import Number
from sfumato.noise.entropy import Bytes
from sfumato.telemetry.client import Client
from sfumato.telemetry.domain import Declared, Simple, Texts, Words
from sfumato.telemetry.oracles import (
    attributes,
    bit,
    category,
    count_mean,
    fragments,
    hadamard_count_mean,
    hashed,
    levels,
    mean,
    prefixes,
    projective,
    rappor,
    sketch,
    unary,
)
from sfumato.telemetry.oracles.form import AnyOracle
from sfumato.telemetry.signing import signed_task
from sfumato.telemetry.store import MemoryStore
from sfumato.telemetry.task import ReportTask, report_task, task_from_bytes

FOLDER = Path(__file__).resolve().parent.parent / "spec" / "telemetry" / "vectors"
SECRET = bytes(range(32))
START, PERIOD = 1_800_000_000, 86_400
EMOJI = ["😀", "❤️", "café", "naïve", 'quote " \\ and\nline', "0", "-7"]
HELD: list[object] = ["😀", "cafe\u0301", "unlisted", 0, -7, "", "café"]
NUMBERS: list[object] = [0, 3, -1, 0.125, 0.375, 2.5, 99, 1e300, "3"]
MAKERS: dict[str, Callable[[int, Number], AnyOracle]] = {
    "category": category,
    "projective": projective,
    "bit": bit,
    "hashed": hashed,
    "unary": unary,
}


class Told:
    """A source whose words are told, and written down."""

    def __init__(self, label: str) -> None:
        self._label = label
        self.words: list[int] = []

    def bits(self, count: int) -> int:
        """Not used by clients."""
        raise NotImplementedError

    def fill(self, buffer: Bytes) -> None:
        """Fills a buffer with the next words."""
        words = [self.next() for _ in range(buffer.size // 8)]
        buffer[:] = np.array(words, "<u8").view(np.uint8)

    def next(self) -> int:
        """The next word."""
        name = f"{self._label}/{len(self.words)}"
        self.words.append(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))
        return self.words[-1]


def encoded(oracle: AnyOracle) -> list[dict[str, object]]:
    """Payloads of some values, with told words and with the least and largest ones."""
    found = []
    most = min(oracle.values, 1 << 53)
    for value in sorted({0, 1, most // 2, most - 1}):
        told = Told(f"{oracle.kind}/{value}")
        random = [told.next() for _ in range(oracle.draws)]
        for words in (random, [0] * oracle.draws, [(1 << 64) - 1] * oracle.draws):
            payload = oracle.encode(value, words)
            shown = [f"{word:016x}" for word in words]
            found.append({"value": value, "words": shown, "payload": payload.hex()})
    return found


def reports(task: ReportTask, values: list[object]) -> list[dict[str, object]]:
    """What one device sends over three periods, and around them."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = [START - 1.0]
    client = Client(
        signed_task(task, key, signed_at=START - 1_000_000),
        SECRET,
        MemoryStore(),
        trusted=[key.public_key()],
        published=[task.hash.hex()],
        max_epsilon=1000,
        clock=lambda: now[0],
    )
    found = []
    days = [-0.5, 0, 0.25, 0.5, 1, 2, 1, 3, 4]
    for turn, day in enumerate(days):
        seconds = START + round(day * PERIOD)
        now[0] = float(seconds)
        value = values[turn % len(values)]
        told = Told(f"{task.id}/{turn}")
        report = client.report(value, told)
        entry: dict[str, object] = {"seconds": seconds, "value": value}
        if told.words:
            entry["words"] = [f"{word:016x}" for word in told.words]
        found.append({**entry, "report": None if report is None else report.hex()})
    return found


def vector(id: str, domain: Declared, oracle: AnyOracle, memory: int) -> dict[str, object]:
    """One file of vectors."""
    task = report_task(
        id,
        "Which?",
        domain,
        oracle=oracle,
        start=START,
        period=PERIOD,
        periods=4,
        reports=1 if memory else 2,
        memory=memory,
    )
    held = NUMBERS if isinstance(domain, sf.Real) else HELD
    if isinstance(domain, dict):
        held = [{"emoji": one, "size": two} for one, two in zip(HELD, NUMBERS, strict=False)]
        held += [{"size": 2}, {}, None]
    return {
        "task": task.to_bytes().decode(),
        "hash": task.hash.hex(),
        "secret": SECRET.hex(),
        "numbers": [{"value": value, "number": task.domain.number(value)} for value in held],
        "encoded": encoded(oracle),
        "reports": reports(task, held),
    }


def vectors() -> dict[str, dict[str, object]]:
    """All vectors but the signed task, whose signature is not the same each time."""
    found = {}
    size = len(EMOJI) + 1
    real = sf.Real(-1, 3, step="0.25")
    for kind, make in MAKERS.items():
        found[kind] = vector(kind, EMOJI, make(size, "1.5"), memory=0)
        found[f"{kind}-memory"] = vector(f"{kind}-memory", EMOJI, make(size, 1), memory=3)
        found[f"{kind}-numbers"] = vector(f"{kind}-numbers", real, make(17, "0.5"), memory=1)
    found["projective-large"] = vector(
        "projective-large", sf.Integer(0, 65_534), projective(65_535, 2), memory=0
    )
    for name, oracle in (
        ("mean", mean(17, 2)),
        ("mean-bit", mean(17, "0.5")),
        ("levels", levels(17, 1)),
        ("levels-narrow", levels(17, 3, branching=2)),
    ):
        found[name] = vector(name, real, oracle, memory=0)
        found[f"{name}-memory"] = vector(f"{name}-memory", real, oracle, memory=2)
    words = {"rappor": rappor(), "rappor-two": rappor(bits=16, hashes=2, cohorts=5)}
    for name, permanent in words.items():
        found[name] = vector(name, Texts(), permanent, memory=2)
    for name, drawn in (
        ("sketch", sketch(2)),
        ("sketch-unary", count_mean(4, rows=5, buckets=16)),
        ("sketch-bit", hadamard_count_mean(1, rows=3, buckets=64)),
    ):
        found[name] = vector(name, Texts(), drawn, memory=0)
        found[f"{name}-memory"] = vector(f"{name}-memory", Texts(), drawn, memory=2)
    letters = "acfnvïé0-7😀"
    symbols = len(letters) + 1
    for name, length, spelled in (
        ("prefixes", 16, prefixes(symbols, 16, 2)),
        ("prefixes-short", 5, prefixes(symbols, 5, 2)),
        ("fragments", 16, fragments(symbols, 16, 2)),
        ("fragments-short", 5, fragments(symbols, 5, 2)),
    ):
        typed = Words(letters, length)
        found[name] = vector(name, typed, spelled, memory=0)
        found[f"{name}-memory"] = vector(f"{name}-memory", typed, spelled, memory=2)
    both: dict[str, Simple] = {"emoji": EMOJI, "size": real}
    three = attributes([projective(size, 1), hashed(17, 1)])
    for memory in (0, 2):
        found[f"attributes-{memory}"] = vector(f"attributes-{memory}", both, three, memory)
    return found


def signed() -> dict[str, object]:
    """A signed task, and one that was changed afterwards."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    body = vector("signed", EMOJI, category(len(EMOJI) + 1, 1), memory=0)["task"]
    task = task_from_bytes(str(body).encode())
    good = signed_task(task, key, signed_at=START - 1_000_000).to_bytes().decode()
    wrong = good.replace("Which?", "Which!")
    return {"key": public.decode(), "signed": good, "changed": wrong}


def main() -> None:
    """Writes all files; a signature that is there is kept."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    files = vectors()
    if not (FOLDER / "signed.json").exists():
        files["signed"] = signed()
    for name, content in files.items():
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (FOLDER / f"{name}.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
