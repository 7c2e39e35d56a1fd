# SPDX-License-Identifier: Apache-2.0
"""One request after the other: sign-in, roles, bodies, paces, jobs."""

import asyncio
import io
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.ipc
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.query.session import Session
from sfumato.service.jobs import Jobs
from sfumato.service.people import Role
from sfumato.service.refusals import TooMany
from sfumato.web import app as module
from sfumato.web.routes import ROUTES, Access
from tests.contracts.clinic import COUNT, QUERY, RUNS, Clinic, Got

PREVIEW = "/v1/datasets/clinic/preview"
PASSWORD = "correct horse"


def test_a_first_week(clinic: Clinic) -> None:
    made = clinic.call("olga", "POST", "/v1/people", {"name": "cara"})
    setup = f"/setup/{made.json['invitation']}"
    assert clinic.call(None, "GET", setup).status == 200
    assert clinic.call(None, "POST", setup, {"password": PASSWORD}).status == 201
    assert clinic.call(None, "POST", setup, {"password": PASSWORD}).status == 404
    signed = clinic.call(None, "POST", "/v1/tokens", {"name": "cara", "password": PASSWORD})
    clinic.tokens["cara"] = signed.json["token"]
    assert clinic.call("cara", "GET", "/v1/datasets").json == []
    account = "/v1/datasets/clinic/accounts/study/cara"
    clinic.call("olga", "PUT", account, {"epsilon": 0.3, "reason": "a thesis"})
    assert clinic.call("cara", "GET", "/v1/datasets").json[0]["purposes"] == ["study"]
    form = {"purpose": "study", "sql": COUNT, "epsilon": 0.2}
    assert clinic.call("cara", "POST", PREVIEW, form).json["times"] == 1
    got = clinic.call("cara", "POST", QUERY, form)
    assert got.status == 200 and got.headers["sfumato-recalled"] == "false"
    again = clinic.call("cara", "POST", QUERY, form)
    assert again.body == got.body and again.headers["sfumato-recalled"] == "true"
    short = clinic.call("cara", "POST", QUERY, {**form, "sql": "SELECT AVG(age) AS a FROM people"})
    assert short.status == 402 and short.json["charged"] is False
    wish = {"purpose": "study", "epsilon": "0.5", "reason": "one more"}
    asked = clinic.call("cara", "POST", "/v1/datasets/clinic/requests", wish).json
    assert clinic.call("cara", "POST", f"/v1/requests/{asked['id']}/approve").status == 403
    assert clinic.call("olga", "POST", f"/v1/requests/{asked['id']}/approve", {}).status == 200
    assert (
        clinic.call(
            "cara", "POST", QUERY, {**form, "sql": "SELECT AVG(age) AS a FROM people"}
        ).status
        == 200
    )
    charge = got.headers["sfumato-charge"]
    answer = f"/v1/datasets/clinic/answers/{charge}"
    assert clinic.call("cara", "GET", answer).body == got.body
    assert (
        clinic.call("cara", "GET", f"{answer}.csv").headers["content-type"].startswith("text/csv")
    )
    assert len(clinic.call("cara", "GET", "/v1/datasets/clinic/answers?purpose=study").json) == 2
    assert clinic.call("ian", "POST", "/v1/datasets/clinic/verify", {}).json["sound"]
    assert b"cara" in clinic.call("ian", "GET", "/v1/datasets/clinic/report").body
    assert clinic.call("cara", "DELETE", f"/v1/tokens/{signed.json['id']}").status == 204
    assert clinic.call("cara", "GET", "/v1/me").status == 401
    kinds = {each["kind"] for each in clinic.call("ian", "GET", "/v1/trail").json}
    assert {"invited", "sign_in", "refused", "request_made", "request_approved"} <= kinds


ADVISE = "/v1/datasets/clinic/advise"


