# SPDX-License-Identifier: Apache-2.0
"""Signed heads: what was noted elsewhere, the ledger must still contain."""

import json
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sfumato.errors import LedgerCorrupt, LedgerUnavailable, WrongUse
from sfumato.ledger import Ledger, verify
from sfumato.ledger.signed_heads import Head, Signer, write_durably
from sfumato.privacy.budget import Budget
from tests.contracts.charges import contract, opened, paid, pure


def signed(ledger: Ledger, key: Path) -> Head:
    """The present head."""
    return ledger.store.read(lambda rows: Signer(key).sign(ledger.store.identity, rows))


def test_a_head_survives_its_text(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    head = signed(ledger, tmp_path / "key")
    assert Head.from_text(head.to_text()) == head
    assert head.public_key == Signer(tmp_path / "key").public_key
    assert (head.identity, list(head.chains)) == (ledger.store.identity, ["d"])


@pytest.mark.parametrize("field", ["ledger", "at", "chains", "public_key", "signature"])
def test_a_head_that_was_altered_is_refused(tmp_path: Path, field: str) -> None:
    form = json.loads(signed(opened(tmp_path / "l.db"), tmp_path / "key").to_text())
    place = form if field in form else form["head"]
    other = Signer(tmp_path / "other").public_key
    place[field] = {
        "chains": {"d": [1, "0" * 64]},
        "public_key": other,
        "signature": "00" * 64,
    }.get(field, "x")
    with pytest.raises(LedgerCorrupt, match="or it was altered"):
        Head.from_text(json.dumps(form))


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"head":1}', "not json", '{"head":{"chains":[]}}']
)
def test_what_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(LedgerCorrupt):
        Head.from_text(text)


def test_a_ledger_behind_its_head_is_noticed(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    paid(ledger, pure("0.1", "one"))
    ledger.close()
    shutil.copy(tmp_path / "l.db", tmp_path / "old.db")
    ledger = opened(tmp_path / "l.db")
    paid(ledger, pure("0.2", "two"))
    head = signed(ledger, tmp_path / "key")
    assert verify(ledger, [head]).problems == ()
    old = Ledger.open(tmp_path / "old.db")
    assert verify(old).problems == ()
    (problem,) = verify(old, [head]).problems
    assert problem.startswith("the chain of 'd' ends before entry 7 of the head of ")


def test_a_ledger_that_went_on_is_not_behind(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    head = signed(ledger, tmp_path / "key")
    paid(ledger, pure("0.1"))
    assert verify(ledger, [head, signed(ledger, tmp_path / "key")]).problems == ()


def test_a_history_that_was_written_anew_is_noticed(tmp_path: Path) -> None:
    one, other = opened(tmp_path / "one.db"), opened(tmp_path / "other.db")
    for ledger in (one, other):
        paid(ledger, pure("0.1"))
    head = signed(one, tmp_path / "key")
    stranger, problem = verify(other, [head]).problems
    assert "is of another ledger" in stranger
    assert "it was rewritten, or is another ledger" in problem


def test_an_older_copy_put_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    opened(path).close()
    shutil.copy(path, tmp_path / "old.db")
    ledger = Ledger.open(path)
    paid(ledger, pure("0.9"))
    ledger.close()
    shutil.copy(tmp_path / "old.db", path)
    with pytest.raises(LedgerCorrupt, match="forgets what was spent") as refused:
        Ledger.open(path)
    assert "sfumato ledger recover --accept-loss" in refused.value.remedy
    Path(f"{path}.head").unlink()
    Ledger.open(path).close()


def test_a_ledger_that_never_looked_at_the_head_beside_it_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Head, "differences", lambda self, rows: iter(()))
    with pytest.raises(pytest.fail.Exception):
        test_an_older_copy_put_in_place_of_the_file_is_refused(tmp_path)


def test_a_head_beside_the_file_that_was_altered_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    opened(path).close()
    head = Path(f"{path}.head")
    head.write_text(head.read_text().replace('"d"', '"e"'))
    with pytest.raises(LedgerCorrupt, match="no head of a ledger"):
        Ledger.open(path)


def test_a_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    key = tmp_path / "key"
    first = Signer(key).public_key
    assert Signer(key).public_key == first != Signer(tmp_path / "other").public_key
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_a_file_that_holds_no_such_key_is_named(tmp_path: Path) -> None:
    other = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    for content in (b"", b"no key", other):
        (tmp_path / "key").write_bytes(content)
        with pytest.raises(WrongUse, match="holds no Ed25519 key"):
            Signer(tmp_path / "key")
    with pytest.raises(LedgerUnavailable, match="cannot be read"):
        Signer(tmp_path)
    with pytest.raises(LedgerUnavailable, match="No key can be kept"):
        Signer(tmp_path / "nowhere" / "key")


def test_a_head_that_cannot_be_left_does_not_keep_a_ledger_from_closing(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l.db")
    paid(ledger, pure("0.1"))
    Path(f"{tmp_path / 'l.db'}.head.new").mkdir()
    ledger.close()
    assert Ledger.open(tmp_path / "l.db").balance("d").spent.epsilon == 10**11


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    write_durably(tmp_path / "f", b"one")
    write_durably(tmp_path / "f", b"two")
    assert ((tmp_path / "f").read_bytes(), len(list(tmp_path.iterdir()))) == (b"two", 1)


def test_the_same_key_signs_the_same_way(tmp_path: Path) -> None:
    head = signed(opened(tmp_path / "l.db"), tmp_path / "key")
    with pytest.raises(LedgerCorrupt):
        Head.from_text(replace(head, identity="other").to_text())


def test_a_key_may_lie_elsewhere_or_come_from_a_function(tmp_path: Path) -> None:
    pem = tmp_path / "elsewhere" / "key"
    pem.parent.mkdir()
    public = Signer(pem).public_key
    for number, key in enumerate((pem, pem.read_bytes)):
        ledger = Ledger.open(tmp_path / f"{number}.db", key=key)
        ledger.adopt(contract(Budget(1)), Budget(1))
        ledger.close()
        assert not (tmp_path / f"{number}.db.key").exists()
        head = Head.from_text((tmp_path / f"{number}.db.head").read_text())
        assert head.public_key == public
        Ledger.open(tmp_path / f"{number}.db", key=key).close()


def test_a_function_that_gives_no_key_is_said_so() -> None:
    with pytest.raises(WrongUse, match="What the function gives"):
        Signer(lambda: b"none")


def test_a_head_that_is_nested_too_deeply_is_none() -> None:
    with pytest.raises(LedgerCorrupt, match="no head"):
        Head.from_text("[" * 100_000)
