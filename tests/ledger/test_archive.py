# SPDX-License-Identifier: Apache-2.0
"""A ledger carried elsewhere as lines is the same ledger; an edited line is none."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.errors import LedgerCorrupt, LedgerUnavailable, WrongUse
from sfumato.ledger import Head, Ledger, verify
from sfumato.ledger import archive as room
from sfumato.ledger.archive import lines, load
from sfumato.ledger.signed_heads import Signer
from sfumato.ledger.store.base import Counts, Rows
from sfumato.ledger.store.sqlite import SQLite
from sfumato.privacy import Budget
from tests.contracts.charges import contract, in_state, opened, paid, pure

OLD = Path(__file__).parent / "data" / "format-1.sqlite"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Two datasets, every state, every act."""
    ledger = opened(tmp_path / "l.db", 3)
    ledger.adopt(contract(Budget(2), "e"), Budget(2))
    ledger.share_answers("d", allowed=True)
    paid(ledger, replace(pure("0.1", "one"), key="k", shared="any"), b"\x00first")
    ledger.recall(replace(pure("0.1", "two", analyst="bob"), shared="any", key="k"))
    ledger.recall(replace(pure("0.1", "one"), key="k2", shared="any"))
    paid(ledger, pure("0.5", "three", dataset="e"), b"", released=("p", "q"))
    in_state(ledger, "forfeited", "four")
    ledger.thaw("d")
    for state in ("forfeited", "voided", "reserved", "executing"):
        in_state(ledger, state, f"five {state}")
    ledger.allocate("d", Budget("0.5"), purpose="research")
    ledger.freeze("d", purpose="research", reason="r")
    ledger.refresh("e", Budget(1), reason="r")
    return ledger


def archive(ledger: Ledger) -> list[str]:
    """Its lines, signed with the key beside it."""
    head = sealed(ledger)
    return ledger.store.read(lambda rows: list(lines(rows, head)))


def sealed(ledger: Ledger, key: str = "") -> Head:
    """The present head."""
    signer = Signer(key or f"{ledger.store.place}.key")
    return ledger.store.read(lambda rows: signer.sign(ledger.store.identity, rows))


def everything(rows: Rows) -> list[object]:
    """Every row, but for the leases, which mean nothing elsewhere."""
    history = [(row._replace(lease_until=0), answer) for row, answer in rows.history()]
    return [
        *rows.accounts(),
        *history,
        *rows.keys(),
        *rows.parts(),
        *(entry for chain in rows.chains() for entry in rows.entries(chain)),
    ]


def test_a_ledger_read_in_is_the_same_ledger(ledger: Ledger, tmp_path: Path) -> None:
    store = SQLite(tmp_path / "copy.db")
    count = load(store, archive(ledger))
    assert store.read(everything) == ledger.store.read(everything)
    assert count == verify(ledger).entries
    store.close()
    assert verify(Ledger.open(tmp_path / "copy.db")).problems == ()


def test_a_ledger_of_format_1_can_be_carried_too(tmp_path: Path) -> None:
    shutil.copy(OLD, tmp_path / "old.db")
    old = Ledger.open(tmp_path / "old.db")
    store = SQLite(tmp_path / "copy.db")
    load(store, archive(old))
    assert store.read(everything) == old.store.read(everything)


