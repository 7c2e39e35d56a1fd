# SPDX-License-Identifier: Apache-2.0
"""Many analysts ask one service for minutes: ``make soak-service`` (SECONDS=600, ANALYSTS=20).

Each asks new questions and old ones, loses replies and asks again under the same key, leaves
questions to jobs and fetches results, previews, and looks at the budget and the answers. At the end
each charge was paid once, the ledger has what the replies said, and the journal is sound; memory,
threads and open files did not grow after the first third. A missed bar is an exit code of 1.
"""

import argparse
import http.client
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks.report import machine
from benchmarks.service import COUNT, ROOT, Measured, Running, declared
from sfumato.ledger import Ledger, verify

RESULTS = ROOT / "benchmarks" / "results" / "service_soak.json"
_ROWS, _EPSILON = 20_000, Decimal("0.001")
_PAUSE = 0.2
# of a quarter of them, who run out of it, and of the others
_SMALL, _LARGE = "0.02", "1000"
_PLACE = "/v1/datasets/bench"


@dataclass
class Asked:
    """A question that was sent, and what came back: the bodies and the charges of its replies."""

    sql: str
    key: str
    bodies: set[bytes] = field(default_factory=set)
    charges: set[str] = field(default_factory=set)
    problems: list[int] = field(default_factory=list)


class Analyst:
    """One person with a token, who asks until a time; keeps what the replies said."""

    def __init__(self, port: int, name: str, token: str, seed: int) -> None:
        self.name = name
        self.asked: list[Asked] = []
        self.counts: Counter[str] = Counter()
        self.times: list[float] = []
        self._port = port
        self._token = token
        self._draw = random.Random(seed)  # noqa: S311 - chooses what to do

    def ask_until(self, ends: float) -> None:
        """Does one thing after the other; then asks again for each reply that was lost."""
        acts: tuple[Callable[[], None], ...] = (
            self.ask_new, self.ask_new, self.ask_old, self.ask_old, self.lose_a_reply,
            self.leave_to_a_job, self.look,
        )  # fmt: skip
        while time.monotonic() < ends:
            self._draw.choice(acts)()
            time.sleep(self._draw.uniform(0, 2 * _PAUSE))
        for asked in self.asked:
            if not asked.bodies and not asked.problems:
                self._query(asked)

    def ask_new(self) -> None:
        """A question that nobody asked before."""
        self._query(self._new())

    def ask_old(self) -> None:
        """A question of one's own again, under its key."""
        if self.asked:
            self._query(self._draw.choice(self.asked[-50:]))

    def lose_a_reply(self) -> None:
        """Sends a question and goes away; asks again under the same key, at once or at the end."""
        asked = self._new()
        connection = self._connection()
        try:
            connection.request("POST", f"{_PLACE}/query", self._body(asked), self._head(asked))
        finally:
            connection.close()
        self.counts["lost"] += 1
        if self._draw.random() < 0.5:
            self._query(asked)

    def leave_to_a_job(self) -> None:
        """Waits for no answer, and fetches the result twice."""
        asked = self._new()
        status, headers, body = self._send("POST", f"{_PLACE}/query?wait=0", asked)
        if status != 202:
            self._note(asked, status, headers, body)
            return
        self.counts["jobs"] += 1
        result = json.loads(body)["result"]
        for _ in range(2):
            while status == 202:
                status, headers, body = self._send("GET", f"{result}?wait=30", None)
            self._note(asked, status, headers, body)
            status = 202

    def look(self) -> None:
        """A preview, the budget, the answers: free."""
        asked = Asked(f"{COUNT} WHERE age > {self._draw.randrange(99)}", "")
        for method, path, form in (
            ("POST", "preview", asked),
            ("GET", "budget?purpose=study", None),
            ("GET", "answers?purpose=study&limit=20", None),
        ):
            status, _, _ = self._send(method, f"{_PLACE}/{path}", form)
            self.counts[f"free {status}"] += 1

    def _new(self) -> Asked:
        number = self._draw.randrange(10**9)
        sql = f"{COUNT} WHERE age > {number % 97} AND age * 7 < {number}"
        asked = Asked(sql, f"{self.name}-{len(self.asked)}")
        self.asked.append(asked)
        return asked

    def _query(self, asked: Asked) -> None:
        self._note(asked, *self._send("POST", f"{_PLACE}/query", asked))

    def _note(self, asked: Asked, status: int, headers: dict[str, str], body: bytes) -> None:
        self.counts[str(status)] += 1
        if status == 200:
            asked.bodies.add(body)
            asked.charges.add(headers["sfumato-charge"])
        else:
            asked.problems.append(status)

    def _send(
        self, method: str, path: str, asked: Asked | None
    ) -> tuple[int, dict[str, str], bytes]:
        body = None if asked is None else self._body(asked)
        connection = self._connection()
        begun = time.perf_counter()
        try:
            connection.request(method, path, body, self._head(asked))
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        self.times.append(time.perf_counter() - begun)
        headers = {name.lower(): value for name, value in response.getheaders()}
        return response.status, headers, content

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)

    def _head(self, asked: Asked | None) -> dict[str, str]:
        head = {"Authorization": f"Bearer {self._token}"}
        if asked is not None and asked.key:
            head["Idempotency-Key"] = asked.key
        return head

    @staticmethod
    def _body(asked: Asked) -> str:
        return json.dumps({"purpose": "study", "sql": asked.sql, "epsilon": str(_EPSILON)})


