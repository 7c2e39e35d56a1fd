# SPDX-License-Identifier: Apache-2.0
"""A verification that goes on where the last one ended finds what was edited since, on every
store.
"""

import sys
import zlib
from dataclasses import replace
from pathlib import Path

import apsw
import psycopg
import pytest

from sfumato.errors import WrongUse
from sfumato.ledger import Ledger, Report, verify
from sfumato.ledger.journal import Entry
from sfumato.ledger.replay import NO_SOURCE, Replay
from sfumato.ledger.signed_heads import Signer
from sfumato.ledger.store.base import Rows
from sfumato.ledger.verified import Verified, source_before
from sfumato.privacy import Budget
from tests.contracts.charges import concentrated, contract, entries, in_state, paid, pure

BUDGET = Budget(5, "0.001")
# its name is that of a function too
MODULE = sys.modules["sfumato.ledger.verify"]
# many variants: where SQL is the same for every store, one of them is enough
ON_SQLITE = pytest.mark.parametrize("place", ["sqlite"], indirect=True)


def sound(ledger: Ledger, since: Verified | None = None) -> Report:
    """The report of a ledger that has no problem."""
    report = verify(ledger, since=since)
    assert report.problems == ()
    return report


def begun(place: str) -> tuple[Ledger, dict[str, str]]:
    """A ledger with everything that may go on later; the ids of its charges that are not final."""
    ledger = Ledger.open(place)
    ledger.adopt(contract(BUDGET), BUDGET)
    ledger.share_answers("d", allowed=True)
    paid(ledger, replace(pure("0.1", "first"), shared="any", key="k"), b"shared", released=("p",))
    # from here on the sum of epsilon is unbounded
    paid(ledger, concentrated("0.001", "second"))
    ledger.allocate("d", Budget(1), purpose="unstated", analyst="bob")
    in_state(ledger, "forfeited", "failed")
    found = {state: in_state(ledger, state, state) for state in ("reserved", "executing")}
    ledger.refresh("d", BUDGET, reason="a new year")
    return ledger, found


def proceed(ledger: Ledger, unfinished: dict[str, str]) -> None:
    """Ends what was not final, gives an older answer again, and makes new charges."""
    ledger.void(unfinished["reserved"])
    ledger.commit(unfinished["executing"], b"late", released=("r",))
    ledger.recall(replace(pure("0.1", "bob's", analyst="bob"), shared="any"))
    assert ledger.thaw("d") == 1
    ledger.refresh("d", BUDGET, reason="another year")
    paid(ledger, replace(pure("0.2", "new"), key="new key"), b"new", released=("q",))
    in_state(ledger, "forfeited", "failed again")
    ledger.adopt(contract(Budget(1), "e"), Budget(1))
    paid(ledger, pure("0.3", "elsewhere", dataset="e"))


@pytest.fixture
def kept(place: str) -> Verified:
    """What was verified of a ledger before it went on; the ledger is closed."""
    ledger, unfinished = begun(place)
    found = sound(ledger).verified
    proceed(ledger, unfinished)
    ledger.close()
    assert found is not None
    return found


def reopened(place: str) -> Ledger:
    return Ledger.open(place, read_only=True)


def test_what_came_since_is_verified_as_the_whole_is(place: str, kept: Verified) -> None:
    ledger = reopened(place)
    whole, later = sound(ledger), sound(ledger, kept)
    assert later == whole
    assert later.verified is not None and whole.verified is not None
    # the next goes on from either of them alike
    assert sound(ledger, later.verified) == sound(ledger, whole.verified) == whole
    ledger.close()


