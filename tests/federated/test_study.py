# SPDX-License-Identifier: Apache-2.0
"""A whole study in one process: coordinator, three sites and an analyst over HTTP."""

import threading
import time

import pytest

from sfumato import federated
from sfumato import learning as ln
from sfumato.errors import InvalidConfig, StudyFailed, StudyRefused, WrongUse
from sfumato.federated.declaration import read_site
from sfumato.federated.site import Site, approve
from sfumato.federated.wire import Wire
from tests.contracts.federation import NAMES, coordinating, serving, write_key, write_study

BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"
ROWS = "SELECT age, dose, responded FROM patients"


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A study whose sites approve by themselves."""
    folder = tmp_path_factory.mktemp("study")
    path = write_study(folder)
    with (
        coordinating(path),
        serving(path, *NAMES) as sites,
        federated.open(path, key=folder / "analyst.pem") as study,
    ):
        yield study, sites


def spent(sites):
    """The rho that each site has spent or reserved, in units of its ledger."""
    return {name: taken(site.session) for name, site in sites.items()}


def taken(session):
    return session._ledger.balance(session.dataset.name).taken.rho


def test_a_question_is_answered_once_and_paid_by_every_site(running):
    study, sites = running
    before = spent(sites)
    answer = study.query(BY_SEX, rho="0.1", wait_s=20)
    assert [row[0] for row in answer.rows] == ["F", "M"]
    # 180 patients, of whom a third is male or so; noise of a few
    assert abs(sum(row[1] for row in answer.rows) - 180) < 60
    assert study.preview(BY_SEX, rho="0.1").cost.rho == answer.form["cost"]["rho"]
    paid = spent(sites)
    assert all(0 < paid[name] - before[name] <= 10**11 for name in NAMES)
    again = study.query(BY_SEX, rho="0.1", wait_s=20)
    assert again.bytes == answer.bytes and spent(sites) == paid
    assert all(site.session.verify().problems == () for site in sites.values())


def test_a_model_is_fitted_once(running):
    study, sites = running
    asked = {"label": "responded", "rho": "0.02", "wait_s": 20}
    model = study.fit(ln.Additive(steps=5), ROWS, **asked)
    assert len(model.predict({"age": [30], "dose": [2.0]})) == 1
    paid = spent(sites)
    again = study.fit(ln.Additive(steps=5), ROWS, **asked)
    assert (again.scores == model.scores).all() and spent(sites) == paid


def test_more_than_a_site_has_is_refused_without_saying_what_is_left(running):
    study, sites = running
    before = spent(sites)
    with pytest.raises(StudyRefused) as refusal:
        study.query("SELECT AVG(dose) AS d FROM patients", rho="1.4", wait_s=20)
    assert "refuses" in str(refusal.value) and "left" not in str(refusal.value)
    assert spent(sites) == before
    assert any("refused" in text for text in study.sites.values())


def test_a_site_that_is_silent_costs_nothing(tmp_path):
    path = write_study(tmp_path)
    with (
        coordinating(path),
        serving(path, *NAMES[:2]) as sites,
        federated.open(path, key=tmp_path / "analyst.pem") as study,
    ):
        with pytest.raises(StudyRefused) as refusal:
            study.query(BY_SEX, rho="0.1", wait_s=1)
        assert "never heard" in str(refusal.value)
        time.sleep(0.5)
        assert set(spent(sites).values()) == {0}


def test_with_enough_sites_left_the_others_answer(tmp_path):
    names = (*NAMES, "westend")
    path = write_study(tmp_path, names, more="least = 3")
    with (
        coordinating(path),
        serving(path, *NAMES) as sites,
        federated.open(path, key=tmp_path / "analyst.pem") as study,
    ):
        answer = study.query(BY_SEX, rho="0.1", wait_s=2)
        assert abs(sum(row[1] for row in answer.rows) - 180) < 60
        assert all(rho > 0 for rho in spent(sites).values())


def test_a_site_that_refuses_is_left_out(tmp_path):
    names = (*NAMES, "westend")
    path = write_study(tmp_path, names, more="least = 3")
    poor = tmp_path / "anne.data.toml"
    poor.write_text(poor.read_text().replace('epsilon = "10"', 'epsilon = "0.01"'))
    with (
        coordinating(path),
        serving(path, *names) as sites,
        federated.open(path, key=tmp_path / "analyst.pem") as study,
    ):
        study.query(BY_SEX, rho="0.1", wait_s=20)
        assert [name for name, rho in spent(sites).items() if not rho] == ["anne"]


def test_an_owner_approves_by_hand(tmp_path):
    path = write_study(tmp_path, approve="by hand")
    told: list[str] = []
    with (
        coordinating(path),
        serving(path, *NAMES, told=told) as sites,
        federated.open(path, key=tmp_path / "analyst.pem") as study,
    ):
        answers = []
        asking = threading.Thread(
            target=lambda: answers.append(study.query(BY_SEX, rho="0.1", wait_s=20))
        )
        asking.start()
        while len(told) < 3:
            time.sleep(0.02)
        assert set(spent(sites).values()) == {0} and "approve it by its id" in told[0]
        run = told[0].split(": ")[1]
        for name in NAMES:
            file = read_site(tmp_path / f"{name}.toml")
            assert approve(file, study.declared, run).startswith(run)
            with pytest.raises(Exception, match="No single run"):
                approve(file, study.declared, "zz")
        asking.join()
        assert len(answers) == 1


def test_a_site_that_declares_otherwise_is_named(tmp_path):
    path = write_study(tmp_path)
    data = tmp_path / "northgate.data.toml"
    data.write_text(data.read_text().replace("upper = 99", "upper = 120"))
    with (
        coordinating(path),
        serving(path, *NAMES) as sites,
        federated.open(path, key=tmp_path / "analyst.pem") as study,
    ):
        with pytest.raises(StudyRefused) as refusal:
            study.query(BY_SEX, rho="0.1", wait_s=10)
        assert "northgate declares otherwise: patients.age" in str(refusal.value)
        assert set(spent(sites).values()) == {0}


def test_a_site_that_dies_in_mid_run_leaves_a_run_that_goes_on(tmp_path, monkeypatch):
    """One site loses a piece: it is lost at all, what all have stored goes on, and is paid once."""
    path = write_study(tmp_path)
    whole = Wire.exchanged
    cut = threading.Event()

    def exchanged(self, run, step, body, until):
        if self._name == "anne" and step == 4 and not cut.is_set():
            cut.set()
            raise StudyFailed("the line is cut")
        return whole(self, run, step, body, until)

    monkeypatch.setattr(Wire, "exchanged", exchanged)
    asked = {"label": "responded", "rho": "0.02", "wait_s": 20}
    with (
        coordinating(path),
        serving(path, *NAMES) as sites,
        federated.open(path, key=tmp_path / "analyst.pem") as study,
    ):
        with pytest.raises(StudyFailed):
            study.fit(ln.Additive(steps=7), ROWS, **asked)
        deadline = time.monotonic() + 20
        while any(
            work.series and work.series._begun.fence
            for site in sites.values()
            for work in site._work.values()
        ):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        paid = spent(sites)
        assert all(rho > 0 for rho in paid.values())
        model = study.fit(ln.Additive(steps=7), ROWS, **asked)
        assert model.predict({"age": [30], "dose": [2.0]}) and spent(sites) == paid
        assert all(site.session.verify().problems == () for site in sites.values())


def test_a_key_of_somebody_else_opens_no_study_and_no_site(tmp_path):
    path = write_study(tmp_path)
    with pytest.raises(WrongUse):
        federated.open(path, key=tmp_path / "anne.pem")
    write_key(tmp_path, "other")
    site = tmp_path / "anne.toml"
    site.write_text(site.read_text().replace("anne.pem", "other.pem"))
    with pytest.raises(InvalidConfig):
        Site(site)


def test_no_coordinator_is_said(tmp_path, monkeypatch):
    path = write_study(tmp_path)
    with federated.open(path, key=tmp_path / "analyst.pem") as study:
        monkeypatch.setattr("sfumato.federated.wire._SLACK", 0)
        monkeypatch.setattr("sfumato.federated.study._AWAY", 0)
        with pytest.raises(StudyFailed, match="cannot be reached"):
            study.query(BY_SEX, rho="0.1", wait_s=1)


def test_a_preview_states_the_cost_of_each_site(running):
    study, _ = running
    shown = repr(study.preview(BY_SEX, rho="0.1"))
    assert "would cost each site rho = 0.0999" in shown
    (line,) = study.preview(BY_SEX, rho="0.1").error()
    assert line["column"] == "n"
    model = study.preview(ROWS, rho="0.02", recipe=ln.Additive(), label="responded")
    assert "51 releases" in repr(model)
    with pytest.raises(WrongUse):
        model.error()