def test_advice_charges_nothing_and_needs_an_account(clinic: Clinic) -> None:
    form = {"purpose": "study", "sql": "SELECT AVG(age) AS a FROM people", "epsilon": "0.1"}
    reading = clinic.service.people.make_token("ann", read_only=True, by="test").secret
    assert clinic.call(reading, "POST", ADVISE, form).status == 200
    assert clinic.call("ian", "POST", ADVISE, form).status == 403
    assert clinic.call("ann", "POST", ADVISE, {**form, "purpose": "other"}).status == 403
    elsewhere = ADVISE.replace("clinic", "nowhere")
    assert clinic.call("ann", "POST", elsewhere, form).status == 404
    # what it would pay for is charged, and so is no advice
    assert clinic.call("ann", "POST", ADVISE, {**form, "beyond": "0.1"}).status == 400
    for rows in (0, -1, 1.5, True, "20", [], 10**30):
        assert clinic.call("ann", "POST", ADVISE, {**form, "rows": rows}).status == 400
    for wrong in ({"epsilon": None}, {"epsilon": []}, {"sql": 1}, {"parameters": 1}, {"rho": "x"}):
        assert clinic.call("ann", "POST", ADVISE, {**form, **wrong}).status == 400
    assert clinic.spent() == 0


def test_another_persons_chart_looks_like_none(clinic: Clinic) -> None:
    charge = clinic.ask("ann", epsilon="0.25").headers["sfumato-charge"]
    path = f"/v1/datasets/clinic/answers/{charge}.svg"
    chart = clinic.call("ann", "GET", path)
    assert chart.status == 200 and chart.headers["content-type"] == "image/svg+xml"
    assert "default-src 'none'" in chart.headers["content-security-policy"]
    none = clinic.call("bob", "GET", "/v1/datasets/clinic/answers/none.svg")
    hidden = clinic.call("bob", "GET", path)
    assert hidden.status == 404 and hidden.body == none.body


@pytest.mark.parametrize("route", ROUTES, ids=lambda each: f"{each.method} {each.path}")
def test_every_route_obeys_the_table(clinic: Clinic, route: Any) -> None:
    path = route.path.replace("{dataset}", "clinic")
    for name in route.segments:
        path = path.replace(name, "x") if name.startswith("{") else path
    roles = {"olga": Role.OWNER, "ian": Role.AUDITOR, "ann": Role.ANALYST}
    statuses = {
        name: clinic.call(name, route.method, path).status for name in (*roles, None, "sfu_x")
    }
    if route.access is Access.OPEN:
        assert 401 not in (statuses[None], statuses["sfu_x"])
        return
    assert statuses[None] == statuses["sfu_x"] == 401
    for name, role in roles.items():
        if role not in route.access.value:
            assert statuses[name] == 403
    assert max(statuses[name] for name in roles) < 500


