# SPDX-License-Identifier: Apache-2.0
"""Diagnoses, marginals, publications and declared runs: previews are free, each is paid once."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.config.released import Result
from sfumato.errors import Cancelled, EngineFailed, InvalidConfig, WrongUse
from sfumato.service import releases
from sfumato.service.charging import Account
from sfumato.service.ended import Ended
from sfumato.service.refusals import NotVisible
from tests.contracts.clinic import COUNT, RUNS, Clinic
from tests.service.test_charging import account_of

MEAN = "SELECT AVG(age) AS a FROM people"
TWO = {"questions": {"n": COUNT, "a": MEAN}, "epsilon": "0.2", "weights": {"n": 3}}
CELLS = {"table": "people", "cliques": [["sex"], ["sex", "age"]], "epsilon": "0.1"}


def as_it_is(result: Result) -> Result:
    return result


@pytest.fixture
def clinic(tmp_path: Path) -> Any:
    with Clinic(tmp_path, RUNS) as opened:
        yield opened


@pytest.fixture
def account(clinic: Clinic) -> Account:
    return account_of(clinic)


def test_a_diagnosis_is_that_of_the_session_and_paid_once(clinic: Clinic, account: Account) -> None:
    form = {"sql": MEAN, "epsilon": "0.1"}
    first, again = releases.diagnose(account, form), releases.diagnose(account, form)
    assert json.loads(first.body) == account.session.diagnose(MEAN, epsilon="0.1").to_json()
    assert (first.recalled, again.recalled, again.body) == (False, True, first.body)
    assert clinic.spent("ann") == 10**11 and len(first.charges) == 2


def test_marginals_are_those_of_the_session_and_cost_what_their_preview_says(
    clinic: Clinic, account: Account
) -> None:
    preview = releases.preview_marginals(account, CELLS)
    assert clinic.spent("ann") == 0 and preview["times"] == 10
    got = releases.marginals(
        account, CELLS, None, None, lambda cells: json.dumps(cells.to_json()).encode()
    )
    asked = account.session.marginals("people", CELLS["cliques"], epsilon="0.1")
    assert json.loads(got.body) == asked.to_json() and asked.recalled
    assert preview["cost"] == json.loads(got.body)["cost"]
    assert [part["half_width"] for part in json.loads(got.body)["marginals"]] == [
        preview["half_width"]
    ] * 2
    wanted = {**CELLS, "epsilon": None, "error": 40, "max_epsilon": "0.5"}
    assert releases.preview_marginals(account, wanted)["half_width"] <= 40


def test_a_publication_costs_what_its_preview_says(clinic: Clinic, account: Account) -> None:
    preview = releases.preview_publication(account, TWO)
    assert preview["cost"]["epsilon"] == "0.2" and clinic.spent("ann") == 0
    assert [line["cost"]["epsilon"] for line in preview["questions"]] == ["0.15", "0.05"]
    got = releases.publish(account, TWO, None)
    answers = json.loads(got.body)["answers"]
    assert [answers[name]["charge_id"] for name in ("n", "a")] == list(got.charges)
    assert clinic.spent("ann") == 2 * 10**11
    assert releases.preview_publication(account, TWO)["times"] is None
    again = releases.publish(account, TWO, None)
    assert (again.body, again.recalled, clinic.spent("ann")) == (got.body, True, 2 * 10**11)


def test_a_publication_stops_between_two_questions(clinic: Clinic, account: Account) -> None:
    stop = sf.Stop()
    stop.stop()
    with pytest.raises(Ended) as ended:
        releases.publish(account, TWO, stop)
    assert isinstance(ended.value.error, Cancelled) and ended.value.charged is True
    assert 0 < clinic.spent("ann") < 2 * 10**11


def test_a_refusal_after_a_paid_question_may_have_been_charged(
    clinic: Clinic, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = sf.Session.query

    def query(self: sf.Session, sql: str, **given: Any) -> Any:
        if sql == MEAN:
            raise WrongUse("x")
        return real(self, sql, **given)

    monkeypatch.setattr(sf.Session, "query", query)
    with pytest.raises(Ended) as ended:
        releases.publish(account, {**TWO, "weights": None}, None)
    assert ended.value.charged is (None if clinic.spent("ann") else False)


@pytest.mark.parametrize("section", ["synopses", "models", "synthetic", "mining", "census"])
def test_what_the_file_declares_is_measured_once_for_the_cost_of_its_preview(
    clinic: Clinic, account: Account, section: str
) -> None:
    (name,) = account.served.declared.sections[section]
    preview = releases.preview_run(account, section, name)
    assert clinic.spent("ann") == 0 and preview["cost"]["epsilon"] == "0.1" and preview["plan"]
    got = releases.run(account, section, name, None, as_it_is)
    assert clinic.spent("ann") == 10**11 and len(got.charges) == 1
    assert account.session.stored(got.charges[0]).charge == got.charges[0]
    match got.form:
        case sf_form if sf_form.value == "json":
            assert json.loads(got.body)
        case sf_form if sf_form.value == "arrow":
            assert pa.ipc.open_stream(got.body).read_all().num_rows
        case _:
            names = zipfile.ZipFile(io.BytesIO(got.body)).namelist()
            assert {"people.csv", "people.csv.json", "people.parquet"} <= set(names)
    assert releases.run(account, section, name, None, as_it_is).charges == got.charges
    assert clinic.spent("ann") == 10**11


def test_a_failed_run_is_charged(
    clinic: Clinic, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise EngineFailed()

    monkeypatch.setattr("sfumato.config.runs.measured", fails)
    with pytest.raises(Ended) as ended:
        releases.run(account, "synopses", "ages", None, as_it_is)
    assert ended.value.charged is True


@pytest.mark.parametrize(
    ("section", "name"),
    [("synopses", "other"), ("nothing", "ages"), ("tables", "people"), ("budget", "epsilon")],
)
def test_what_is_not_declared_is_not_there(account: Account, section: str, name: str) -> None:
    with pytest.raises(NotVisible):
        releases.preview_run(account, section, name)
    with pytest.raises(NotVisible):
        releases.run(account, section, name, None, as_it_is)


def test_a_wrong_section_shows_no_path_of_the_owner(tmp_path: Path) -> None:
    with Clinic(tmp_path, RUNS.replace('"spine.csv"', '"nowhere.csv"')) as clinic:
        with pytest.raises(InvalidConfig) as refused:
            releases.preview_run(account_of(clinic), "census", "sexes")
        assert "nowhere" not in str(refused.value) and str(tmp_path) not in str(refused.value)


@pytest.mark.parametrize(
    "wrong",
    [{"table": 1}, {"cliques": "sex"}, {"cliques": [1]}, {"epsilon": True}, {"error": []}],
)
def test_marginals_of_another_form_are_refused(account: Account, wrong: Any) -> None:
    with pytest.raises(WrongUse):
        releases.preview_marginals(account, {**CELLS, **wrong})


@pytest.mark.parametrize(
    "wrong", [{"questions": {}}, {"questions": [COUNT]}, {"weights": 2}, {"sizes": []}]
)
def test_a_publication_of_another_form_is_refused(account: Account, wrong: Any) -> None:
    with pytest.raises(WrongUse):
        releases.preview_publication(account, {**TWO, **wrong})