EDITS = {
    "an edited answer": lambda old: [
        line.replace('"answer":"AGZp', '"answer":"AGZq') for line in old
    ],
    "an edited cost": lambda old: [line.replace("100000000000", "100000000001") for line in old],
    "a line less": lambda old: old[:5] + old[6:],
    "a line twice": lambda old: [*old[:5], *old[4:]],
    "two lines swapped": lambda old: [*old[:3], old[4], old[3], *old[5:]],
    "an answer less": lambda old: [line for line in old if '{"answer"' not in line[:10]],
    "an unknown kind": lambda old: [line.replace('"thaw"', '"melt"') for line in old],
    "a line that is no JSON": lambda old: [*old, "nonsense"],
    "a line of another shape": lambda old: [*old, "[1]"],
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_archive_is_refused_and_leaves_the_store_empty(
    ledger: Ledger, tmp_path: Path, edit: str
) -> None:
    old = archive(ledger)
    new = EDITS[edit](old)
    assert new != old
    store = SQLite(tmp_path / "copy.db")
    with pytest.raises(LedgerCorrupt):
        load(store, new)
    assert store.read(lambda rows: rows.counts()) == Counts(0, 0, 0, 0, 0, 0)
    assert load(store, old) == verify(ledger).entries


def test_a_truncated_archive_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    """Cut after each line: each is refused, and leaves the store empty."""
    whole, store = archive(ledger), SQLite(tmp_path / "copy.db")
    for end in range(1, len(whole)):
        with pytest.raises(LedgerCorrupt, match="has no closing line"):
            load(store, whole[:end])
    assert store.read(lambda rows: rows.counts()) == Counts(0, 0, 0, 0, 0, 0)


def test_a_truncated_archive_with_its_closing_line_is_refused(
    ledger: Ledger, tmp_path: Path
) -> None:
    whole, store = archive(ledger), SQLite(tmp_path / "copy.db")
    for end in range(1, len(whole) - 1):
        with pytest.raises(LedgerCorrupt):
            load(store, [*whole[:end], whole[-1]])


def test_a_reader_that_counted_nothing_and_asked_for_no_end_would_be_noticed(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, cut = archive(ledger), archive(ledger)[:9]
    monkeypatch.setattr(room, "_end", lambda form, filled: Head.from_text(form["head"]))
    monkeypatch.setattr(room, "_strangers", lambda *_: iter(()))
    store = SQLite(tmp_path / "copy.db")
    load(store, [*cut, whole[-1]])
    monkeypatch.setattr(room, "_UNCLOSED", room._FORMAT)
    load(SQLite(tmp_path / "other.db"), cut)


def test_an_end_of_another_archive_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    whole = archive(ledger)
    other = opened(tmp_path / "other.db")
    for number in range(5):
        in_state(other, "voided", f"q{number}")
    end = json.loads(whole[-1])
    end["end"]["head"] = sealed(other).to_text()
    with pytest.raises(LedgerCorrupt, match="it was rewritten, or is another ledger"):
        load(SQLite(tmp_path / "copy.db"), [*whole[:-1], json.dumps(end)])


def test_an_older_end_of_the_same_ledger_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    old = json.loads(archive(ledger)[-1])["end"]["head"]
    paid(ledger, pure("0.1", "more"))
    whole = archive(ledger)
    end = json.loads(whole[-1])
    end["end"]["head"] = old
    with pytest.raises(LedgerCorrupt, match="does not end where its own head says"):
        load(SQLite(tmp_path / "copy.db"), [*whole[:-1], json.dumps(end)])


def test_an_archive_that_lacks_what_a_kept_head_knows_is_refused(
    ledger: Ledger, tmp_path: Path
) -> None:
    old, early = archive(ledger), sealed(ledger)
    paid(ledger, pure("0.1", "more"))
    late, store = sealed(ledger), SQLite(tmp_path / "copy.db")
    with pytest.raises(LedgerCorrupt, match="this is an older copy"):
        load(store, old, [late])
    with pytest.raises(LedgerCorrupt, match="signed by another key"):
        load(store, old, [sealed(ledger, str(tmp_path / "stranger"))])
    assert load(store, archive(ledger), [early, late]) == verify(ledger).entries


def test_an_archive_of_format_1_needs_a_kept_head(ledger: Ledger, tmp_path: Path) -> None:
    first = ['{"sfumato-archive":1}', *archive(ledger)[1:-1]]
    with pytest.raises(LedgerCorrupt, match="does not tell where it ends"):
        load(SQLite(tmp_path / "copy.db"), first)
    with pytest.raises(LedgerCorrupt, match="this is an older copy"):
        load(SQLite(tmp_path / "copy2.db"), first[:-1], [sealed(ledger)])
    assert load(SQLite(tmp_path / "copy3.db"), first, [sealed(ledger)]) == verify(ledger).entries


def test_a_store_whose_import_did_not_end_charges_nothing(ledger: Ledger, tmp_path: Path) -> None:
    store = SQLite(tmp_path / "copy.db")
    with pytest.raises(LedgerCorrupt):
        load(store, archive(ledger)[:-1])
    store.close()
    with pytest.raises(LedgerUnavailable, match="an import was not finished"):
        Ledger.open(tmp_path / "copy.db")
    store = SQLite(tmp_path / "copy.db")
    load(store, archive(ledger))
    store.close()
    assert verify(Ledger.open(tmp_path / "copy.db")).problems == ()


@pytest.mark.parametrize(
    "content", [[], [""], ["{}"], ['{"sfumato-archive":4}'], ["[]"], ["nonsense"]]
)
def test_what_is_no_archive_is_refused(tmp_path: Path, content: list[str]) -> None:
    with pytest.raises(WrongUse, match="no archive of a ledger"):
        load(SQLite(tmp_path / "l.db"), content)


def test_a_ledger_that_holds_something_takes_no_other_history(ledger: Ledger) -> None:
    with pytest.raises(WrongUse, match="is not empty"):
        load(ledger.store, archive(ledger))


def test_a_ledger_whose_answer_is_missing_is_not_exported(ledger: Ledger) -> None:
    store = ledger.store
    assert isinstance(store, SQLite)
    store._connection.execute("DELETE FROM answer")
    with pytest.raises(LedgerCorrupt, match="is missing"):
        archive(ledger)


def test_an_archive_that_is_nested_too_deeply_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    title, *rest = archive(ledger)
    entry = json.loads(rest[0])
    entry["entry"][4] = "[" * 100_000
    for at, second in enumerate(("[" * 100_000, json.dumps(entry))):
        with pytest.raises(LedgerCorrupt, match="Line 2 of the archive cannot be read"):
            load(SQLite(tmp_path / f"{at}.db"), [title, second, *rest[1:]])


@pytest.mark.parametrize("version", ["true", "1.0", "2.0", '"2"', "[" * 100_000])
def test_a_format_is_a_whole_number(ledger: Ledger, tmp_path: Path, version: str) -> None:
    """``true`` and 1.0 equal 1 in Python, and are not format 1."""
    _, *rest = archive(ledger)
    with pytest.raises(WrongUse, match="no archive"):
        load(
            SQLite(tmp_path / "copy.db"),
            [f'{{"sfumato-archive":{version}}}', *rest],
            [sealed(ledger)],
        )
