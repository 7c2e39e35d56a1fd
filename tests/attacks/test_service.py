# SPDX-License-Identifier: Apache-2.0
"""Attacks on the service: races, lost replies, kills, foreign ids, forged headers; with mutants."""

import json
import logging
import math
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.config import runs
from sfumato.errors import EngineFailed, KeyUsed, SfumatoError
from sfumato.ledger import Ledger, verify
from sfumato.ledger.spend import Ledger as RealLedger
from sfumato.query.session import Session
from sfumato.service import desk as desk_module
from sfumato.service.ended import Ended
from sfumato.service.jobs import Jobs
from sfumato.service.people import Role
from sfumato.service.refusals import NotVisible
from sfumato.web import app as app_module
from sfumato.web import problems, routes
from sfumato.web.reply import Reply
from tests.contracts.clinic import COUNT, QUERY, Clinic, granted
from tests.contracts.service_process import ServiceProcess

PRICE = 3 * 10**11


@pytest.fixture
def clinic(tmp_path: Path) -> Any:
    with Clinic(tmp_path) as opened:
        yield opened


def statement(number: int) -> str:
    return f"SELECT COUNT(*) AS n FROM people WHERE age > {number}"


def raced(clinic: Clinic) -> Counter[int]:
    """Eight different questions of one account at once, of which it can pay one."""
    clinic.grant("ann", "0.3")
    replies = [
        clinic.begin(
            "ann", "POST", QUERY, {"purpose": "study", "sql": statement(n), "epsilon": "0.3"}
        )
        for n in range(8)
    ]
    return Counter(reply.result(60).status for reply in replies)


def test_eight_race_for_the_last_budget_and_one_wins(clinic: Clinic) -> None:
    assert raced(clinic) == {200: 1, 402: 7}
    assert clinic.spent("ann") == PRICE
    assert not verify(clinic.ledger).problems


