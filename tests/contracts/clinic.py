# SPDX-License-Identifier: Apache-2.0
"""A service over 40 people of a clinic, called without a socket: olga owns, ann and bob ask."""

import asyncio
import json
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sfumato as sf
from sfumato.ledger import Ledger
from sfumato.ledger.account_path import Scope
from sfumato.privacy.budget import Budget
from sfumato.service.opening import Service
from sfumato.service.people import Role
from sfumato.service.settings import Settings, read_settings
from sfumato.web.app import App

TOML = """\
dataset = "clinic"
ledger = "ledger.db"
[budget]
epsilon = "4"
delta = "1e-6"
[tables.people]
source = "people.csv"
size = 40
unit = {column = "person", max_rows_total = 1}
columns.age = {type = "integer", lower = 0, upper = 99}
columns.sex = {type = "category", values = ["F", "M"]}
"""
# the same, with something of each kind that is run by name
RUNS = f"""{TOML}
[synopses.ages]
table = "people"
wanted = [{{ranges = "age"}}]
epsilon = "0.1"
[models.sexes]
recipe = "NaiveBayes"
data = "SELECT age, sex FROM people"
label = "sex"
epsilon = "0.1"
[synthetic.rows]
table = "people"
epsilon = "0.1"
[mining.sexes]
recipe = "Itemsets"
data = "SELECT sex FROM people"
epsilon = "0.1"
[census.sexes]
table = "people"
spine = "spine.csv"
levels = "whole > sex"
tables = {{sex = ["age"]}}
epsilon = "0.1"
"""
COUNT = "SELECT COUNT(*) AS n FROM people"
QUERY = "/v1/datasets/clinic/query"


def written(folder: Path, text: str = TOML) -> Path:
    """The files of the clinic; returns the path of its declarations."""
    folder.mkdir(exist_ok=True)
    rows = [f"p{number},{20 + number},{'FM'[number % 2]}" for number in range(40)]
    (folder / "people.csv").write_text("\n".join(["person,age,sex", *rows]), encoding="utf-8")
    (folder / "spine.csv").write_text("whole,sex\nall,F\nall,M\n", encoding="utf-8")
    path = folder / "sfumato.toml"
    path.write_text(text, encoding="utf-8")
    return path


def granted(folder: Path) -> None:
    """The files of the clinic, with a limit for ann."""
    written(folder)
    sf.load(folder / "sfumato.toml").close()
    ledger = Ledger.open(folder / "ledger.db")
    ledger.allocate("clinic", Budget(1), purpose="study", analyst="ann", reason="test")
    ledger.close()


@dataclass
class Got:
    """A reply: its status, its headers and its body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Clinic:
    """The open service. ``tokens`` has those of olga (owner), ian (auditor), ann and bob.

    Ann may spend epsilon 1 for "study", bob 0.5; each name asks through ``call``.
    """

    def __init__(self, folder: Path, text: str = TOML, **changed: Any) -> None:
        settings = replace(read_settings(written(folder, text)), quantum=0.0, drain=1.0)
        self.settings: Settings = replace(settings, **changed)
        self.service = Service(self.settings)
        self.app = App(self.service)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.peer = "127.0.0.1"
        self.tokens: dict[str, str] = {}
        people = self.service.people
        roles = {"olga": Role.OWNER, "ian": Role.AUDITOR, "ann": Role.ANALYST, "bob": Role.ANALYST}
        for name, role in roles.items():
            if people.find(name) is None:
                people.add(name, role, by="test")
            self.tokens[name] = people.make_token(name, by="test").secret
        self.grant("ann", "1")
        self.grant("bob", "0.5")

    @property
    def ledger(self) -> Any:
        """The ledger of the clinic."""
        return self.service.datasets.ledgers[0]

    def grant(self, name: str, epsilon: str, delta: str = "0", purpose: str = "study") -> None:
        """Sets the limit of an account."""
        budget = Budget(epsilon, delta)
        self.ledger.allocate_all({Scope("clinic", purpose, name): budget}, reason="test")

    def spent(self, name: str = "", purpose: str = "study") -> int:
        """What an account has spent of epsilon, in the ledger's increments; the dataset's for ""."""
        path = ("clinic", purpose, name) if name else ("clinic",)
        epsilon = self.ledger.standing(*path).spent.epsilon
        assert isinstance(epsilon, int)
        return epsilon

    def begin(
        self,
        who: str | None,
        method: str,
        path: str,
        form: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> "Future[Got]":
        """Sends a request; bytes are sent as they are, anything else as JSON."""
        token = self.tokens.get(who, who) if who else None
        return asyncio.run_coroutine_threadsafe(
            self._called(token, method, path, form, dict(headers or {})), self._loop
        )

    def call(self, *request: Any, **more: Any) -> Got:
        """Sends a request and waits for its reply."""
        return self.begin(*request, **more).result(60)

    def ask(self, who: str, sql: str = COUNT, *, key: str = "", **form: Any) -> Got:
        """Asks a question for the study."""
        headers = {"Idempotency-Key": key} if key else {}
        return self.call(who, "POST", QUERY, {"purpose": "study", "sql": sql, **form}, headers)

    async def _called(
        self, token: str | None, method: str, path: str, form: Any, headers: dict[str, str]
    ) -> Got:
        body = (
            form if isinstance(form, bytes) else b"" if form is None else json.dumps(form).encode()
        )
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        raw, _, query = path.partition("?")
        scope = {
            "type": "http", "method": method, "raw_path": quote(raw, safe="/%:.~").encode(),
            "query_string": query.encode(), "client": (self.peer, 1),
            # a name may end with a space in ``headers``: so a header can be sent twice
            "headers": [(name.lower().strip().encode(), text.encode()) for name, text in headers.items()],
        }  # fmt: skip
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        names = {name.decode(): text.decode() for name, text in sent[0]["headers"]}
        assert [part.get("more_body", False) for part in sent[1:]] == [True] * (len(sent) - 2) + [
            False
        ]
        body = b"".join(part["body"] for part in sent[1:])
        assert int(names["content-length"]) == len(body)
        return Got(sent[0]["status"], names, body)

    def close(self) -> None:
        """Closes the service."""
        self.app.close()
        self.service.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> "Clinic":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
