# SPDX-License-Identifier: Apache-2.0
"""A task is signed after the whole life of a device is charged to the account of its dataset."""

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

import sfumato as sf
from sfumato.errors import BudgetExceeded, MissingDeclaration, Refused, WrongUse
from sfumato.telemetry import charge, report_task, sign, signed_task, verified
from sfumato.telemetry.charge import DeviceLife

KEY = ec.generate_private_key(ec.SECP256R1())


def task(periods=4, id="emoji", **fields):
    usual = {"epsilon": "0.5", "start": 0, "periods": periods}
    return report_task(id, "Which?", ["a", "b"], **(usual | fields))


@pytest.fixture
def phones(tmp_path):
    """A dataset of devices, without a table."""
    with sf.connect(
        {},
        dataset="phones",
        relation=sf.ReplaceOne,
        budget=sf.Budget(3),
        ledger=tmp_path / "l.db",
    ) as session:
        yield session


def test_a_life_is_charged_once_and_signing_again_is_free(phones):
    signed = sign(phones, task(), KEY)
    assert verified(signed, [KEY.public_key()]).task == task()
    assert phones.budget.spent == "2"
    sign(phones, task(), KEY)
    assert phones.budget.spent == "2"
    # with memory, four periods of one epoch are one draw
    sign(phones, task(id="remembered", memory=4), KEY)
    assert phones.budget.spent == "2.5"
    assert phones.price(DeviceLife(task())).items[0]["mechanism"] == "report of a device"


def test_nothing_is_signed_before_its_life_is_charged(phones, monkeypatch):
    with pytest.raises(BudgetExceeded):
        sign(phones, task(periods=7), KEY)
    assert phones.budget.spent == "0"
    with pytest.raises(WrongUse, match="P-256"):
        sign(phones, task(), b"no key")
    assert phones.budget.spent == "0"
    # the charge is durable when the key signs
    seen = []

    def watched(made, key, **more):
        seen.append(phones.budget.spent)
        return signed_task(made, key, **more)

    monkeypatch.setattr(charge, "signed_task", watched)
    sign(phones, task(), KEY)
    assert seen == ["2"]


def test_a_dataset_without_tables_answers_no_statement(phones):
    for statement in ("SELECT COUNT(*) FROM people", "SELECT 1"):
        with pytest.raises(Refused):
            phones.query(statement, epsilon=1)
    assert phones.budget.spent == "0" and "phones" in repr(phones)
    assert phones.dataset.tables == {}


def test_a_report_does_not_hide_that_there_is_a_device(tmp_path):
    people = sf.Table(pa.table({"age": [30]}), columns={"age": sf.Integer(0, 120)})
    with sf.connect(
        {"people": people}, dataset="d", budget=sf.Budget(9), ledger=tmp_path / "l.db"
    ) as session:
        with pytest.raises(MissingDeclaration, match="hides only its value"):
            sign(session, task(), KEY)
        assert session.budget.spent == "0"


def test_questions_and_telemetry_about_the_same_people_share_an_account(tmp_path):
    people = sf.Table(
        pa.table({"id": [1, 2], "age": [30, 40]}),
        unit=sf.Unit("id", max_rows=1, max_groups=1),
        columns={"age": sf.Integer(0, 120)},
    )
    with sf.connect(
        {"people": people},
        dataset="d",
        relation=sf.ReplaceOne,
        budget=sf.Budget(3),
        ledger=tmp_path / "l.db",
    ) as session:
        session.query("SELECT SUM(age) AS s FROM people", epsilon=2)
        with pytest.raises(BudgetExceeded):
            sign(session, task(), KEY)
        sign(session, task(periods=2), KEY)
        assert session.budget.spent == "3"
