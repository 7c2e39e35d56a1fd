# SPDX-License-Identifier: Apache-2.0
"""``sf.remote``: the same answers and errors as in process; a lost call is paid once."""

import http.client
import json
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, Failed, UnknownName, WrongUse
from sfumato.query.session import Session
from sfumato.service.refusals import NoAccount, NotVisible, ResultDropped
from sfumato.web.client import Remote, remote
from tests.contracts.clinic import COUNT, RUNS, Clinic


class Wire:
    """Carries a client's calls to a clinic; loses the replies whose numbers are given."""

    def __init__(self, clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lost: set[int] = set()
        self.sent: list[tuple[str, dict[str, str]]] = []
        monkeypatch.setattr("sfumato.web.client.time.sleep", lambda _: None)

        def once(_: Remote, method: str, path: str, body: Any, headers: Any) -> Any:
            number = len(self.sent)
            self.sent.append((path, dict(headers)))
            token = headers["Authorization"].removeprefix("Bearer ")
            key = {name: text for name, text in headers.items() if name != "Authorization"}
            got = clinic.call(token, method, path, body or b"", key)
            if number in self.lost:
                raise http.client.RemoteDisconnected
            return got.body, got.headers, got.status

        monkeypatch.setattr(Remote, "_once", once)


def client(clinic: Clinic, name: str = "ann", purpose: str = "study") -> Remote:
    return remote("http://here", dataset="clinic", purpose=purpose, token=clinic.tokens[name])


@pytest.fixture
def wire(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> Wire:
    return Wire(clinic, monkeypatch)


def test_an_answer_is_the_same_as_in_process(clinic: Clinic, wire: Wire) -> None:
    session = clinic.service.datasets.find("clinic").session.asking_as("ann", "study")
    there = client(clinic).query(COUNT, epsilon="0.1")
    here = session.query(COUNT, epsilon="0.1")
    assert (there.bytes, there.recalled, here.recalled) == (here.bytes, False, True)
    assert client(clinic).query(COUNT, epsilon=Fraction(1, 10)).recalled
    preview = client(clinic).preview(COUNT, error=20, max_epsilon="0.2")
    assert (
        preview["cost"]["epsilon"]
        == session.preview(COUNT, error=20, max_epsilon="0.2").cost.epsilon
    )
    answer = client(clinic).query(
        "SELECT COUNT(*) AS n FROM people WHERE age > $1", parameters=[30], error=sf.OnAverage(50), max_epsilon="0.3", time_limit=20.5,
    )  # fmt: skip
    assert answer.columns[0]["name"] == "n"


def test_advice_is_the_same_as_in_process_and_free(clinic: Clinic, wire: Wire) -> None:
    session = clinic.service.datasets.find("clinic").session.asking_as("ann", "study")
    mean = "SELECT AVG(age) AS a FROM people"
    before = clinic.spent()
    there = client(clinic).advise(mean, epsilon=Fraction(1, 10), rows=20)
    assert there == session.advise(mean, epsilon="0.1", rows=20).to_json()
    assert clinic.spent() == before
    with pytest.raises(sf.errors.WrongUse):
        client(clinic).advise(mean, epsilon="0.1", beyond="0.1")


def test_questions_without_sql(clinic: Clinic, wire: Wire) -> None:
    people = client(clinic).table("people")
    answer = people.group_by("sex").agg(n=sf.count()).query(epsilon="0.1")
    assert [row["sex"] for row in answer] == ["F", "M"]
    with pytest.raises(UnknownName, match="people"):
        client(clinic).table("rooms")


def test_sql_over_private_answers_takes_a_key(clinic: Clinic, wire: Wire) -> None:
    sql = "SELECT MAX(n) AS m FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t"
    answer = client(clinic).query(sql, epsilon="0.1")
    assert len(answer) == 1 and clinic.spent("ann") == 10**11
    assert client(clinic).query(sql, epsilon="0.1").bytes == answer.bytes
    assert client(clinic).query(sql, epsilon="0.1", key="mine").recalled
    with pytest.raises(WrongUse, match="mine"):
        client(clinic).query(sql.replace("MAX", "MIN"), epsilon="0.1", key="mine")
    assert clinic.spent("ann") == 10**11


def test_a_declared_list_is_free(clinic: Clinic, wire: Wire) -> None:
    there = client(clinic)
    before = there.budget
    answer = there.query("SELECT DISTINCT sex FROM people", epsilon="0.1")
    assert (str(answer.cost.epsilon), there.budget) == ("0", before)
    assert answer.to_dicts()


def test_budget_answers_and_requests(clinic: Clinic, wire: Wire) -> None:
    ann = client(clinic)
    charge = ann.query(COUNT, epsilon=0.25).charge_id
    assert (
        ann.budget["own"]["spent"]["epsilon"] == "0.25" and ann.budget["left"]["epsilon"] == "0.75"
    )
    assert [(each["charge"], each["statement"]) for each in ann.answers()] == [(charge, COUNT)]
    assert ann.answer(charge).charge_id == charge
    asked = ann.request(epsilon="2", delta="1e-7", reason="one table more")
    assert asked["wanted"] == {"epsilon": "2", "delta": "0.0000001"}


def test_the_exceptions_are_the_same(clinic: Clinic, wire: Wire) -> None:
    ann = client(clinic)
    with pytest.raises(BudgetExceeded):
        ann.query(COUNT, epsilon=2)
    with pytest.raises(UnknownName, match="'zz'"):
        ann.query("SELECT AVG(zz) AS z FROM people", epsilon="0.1")
    with pytest.raises(WrongUse):
        ann.query(COUNT)
    with pytest.raises(NoAccount):
        _ = client(clinic, purpose="other").budget
    with pytest.raises(NotVisible):
        ann.answer("nothing")
    with pytest.raises(WrongUse):
        remote("ftp://x", dataset="d", purpose="p", token="t")


def test_a_lost_reply_is_asked_for_under_the_same_key_and_paid_once(
    clinic: Clinic, wire: Wire
) -> None:
    wire.lost = {0, 1}
    answer = client(clinic).query(COUNT, epsilon="0.1")
    assert (
        len({headers["Idempotency-Key"] for _, headers in wire.sent}) == 1 and len(wire.sent) == 3
    )
    assert answer.recalled and clinic.spent("ann") == 10**11


def test_what_would_stand_twice_is_sent_once(clinic: Clinic, wire: Wire) -> None:
    wire.lost = {0}
    with pytest.raises(Failed, match="did not answer"):
        client(clinic).request(epsilon="2", reason="x")
    assert len(wire.sent) == 1
    wire.lost = set(range(1, 9))
    with pytest.raises(Failed, match="same key"):
        client(clinic).query(COUNT, epsilon="0.1", key="k")
    wire.lost = set()
    assert client(clinic).query(COUNT, epsilon="0.1", key="k").recalled
    assert clinic.spent("ann") == 10**11


def test_a_failed_question_is_not_asked_again(
    clinic: Clinic, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr("sfumato.query.release.SqlTask.run", broken)
    with pytest.raises(sf.SfumatoError) as error:
        client(clinic).query(COUNT, epsilon="0.1")
    assert type(error.value).__name__ == "EngineFailed"
    assert len(wire.sent) == 1 and clinic.spent("ann") == 10**11


def test_a_long_question_is_awaited(
    clinic: Clinic, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, real = threading.Event(), Session.query

    def slow(self: Session, *given: Any, **named: Any) -> Any:
        assert begun.wait(20)
        return real(self, *given, **named)

    def send(self: Remote, method: str, path: str, body: Any, headers: Any) -> Any:
        if "/jobs/" in path:
            begun.set()
        elif not begun.is_set():
            path += "?wait=0"
        return once(self, method, path, body, headers)

    once = Remote._once
    monkeypatch.setattr(Remote, "_once", send)
    monkeypatch.setattr(Session, "query", slow)
    answer = client(clinic).query(COUNT, epsilon="0.1")
    assert [path.partition("?")[0].split("/")[2] for path, _ in wire.sent] == [
        "datasets", "jobs",
    ]  # fmt: skip
    assert not answer.recalled
    assert answer.charge_id and clinic.spent("ann") == 10**11
    begun.clear()
    with pytest.raises(BudgetExceeded):
        client(clinic).query(COUNT, epsilon="7")


def test_neither_token_nor_password_is_shown() -> None:
    there = remote("https://u:pw@here:1/x", dataset="d", purpose="p", token="sfu_secret")
    assert repr(there) == "Remote('d' for 'p' at https://here:1)"
    assert json.dumps(repr(there)).count("secret") == 0


def test_everything_that_is_charged_is_as_in_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Clinic(tmp_path, RUNS) as clinic:
        Wire(clinic, monkeypatch)
        session = clinic.service.datasets.find("clinic").session.asking_as("ann", "study")
        there, mean = client(clinic), "SELECT AVG(age) AS a FROM people"
        cells, two = [["sex"]], {"n": COUNT, "a": mean}
        cost = there.marginals("people", cells, preview=True, epsilon=Fraction(1, 10))["cost"]
        marginals = there.marginals("people", cells, epsilon="0.1", time_limit=20)
        assert marginals["cost"] == cost
        here = session.marginals("people", cells, epsilon="0.1")
        assert here.recalled and here.to_json() == marginals
        assert (
            there.diagnose(mean, epsilon="0.1") == session.diagnose(mean, epsilon="0.1").to_json()
        )
        price = {"epsilon": "0.1", "weights": {"n": 3}}
        assert there.publish(two, preview=True, **price)["cost"]["epsilon"] == "0.1"
        answers = there.publish(two, **price)
        planned = session.plan(two, **price).run()
        assert {name: answer.bytes for name, answer in answers.items()} == {
            name: answer.bytes for name, answer in planned.items()
        }
        assert not answers["n"].recalled and there.publish(two, **price)["n"].recalled
        assert there.run("synopses", "ages", preview=True)["cost"]["epsilon"] == "0.1"
        assert json.loads(there.run("synopses", "ages"))["kind"] == "synopsis"
        assert there.dummy("people", rows=9, seed=2).equals(session.dummy("people", rows=9, seed=2))
        assert there.chart(answers["n"].charge_id).startswith("<svg")
        with pytest.raises(NotVisible):
            there.run("synopses", "none")
        with pytest.raises(NotVisible):
            there.dummy("none")
        # four charged kinds of 0.1 each
        assert clinic.spent("ann") == 4 * 10**11


def test_a_lost_call_is_repeated_only_where_it_is_free_or_has_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Clinic(tmp_path, RUNS) as clinic:
        wire, there = Wire(clinic, monkeypatch), client(clinic)
        for call, times in (
            (lambda: there.marginals("people", [["sex"]], epsilon="0.1"), 2),
            (lambda: there.marginals("people", [["age"]], epsilon="0.1", preview=True), 2),
            (lambda: there.run("synopses", "ages", preview=True), 2),
            (lambda: there.run("synopses", "ages"), 1),
            (lambda: there.diagnose("SELECT AVG(age) AS a FROM people", epsilon="0.1"), 1),
        ):
            wire.sent.clear()
            wire.lost = {0}
            if times == 2:
                call()
            else:
                with pytest.raises(Failed):
                    call()
            assert len(wire.sent) == times


def answered(monkeypatch: pytest.MonkeyPatch, result: Exception) -> list[str]:
    """A service whose questions go on as jobs, and whose results raise; returns what was asked."""
    posts: list[str] = []

    def send(_: Remote, method: str, path: str, *__: object) -> Any:
        if method == "POST":
            posts.append(path)
            assert len(posts) < 100, "it goes on without end"
            return b'{"job": "j"}', {}, 202
        raise result

    monkeypatch.setattr(Remote, "_send", send)
    return posts


def test_a_result_that_is_always_gone_is_not_asked_for_without_end(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    posts = answered(monkeypatch, ResultDropped())
    with pytest.raises(Failed, match="again and again"):
        client(clinic).run("synthetic", "people")
    assert len(posts) == 4


def test_a_job_of_before_a_restart_is_asked_again_under_its_key_alone(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    posts = answered(monkeypatch, NotVisible())
    with pytest.raises(Failed, match="started anew"):
        client(clinic).run("synthetic", "people")
    assert len(posts) == 1
    with pytest.raises(Failed, match="again and again"):
        client(clinic).query(COUNT, epsilon="0.1")
    assert len(posts) == 5