def test_a_read_only_token_charges_and_changes_nothing(clinic: Clinic) -> None:
    for name in ("ann", "olga"):
        token = clinic.service.people.make_token(name, read_only=True, by="test").secret
        clinic.tokens[f"{name} reads"] = token
    before = clinic.ledger.store.read(lambda rows: rows.last_entry("clinic").seq)
    for route in ROUTES:
        if route.access is not Access.OPEN and route.method != "GET" and not route.reads:
            path = route.path.replace("{dataset}", "clinic")
            for name in route.segments:
                path = path.replace(name, "ann") if name.startswith("{") else path
            who = "ann reads" if Role.ANALYST in route.access.value else "olga reads"
            form = {"purpose": "study", "sql": COUNT, "epsilon": "0.1", "reason": "x"}
            body = {key: form[key] for key in route.fields if key in form}
            assert clinic.call(who, route.method, path, body).status == 403, route
    assert clinic.ledger.store.read(lambda rows: rows.last_entry("clinic").seq) == before
    form = {"purpose": "study", "sql": COUNT, "epsilon": "0.1"}
    assert clinic.call("ann reads", "POST", PREVIEW, form).status == 200


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        (QUERY, b"x" * 70_000, {}, 413),
        (QUERY, b'{"sql": NaN}', {}, 400),
        (QUERY, b'{"sql": 1, "sql": 2}', {}, 400),
        (QUERY, b"[" * 60_000, {}, 400),
        (
            QUERY,
            b'{"purpose": "study", "sql": "SELECT COUNT(*) FROM people", "epsilon": 1e999}',
            {},
            400,
        ),
        (
            QUERY,
            b'{"purpose": "study", "sql": "SELECT COUNT(*) FROM people", "epsilon": true}',
            {},
            400,
        ),
        (QUERY, b'{"purpose": "study", "sql": "SELEC", "epsilon": 1}', {}, 422),
        (
            QUERY,
            b'{"purpose": "study", "sql": "SELECT COUNT(*) FROM nowhere", "epsilon": 1}',
            {},
            422,
        ),
        (
            QUERY,
            b'{"purpose": "none", "sql": "SELECT COUNT(*) FROM people", "epsilon": 1}',
            {},
            403,
        ),
        (QUERY, b"{}", {"Idempotency-Key": "x" * 300}, 400),
        (QUERY, b"{}", {"Idempotency-Key": ""}, 400),
        (QUERY + "?wait=soon", b"{}", {}, 400),
        (QUERY + "?wiat=1", b"{}", {}, 400),
        (QUERY + "?wait=1&wait=2", b"{}", {}, 400),
        ("/v1/datasets/clin%FFic/query", b"{}", {}, 404),
        ("/v1/datasets//query", b"{}", {}, 404),
        ("/v1/datasets/a%2Fb/query", b"{}", {}, 404),
        ("/v1/nothing", b"{}", {}, 404),
        ("/v1/me", b"{}", {}, 405),
    ],
)
def test_bad_input_has_a_typed_reply_and_charges_nothing(
    clinic: Clinic, path: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    got = clinic.call("ann", "POST", path, body, headers)
    assert got.status == status and got.json["charged"] is False
    assert clinic.spent() == 0 and got.headers["cache-control"] == "no-store"


def test_a_slow_body_ends(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SLOWEST_BODY", 0.05)

    async def never() -> Any:
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def slow(*_: Any) -> bytes:
        async def receive() -> Any:
            await asyncio.sleep(0.02)
            return await never()

        return await module._body(receive)

    with pytest.raises(module.WrongUse, match="more than"):
        asyncio.run(slow())


def slowly(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Questions wait for this event, or until they are stopped."""
    go, real = threading.Event(), Session.query

    def query(self: Session, *given: Any, stop: sf.Stop, **named: Any) -> Any:
        while not go.is_set() and not stop.is_stopped:
            time.sleep(0.005)
        return real(self, *given, stop=stop, **named)

    monkeypatch.setattr(Session, "query", query)
    return go


def test_a_long_question_goes_on_as_a_job(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    go = slowly(monkeypatch)
    form = {"purpose": "study", "sql": COUNT, "epsilon": "0.1"}
    got = clinic.call("ann", "POST", f"{QUERY}?wait=0", form)
    assert got.status == 202 and got.json["state"] in ("waiting", "running")
    job = got.headers["location"]
    assert clinic.call("ann", "GET", job).json["state"] == "running"
    waiting = clinic.begin("ann", "GET", f"{job}?wait=30")
    go.set()
    done = waiting.result(20).json
    assert done["state"] == "done" and set(done) == {"job", "state", "result", "charge"}
    answer = clinic.call("ann", "GET", f"/v1/datasets/clinic/answers/{done['charge']}")
    assert answer.status == 200 and clinic.spent() == 10**11
    # whoever went away and comes back gets the same reply, as often as it is fetched
    fetched = [clinic.call("ann", "GET", done["result"]) for _ in range(2)]
    assert [(got.status, got.body) for got in fetched] == [(200, answer.body)] * 2
    assert fetched[0].headers["sfumato-recalled"] == "false" and clinic.spent() == 10**11
    # after a restart the same question finds its stored answer
    assert clinic.call("ann", "POST", QUERY, form).body == answer.body


def test_a_job_is_stopped(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    slowly(monkeypatch)
    form = {"purpose": "study", "sql": COUNT, "epsilon": "0.1"}
    job = clinic.call("ann", "POST", f"{QUERY}?wait=0", form).headers["location"]
    assert clinic.call("ann", "DELETE", job).status == 200
    ended = clinic.call("ann", "GET", f"{job}?wait=30").json
    assert ended["state"] == "stopped" and '"charged": false' in ended["problem"]
    for _ in range(2):
        got = clinic.call("ann", "GET", ended["result"])
        assert (got.status, got.body.decode()) == (409, ended["problem"])
    assert clinic.spent() == 0


def test_who_fetches_a_result_waits_for_it(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    go = slowly(monkeypatch)
    form = {"purpose": "study", "sql": COUNT, "epsilon": "0.1"}
    asked = clinic.call("ann", "POST", f"{QUERY}?wait=0", form)
    early = clinic.call("ann", "GET", asked.json["result"])
    assert early.status == 202 and early.headers["location"] == asked.headers["location"]
    assert early.json["state"] in ("waiting", "running")
    waiting = clinic.begin("ann", "GET", f"{asked.json['result']}?wait=30")
    go.set()
    assert waiting.result(20).status == 200
    # those who waited in vain are forgotten: a future would keep each until the end
    (job,) = clinic.service.jobs._shown["ann"].values()
    assert job._waking == set()
    for options in ("wait=x", "wait=-1", "form=csv"):
        assert clinic.call("ann", "GET", f"{asked.json['result']}?{options}").status == 400
    assert clinic.call("ann", "DELETE", asked.json["result"]).status == 405


def test_a_large_result_is_sent_in_pieces_and_leaves_no_file_open(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.web.results._IN_MEMORY", 8)
    monkeypatch.setattr(module, "_PIECE", 100)
    go = slowly(monkeypatch)
    form = {"purpose": "study", "sql": COUNT, "epsilon": "0.1"}
    result = clinic.call("ann", "POST", f"{QUERY}?wait=0", form).json["result"]
    go.set()
    first = clinic.call("ann", "GET", f"{result}?wait=30")
    files = len(list(Path("/proc/self/fd").iterdir()))
    assert [clinic.call("ann", "GET", result).body for _ in range(5)] == [first.body] * 5
    assert len(list(Path("/proc/self/fd").iterdir())) <= files + 2
    assert len(first.body) > 200 and clinic.call("ann", "POST", QUERY, form).body == first.body


def test_a_result_that_gave_way_to_newer_ones_is_asked_for_again_free(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = slowly(monkeypatch)
    forms = [
        {"purpose": "study", "sql": f"{COUNT} WHERE age > {n}", "epsilon": "0.1"} for n in range(5)
    ]
    jobs = [clinic.call("ann", "POST", f"{QUERY}?wait=0", form).json for form in forms]
    go.set()
    states = [clinic.call("ann", "GET", f"/v1/jobs/{job['job']}?wait=30").json for job in jobs]
    assert {state["state"] for state in states} == {"done"}
    ends, statuses = time.monotonic() + 20, [200] * 5
    while 410 not in statuses and time.monotonic() < ends:
        # the last one takes its place just after its end is seen
        statuses = [clinic.call("ann", "GET", job["result"]).status for job in jobs]
    assert sorted(statuses) == [200] * 4 + [410]
    gone = statuses.index(410)
    again = clinic.call("ann", "POST", QUERY, forms[gone])
    assert (again.status, again.headers["sfumato-recalled"]) == (200, "true")
    assert clinic.spent("ann") == 5 * 10**11


@pytest.mark.parametrize("works", [True, False])
def test_a_reply_of_a_question_leaves_at_a_multiple_of_the_quantum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    with Clinic(tmp_path, quantum=1) as clinic:
        if not works:
            monkeypatch.setattr("sfumato.query.release.SqlTask.run", broken)
        took = []
        for epsilon in ("0.1", "9"):
            clinic.ask("ann", epsilon=epsilon)
            took.append(time.monotonic() % 1)
        assert max(took) < 0.5


def broken(*_: object) -> bytes:
    raise MemoryError


def test_an_answer_of_another_kind_is_its_bytes(clinic: Clinic) -> None:
    session = clinic.service.datasets.find("clinic").session.asking_as("ann", "study")
    charge = session.marginals("people", [["sex"]], epsilon="0.1").charge_id
    path = f"/v1/datasets/clinic/answers/{charge}"
    got = clinic.call("ann", "GET", path)
    assert got.status == 200 and got.body == session.stored(charge).body
    assert clinic.call("ann", "GET", f"{path}.csv").status == 404
    (line,) = clinic.call("ann", "GET", "/v1/datasets/clinic/answers?purpose=study").json
    assert (line["charge"], line["kind"]) == (charge, "marginals")


def test_readings_keep_nobody_from_signing_in(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    clinic.service.people.set_password("bob", PASSWORD, by="test")
    go = threading.Event()
    monkeypatch.setattr("sfumato.service.office.verify", lambda *_: go.wait(20))
    readings = [clinic.begin("ian", "POST", "/v1/datasets/clinic/verify", {}) for _ in range(8)]
    signed = clinic.begin(None, "POST", "/v1/tokens", {"name": "bob", "password": PASSWORD})
    assert signed.result(10).status == 201
    go.set()
    assert all(reading.result(20).status for reading in readings)


def test_previews_are_paced(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    go, real = threading.Event(), Session.preview
    monkeypatch.setattr(
        Session, "preview", lambda self, *a, **n: (go.wait(10), real(self, *a, **n))[1]
    )
    form = {"purpose": "study", "sql": COUNT, "epsilon": "0.1"}
    first = clinic.begin("ann", "POST", PREVIEW, form)
    while not clinic.app._paces._busy:
        time.sleep(0.005)
    second = clinic.call("ann", "POST", PREVIEW, form)
    assert second.status == 429 and "retry-after" in second.headers
    of_bob = clinic.begin("bob", "POST", PREVIEW, form)
    go.set()
    assert first.result(10).status == of_bob.result(10).status == 200
    assert clinic.call("ann", "POST", PREVIEW, form).status == 200


def test_previews_of_a_minute_are_counted() -> None:
    now = [0.0]

    async def tries() -> list[bool]:
        previews = module.Previews(2, lambda: now[0])
        seen = []
        for moment in (0, 1, 2, 59, 60.5):
            now[0] = moment
            try:
                async with previews.previewing("ann"):
                    seen.append(True)
            except TooMany:
                seen.append(False)
        return seen

    assert asyncio.run(tries()) == [True, True, False, False, True]


def test_too_many_questions_of_one_person_are_refused_before_they_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Clinic(tmp_path, waiting=2) as clinic:
        go = slowly(monkeypatch)
        begun = [
            clinic.begin("ann", "POST", QUERY, {"purpose": "study", "sql": COUNT, "epsilon": each})
            for each in ("0.1", "0.2")
        ]
        while len(clinic.service.jobs._under_way.get("ann", ())) < 2:
            time.sleep(0.005)
        got = clinic.ask("ann", epsilon="0.3")
        assert got.status == 429 and got.json["charged"] is False
        go.set()
        replies: list[Got] = [each.result(20) for each in begun]
        assert [reply.status for reply in replies] == [200, 200]
    assert isinstance(clinic.service.jobs, Jobs)


def test_a_failure_of_the_state_is_a_typed_reply(clinic: Clinic) -> None:
    clinic.service.people._state.rows("DROP TABLE tokens")
    got = clinic.ask("ann", epsilon="0.1")
    assert got.status == 503 and got.json["charged"] is False and clinic.spent() == 0


def test_a_bug_before_a_question_is_a_500_without_its_text(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_me(*_: object) -> None:
        raise ZeroDivisionError("secret 7")

    monkeypatch.setattr("sfumato.service.desk.Desk.me", broken_me)
    got = clinic.call("ann", "GET", "/v1/me")
    assert got.status == 500 and b"secret" not in got.body


def test_a_service_that_stops_begins_nothing(clinic: Clinic) -> None:
    clinic.service.jobs.close()
    got = clinic.ask("ann", epsilon="0.1")
    assert got.status == 503 and clinic.spent() == 0
    assert clinic.call("ann", "GET", "/v1/me").status == 200


CELLS = {"purpose": "study", "table": "people", "cliques": [["sex"]], "epsilon": "0.1"}
TWO = {
    "purpose": "study",
    "questions": {"n": COUNT, "o": f"{COUNT} WHERE age > 30"},
    "epsilon": "0.1",
}
DIAGNOSE = {"purpose": "study", "sql": "SELECT AVG(age) AS a FROM people", "epsilon": "0.1"}
CHARGED = {
    "marginals": CELLS, "publish": TWO, "diagnose": DIAGNOSE, "run/synopses/ages": {"purpose": "study"},
}  # fmt: skip


@pytest.mark.parametrize("path", CHARGED)
def test_what_is_charged_beside_queries(tmp_path: Path, path: str) -> None:
    form, place = CHARGED[path], f"/v1/datasets/clinic/{path}"
    with Clinic(tmp_path, RUNS) as clinic:
        reading = clinic.service.people.make_token("ann", read_only=True, by="test").secret
        before = clinic.ledger.store.read(lambda rows: rows.last_entry("clinic").seq)
        for who, sent, status in (
            ("ian", form, 403),
            (reading, form, 403),
            ("ann", {**form, "purpose": "other"}, 403),
            ("ann", {**form, "nobody": 1}, 400),
        ):
            assert clinic.call(who, "POST", place, sent).status == status
        nowhere = place.replace("clinic", "nowhere")
        assert clinic.call("ann", "POST", nowhere, form).status == 404
        if path != "diagnose":
            shown = clinic.call("ann", "POST", place, {**form, "preview": True})
            assert shown.status == 200 and shown.json["cost"]["epsilon"] == "0.1"
            assert clinic.call("ian", "POST", place, {**form, "preview": True}).status == 403
            assert clinic.call("ann", "POST", place, {**form, "preview": 1}).status == 400
        # nothing before was charged, or has an entry
        assert clinic.ledger.store.read(lambda rows: rows.last_entry("clinic").seq) == before
        got = clinic.call("ann", "POST", place, form)
        assert got.status == 200 and clinic.spent("ann") == 10**11
        assert got.headers["sfumato-recalled"] == "false"
        for charge in got.headers["sfumato-charge"].split(", "):
            answer = f"/v1/datasets/clinic/answers/{charge}"
            assert clinic.call("ann", "GET", answer).status == 200
            assert clinic.call("bob", "GET", answer).status == 404
        # as a job it is the same
        job = clinic.call("ann", "POST", f"{place}?wait=0", form)
        if job.status == 202:
            done = clinic.call("ann", "GET", f"{job.headers['location']}?wait=30").json
            assert done["charge"] == got.headers["sfumato-charge"]
            assert clinic.call("ann", "GET", done["result"]).body == got.body
        again = clinic.call("ann", "POST", place, form)
        assert (again.body, again.headers["sfumato-recalled"]) == (got.body, "true")
        assert clinic.spent("ann") == 10**11


@pytest.mark.parametrize("path", ["publish", "diagnose", "run/synopses/ages"])
def test_a_key_of_what_takes_none_is_refused(tmp_path: Path, path: str) -> None:
    with Clinic(tmp_path, RUNS) as clinic:
        place = f"/v1/datasets/clinic/{path}"
        got = clinic.call("ann", "POST", place, CHARGED[path], {"Idempotency-Key": "k"})
        assert got.status == 400 and got.json["charged"] is False and clinic.spent() == 0


def test_marginals_under_a_key_are_paid_once(clinic: Clinic) -> None:
    place, key = "/v1/datasets/clinic/marginals", {"Idempotency-Key": "k"}
    first = clinic.call("ann", "POST", place, CELLS, key)
    assert clinic.call("ann", "POST", place, CELLS, key).body == first.body
    other = clinic.call("ann", "POST", place, {**CELLS, "cliques": [["age"]]}, key)
    assert other.status == 409 and other.json["charged"] is False
    assert clinic.spent("ann") == 10**11


def test_marginals_are_files_too_and_paid_once(clinic: Clinic) -> None:
    place = "/v1/datasets/clinic/marginals"
    wrong = clinic.call("ann", "POST", f"{place}?form=xlsx", CELLS)
    assert (wrong.status, wrong.json["charged"], clinic.spent()) == (400, False, 0)
    sheet = clinic.call("ann", "POST", f"{place}?form=csv", CELLS)
    assert sheet.status == 200 and sheet.headers["content-type"].startswith("text/csv")
    header, *rows = sheet.body.decode().splitlines()
    assert header == "marginal,sex,n,n_low,n_high"
    counts = clinic.call("ann", "POST", place, CELLS).json["marginals"][0]["counts"]
    assert [line.split(",")[:2] for line in rows] == [["sex", "F"], ["sex", "M"], ["sex", ""]]
    assert [float(line.split(",")[2]) for line in rows] == counts
    parquet = clinic.call("ann", "POST", f"{place}?form=parquet", CELLS).body
    assert pyarrow.parquet.read_table(io.BytesIO(parquet)).column("n").to_pylist() == counts
    arrow = clinic.call("ann", "POST", f"{place}?form=arrow", CELLS)
    read = pyarrow.ipc.open_stream(arrow.body).read_all()
    assert read.column("n").to_pylist() == counts
    assert arrow.headers["sfumato-recalled"] == "true" and clinic.spent("ann") == 10**11


def test_what_mining_finds_is_a_sheet_too(tmp_path: Path) -> None:
    place, form = "/v1/datasets/clinic/run", {"purpose": "study"}
    with Clinic(tmp_path, RUNS) as clinic:
        for path in ("mining/sexes?form=xlsx", "synopses/ages?form=csv"):
            wrong = clinic.call("ann", "POST", f"{place}/{path}", form)
            assert (wrong.status, wrong.json["charged"], clinic.spent()) == (400, False, 0)
        sheet = clinic.call("ann", "POST", f"{place}/mining/sexes?form=csv", form)
        assert sheet.status == 200 and sheet.headers["content-type"].startswith("text/csv")
        rows = clinic.call("ann", "POST", f"{place}/mining/sexes", form).json["rows"]
        header, *lines = sheet.body.decode().splitlines()
        assert header.split(",") == list(rows[0]) and len(lines) == len(rows)
        assert [line.split(",")[0] for line in lines] == [row["items"] for row in rows]
        assert clinic.spent("ann") == 10**11


def test_a_file_that_cannot_be_written_is_no_failure_that_clients_repeat(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.web.reply.rows_as_csv", broken)
    got = clinic.call("ann", "POST", "/v1/datasets/clinic/marginals?form=csv", CELLS)
    assert got.status == 409 and got.json["charged"] in (True, None)


@pytest.mark.parametrize("path", CHARGED)
def test_no_failure_of_what_may_be_charged_is_one_that_clients_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    with Clinic(tmp_path, RUNS) as clinic:
        for kind in ("release.SqlTask", "marginals.MarginalsTask"):
            monkeypatch.setattr(f"sfumato.query.{kind}.run", broken)
        monkeypatch.setattr("sfumato.config.runs.measured", broken)
        got = clinic.call("ann", "POST", f"/v1/datasets/clinic/{path}", CHARGED[path])
        assert got.status == 409 and got.json["charged"] in (True, None)


DUMMY = "/v1/datasets/clinic/dummy/people"


def test_made_up_rows_are_free_and_for_who_sees_the_dataset(clinic: Clinic) -> None:
    got = clinic.call("ann", "GET", f"{DUMMY}.csv?rows=4&seed=1")
    assert got.status == 200 and got.headers["content-type"].startswith("text/csv")
    assert got.body.decode().splitlines()[0] == "person,age,sex" and got.body.count(b"\n") == 5
    assert clinic.call("ian", "GET", f"{DUMMY}.csv?rows=4&seed=1").body == got.body
    assert clinic.call("ann", "GET", f"{DUMMY}.parquet").status == 200
    nothing = clinic.call("ann", "GET", "/v1/datasets/nowhere/dummy/people.csv")
    for path in (f"{DUMMY}.xlsx", DUMMY, DUMMY.replace("people", "others.csv")):
        hidden = clinic.call("ann", "GET", path)
        assert (hidden.status, hidden.body) == (404, nothing.body)
    for options in ("rows=-1", "rows=99999999", "seed=x", "rows=1&rows=2", "size=1"):
        assert clinic.call("ann", "GET", f"{DUMMY}.csv?{options}").status == 400
    clinic.service.people.add("eve", Role.ANALYST, by="test")
    clinic.tokens["eve"] = clinic.service.people.make_token("eve", by="test").secret
    assert clinic.call("eve", "GET", f"{DUMMY}.csv").body == nothing.body
    assert clinic.spent() == 0
