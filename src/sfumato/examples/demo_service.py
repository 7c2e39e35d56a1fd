# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo service``: the first week of a service, with real processes, a race and a kill."""

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.rule import Rule

from sfumato.cli.options import require_spared, write_file
from sfumato.errors import BudgetExceeded, Failed
from sfumato.web.client import Remote, remote

_PEOPLE = 5_000
_TOML = """\
dataset = "clinic"
ledger = "ledger.db"
[budget]
epsilon = "3"
[tables.patients]
source = "patients.csv"
size = 5000
unit = {column = "patient", max_rows_total = 1}
columns.age = {type = "integer", lower = 0, upper = 99}
columns.ward = {type = "category", values = ["heart", "lung", "skin"]}
"""
_SERVER = """\
datasets = ["clinic.toml"]
listen = "127.0.0.1:PORT"
"""
_BY_WARD = "SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward ORDER BY n DESC"
_OLDER = "SELECT COUNT(*) AS n FROM patients WHERE age > AGE"


@click.command("service")
@click.option(
    "--report",
    default="demo-service.html",
    show_default=True,
    help="Where to write the officer's report.",
)
def command(report: str) -> None:
    """Serve a made-up clinic for a week: invitations, a race, a kill, a restart, the report."""
    require_spared(report)
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="sfumato-demo-") as folder:
        page = tell(console, Path(folder))
    write_file(report, page)
    console.print(f"\n[bold]Written:[/bold] {report}")


def tell(console: Console, folder: Path) -> bytes:
    """Plays the week and returns the report of its end.

    Raises:
        Failed: something else happened than should.
    """
    address = write_files(folder)
    service = Process(folder)
    try:
        owner = _first_owner(console, service, address)
        tokens = {name: _invite(owner, address, name, role) for name, role in _PEOPLE_ROLES}
        for name in ("ann", "bob"):
            owner.send("PUT", f"{_CLINIC}/accounts/study/{name}", _limit("0.5", "the yearly study"))
        console.print("invited: ann and bob, who may spend epsilon 0.5 each, and ian, who audits")
        ann = remote(address, dataset="clinic", purpose="study", token=tokens["ann"])
        bob = remote(address, dataset="clinic", purpose="study", token=tokens["bob"])
        _ask(console, ann)
        _race(console, bob)
        _more(console, owner, bob)
        key = secrets.token_hex(8)
        answer = ann.query(_OLDER.replace("AGE", "60"), epsilon="0.1", key=key)
        console.print(Rule("the machine fails"))
        service.kill()
        service = Process(folder)
        again = ann.query(_OLDER.replace("AGE", "60"), epsilon="0.1", key=key)
        _require(again.bytes == answer.bytes, "the answer is the same after a kill")
        console.print("killed and started again: the same key gives the same bytes, paid once")
        return _audit(console, Caller(address, tokens["ian"]))
    finally:
        service.stop()


_CLINIC = "/v1/datasets/clinic"
_PEOPLE_ROLES = (("ann", "analyst"), ("bob", "analyst"), ("ian", "auditor"))