@dataclass(frozen=True)
class Size:
    """What the service has taken at a moment: resident memory, threads and open files."""

    mebibytes: float
    threads: int
    files: int


def watch(process: int, ends: float, sizes: list[Size]) -> None:
    """Notes the size of a process (Linux) each second."""
    folder = Path("/proc") / str(process)
    while time.monotonic() < ends:
        lines = (folder / "status").read_text(encoding="utf-8").splitlines()
        status = dict(line.split(":", 1) for line in lines)
        sizes.append(
            Size(
                round(int(status["VmRSS"].split()[0]) / 1024, 1),
                int(status["Threads"]),
                len(list((folder / "fd").iterdir())),
            )
        )
        time.sleep(1)


def of_size(sizes: list[Size], charges: int) -> Iterator[Measured]:
    """How much the service grew: the largest of the last third, over that of the second."""
    third = len(sizes) // 3
    before, after = sizes[third : 2 * third], sizes[2 * third :]

    def growth(part: str) -> float:
        largest = [max(float(getattr(size, part)) for size in of) for of in (before, after)]
        return largest[1] - largest[0]

    # an answer's places in the ledger's totals and in the index of the journal: under 2 KiB
    may_grow = 8 + charges / 3 * 2 / 1024
    yield Measured("memory: growth", growth("mebibytes"), "MiB", may_grow)
    # 64 that ask, 14 that do the rest, and those of the engine
    yield Measured("threads: largest number", max(size.threads for size in sizes), "", 100)
    # connections of this moment are files too
    yield Measured("open files: growth", growth("files"), "", 20)


def of_charges(folder: Path, analysts: list[Analyst]) -> Iterator[Measured]:
    """How many replies contradict each other or the ledger: none should."""
    ledger = Ledger.open(folder / "ledger.db")
    asked = [question for analyst in analysts for question in analyst.asked]
    several = sum(len(question.bodies) > 1 or len(question.charges) > 1 for question in asked)
    yield Measured("questions with two answers or two charges", several, "", 0)
    unanswered = sum(not question.bodies and not question.problems for question in asked)
    yield Measured("questions without a reply", unanswered, "", 0)
    strange = sum(set(question.problems) - {402} != set() for question in asked)
    yield Measured("questions refused but for the budget", strange, "", 0)
    wrong = 0
    for analyst in analysts:
        charges = {charge for question in analyst.asked for charge in question.charges}
        standing = ledger.standing("bench", "study", analyst.name)
        due = Decimal(len(charges)) * _EPSILON * 10**12
        wrong += standing.spent.epsilon != due or standing.reserved.epsilon != 0
    yield Measured("accounts whose spending is not the sum of the replies", wrong, "", 0)
    yield Measured("problems in the journal", len(verify(ledger).problems), "", 0)
    ledger.close()


def soak(seconds: float, count: int) -> tuple[list[Measured], dict[str, Any]]:
    """Runs the service for so many seconds with so many analysts; returns bars and facts."""
    names = [f"analyst_{number}" for number in range(count)]
    limits = {name: _SMALL if n % 4 == 3 else _LARGE for n, name in enumerate(names)}
    with tempfile.TemporaryDirectory(prefix="sfumato-soak-") as made:
        folder = Path(made)
        declared(folder, _ROWS, limits=limits)
        with (folder / "log.txt").open("wb") as log:
            service = Running(folder, names, log=log, quantum="20ms")
            ends = time.monotonic() + seconds
            sizes: list[Size] = []
            analysts = [
                Analyst(service.port, name, service.tokens[name], seed)
                for seed, name in enumerate(names)
            ]
            threads = [
                threading.Thread(target=watch, args=(service.process_id, ends, sizes)),
                *(threading.Thread(target=each.ask_until, args=(ends,)) for each in analysts),
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            code = service.stop()
        charges = {c for each in analysts for question in each.asked for c in question.charges}
        measured = [*of_charges(folder, analysts), *of_size(sizes, len(charges))]
        text = (folder / "log.txt").read_text(encoding="utf-8")
        broken = text.count("Traceback") + text.count("internal failure")
        measured.append(Measured("tracebacks and internal failures in the log", broken, "", 0))
        measured.append(Measured("exit code", code, "", 0))
    counts = sum((each.counts for each in analysts), Counter[str]())
    times = sorted(taken for each in analysts for taken in each.times)
    facts = {
        "seconds": seconds,
        "analysts": count,
        "charges": len(charges),
        "requests": len(times),
        "replies": dict(sorted(counts.items())),
        "p50_ms": round(times[len(times) // 2] * 1e3, 1),
        "p99_ms": round(times[int(len(times) * 0.99) - 1] * 1e3, 1),
        "first": asdict(sizes[0]),
        "last": asdict(sizes[-1]),
    }
    return measured, facts


def main() -> int:
    """Runs it, prints which bars hold, and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--analysts", type=int, default=20)
    chosen = parser.parse_args()
    before = machine()
    measured, facts = soak(chosen.seconds, chosen.analysts)
    for figure in measured:
        print(figure)
    print(json.dumps(facts, indent=1))
    rows = [{**asdict(figure), "holds": figure.holds} for figure in measured]
    form = {"machine": before, "facts": facts, "rows": rows}
    RESULTS.write_text(json.dumps(form, indent=1) + "\n", encoding="utf-8")
    return 0 if all(figure.holds for figure in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