def test_only_what_came_since_is_read(
    place: str, kept: Verified, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = reopened(place)
    entry_count, seen = len(entries(ledger)), list[int]()
    apply = Replay.apply
    monkeypatch.setattr(
        Replay, "apply", lambda self, entry: (seen.append(entry.seq), apply(self, entry))
    )
    sound(ledger, kept)
    before = sum(seq for seq, _ in kept.resume(ledger.store.identity).heads.values())
    assert 0 < len(seen) == entry_count - before
    ledger.close()


def edit(place: str, *statements: str) -> None:
    """What somebody does who may write the rows; each statement must change something."""
    if place.startswith("postgresql"):
        with psycopg.connect(place) as connection:
            connection.execute("SET search_path TO sfumato")
            for statement in statements:
                assert connection.execute(statement).rowcount > 0, statement
        return
    Path(f"{place}.head").unlink()
    file = apsw.Connection(place)
    for statement in statements:
        before = file.total_changes()
        file.execute(statement)
        assert file.total_changes() > before, statement
    file.close()


LATER = {
    "an answer": "UPDATE answer SET question = 'x' WHERE question = 'new'",
    "an answer of an older charge": "UPDATE answer SET statement = 'x' WHERE question = 'executing'",
    "a new charge": "UPDATE charge SET state = 'voided' WHERE question = 'new'",
    "a charge of a new dataset": "UPDATE charge SET cost = '{}' WHERE question = 'elsewhere'",
    "an older charge that was executing": "UPDATE charge SET state = 'forfeited' WHERE question = 'executing'",
    "an older charge that was reserved": "UPDATE charge SET cost = '{}' WHERE question = 'reserved'",
    "an older failure": "UPDATE charge SET acknowledged = 0 WHERE question = 'failed'",
    "an account": "UPDATE account SET frozen = 'x' WHERE id = 'd/unstated/bob'",
    "what an account has spent": """UPDATE account SET spent = replace(spent, '"rho":"', '"rho":"1') WHERE id = 'd'""",
    "a key": "UPDATE key SET request = 'x' WHERE key = 'new key'",
    "a lost key": "DELETE FROM key WHERE key = 'new key'",
    "a part": "UPDATE part SET part = 'x' WHERE part = 'q'",
    "a forged part": "INSERT INTO part SELECT 'forged', charge, chain, seq FROM part WHERE part = 'q'",
    "a part of a chain that is none": "INSERT INTO part SELECT 'forged', charge, 'f', 1 FROM part WHERE part = 'q'",
    "an entry": "UPDATE journal SET at = 'x' WHERE kind = 'thaw'",
    "the last entry": "DELETE FROM journal WHERE chain = 'd' AND seq = (SELECT max(seq) FROM journal WHERE chain = 'd')",
    "the entry where it goes on": "UPDATE journal SET at = 'x' WHERE kind = 'refresh' AND body LIKE '%a new year%'",
}


@pytest.mark.parametrize("what", ["an older failure", "a key", "a forged part", "the last entry"])
def test_an_edit_after_the_earlier_verification_is_found_on_every_store(
    place: str, kept: Verified, what: str
) -> None:
    edit(place, LATER[what])
    ledger = reopened(place)
    assert verify(ledger, since=kept).problems != ()
    ledger.close()


@ON_SQLITE
@pytest.mark.parametrize("what", LATER)
def test_an_edit_after_the_earlier_verification_is_found(
    place: str, kept: Verified, what: str
) -> None:
    edit(place, LATER[what])
    ledger = reopened(place)
    assert verify(ledger, since=kept).problems != ()
    ledger.close()


OLDER = {
    "an answer": "UPDATE answer SET statement = 'x' WHERE question = 'second'",
    "a charge": "UPDATE charge SET state = 'voided' WHERE question = 'second'",
    "a key": "UPDATE key SET request = 'x' WHERE key = 'k'",
    "a part": "UPDATE part SET part = 'x' WHERE part = 'p'",
    "an entry": "UPDATE journal SET at = 'x' WHERE chain = 'd' AND seq = 2",
}


@ON_SQLITE
@pytest.mark.parametrize("what", OLDER)
def test_an_edit_of_what_is_older_is_found_by_the_whole_alone(
    place: str, kept: Verified, what: str
) -> None:
    edit(place, OLDER[what])
    ledger = reopened(place)
    assert sound(ledger, kept)
    assert verify(ledger).problems != ()
    ledger.close()


def test_a_chain_that_was_cut_is_found(place: str, kept: Verified) -> None:
    edit(place, "DELETE FROM journal WHERE chain = 'd' AND seq > 5")
    ledger = reopened(place)
    assert "it was cut or rewritten, or this is an older copy" in "\n".join(
        verify(ledger, since=kept).problems
    )
    ledger.close()


@ON_SQLITE
def test_a_chain_that_is_gone_is_found(place: str, kept: Verified) -> None:
    edit(place, "DELETE FROM journal WHERE chain = 'd'")
    ledger = reopened(place)
    assert "of 'd' does not pass through entry" in verify(ledger, since=kept).problems[0]
    ledger.close()


@ON_SQLITE
def test_a_check_that_takes_the_stored_end_of_a_chain_would_be_noticed(
    place: str, kept: Verified, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(place, LATER["the entry where it goes on"])
    ledger = reopened(place)
    assert "does not pass through entry" in verify(ledger, since=kept).problems[0]

    def stored_end(rows: Rows, chain: str, replay: Replay) -> Entry | None:
        return rows.entry(chain, replay.heads[chain][0]) if chain in replay.heads else None

    monkeypatch.setattr(MODULE, "_end_before", stored_end)
    assert verify(ledger, since=kept).problems == ()
    ledger.close()


def test_a_share_of_an_older_answer_is_compared_with_its_entries(
    place: str, kept: Verified
) -> None:
    ledger = reopened(place)
    ends = {chain: seq for chain, (seq, _) in kept.resume(ledger.store.identity).heads.items()}
    by_question = ledger.store.read(
        lambda rows: {row.question: row.id for row, _ in rows.history()}
    )

    def source(question: str, until: dict[str, int]) -> tuple[str, str, str]:
        return ledger.store.read(
            lambda rows: source_before(rows, until, by_question.get(question, ""))
        )

    assert source("first", ends)[0] == "d/unstated/owner"
    # no answer, none that may be shared, a share, one of later
    assert {source(each, ends) for each in ("", "failed", "second", "bob's", "new")} == {NO_SOURCE}
    assert source("first", {"d": 1}) == source("first", {}) == NO_SOURCE
    ledger.close()


@ON_SQLITE
def test_a_verification_that_finds_no_source_would_be_noticed(
    place: str, kept: Verified, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE, "source_before", lambda *_: NO_SOURCE)
    ledger = reopened(place)
    assert any(
        "shares what is not the answer" in each for each in verify(ledger, since=kept).problems
    )
    ledger.close()


@ON_SQLITE
def test_a_forged_state_is_refused(tmp_path: Path, kept: Verified) -> None:
    (tmp_path / "state").write_bytes(kept.content)
    assert Verified.read(tmp_path / "state", kept.digest) == kept
    forged = zlib.decompress(kept.content).replace(b"unfinished", b"unfinishes")
    for content, digest in (
        (zlib.compress(forged), kept.digest),
        (kept.content, ""),
        (b"", kept.digest),
    ):
        (tmp_path / "state").write_bytes(content)
        with pytest.raises(WrongUse, match="is not what the last verification kept"):
            Verified.read(tmp_path / "state", digest)
    with pytest.raises(WrongUse, match="cannot be read"):
        Verified.read(tmp_path / "none", kept.digest)


@ON_SQLITE
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"charges":5', b'"charges":"five"'),
        (b'"format":2', b'"format":1'),
        (b'"unfinished"', b'"unfinishes"'),
    ],
)
def test_what_is_no_state_is_refused(place: str, kept: Verified, old: bytes, new: bytes) -> None:
    ledger = reopened(place)
    text = zlib.decompress(kept.content)
    assert old in text
    for content in (zlib.compress(text.replace(old, new)), text, b"", zlib.compress(b"[]")):
        with pytest.raises(WrongUse, match="whole ledger"):
            verify(ledger, since=Verified(content))
    ledger.close()


