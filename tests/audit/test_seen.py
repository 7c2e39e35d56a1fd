# SPDX-License-Identifier: Apache-2.0
"""What an asker sees is kept whole, except released numbers."""

import logging

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit.seen import (
    RHO,
    all_seen,
    differences,
    logs,
    previewed,
    seen,
    seen_with_keys,
)

COUNT = "SELECT COUNT(*) AS n FROM people"
BY_JOB = "SELECT job, COUNT(*) AS n FROM people GROUP BY job"


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rows = pa.table({"job": ["smith"] * 3})
    tables = {"people": sf.Table(rows, columns={"job": sf.Text()})}
    budget = sf.Budget(10, "1e-6")
    with sf.connect(tables, dataset="tiny", budget=budget, ledger=tmp_path / "ledger.db") as opened:
        yield opened


def test_released_numbers_and_charge_ids_are_blanked_and_nothing_else(session):
    first = seen(session, COUNT)
    assert first["answer"]["rows"] == [["#"]] and first["answer"]["charge_id"] == "#"
    assert first["answer"]["statement"] == COUNT and first["logs"] == []
    # another charge, another draw: the account differs, the answer does not
    again = seen(session, COUNT.replace("AS n", "AS  n"), {"epsilon": "1.0001"})
    assert first["budget"] != again["budget"]


def test_errors_show_their_kind_text_context_and_exit_code(session):
    kind, text, context, code = seen(session, "nonsense")["answer"]
    assert kind == "UnsupportedSql" and "NONSENSE" in text and code == 1
    assert isinstance(context, str)


def test_open_groups_are_paid_for_with_a_delta(session):
    assert "spends delta" in str(seen(session, BY_JOB)["answer"])
    shown = seen_with_keys(session, BY_JOB, RHO)
    assert shown["answer"]["columns"][0]["name"] == "job"
    assert list(all_seen(session, [BY_JOB, COUNT])) == [BY_JOB, COUNT]


def test_previews_of_both_families_and_what_differs(session):
    shown = previewed(session, [COUNT, "nonsense"])
    assert len(shown) == 4 and shown["nonsense"][0] == "UnsupportedSql"
    assert differences(shown, shown) == []
    assert differences(shown, {**shown, COUNT: None}) == [COUNT]


def test_every_logger_is_heard_and_left_as_it_was():
    level = logging.getLogger().level
    with logs() as lines:
        logging.getLogger("anything").debug("said %s", 1)
    logging.getLogger("anything").error("afterwards")
    assert lines == ["anything DEBUG said 1"] and logging.getLogger().level == level
