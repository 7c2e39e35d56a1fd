# SPDX-License-Identifier: Apache-2.0
"""A raised limit once orphaned answers and keys: the same question was paid again."""

from dataclasses import replace
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import KeyUsed
from sfumato.ledger import Ledger, owner, verify
from sfumato.query.release import Asker
from sfumato.query.session import Session
from tests.contracts.people import session

COUNT = "SELECT COUNT(*) AS n FROM people"
BOTH = "SELECT sex, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY sex"
SUM = "SELECT sex, SUM(age) AS s FROM people GROUP BY sex"


def raised(folder: Path, epsilon: object) -> None:
    """The owner gives the dataset another limit."""
    ledger = Ledger.open(folder / "ledger.db")
    ledger.allocate("tiny", sf.Budget(epsilon, "1e-6"))
    ledger.close()


def asked(folder: Path, **options: object) -> Session:
    """A session under the limit that the ledger has."""
    return session(folder, budget=None, **options)


def test_a_raised_limit_keeps_answers_parts_and_keys(tmp_path: Path) -> None:
    with session(tmp_path, budget=(1, "1e-6")) as first:
        count, both = first.query(COUNT, epsilon="0.1", key="k"), first.query(BOTH, epsilon="0.2")
    raised(tmp_path, 2)
    with asked(tmp_path) as again:
        assert again.query(COUNT, epsilon="0.1").bytes == count.bytes
        assert again.query(COUNT, epsilon="0.1", key="k").bytes == count.bytes
        assert again.query(BOTH, epsilon="0.2").bytes == both.bytes
        assert again.query(SUM, epsilon="0.05").cost.epsilon == "0"
        assert again.budget.spent == "0.3"
        assert again.verify().problems == ()


def test_a_key_that_names_the_limit_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Asker.__post_init__

    def forgetful(self: Asker) -> None:
        honest(self)
        object.__setattr__(self, "_contract", f'"{self.contract.epsilon}"')

    monkeypatch.setattr(Asker, "__post_init__", forgetful)
    with pytest.raises((KeyUsed, AssertionError)):
        test_a_raised_limit_keeps_answers_parts_and_keys(tmp_path)


def as_format_3(
    folder: Path, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, str], **options: object
) -> Session:
    """A session that names keys as formats before 4 did, in a ledger that knows nothing of it."""
    with monkeypatch.context() as patch:
        patch.setattr(owner, "PAST", owner.SHARING)
        found = session(folder, budget=limit, **options)
    limits = (str(sf.Budget(*limit).epsilon), str(sf.Budget(*limit).delta))
    asker = replace(found._asker, limit=limits, past=())
    found._statements = replace(found._statements, asker=asker)
    return found


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, sf.Answer]:
    """Answers of a ledger of format 3 whose limit was raised once, by their limit."""
    with as_format_3(tmp_path, monkeypatch, ("1", "1e-6")) as first:
        found = {
            "count": first.query(COUNT, epsilon="0.1", key="k"),
            "both": first.query(BOTH, epsilon="0.2"),
        }
    raised(tmp_path, 2)
    with as_format_3(tmp_path, monkeypatch, ("2", "1e-6")) as second:
        found["paid again"] = second.query(COUNT, epsilon="0.1", key="l")
        assert found["paid again"].bytes != found["count"].bytes, "as it was"
    return found


def test_answers_of_earlier_formats_are_found_under_every_limit_that_there_was(
    tmp_path: Path, old: dict[str, sf.Answer]
) -> None:
    for limit in (2, 5):
        raised(tmp_path, limit)
        with asked(tmp_path) as again:
            assert again._asker.past == (("1", "1/1000000"), ("2", "1/1000000"))
            assert again.query(COUNT, epsilon="0.1").bytes in (
                old["count"].bytes,
                old["paid again"].bytes,
            )
            assert again.query(COUNT, epsilon="0.1", key="k").bytes == old["count"].bytes
            assert again.query(COUNT, epsilon="0.1", key="l").bytes == old["paid again"].bytes
            assert again.query(BOTH, epsilon="0.2").bytes == old["both"].bytes
            assert again.query(SUM, epsilon="0.05").cost.epsilon == "0"
            assert again.budget.spent == "0.4"
            with pytest.raises(KeyUsed):
                again.query(SUM, epsilon="0.1", key="k")
            assert again.verify().problems == ()


def test_an_answer_of_an_earlier_format_is_none_of_another_purpose(
    tmp_path: Path, old: dict[str, sf.Answer]
) -> None:
    with asked(tmp_path, purpose="ads") as other:
        assert other.query(COUNT, epsilon="0.1").bytes in (
            old["count"].bytes,
            old["paid again"].bytes,
        )
        # the dataset pays nothing, the purpose in full
        assert other.budget.spent == "0.4"
        assert other._ledger.standing("tiny", "ads").spent.epsilon == 10**11
        assert other.query(SUM, epsilon="0.2").cost.epsilon == "0.2", (
            "parts are paid for by who reads them"
        )


def test_a_ledger_that_forgot_its_past_limits_would_be_noticed(
    tmp_path: Path, old: dict[str, sf.Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = owner.past_limits
    monkeypatch.setattr(owner, "past_limits", lambda acts: honest(acts)[:1])
    with pytest.raises((KeyUsed, AssertionError)):
        test_answers_of_earlier_formats_are_found_under_every_limit_that_there_was(tmp_path, old)
    ledger = Ledger.open(tmp_path / "ledger.db")
    assert verify(ledger).problems != ()
    ledger.close()
