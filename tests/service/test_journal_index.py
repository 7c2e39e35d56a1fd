# SPDX-License-Identifier: Apache-2.0
"""The index of answers reads the journal forward, and only what is new."""

from pathlib import Path

import pytest

from sfumato.service import journal_index
from sfumato.service.journal_index import JournalIndex
from tests.contracts.clinic import COUNT, Clinic


def test_answers_are_listed_newest_first_and_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: list[int] = []
    real = journal_index._page
    monkeypatch.setattr(
        journal_index,
        "_page",
        lambda chain, after, rows: pages.append(after) or real(chain, after, rows),
    )
    monkeypatch.setattr(journal_index, "_PAGE", 3)
    with Clinic(tmp_path) as clinic:
        charges = []
        for epsilon in ("0.1", "0.11", "0.12"):
            charges.append(clinic.ask("ann", epsilon=epsilon).headers["sfumato-charge"])
        clinic.ask("bob", epsilon="0.1")
        clinic.ask("bob", epsilon="3")
        index = JournalIndex(clinic.ledger)
        listed = index.answers("clinic", "clinic/study/ann", 0, 10)
        assert [each["charge"] for each in listed] == charges[::-1]
        older = index.answers("clinic", "clinic/study/ann", listed[0]["seq"], 1)
        assert [each["charge"] for each in older] == [charges[1]]
        assert len(index.answers("clinic", "clinic/study/bob", 0, 10)) == 1
        before = len(pages)
        clinic.ask("ann", COUNT, epsilon="0.13")
        assert len(index.answers("clinic", "clinic/study/ann", 0, 10)) == 4
        # the entries of one question, and the end
        assert len(pages) - before <= 3 and pages[before] == pages[before - 1]


def test_a_failed_question_is_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Clinic(tmp_path) as clinic:
        monkeypatch.setattr("sfumato.query.release.SqlTask.run", _broken)
        assert clinic.ask("ann", epsilon="0.1").status == 409
        monkeypatch.undo()
        assert JournalIndex(clinic.ledger).answers("clinic", "clinic/study/ann", 0, 9) == []


def _broken(*_: object) -> bytes:
    raise MemoryError
