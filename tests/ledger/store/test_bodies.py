# SPDX-License-Identifier: Apache-2.0
"""How the bytes of an answer are stored, and what comes of bytes that somebody has changed."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.errors import LedgerCorrupt, LedgerUnavailable, WrongUse
from sfumato.ledger import Ledger, verify
from sfumato.ledger.store import bodies, sqlite
from sfumato.ledger.store.bodies import LARGEST, BodyFiles, Packed, is_name, pack, unpack
from tests.contracts.charges import in_state, opened, pure
from tests.contracts.killed import killed_after

LARGE = b"large " * 2000


def nowhere(name: str, body: object) -> bytes:
    """Nothing is kept outside."""
    raise AssertionError(name)


@pytest.mark.parametrize(
    "body", [b"", b"short", bytes(4096), b"text " * 10_000, bytes(range(256)) * 20]
)
def test_a_body_comes_back_as_it_went_in(body: bytes) -> None:
    packed = pack(body, LARGEST, nowhere)
    assert unpack(packed, nowhere) == body
    assert len(packed.data) <= len(body)
    assert (packed.coding == "") == (packed.data == body)


def test_the_bound_alone_says_whether_a_body_goes_outside() -> None:
    kept: dict[str, bytes] = {}
    for body in (b"", b"short", LARGE):
        packed = pack(body, LARGEST + 1, kept.__setitem__)
        assert packed == (hashlib.sha256(body).hexdigest().encode(), f"large {len(body)}")
        assert unpack(packed, lambda name, size: kept[name]) == body
        assert pack(body, LARGEST, nowhere).coding[:5] != "large"


def test_a_body_longer_than_its_bound_is_refused() -> None:
    with pytest.raises(WrongUse, match="6 bytes"):
        pack(b"123456", 5, nowhere)


@pytest.mark.parametrize(
    "packed",
    [
        Packed(b"no frame", "zstd 8"),
        Packed(pack(LARGE, LARGEST, nowhere).data, "zstd 5"),
        Packed(pack(LARGE, LARGEST, nowhere).data, f"zstd {LARGEST + 1}"),
        Packed(pack(LARGE, LARGEST, nowhere).data, "zstd -1"),
        Packed(b"", "zstd"),
        Packed(b"", "gzip 5"),
        Packed(b"\xff", "large 5"),
    ],
)
def test_what_cannot_be_read_is_not_what_was_committed(packed: Packed) -> None:
    assert unpack(packed, lambda name, size: b"") != LARGE


def test_a_name_leads_nowhere_else(tmp_path: Path) -> None:
    files, secret = BodyFiles(str(tmp_path / "l.db")), tmp_path / "secret"
    secret.write_bytes(b"x")
    files.folder.mkdir()
    for name in ("../secret", str(secret), "", "A" * 64):
        assert not is_name(name)
        assert files.kept(name, 1) == b""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with a large answer."""
    ledger = opened(tmp_path / "l.db")
    charge = in_state(ledger, "executing")
    ledger.commit(charge, LARGE, size=10**9)
    return ledger


def test_a_large_answer_is_a_file_beside_the_ledger(ledger: Ledger, tmp_path: Path) -> None:
    [path] = (tmp_path / "l.db.bodies").iterdir()
    assert path.name == hashlib.sha256(LARGE).hexdigest()
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert ledger.answer("q") == LARGE
    assert verify(ledger).problems == ()
    ledger.close()
    reader = Ledger.open(tmp_path / "l.db", read_only=True)
    assert (reader.answer("q"), verify(reader).problems) == (LARGE, ())
    reader.close()


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(bytes(len(LARGE)))])
def test_a_file_that_is_gone_or_changed_is_noticed(
    ledger: Ledger, tmp_path: Path, harm: Callable[[Path], object]
) -> None:
    [path] = (tmp_path / "l.db.bodies").iterdir()
    harm(path)
    with pytest.raises(LedgerCorrupt):
        ledger.answer("q")
    assert any("not the one that was committed" in each for each in verify(ledger).problems)


def test_a_large_body_is_on_disk_before_its_row(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    # killed between the file and the row: the file is there, the charge is forfeited
    killed_after(
        path,
        "c = ledger.reserve(pure('0.1')); ledger.execute(c); ledger.store.pack(b'x' * 9000, 10**9); "
        "(path.parent / 'l.db.bodies' / 'half.new').write_bytes(b'x')",
    )
    [*files] = sorted(each.name for each in (tmp_path / "l.db.bodies").iterdir())
    assert hashlib.sha256(b"x" * 9000).hexdigest() in files
    ledger = Ledger.open(path)
    assert [each.name for each in (tmp_path / "l.db.bodies").iterdir()] == [
        hashlib.sha256(b"x" * 9000).hexdigest()
    ]
    assert verify(ledger).problems == ()
    ledger.close()


def test_a_row_before_its_file_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path / "l.db")
    charge = in_state(ledger, "executing")
    monkeypatch.setattr(bodies.BodyFiles, "keep", lambda *_: None)
    ledger.commit(charge, LARGE, size=10**9)
    assert verify(ledger).problems != ()


def test_a_disk_that_refuses_a_body_gives_no_answer(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge = ledger.reserve(pure("0.1", "other"))
    ledger.execute(charge)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(bodies.os, "fsync", full)
        with pytest.raises(LedgerUnavailable, match="No space"):
            ledger.commit(charge, b"y" * 9000, size=10**9)
    assert ledger.answer("other") is None
    assert not list(Path(f"{ledger.store.place}.bodies").glob("*.new"))
    assert sqlite.pack is bodies.pack
    ledger.commit(charge, b"y" * 9000, size=10**9)
    assert ledger.answer("other") == b"y" * 9000