def test_a_check_outside_the_ledger_loses_the_race(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the mutant: the desk looks whether the account can pay, and the ledger does not
    real = desk_module.Desk.query

    def checked(self: Any, account: Any, form: Any, **more: Any) -> Any:
        if account.served.standing(account.scope).left.epsilon < sf.Budget("0.3").epsilon:
            raise Ended(SfumatoError("no"), charged=False)
        time.sleep(0.1)
        return real(self, account, form, **more)

    monkeypatch.setattr(desk_module.Desk, "query", checked)
    monkeypatch.setattr(
        "sfumato.ledger.account_transaction.LockedAccounts.require", lambda *_: None
    )
    raced(clinic)
    assert clinic.spent("ann") > PRICE


def broken(*_: object) -> bytes:
    raise MemoryError


def like_curl(clinic: Clinic, tries: int = 3) -> int:
    """Asks as `curl --retry` does: again after what it takes for a passing failure."""
    status = 0
    for _ in range(tries):
        status = clinic.ask("ann", epsilon="0.1").status
        if status not in (408, 429, 500, 502, 503, 504):
            break
    return status


def test_a_failing_engine_is_paid_once_by_a_client_that_repeats(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.query.release.SqlTask.run", broken)
    assert like_curl(clinic) == 409
    assert clinic.spent("ann") == 10**11


def test_a_500_for_a_failing_engine_is_paid_three_times(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the mutant: a failure of the engine is a server error
    monkeypatch.setattr("sfumato.query.release.SqlTask.run", broken)
    real = problems.problem

    def mutant(error: Exception) -> Reply:
        return Reply(b"{}", 500) if isinstance(error, Ended) else real(error)

    monkeypatch.setattr(app_module, "problem", mutant)
    assert like_curl(clinic) == 500
    assert clinic.spent("ann") == 3 * 10**11


def test_a_key_of_a_failed_question_pays_nothing_again(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("sfumato.query.release.SqlTask.run", broken)
        first = clinic.ask("ann", epsilon="0.1", key="k")
    assert (first.status, first.json["charged"]) == (409, True)
    again = clinic.ask("ann", epsilon="0.1", key="k")
    assert (again.status, again.json["type"]) == (409, "urn:sfumato:KeyUsed")
    other = clinic.ask("ann", statement(3), epsilon="0.1", key="k")
    assert other.status == 409 and other.json["charged"] is False
    assert clinic.spent("ann") == 10**11


def foreign(clinic: Clinic) -> list[tuple[str, str, str]]:
    """For each kind of thing of ann: how bob calls it, and what is not there."""
    charge = clinic.ask("ann", epsilon="0.1").headers["sfumato-charge"]
    wish = {"purpose": "study", "epsilon": "2", "reason": "x"}
    clinic.call("ann", "POST", "/v1/datasets/clinic/requests", wish)
    job = clinic.service.jobs.admit("ann", lambda _: None)
    clinic.service.jobs.show(job)
    token = clinic.service.people.tokens("ann")[0]["id"]
    answers = "/v1/datasets/clinic/answers/"
    return [
        ("GET", f"{answers}{charge}", f"{answers}nothing"),
        ("GET", f"{answers}{charge}.csv", f"{answers}nothing.csv"),
        ("GET", f"/v1/jobs/{job.id}", "/v1/jobs/nothing"),
        ("DELETE", f"/v1/jobs/{job.id}", "/v1/jobs/nothing"),
        ("GET", f"/v1/jobs/{job.id}/result", "/v1/jobs/nothing/result"),
        ("DELETE", f"/v1/tokens/{token}", "/v1/tokens/nothing"),
        ("GET", "/v1/datasets/clinic", "/v1/datasets/nothing"),
        ("GET", "/v1/datasets/clinic/budget", "/v1/datasets/nothing/budget"),
        ("POST", "/v1/datasets/clinic/query", "/v1/datasets/nothing/query"),
        ("POST", "/v1/datasets/clinic/preview", "/v1/datasets/nothing/preview"),
        ("POST", "/v1/datasets/clinic/requests", "/v1/datasets/nothing/requests"),
        ("POST", "/v1/datasets/clinic/diagnose", "/v1/datasets/nothing/diagnose"),
        ("POST", "/v1/datasets/clinic/marginals", "/v1/datasets/nothing/marginals"),
        ("POST", "/v1/datasets/clinic/publish", "/v1/datasets/nothing/publish"),
        ("POST", "/v1/datasets/clinic/run/census/x", "/v1/datasets/nothing/run/census/x"),
        ("GET", "/v1/datasets/clinic/dummy/people.csv", "/v1/datasets/nothing/dummy/people.csv"),
        ("GET", "/v1/datasets/clinic/answers", "/v1/datasets/nothing/answers"),
    ]


def told_apart(clinic: Clinic) -> list[str]:
    """The addresses at which a stranger can tell what is there from what is not."""
    clinic.service.people.add("eve", Role.ANALYST, by="test")
    clinic.tokens["eve"] = clinic.service.people.make_token("eve", by="test").secret
    apart = []
    for method, there, nowhere in foreign(clinic):
        one, other = (clinic.call("eve", method, path, {}) for path in (there, nowhere))
        looks_like_nothing = (one.body, one.headers) == (other.body, other.headers)
        if not looks_like_nothing or one.status != 404:
            apart.append(there)
    return apart


def test_what_is_another_persons_looks_like_nothing(clinic: Clinic) -> None:
    assert told_apart(clinic) == []
    assert clinic.call("ann", "GET", "/v1/requests").json != []
    assert clinic.call("bob", "GET", "/v1/requests").json == []


def test_a_403_tells_what_is_another_persons(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the mutant: what one may not see is forbidden, what is not there is not found
    def visible(self: Any, caller: Any, name: str) -> Any:
        served = self.datasets.find(name)
        if served is None:
            raise NotVisible
        if caller.person.role is Role.ANALYST and not served.accounts_of(caller.name):
            raise desk_module.NotAllowed("Not yours.")
        return served

    monkeypatch.setattr(desk_module.Desk, "visible", visible)
    assert len(told_apart(clinic)) >= 6


def job_of(clinic: Clinic, number: int = 0) -> Any:
    """A question of ann's that went on as a job, and goes on from now."""
    go, real = threading.Event(), Session.query

    def waits(self: Session, *given: Any, **named: Any) -> Any:
        assert go.wait(60)
        return real(self, *given, **named)

    form = {"purpose": "study", "sql": statement(number), "epsilon": "0.1"}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Session, "query", waits)
        asked = clinic.call("ann", "POST", f"{QUERY}?wait=0", form)
    go.set()
    assert asked.status == 202
    return asked.json


def fetching(clinic: Clinic) -> dict[str, int]:
    """What each person gets who asks for the result of ann's job."""
    result = job_of(clinic)["result"]
    return {
        who: clinic.call(who, "GET", f"{result}?wait=30").status
        for who in ("ann", "bob", "olga", "ian")
    }


def test_who_asked_alone_fetches_the_result(tmp_path: Path) -> None:
    with Clinic(tmp_path, quantum=0.05) as clinic:
        assert fetching(clinic) == {"ann": 200, "bob": 404, "olga": 404, "ian": 404}


def test_a_job_found_by_its_id_alone_gives_the_result_to_anybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the mutant: whoever knows the id
    real = Jobs.find
    monkeypatch.setattr(Jobs, "find", lambda self, _, job: real(self, "ann", job))
    with Clinic(tmp_path, quantum=0.05) as clinic:
        assert set(fetching(clinic).values()) == {200}


def test_a_result_that_is_fetched_many_times_is_paid_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Clinic(tmp_path, quantum=0.05) as clinic:
        result = f"{job_of(clinic)['result']}?wait=30"
        got = [clinic.begin("ann", "GET", result) for _ in range(6)]
        bodies = {reply.result(60).body for reply in got}
        assert len(bodies) == 1 and clinic.spent("ann") == 10**11
        # of a failed one each time the same problem
        monkeypatch.setattr("sfumato.query.release.SqlTask.run", broken)
        result = f"{job_of(clinic, 1)['result']}?wait=30"
        failed = [clinic.call("ann", "GET", result) for _ in range(3)]
        assert {(reply.status, reply.json["charged"]) for reply in failed} == {(409, True)}
        assert len({reply.body for reply in failed}) == 1 and clinic.spent("ann") == 2 * 10**11


def leave_early(folder: Path, monkeypatch: pytest.MonkeyPatch, *, works: bool, most: int) -> bool:
    """Whether one of some results, polled without rest, is seen before the multiple that follows
    its end.
    """
    with Clinic(folder, quantum=0.4) as clinic, monkeypatch.context() as patched:
        if not works:
            patched.setattr("sfumato.query.release.SqlTask.run", broken)
        for number in range(most):
            asked = job_of(clinic, number)
            while clinic.call("ann", "GET", asked["result"]).status == 202:
                pass
            seen = time.monotonic()
            job = clinic.service.jobs.find("ann", asked["job"])
            if seen < 0.4 * math.ceil(job._finished / 0.4):
                return True
    return False


@pytest.mark.parametrize("works", [True, False])
def test_a_result_leaves_at_a_multiple_of_the_quantum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    assert not leave_early(tmp_path / "right", monkeypatch, works=works, most=1)
    # the mutant: whoever fetches a result sees its end at once
    monkeypatch.setattr("sfumato.service.jobs.Job.leaves", lambda _, moment: moment)
    assert leave_early(tmp_path / "mutant", monkeypatch, works=works, most=8)


@pytest.mark.parametrize(
    "header",
    ["X-Remote-User", "X-Forwarded-User", "Remote-User", "X-Forwarded-For", "Cookie", "Host"],
)
def test_a_forged_header_signs_nobody_in(clinic: Clinic, header: str) -> None:
    got = clinic.call(None, "GET", "/v1/people", None, {header: "olga"})
    assert got.status == 401
    for basic in ("Basic b2xnYTp4", "Bearer", "Bearer olga", f"bearer  {'x' * 5000}", "sfu_x"):
        assert clinic.call(None, "GET", "/v1/me", None, {"Authorization": basic}).status == 401
    assert clinic.call("ann", "GET", "/v1/me", None, {header: "olga"}).json["name"] == "ann"


def test_a_name_that_is_given_again_would_open_its_answers(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge = clinic.ask("bob", epsilon="0.1").headers["sfumato-charge"]
    assert clinic.call("olga", "POST", "/v1/people/bob/disable", {}).status == 200
    for name in ("bob", "Bob"):
        assert clinic.call("olga", "POST", "/v1/people", {"name": name}).status == 400
    assert clinic.call("bob", "GET", "/v1/me").status == 401
    # the mutant: a disabled name is free again
    clinic.service.people._state.rows("DELETE FROM people WHERE name = 'bob'")
    clinic.call("olga", "POST", "/v1/people", {"name": "bob"})
    clinic.tokens["bob"] = clinic.service.people.make_token("bob", by="test").secret
    assert clinic.call("bob", "GET", f"/v1/datasets/clinic/answers/{charge}").status == 200


def test_no_route_reaches_exact_counts(clinic: Clinic) -> None:
    for served in clinic.service.datasets:
        with pytest.raises(SfumatoError):
            served.session.check_data()
    # neither the rooms of the service nor what a file declares to be run name it
    files = [Path(runs.__file__)]
    for module in (routes, desk_module):
        files += Path(module.__file__).parent.glob("*.py")
    assert len(files) > 20
    assert not [file.name for file in files if "check_data" in file.read_text()]


def test_canaries_reach_neither_logs_nor_trail(
    clinic: Clinic, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = "CANARY7"
    with caplog.at_level(logging.DEBUG):
        for sql in (f"SELECT COUNT(*) AS n FROM people WHERE sex = '{canary}'",
                    f"SELECT {canary} FROM people", f"{canary}", statement(1)):  # fmt: skip
            clinic.ask("ann", sql, epsilon="0.1", key=canary)
        monkeypatch.setattr(desk_module, "arguments_of", lambda _: 1 / len(""))
        clinic.ask("ann", canary, epsilon="0.1")
        form = {"name": canary, "password": canary * 3}
        clinic.call(None, "POST", "/v1/tokens", form)
        clinic.call(canary, "GET", "/v1/me")
    told = caplog.text + json.dumps(clinic.call("ian", "GET", "/v1/trail").json)
    assert canary not in told
    assert not any(token in told for token in clinic.tokens.values())


def test_the_ledger_moves_only_where_the_reply_says_so(clinic: Clinic) -> None:
    forms: list[Any] = [
        {}, {"sql": COUNT}, {"sql": COUNT, "epsilon": 0}, {"sql": COUNT, "epsilon": -1},
        {"sql": COUNT, "epsilon": "0.01"}, {"sql": COUNT, "epsilon": "0.01", "rho": 1},
        {"sql": COUNT, "rho": "0.001"}, {"sql": COUNT, "error": 1, "max_epsilon": "0.01"},
        {"sql": "SELECT age FROM people", "epsilon": "0.01"}, {"sql": statement(5), "epsilon": "0.02"},
        {"sql": f"{COUNT}; DROP TABLE people", "epsilon": "0.01"},
        {"sql": statement(5), "epsilon": "0.02", "parameters": [1]},
        {"sql": "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people)", "epsilon": "0.02"},
    ]  # fmt: skip
    for form in forms:
        before = clinic.spent("ann")
        got = clinic.call("ann", "POST", QUERY, {"purpose": "study", **form})
        moved = clinic.spent("ann") != before
        if got.status == 200:
            assert moved == (got.headers["sfumato-recalled"] == "false"), form
        else:
            assert got.status < 429 and got.json["charged"] is moved is False, form
    for path in ("preview", "budget", "answers"):
        before = clinic.spent("ann")
        form = {"purpose": "study", "sql": statement(7), "epsilon": "0.1"}
        clinic.call("ann", "POST" if path == "preview" else "GET", f"/v1/datasets/clinic/{path}",
                    form if path == "preview" else None)  # fmt: skip
        assert clinic.spent("ann") == before


def killed(folder: Path, ask: Callable[[Any], Any], moment: float) -> bytes:
    """Asks under one key, kills the service in between, starts it again and asks again."""
    with ServiceProcess(folder) as process:
        token = process.person("ann")
        ann = sf.remote(process.address, dataset="clinic", purpose="study", token=token)
        child = subprocess.Popen(
            ["curl", "-sS", "-m", "20", "-H", f"Authorization: Bearer {token}", "-H",
             "Idempotency-Key: k", "-d",
             json.dumps({"purpose": "study", "sql": COUNT, "epsilon": "0.1"}),
             f"{process.address}{QUERY}"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(moment)
        process.kill()
        body, _ = child.communicate(timeout=30)
    with ServiceProcess(folder), suppress(KeyUsed):
        again: bytes = ask(ann).bytes
        assert not body or body == again
        return again
    return body


@pytest.mark.long
@pytest.mark.parametrize("moment", [0.0, 0.01, 0.02, 0.03, 0.05, 0.2])
def test_a_kill_and_a_lost_reply_are_paid_at_most_once(tmp_path: Path, moment: float) -> None:
    granted(tmp_path)
    killed(tmp_path, lambda ann: ann.query(COUNT, epsilon="0.1", key="k"), moment)
    ledger = Ledger.open(tmp_path / "ledger.db")
    assert ledger.standing("clinic", "study", "ann").spent.epsilon == 10**11
    assert not verify(ledger).problems
    ledger.close()


@pytest.mark.parametrize("step", ["reserve", "execute", "commit"])
def test_a_reply_that_is_lost_at_each_step_is_paid_once(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The ledger fails at one step; the same key is asked again after it works."""
    real = getattr(RealLedger, step if step != "reserve" else "_reserve")
    name = real.__name__

    def failing(*given: Any, **named: Any) -> Any:
        real(*given, **named)
        raise EngineFailed if step == "execute" else OSError("disk")

    with monkeypatch.context() as patched:
        patched.setattr(RealLedger, name, failing)
        got = clinic.ask("ann", epsilon="0.1", key="k")
    assert got.status == 409 and got.json["charged"] is not False
    again = clinic.ask("ann", epsilon="0.1", key="k")
    if again.status == 200:
        assert clinic.ask("ann", epsilon="0.1", key="k").body == again.body
    assert clinic.spent("ann") <= 10**11


def replies_early(folder: Path, monkeypatch: pytest.MonkeyPatch, *, works: bool, most: int) -> bool:
    """Whether one of some replies leaves before the multiple that follows the question's end."""
    admitted: list[Any] = []
    real = Jobs.admit

    def admit(self: Jobs, *given: Any) -> Any:
        admitted.append(real(self, *given))
        return admitted[-1]

    with Clinic(folder, quantum=0.4) as clinic, monkeypatch.context() as patched:
        patched.setattr(Jobs, "admit", admit)
        if not works:
            patched.setattr("sfumato.query.release.SqlTask.run", broken)
        for number in range(most):
            clinic.ask("ann", statement(number), epsilon="0.1")
            seen = time.monotonic()
            if seen < 0.4 * math.ceil(admitted[-1]._finished / 0.4):
                return True
    return False


@pytest.mark.parametrize("works", [True, False])
def test_a_reply_that_leaves_before_its_quantum_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    assert not replies_early(tmp_path / "right", monkeypatch, works=works, most=2)
    # the mutant: a reply leaves when it is ready; on a busy machine some questions are slow
    monkeypatch.setattr("sfumato.service.jobs.Job.leaves", lambda _, moment: moment)
    assert replies_early(tmp_path / "mutant", monkeypatch, works=works, most=8)


def reads_early(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What ann reads of her account between two multiples, while a question of hers is under way:
    whoever polls it sees when the question ends.
    """
    go, real, begun = threading.Event(), Session.query, []

    def waits(self: Session, *given: Any, **named: Any) -> Any:
        assert go.wait(60)
        return real(self, *given, **named)

    def spied(read: Callable[..., Any]) -> Callable[..., Any]:
        def spy(*given: Any, **named: Any) -> Any:
            begun.append(time.monotonic())
            return read(*given, **named)

        return spy

    early = []
    with Clinic(folder, quantum=0.4) as clinic, monkeypatch.context() as patched:
        patched.setattr(Session, "query", waits)
        patched.setattr(Session, "preview", spied(Session.preview))
        for name in ("budget", "answers"):
            patched.setattr(desk_module.Desk, name, spied(vars(desk_module.Desk)[name]))
        question = clinic.begin("ann", "POST", QUERY, {"purpose": "study", "sql": COUNT, "rho": 1})
        while not clinic.service.jobs._under_way:
            time.sleep(0.01)
        for method, name in (("GET", "budget"), ("GET", "answers"), ("POST", "preview")):
            form = {"purpose": "study", "sql": COUNT, "rho": 1} if method == "POST" else None
            sent = time.monotonic()
            place = QUERY.replace("query", f"{name}?purpose=study" if form is None else name)
            assert clinic.call("ann", method, place, form).status == 200
            if begun[-1] < 0.4 * math.ceil(sent / 0.4) - 1e-6:
                early.append(name)
        go.set()
        question.result(60)
    return early


def test_what_is_read_beside_a_question_leaves_at_a_multiple_of_the_quantum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reads_early(tmp_path / "right", monkeypatch) == []
    # the mutant: what is free is read at once
    monkeypatch.setattr(Jobs, "seconds_to_read", lambda *_: 0)
    assert reads_early(tmp_path / "mutant", monkeypatch) != []


def test_an_old_account_without_a_limit_asks_nothing(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    clinic.ledger.restrict("clinic", closed=False, reason="test")
    session = clinic.service.datasets.find("clinic").session
    session.asking_as("ann", "older").query(COUNT, epsilon="0.1")
    clinic.ledger.restrict("clinic", closed=True, reason="test")
    form = {"purpose": "older", "sql": statement(1), "epsilon": "0.1"}
    assert clinic.call("ann", "POST", QUERY, form).status == 403
    # the mutant: any account that is there will do
    monkeypatch.setattr(
        "sfumato.service.served.Served.standing",
        lambda self, scope: replace(
            self.ledger.standing(scope.dataset, scope.purpose, scope.analyst), limit=sf.Budget(1)
        ),
    )
    assert clinic.call("ann", "POST", QUERY, form).status == 200
