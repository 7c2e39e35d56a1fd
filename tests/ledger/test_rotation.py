# SPDX-License-Identifier: Apache-2.0
"""A new key takes an old one's place on its word, and on no other."""

import json
from pathlib import Path

import pytest

from sfumato.errors import LedgerCorrupt, LedgerError
from sfumato.ledger import rotation as module
from sfumato.ledger.pins import Pin
from sfumato.ledger.rotation import Handover, rotate
from sfumato.ledger.signed_heads import Signer


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A key in a file."""
    Signer(tmp_path / "key")
    return tmp_path / "key"


def test_a_new_key_takes_the_old_ones_place(key: Path, tmp_path: Path) -> None:
    old = Signer(key).public_key
    handover = rotate(key, "a ledger", tmp_path / "handover")
    assert Handover.from_text((tmp_path / "handover").read_text()) == handover
    assert (handover.old, handover.new) == (old, Signer(key).public_key)
    assert old != handover.new
    assert handover.applied(Pin("a ledger", old)) == Pin("a ledger", handover.new)
    assert key.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["handover", "key"]


@pytest.mark.parametrize("field", ["ledger", "old", "new", "signature"])
def test_a_handover_that_was_altered_is_refused(key: Path, tmp_path: Path, field: str) -> None:
    form = json.loads(rotate(key, "a ledger", tmp_path / "handover").to_text())
    place = form if field in form else form["handover"]
    place[field] = Signer(tmp_path / "other").public_key * (2 if field == "signature" else 1)
    with pytest.raises(LedgerCorrupt, match="or it was altered"):
        Handover.from_text(json.dumps(form))


def test_a_handover_counts_for_the_pinned_key_and_ledger_alone(key: Path, tmp_path: Path) -> None:
    handover = rotate(key, "a ledger", tmp_path / "handover")
    for pin in (Pin("another", handover.old), Pin("a ledger", handover.new)):
        with pytest.raises(LedgerCorrupt, match="not by the pinned key"):
            handover.applied(pin)


def test_a_handover_that_nobody_checks_lets_a_stranger_in(
    key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: whose word it is, is not looked at."""
    pinned = Pin("a ledger", Signer(key).public_key)
    Signer(tmp_path / "stranger")
    stranger = rotate(tmp_path / "stranger", "a ledger", tmp_path / "handover")
    with pytest.raises(LedgerCorrupt):
        stranger.applied(pinned)
    monkeypatch.setattr(Handover, "applied", lambda self, pin: Pin(pin.ledger, self.new))
    assert stranger.applied(pinned).key == stranger.new


def test_a_rotation_that_is_killed_leaves_a_key_and_is_run_again(
    key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Signer(key).public_key
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr(module, "write_durably", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        rotate(key, "a ledger", tmp_path / "handover")
    assert Signer(key).public_key == old
    assert rotate(key, "a ledger", tmp_path / "handover").old == old


def test_no_key_is_no_rotation(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="No key"):
        rotate(tmp_path / "key", "a ledger", tmp_path / "handover")


def test_a_handover_that_is_nested_too_deeply_is_none() -> None:
    with pytest.raises(LedgerCorrupt, match="no handover"):
        Handover.from_text("[" * 100_000)
