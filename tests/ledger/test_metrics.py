# SPDX-License-Identifier: Apache-2.0
"""Numbers for a monitoring system: as many as there are, read once, and nobody is named."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.errors import BudgetExceeded
from sfumato.ledger import Ledger, Signer
from sfumato.ledger import metrics as module
from sfumato.ledger.metrics import metrics
from sfumato.privacy.budget import Budget
from tests.contracts.charges import contract, entries, in_state, paid, pure


@pytest.fixture
def ledger(place: str) -> Iterator[Ledger]:
    """A ledger with charges that ended in every way."""
    opened = Ledger.open(place)
    for dataset in ("d", 'e"\\'):
        opened.adopt(contract(Budget(10), dataset), Budget(10))
    for state in ("reserved", "executing", "voided", "committed", "forfeited"):
        in_state(opened, state, question=f"secret question {state}")
    yield opened
    opened.close()


def test_as_many_are_counted_as_there_are(ledger: Ledger) -> None:
    found = metrics(ledger)
    assert found.kinds == Counter((entry.chain, entry.kind) for entry in entries(ledger))
    assert (found.kinds["d", "reserve"], found.kinds["d", "commit"], found.under_way) == (5, 1, 2)
    assert found.size > 10_000


def test_what_was_counted_is_not_read_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAGE", 2)
    first = metrics(ledger)
    assert first.kinds == Counter((entry.chain, entry.kind) for entry in entries(ledger))
    paid(ledger, pure("0.1", "another"))
    pages, page = list[int](), module._page
    monkeypatch.setattr(module, "_page", lambda *at: pages.append(at[1]) or page(*at))
    second = metrics(ledger, first)
    assert second.kinds["d", "commit"] == 2
    # from where the first call ended, two entries a page
    assert min(pages[:2]) == first.read["d"] and len(pages) == 4
    assert second == metrics(ledger)


def test_metrics_name_no_analyst_question_or_answer(ledger: Ledger) -> None:
    paid(ledger, pure("0.1", "secret question", analyst="secret analyst"), b"secret answer")
    text = metrics(ledger).to_prometheus()
    assert "secret" not in text and "secret" not in repr(metrics(ledger))
    assert 'sfumato_ledger_entries_total{dataset="d",kind="commit"} 2' in text.splitlines()
    assert r'sfumato_ledger_entries_total{dataset="e\"\\",kind="account"} 1' in text.splitlines()


def test_the_age_of_the_newest_head_is_told(ledger: Ledger, tmp_path: Path) -> None:
    assert metrics(ledger).head_age is None
    assert "head_age" not in metrics(ledger).to_prometheus()
    signer = Signer(tmp_path / "elsewhere.key")
    heads = [
        ledger.store.read(lambda rows: signer.sign(ledger.store.identity, rows)) for _ in range(2)
    ]
    age = metrics(ledger, heads=heads).head_age
    assert age is not None and 0 <= age < 60
    assert "sfumato_ledger_head_age_seconds" in metrics(ledger, heads=heads).to_prometheus()


def test_refusals_and_rereads_are_counted_as_the_journal_has_them(ledger: Ledger) -> None:
    request = pure("0.1", "secret again")
    paid(ledger, request)
    for _ in range(3):
        ledger.recall(request)
    ledger.write_down()
    first = metrics(ledger)
    assert (first.rereads, first.refusals) == ({"d": 3}, {})
    for number in range(2):
        with pytest.raises(BudgetExceeded):
            ledger.reserve(pure("99", f"dear {number}"))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(pure("99", "dear", dataset='e"\\'))
    ledger.recall(request)
    ledger.write_down()
    second = metrics(ledger, first)
    assert second == metrics(ledger)
    assert (second.rereads, second.refusals) == (
        {"d": 4},
        {("d", "BudgetExceeded"): 2, ('e"\\', "BudgetExceeded"): 1},
    )
    lines = second.to_prometheus().splitlines()
    assert 'sfumato_ledger_refusals_total{dataset="d",kind="BudgetExceeded"} 2' in lines
    assert 'sfumato_ledger_rereads_total{dataset="d"} 4' in lines
    assert "# TYPE sfumato_ledger_refusals counter" in lines
    assert not [line for line in lines if "secret" in line or "dear" in line]


def test_metrics_that_begin_anew_are_noticed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = module.metrics
    monkeypatch.setitem(
        globals(),
        "metrics",
        lambda ledger, before=None: counted(ledger, before and replace(before, rereads={})),
    )
    with pytest.raises(AssertionError):
        test_refusals_and_rereads_are_counted_as_the_journal_has_them(ledger)
