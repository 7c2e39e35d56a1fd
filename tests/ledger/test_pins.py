# SPDX-License-Identifier: Apache-2.0
"""Heads of strangers are found, and what was verified first is known again."""

from pathlib import Path

import pytest

from sfumato.errors import WrongUse
from sfumato.ledger import Head, Ledger, verify
from sfumato.ledger.pins import Known, Pin, default_path
from sfumato.ledger.signed_heads import Signer
from tests.contracts.charges import opened, paid, pure


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = opened(tmp_path / "l.db")
    paid(ledger, pure("0.1", "one"))
    return ledger


def signed(ledger: Ledger, key: Path, identity: str = "") -> Head:
    return ledger.store.read(lambda rows: Signer(key).sign(identity or ledger.store.identity, rows))


def test_a_head_of_another_ledger_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    head = signed(ledger, tmp_path / "key", identity="another")
    assert [line.partition(" is of ")[2] for line in verify(ledger, [head]).problems] == [
        f"another ledger (another; this is {ledger.store.identity})"
    ]


def test_a_head_of_another_key_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    mine, strange = signed(ledger, tmp_path / "key"), signed(ledger, tmp_path / "strange")
    assert verify(ledger, [mine], key=mine.public_key.upper()).problems == ()
    for heads, key in (([strange], mine.public_key), ([mine, strange], "")):
        (problem,) = verify(ledger, heads, key=key).problems
        assert (
            f"is signed by {strange.public_key}, not by the pinned key {mine.public_key}" in problem
        )


def test_a_head_without_a_chain_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    empty = Ledger.open(tmp_path / "empty.db")
    head = empty.store.read(lambda rows: Signer(tmp_path / "key").sign(ledger.store.identity, rows))
    assert "names no chain" in verify(ledger, [head]).problems[0]


def test_a_pin_that_compares_nothing_would_be_noticed(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pin, "differences", lambda *_: iter(()))
    assert verify(ledger, [signed(ledger, tmp_path / "key", identity="another")]).problems == ()


def test_the_head_beside_the_file_is_looked_at(ledger: Ledger, tmp_path: Path) -> None:
    ledger.close()
    beside = tmp_path / "l.db.head"
    other = opened(tmp_path / "other.db")
    beside.write_text(signed(other, tmp_path / "key").to_text())
    found = verify(Ledger.open(tmp_path / "l.db", read_only=True))
    assert "it was rewritten, or is another ledger" in found.problems[0]
    beside.write_text("no head")
    found = verify(Ledger.open(tmp_path / "l.db", read_only=True))
    assert "This is no head" in found.problems[0]


@pytest.mark.parametrize("key", ["", "00", "zz" * 32, "0" * 65, " " + "0" * 63])
def test_a_key_that_is_none_is_refused(key: str) -> None:
    with pytest.raises(WrongUse, match="key="):
        Pin("ledger", key)


def test_pins_are_kept_by_place(tmp_path: Path) -> None:
    known, one, two = Known(tmp_path / "a" / "pins"), Pin("one", "01" * 32), Pin("two", "02" * 32)
    assert known.find("here") is None
    known.keep("here", one)
    known.keep("there", one)
    known.keep("there", two)
    assert (known.find("here"), known.find("there")) == (one, two)


@pytest.mark.parametrize("text", ["", "[]", "no", '{"here": {"ledger": "x"}}', '{"here": 1}'])
def test_a_file_that_holds_no_pins_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "pins").write_text(text)
    with pytest.raises(WrongUse, match="does not hold"):
        Known(tmp_path / "pins").find("here")


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WrongUse, match="cannot be written"):
        Known(tmp_path / "file" / "pins").keep("here", Pin("one", "01" * 32))


def test_pins_lie_in_the_folder_for_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "sfumato" / "known_ledgers.json"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert default_path() == Path.home() / ".local" / "state" / "sfumato" / "known_ledgers.json"
