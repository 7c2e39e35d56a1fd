# SPDX-License-Identifier: Apache-2.0
"""Random requests from openapi.json, valid statements too: the ledger moves where replies say so."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato.service.ended import Ended
from sfumato.web import app as app_module
from sfumato.web import problems
from sfumato.web.openapi import description
from sfumato.web.reply import Reply
from tests.contracts.clinic import COUNT, RUNS, Clinic

MEAN = "SELECT AVG(age) AS a FROM people"
SUB = f"{COUNT} WHERE age > ({MEAN})"
NEEDED = ("purpose", "sql", "table", "cliques", "questions", "epsilon", "reason", "name")
CHARGED = ("query", "diagnose", "marginals", "publish", "{name}")
# What is right for a field or a part of a path; others are one text.
RIGHT: dict[str, list[Any]] = {
    "dataset": ["clinic"],
    "purpose": ["study"] * 9 + ["other"],
    "analyst": ["bob", "nobody"],
    "table": ["people"] * 4 + ["people.csv", "people.parquet", "none"],
    "section": ["synopses", "mining", "none"],
    "name": ["ages", "sexes", "bob"],
    "sql": [COUNT, MEAN, SUB, f"{COUNT} WHERE age > $a", f"{COUNT} WHERE sex = 'F'", "SELECT", ""],
    "parameters": [{"a": 3}, {"a": "x"}, [1]],
    "cliques": [[["sex"]], [["age"], ["sex"]], [["sex", "age"]], [["none"]]],
    "questions": [{"n": COUNT, "m": MEAN}, {"n": SUB}, {"n": COUNT, "bad": "SELECT x"}],
    "weights": [{"n": 2}, {"none": 1}],
    "sizes": [{"n": 20}],
    "heads": [[], ["x"]],
    "role": ["analyst", "auditor"],
    "epsilon": ["0.001", 0.01, "0.01", "9"],
    "rho": ["0.0001"],
    "delta": ["0", "1e-9"],
    "error": [40, "5%", {"on_average": 30}],
    "max_epsilon": ["0.02"],
    "rows": [5, "7"],
    "limit": ["3"],
    "language": ["zh", "en"],
    "preview": [True, False],
    "interval": [True],
    "values": ["table", "clipped"],
    "time_limit": [20],
    "days": [3],
    "wait": ["30"],
}
WRONG = [
    None,
    True,
    0,
    -1,
    10**30,
    1.5,
    "",
    "x",
    "\x00",
    "é" * 300,
    [],
    [1],
    {},
    {"a": []},
    [[[]]],
    {"n": 0},
    {"n": -1},
    {"n": 10**40},
    {"n": True},
    {"n": "1e-300"},
]
OPERATIONS = [
    (path, method, operation)
    for path, found in description()["paths"].items()
    for method, operation in found.items()
]
# what is charged as often as everything else
CHARGING = [each for each in OPERATIONS if each[1] == "post" and each[0].endswith(CHARGED)]


def requests(dice: random.Random, count: int) -> Iterator[tuple[str, str, str, Any]]:
    """Who asks, with which method, where, and with what body."""
    for _ in range(count):
        path, method, operation = dice.choice(dice.choice((OPERATIONS, CHARGING)))
        options = []
        for parameter in operation["parameters"]:
            name = parameter["name"]
            value = dice.choice(RIGHT.get(name, ["x"]))
            if parameter["in"] == "path":
                path = path.replace(f"{{{name}}}", str(value))
            elif parameter["in"] == "query" and dice.random() < 0.3:
                options.append(f"{name}={value}")
        form = body(dice, operation) if "requestBody" in operation else None
        who = dice.choice(["ann"] * 5 + ["ian", "olga", "sfu_x"])
        yield who, method.upper(), path + ("?" + "&".join(options) if options else ""), form


def body(dice: random.Random, operation: Any) -> dict[str, Any]:
    """A body of mostly right fields and one cost; now and then one field is wrong."""
    fields = operation["requestBody"]["content"]["application/json"]["schema"]["properties"]
    form = {}
    for name in fields:
        if name in NEEDED or dice.random() < 0.1:
            form[name] = dice.choice(RIGHT.get(name, ["x"]))
    if "epsilon" in form and dice.random() < 0.3:
        del form["epsilon"]
        form |= dice.choice([{"rho": "0.0001"}, {"error": 40, "max_epsilon": "0.02"}])
    if dice.random() < 0.3:
        form[dice.choice([*fields])] = dice.choice(WRONG)
    return form


def wrong(clinic: Clinic, who: str, method: str, path: str, form: Any) -> str:
    """What is wrong with the reply to a request; "" if nothing."""
    before = clinic.spent(), clinic.spent("ann"), clinic.spent("bob")
    got = clinic.call(who, method, path, form)
    moved = (clinic.spent(), clinic.spent("ann"), clinic.spent("bob")) != before
    shown = f"{who} {method} {path} {form}: {got.status} {got.body[:200]!r}"
    if got.status >= 400:
        if got.headers["content-type"] != "application/problem+json":
            return f"no problem: {shown}"
        if moved and got.json["charged"] is False:
            return f"charged, and not told: {shown}"
        if got.status == 500 or (moved and got.status in (408, 429, 503)):
            return f"clients repeat it: {shown}"
        if got.json["charged"] is not False and got.status != 409:
            # a refusal within a question says what is wrong; it may have paid for a part
            return "" if got.status < 429 else f"charged? {shown}"
        return ""
    if moved != (got.headers.get("sfumato-recalled") == "false"):
        return f"charged={moved}: {shown}"
    return ""


def run(clinic: Clinic, count: int) -> list[str]:
    """Sends random requests; returns what was wrong."""
    faults = [wrong(clinic, *sent) for sent in requests(random.Random(7), count)]
    return [fault for fault in faults if fault]


@pytest.mark.parametrize("count", [pytest.param(150), pytest.param(3_000, marks=pytest.mark.long)])
def test_the_ledger_moves_only_where_the_reply_says_so(tmp_path: Path, count: int) -> None:
    with Clinic(tmp_path, RUNS, previews_per_minute=10**6) as clinic:
        assert run(clinic, count) == []
        assert clinic.spent("ann") > 0


def test_a_reply_that_does_not_say_so_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the mutant: a failure within a question is a server error, and none was charged
    real = problems.problem

    def mutant(error: Exception) -> Reply:
        return real(error.error if isinstance(error, Ended) else error)

    def broken(*_: object) -> bytes:
        raise MemoryError

    with Clinic(tmp_path, RUNS, previews_per_minute=10**6) as clinic:
        monkeypatch.setattr("sfumato.query.release.SqlTask.run", broken)
        monkeypatch.setattr(app_module, "problem", mutant)
        assert run(clinic, 60)
