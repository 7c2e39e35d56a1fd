# SPDX-License-Identifier: Apache-2.0
"""Requests for another limit: stored, decided once, bounded."""

from pathlib import Path

import pytest

from sfumato.ledger.account_path import Scope
from sfumato.privacy.budget import Budget
from sfumato.service.opening import Directory
from sfumato.service.refusals import LimitChanged, NotVisible, TooMany
from sfumato.service.requests import APPROVED, DECLINED, Requests

ANN, BOB = Scope("clinic", "study", "ann"), Scope("clinic", "a/b", "bob")


def test_a_request_is_decided_once(tmp_path: Path) -> None:
    with Directory(tmp_path / "service.db") as opened:
        requests = Requests(opened.state, opened.trail, lambda: 0.0)
        made = requests.add(ANN, Budget("0.7"), Budget("1/3", "1e-9"), "one table more")
        assert made.to_json() == {
            "id": made.id, "at": "1970-01-01T00:00:00Z", "dataset": "clinic", "purpose": "study",
            "analyst": "ann", "wanted": {"epsilon": "0.7", "delta": "0"},
            "before": {"epsilon": "1/3", "delta": "0.000000001"}, "reason": "one table more",
            "state": "open", "decided_by": "", "note": "",
        }  # fmt: skip
        decided = requests.decide(made.id, APPROVED, by="olga", note="fine")
        assert (decided.state, decided.decided_by, decided.note) == (APPROVED, "olga", "fine")
        with pytest.raises(LimitChanged):
            requests.decide(made.id, DECLINED, by="olga", note="")
        with pytest.raises(NotVisible):
            requests.decide("nothing", APPROVED, by="olga", note="")


def test_requests_of_one_person_are_theirs_and_bounded(tmp_path: Path) -> None:
    with Directory(tmp_path / "service.db") as opened:
        requests = Requests(opened.state, opened.trail)
        of_bob = requests.add(BOB, Budget(1), Budget("0.5"), "x")
        for _ in range(20):
            requests.add(ANN, Budget(1), Budget("0.5"), "x")
        with pytest.raises(TooMany):
            requests.add(ANN, Budget(1), Budget("0.5"), "x")
        assert [each.id for each in requests.newest("bob")] == [of_bob.id]
        assert len(requests.newest()) == 21