@ON_SQLITE
def test_a_state_whose_accounts_were_edited_is_refused(place: str, kept: Verified) -> None:
    ledger = reopened(place)
    text = zlib.decompress(kept.content)
    edited = text.replace(b"5000000000000", b"6000000000000")
    assert edited != text
    with pytest.raises(WrongUse, match="accounts of the state"):
        verify(ledger, since=Verified(zlib.compress(edited)))
    ledger.close()


@ON_SQLITE
def test_a_state_of_another_ledger_is_refused(place: str, kept: Verified, tmp_path: Path) -> None:
    other = Ledger.open(tmp_path / "other.db")
    with pytest.raises(WrongUse, match="of another ledger"):
        verify(other, since=kept)
    other.close()


@ON_SQLITE
def test_a_ledger_with_a_problem_leaves_no_state(place: str, kept: Verified) -> None:
    edit(place, OLDER["an entry"])
    ledger = reopened(place)
    assert verify(ledger).verified is None
    ledger.close()


def test_an_empty_ledger_has_a_state_too(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "l.db")
    empty = sound(ledger).verified
    ledger.adopt(contract(BUDGET), BUDGET)
    paid(ledger, pure("0.1"))
    assert sound(ledger, empty) == sound(ledger)


@ON_SQLITE
def test_heads_are_compared_whether_they_are_older_or_newer(
    place: str, kept: Verified, tmp_path: Path
) -> None:
    ledger = reopened(place)
    newest = ledger.store.read(
        lambda rows: Signer(tmp_path / "key").sign(ledger.store.identity, rows)
    )
    ends = dict(kept.resume(ledger.store.identity).heads)
    older = replace(newest, chains=ends)
    same = verify(ledger, [newest], since=kept)
    assert same.problems == ()
    # the signature is looked at when a head is read; these are what a ledger's owner might have
    # signed
    first = replace(newest, chains={"d": (1, entries(ledger)[0].hash)})
    assert verify(ledger, [first], since=kept).problems == ()
    for wrong in (older, replace(newest, accounts="0" * 64)):
        assert "the accounts are not those" in verify(ledger, [wrong], since=kept).problems[0]
    rewritten = replace(newest, chains={"d": (1, "0" * 64)})
    assert "it was rewritten" in verify(ledger, [rewritten], since=kept).problems[0]
    ledger.close()