class Process:
    """``sfumato serve`` as a process."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "sfumato", "serve", "-c", str(folder / "server.toml")]
        self._process = subprocess.Popen(  # noqa: S603
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "SFUMATO_LANG": "en"},
        )
        self.said = self.line()
        _require(self.said.startswith("serving"), "the service starts")

    def line(self) -> str:
        """The next line that it says."""
        assert self._process.stdout is not None, "it is a pipe"
        return self._process.stdout.readline().decode().strip()

    def kill(self) -> None:
        """Ends it without a warning."""
        self._process.kill()
        self.stop()

    def stop(self) -> None:
        """Ends it in order, if it still runs."""
        self._process.terminate()
        self._process.wait(60)
        assert self._process.stdout is not None, "it is a pipe"
        self._process.stdout.close()


class Caller:
    """Calls of somebody who is no analyst, as curl makes them."""

    def __init__(self, address: str, token: str = "") -> None:
        self._address = address
        self._token = token

    def send(self, method: str, path: str, form: dict[str, Any] | None = None) -> bytes:
        """The body of a reply."""
        request = urllib.request.Request(  # noqa: S310 - an address of this machine
            self._address + path,
            None if form is None else json.dumps(form).encode(),
            {"Authorization": f"Bearer {self._token}"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
            body: bytes = response.read()
        return body

    def json(self, method: str, path: str, form: dict[str, Any] | None = None) -> Any:
        """The value of a reply."""
        return json.loads(self.send(method, path, form))


def write_files(folder: Path) -> str:
    """Writes the made-up patients and the settings; returns the address of the service."""
    wards = ("heart", "lung", "skin", "heart")
    rows = [f"p{n},{(n * 37) % 100},{wards[n % 4]}" for n in range(_PEOPLE)]
    (folder / "patients.csv").write_text("\n".join(["patient,age,ward", *rows]), encoding="utf-8")
    (folder / "clinic.toml").write_text(_TOML, encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    (folder / "server.toml").write_text(_SERVER.replace("PORT", port), encoding="utf-8")
    return f"http://127.0.0.1:{port}"


def _first_owner(console: Console, service: Process, address: str) -> Caller:
    """Olga follows the address of the first start, and signs in."""
    console.print(Rule("the first week of a service"))
    console.print(service.said)
    setup = service.line().partition(address)[2].split()[0]
    signed = {"name": "olga", "password": secrets.token_hex(8)}
    nobody = Caller(address)
    nobody.send("POST", setup, signed)
    return Caller(address, nobody.json("POST", "/v1/tokens", signed)["token"])


def _invite(owner: Caller, address: str, name: str, role: str) -> str:
    """The token of a new person, who sets a password and signs in."""
    invitation = owner.json("POST", "/v1/people", {"name": name, "role": role})["invitation"]
    password = secrets.token_hex(8)
    nobody = Caller(address)
    nobody.send("POST", f"/setup/{invitation}", {"password": password})
    token = nobody.json("POST", "/v1/tokens", {"name": name, "password": password})["token"]
    return str(token)


def _limit(epsilon: str, reason: str) -> dict[str, Any]:
    return {"epsilon": epsilon, "reason": reason}


def _ask(console: Console, ann: Remote) -> None:
    preview = ann.preview(_BY_WARD, epsilon="0.2")
    error = preview["errors"][0]["half_width"]
    tried = ann.dummy("patients", rows=3, seed=1).to_pylist()
    console.print(f"ann tries it at home on made-up rows: {tried[0]}, ...")
    console.print(
        f"ann previews: epsilon {preview['cost']['epsilon']}, within {error:.0f} in 95% of answers, "
        f"{preview['times']} times"
    )
    console.print(str(ann.query(_BY_WARD, epsilon="0.2")))


def _race(console: Console, bob: Remote) -> None:
    """Eight questions at once, of which the account can pay one."""
    console.print(Rule("bob asks eight questions at once, and can pay one"))

    def ask(number: int) -> bool:
        try:
            bob.query(_OLDER.replace("AGE", str(number)), epsilon="0.4")
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        answered = sum(threads.map(ask, range(8)))
    spent = bob.budget["own"]["spent"]["epsilon"]
    _require((answered, spent) == (1, "0.4"), "one of eight wins")
    console.print(f"answered {answered}, refused {8 - answered}; the account spent {spent}")


def _more(console: Console, owner: Caller, bob: Remote) -> None:
    """Bob asks for more, and olga approves."""
    request = bob.request(epsilon="0.7", reason="one table more")
    owner.send("POST", f"/v1/requests/{request['id']}/approve", {"reason": "agreed on Tuesday"})
    bob.query(_BY_WARD, epsilon="0.2")
    left = bob.budget["left"]["epsilon"]
    _require(left == "0.1", "the approved limit holds")
    console.print(f"bob asked for 0.7, olga approved; after one table more {left} is left")


def _audit(console: Console, ian: Caller) -> bytes:
    """Ian verifies the ledger and takes the report."""
    console.print(Rule("the officer"))
    verified = ian.json("POST", f"{_CLINIC}/verify", {})
    _require(verified["sound"] and verified["trail"], "ledger and trail are sound")
    console.print(f"ian verifies: {verified['charges']} charges, the journal is whole")
    return ian.send("GET", f"{_CLINIC}/report?language=en")


def _require(holds: object, what: str) -> None:
    if not holds:
        raise Failed(f"The demo went wrong: not so that {what}.")
