# SPDX-License-Identifier: Apache-2.0
"""Tokens, passwords, and the pause after failed sign-ins."""

import hashlib
import hmac
import stat
from pathlib import Path

import pytest

from sfumato.errors import WrongUse
from sfumato.service import credentials
from sfumato.service.credentials import (
    TOKEN,
    Digests,
    Slowdown,
    hash_password,
    is_password,
    new_secret,
    require_password,
)
from sfumato.service.refusals import StateFailed, TooMany


def test_a_token_is_stored_as_its_hmac_under_a_key_that_stays(tmp_path: Path) -> None:
    digests = Digests(tmp_path / "key")
    key = (tmp_path / "key").read_bytes()
    assert digests.of("sfu_x") == hmac.new(key, b"sfu_x", hashlib.sha256).hexdigest()
    assert Digests(tmp_path / "key").of("sfu_x") == digests.of("sfu_x")
    assert Digests(tmp_path / "other").of("sfu_x") != digests.of("sfu_x")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_a_key_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"short")
    with pytest.raises(StateFailed):
        Digests(tmp_path / "key")


def test_secrets_differ_and_have_256_bits() -> None:
    made = {new_secret(TOKEN) for _ in range(100)}
    # 43 letters of base64 carry 258 bits
    assert len(made) == 100 and {len(each) for each in made} == {47}


def test_a_password_fits_its_own_hash_only() -> None:
    stored = hash_password("correct horse")
    assert stored.startswith("$argon2id$") and stored != hash_password("correct horse")
    assert is_password("correct horse", stored)
    assert not is_password("correct horsf", stored)
    # nobody's password is none, not even the one that its time is taken from
    assert not is_password("nobody", "")


@pytest.mark.parametrize("password", ["short", "x" * 2000, 7, None])
def test_a_password_of_another_length_is_refused_unquoted(password: object) -> None:
    with pytest.raises(WrongUse) as refusal:
        require_password(password)
    assert str(password) not in str(refusal.value)


def test_failures_double_the_pause_up_to_a_minute() -> None:
    now = [0.0]
    slow = Slowdown(lambda: now[0])
    for _ in range(3):
        slow.require(["a"])
        slow.failed(["a"])
    slow.require(["a"])
    pauses = []
    for _ in range(7):
        slow.failed(["a"])
        with pytest.raises(TooMany) as refusal:
            slow.require(["other", "a"])
        pauses.append(refusal.value.after)
        now[0] += pauses[-1]
        slow.require(["a"])
    assert pauses == [2, 4, 8, 16, 32, 60, 60]
    slow.succeeded(["a"])
    slow.failed(["a"])
    slow.require(["a"])


def test_a_flood_of_names_keeps_no_memory() -> None:
    slow = Slowdown(lambda: 0.0)
    for number in range(Slowdown.REMEMBERED + 500):
        slow.failed([f"name {number}"])
    assert len(slow._failures) == Slowdown.REMEMBERED


def test_an_unknown_name_costs_what_a_known_one_costs() -> None:
    # the same parameters, so the same time
    known, nobody = credentials.hash_password("correct horse"), credentials._NOBODY
    assert nobody.split("$")[:4] == known.split("$")[:4]
    assert is_password("nobody", nobody) and not is_password("nobody", "")
