# SPDX-License-Identifier: Apache-2.0
"""The way in: what is refused, and who shares a ledger."""

from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import (
    ContractMismatch,
    InvalidDeclaration,
    InvalidSource,
    LedgerError,
    WrongUse,
)
from sfumato.ledger import Ledger
from tests.contracts.people import FRAME, session, table

COUNT = "SELECT COUNT(*) AS n FROM people"


def test_another_contract_over_the_same_ledger_is_refused(tmp_path: Path) -> None:
    session(tmp_path, budget=(1, 0)).close()
    for change in (
        {"budget": (2, 0)},
        {"relation": sf.ReplaceOne},
        {"unit": sf.Unit("person", max_rows=1)},
    ):
        with pytest.raises(ContractMismatch):
            session(tmp_path, **{"budget": (1, 0), **change})
    session(tmp_path, budget=(1, 0)).close()


def test_a_new_ledger_needs_a_budget(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="does not know 'tiny' yet"):
        session(tmp_path, budget=None)


def test_a_public_table_is_no_private_one(tmp_path: Path) -> None:
    """Its rows could be joined and compared with: it would show the private ones."""
    file = tmp_path / "people.csv"
    file.write_text("a\n1\n")
    (tmp_path / "link.csv").symlink_to(file)
    apart = tmp_path / "known.csv"
    apart.write_text("a\n1\n")
    rows = pa.table({"a": [1]})

    def opened(private: object, public: object) -> None:
        columns = {"a": sf.Integer(0, 1)}
        tables = {
            "people": sf.Table(private, columns=columns),
            "known": sf.Table(public, columns=columns, public=True),
        }
        sf.connect(tables, dataset="d", budget=sf.Budget(1), ledger=tmp_path / "ledger.db").close()

    for private, public in ((file, str(tmp_path / "link.csv")), (rows, rows)):
        with pytest.raises(InvalidDeclaration, match="'known' is the same data"):
            opened(private, public)
    opened(file, apart)
    opened(rows, pa.table({"a": [1]}))


def test_a_failed_connect_lets_the_ledger_go(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        with pytest.raises(ContractMismatch):
            session(tmp_path, relation=sf.ReplaceOne)
        opened.query(COUNT, epsilon=1)
    with pytest.raises(InvalidSource):
        sf.connect(
            {"p": sf.Table(tmp_path / "no.csv")},
            dataset="d",
            budget=sf.Budget(1),
            ledger=tmp_path / "ledger.db",
        )
    session(tmp_path).close()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"tables": [table()]}, InvalidDeclaration),
        ({"tables": {}}, InvalidDeclaration),
        ({"tables": {"people": FRAME}}, InvalidDeclaration),
        ({"budget": 1}, WrongUse),
        ({"dataset": ""}, InvalidDeclaration),
        ({"dataset": None}, InvalidDeclaration),
        ({"relation": "replace-one"}, InvalidDeclaration),
        ({"analyst": ""}, WrongUse),
        ({"purpose": None}, WrongUse),
        ({"prepared": 3}, WrongUse),
        ({"ledger": ":memory:"}, WrongUse),
    ],
    ids=repr,
)
def test_a_wrong_argument_of_connect_is_named(
    tmp_path: Path, wrong: dict[str, object], error: type[Exception]
) -> None:
    arguments = {
        "tables": {"people": table()},
        "dataset": "d",
        "budget": sf.Budget(1),
        "ledger": tmp_path / "l.db",
    }
    with pytest.raises(error):
        sf.connect(**arguments | wrong)
    assert not (tmp_path / "l.db").exists()


def test_two_sessions_of_one_process_share_a_ledger_until_the_last_is_closed(
    tmp_path: Path,
) -> None:
    first = session(tmp_path, budget=(1, 0))
    second = session(tmp_path, budget=(1, 0))
    answer = first.query(COUNT, epsilon="0.5")
    assert second.query(COUNT, epsilon="0.5").bytes == answer.bytes
    assert second.budget.spent == "0.5"
    first.close()
    first.close()
    with pytest.raises(LedgerError, match="closed"):
        first.query("SELECT SUM(age) AS s FROM people", epsilon="0.1")
    second.query("SELECT SUM(age) AS s FROM people", epsilon="0.1")
    assert second.budget.spent == "0.6"
    second.close()
    with session(tmp_path, budget=None) as third:
        assert third.budget.spent == "0.6"


def test_a_ledger_that_is_open_already_stays_open(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "l.db")
    arguments = {"dataset": "tiny", "budget": sf.Budget(1), "ledger": ledger}
    for _ in range(2):
        with sf.connect({"people": table()}, **arguments) as asking:
            asking.query(COUNT, epsilon="0.5")
    assert ledger.balance("tiny").spent.epsilon == 5 * 10**11
    with pytest.raises(ContractMismatch):
        sf.connect({"people": table()}, **arguments | {"relation": sf.ReplaceOne})
    assert ledger.balance("tiny").spent.epsilon == 5 * 10**11
    ledger.close()
