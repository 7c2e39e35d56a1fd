# SPDX-License-Identifier: Apache-2.0
"""The office: limits are accounts of the ledger; requests are approved once; readings are kept."""

from pathlib import Path

import pytest

from sfumato.errors import AccountFrozen, WrongUse
from sfumato.privacy.budget import Budget
from sfumato.service import office as module
from sfumato.service.people import Caller
from sfumato.service.refusals import LimitChanged, NotVisible
from tests.contracts.clinic import COUNT, Clinic


def caller(clinic: Clinic, name: str) -> Caller:
    return clinic.service.people.caller(clinic.tokens[name])


def last(clinic: Clinic) -> dict[str, object]:
    return clinic.service.office.log(caller(clinic, "ian"), "clinic", after=0, limit=1000)[-1]


def test_a_grant_is_an_account_of_the_ledger(tmp_path: Path) -> None:
    with Clinic(tmp_path) as clinic:
        office, olga = clinic.service.office, caller(clinic, "olga")
        form = {"epsilon": "0.25", "delta": "1e-8", "reason": "a thesis"}
        given = office.grant(olga, ("clinic", "thesis", "bob"), form)
        assert given["limit"] == {"epsilon": "0.25", "delta": "0.00000001"}
        assert clinic.ledger.standing("clinic", "thesis", "bob").limit == Budget("0.25", "1e-8")
        assert (last(clinic)["actor"], last(clinic)["reason"]) == ("olga", "a thesis")
        # nothing of it is in the state of the service
        state = clinic.service.people._state
        tables = state.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")
        assert {name for (name,) in tables} == {
            "people", "tokens", "invitations", "requests", "trail",
        }  # fmt: skip
        for who in ("nobody", "ian", "owner"):
            with pytest.raises(WrongUse):
                office.grant(olga, ("clinic", "study", who), form)
        with pytest.raises(NotVisible):
            office.grant(olga, ("nowhere", "study", "bob"), form)
        with pytest.raises(WrongUse):
            office.grant(olga, ("clinic", "study", "bob"), {"epsilon": "1"})


def test_a_request_is_approved_once_and_against_the_limit_that_it_was_made_at(
    tmp_path: Path,
) -> None:
    with Clinic(tmp_path) as clinic:
        desk, office = clinic.service.desk, clinic.service.office
        olga, bob = caller(clinic, "olga"), caller(clinic, "bob")
        form = {"purpose": "study", "epsilon": "0.7", "reason": "x"}
        first, second, third = (str(desk.request(bob, "clinic", form)["id"]) for _ in range(3))
        office.approve(olga, first, {})
        assert clinic.ledger.standing("clinic", "study", "bob").limit == Budget("0.7")
        assert str(last(clinic)["reason"]).startswith(f"request {first}")
        with pytest.raises(LimitChanged):
            office.approve(olga, first, {})
        clinic.grant("bob", "0.1")
        with pytest.raises(LimitChanged):
            office.approve(olga, second, {})
        assert clinic.ledger.standing("clinic", "study", "bob").limit == Budget("0.1")
        office.decline(olga, second, {"reason": "no"})
        # a crash after the ledger and before the state: approving again writes nothing twice
        clinic.grant("bob", "0.7")
        before = last(clinic)["seq"]
        assert office.approve(olga, third, {})["state"] == "approved"
        assert last(clinic)["seq"] == before


def test_a_frozen_account_asks_nothing_until_it_is_thawed(tmp_path: Path) -> None:
    with Clinic(tmp_path) as clinic:
        office, olga = clinic.service.office, caller(clinic, "olga")
        clinic.ask("bob", epsilon="0.1")
        shown = office.freeze(olga, "clinic", {"purpose": "study", "analyst": "bob", "reason": "x"})
        assert shown["frozen"]
        got = clinic.ask("bob", epsilon="0.2")
        assert got.status == 423 and got.json["charged"] is False
        assert clinic.ask("ann", epsilon="0.2").status == 200
        session = clinic.service.datasets.find("clinic").session.asking_as("bob", "study")
        with pytest.raises(AccountFrozen):
            session.query(COUNT, epsilon="0.1")
        office.thaw(olga, "clinic", {"purpose": "study", "analyst": "bob", "reason": "y"})
        assert clinic.ask("bob", epsilon="0.2").status == 200


def test_readings_are_kept_until_the_journal_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[str] = []
    for name in ("verify", "summary"):
        real = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given, real=real, name=name: runs.append(name) or real(*given)
        )
    with Clinic(tmp_path) as clinic:
        office, ian = clinic.service.office, caller(clinic, "ian")
        assert office.verify(ian, "clinic", {})["sound"]
        office.verify(ian, "clinic", {})
        english = office.report(ian, "clinic", "en")
        assert office.report(ian, "clinic", "en") == english
        assert runs == ["verify", "summary"]
        assert office.report(ian, "clinic", "zh") != english
        clinic.ask("ann", epsilon="0.1")
        assert office.verify(ian, "clinic", {})["charges"] == 1
        assert runs == ["verify", "summary", "summary", "verify"]


def test_a_head_kept_elsewhere_is_compared(tmp_path: Path) -> None:
    with Clinic(tmp_path) as clinic:
        office, ian = clinic.service.office, caller(clinic, "ian")
        head = office.head(ian, "clinic")
        clinic.ask("ann", epsilon="0.1")
        assert office.verify(ian, "clinic", {"heads": [head]})["sound"]
        altered = head.replace('"ledger": "', '"ledger": "0')
        for wrong in ("x", [1], [altered], ["{}"]):
            with pytest.raises(WrongUse):
                office.verify(ian, "clinic", {"heads": wrong})
        # a head of another ledger that its owner signed
        with Clinic(tmp_path / "other") as other:
            foreign = other.service.office.head(caller(other, "ian"), "clinic")
        assert not office.verify(ian, "clinic", {"heads": [foreign]})["sound"]


def test_people_are_added_by_an_owner(tmp_path: Path) -> None:
    with Clinic(tmp_path) as clinic:
        office, olga = clinic.service.office, caller(clinic, "olga")
        made = office.add_person(olga, {"name": "cara", "role": "auditor"})
        assert str(made["invitation"]).startswith("sfi_")
        assert clinic.service.people.require("cara").role.value == "auditor"
        for wrong in ({"name": "dan", "role": "boss"}, {"name": 7}, {}):
            with pytest.raises(WrongUse):
                office.add_person(olga, wrong)
        assert office.disable(olga, "cara")["disabled"]
        assert [each["name"] for each in office.people()] == ["ann", "bob", "cara", "ian", "olga"]


def test_metrics_and_accounts_name_what_they_should(tmp_path: Path) -> None:
    with Clinic(tmp_path) as clinic:
        clinic.ask("ann", epsilon="0.1")
        text = clinic.service.office.metrics()
        assert 'kind="commit"} 1' in text and "ann" not in text
        clinic.ask("ann", epsilon="0.2")
        assert 'kind="commit"} 2' in clinic.service.office.metrics()
        rows = clinic.service.office.accounts(caller(clinic, "ian"), "clinic")
        assert {row["account"] for row in rows} >= {"clinic", "clinic/study/ann"}
