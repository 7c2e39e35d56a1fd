# SPDX-License-Identifier: Apache-2.0
"""Encrypted shares add up to the bit; what opens alone is masked, and the coordinator opens nothing."""

from base64 import b64encode
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.errors import InvalidDeclaration, StudyFailed, WrongUse
from sfumato.federated.coordinator import added
from sfumato.federated.declaration import read_study
from sfumato.federated.encryption import (
    RunKey,
    added_ciphertexts,
    modulus_of,
    opened_answer,
    require_bfv,
)
from sfumato.federated.study import Study
from sfumato.mechanisms.masks import FreshKey
from tests.contracts.federation import NAMES, write_study
from tests.contracts.federation_world import Life, study_of
from tests.contracts.require import missing

KEYS = {name: ec.generate_private_key(ec.SECP256R1()) for name in NAMES}
PUBLIC = {name: key.public_key() for name, key in KEYS.items()}


@pytest.fixture
def bfv():
    if find_spec("tenseal") is None:
        missing("bfv", "no TenSEAL")


def words(number, seed):
    """Integers modulo 2^64 as bytes."""
    return np.random.default_rng(seed).integers(0, 2**64, number, np.uint64).tobytes()


@pytest.mark.usefixtures("bfv")
@pytest.mark.parametrize(("number", "sites"), [(1, 3), (1025, 3), (7, 20)])
def test_the_sum_of_ciphertexts_opens_as_the_sum_of_the_shares_to_the_bit(number, sites):
    key = RunKey.new(sites)
    shares = {str(site): words(number, site) for site in range(sites)}
    # each limb at its highest
    shares["0"] = b"\xff" * len(shares["0"])
    sent = {site: key.encrypt(share) for site, share in shares.items()}
    total = added_ciphertexts(sent, sites)
    assert key.decrypt(total, 8 * number) == added(shares)


def test_sums_of_limbs_stay_below_the_modulus():
    for sites in range(3, 70):
        modulus = modulus_of(sites)
        assert modulus > sites * (2**16 - 1) and modulus % 8192 == 1
        assert all(modulus % part for part in range(2, 2200) if part < modulus)


def masked(values, *, masks):
    """What the first site sends: its integers with masks, or without (the mutant)."""
    fresh = {name: FreshKey(name, key, b"run") for name, key in KEYS.items()}
    shown = {name: (key.public, key.signature) for name, key in fresh.items()}
    if not masks:
        return values.astype("<u8").tobytes()
    return fresh["anne"].masks(PUBLIC, shown).masked(1, values)


def opened_alone(values, *, masks):
    """The bits that a key holder reads who is given one ciphertext as the sum."""
    key = RunKey.new(3)
    body = key.decrypt(key.encrypt(masked(values, masks=masks)), 8 * len(values))
    return np.unpackbits(np.frombuffer(body, np.uint8).reshape(-1, 8), axis=1)


@pytest.mark.usefixtures("bfv")
def test_one_ciphertext_handed_in_for_opening_is_uniform_in_every_bit():
    values = np.full(2048, 72)
    ones = opened_alone(values, masks=True).mean(axis=0)
    # 7 standard deviations of 2,048 fair bits, for each of 64
    assert (abs(ones - 0.5) < 7 * 0.5 / 2048**0.5).all()
    # the mutant: ciphertexts without masks open as the numbers of one hospital
    assert set(opened_alone(values, masks=False).mean(axis=0)) == {0.0, 1.0}


@pytest.mark.usefixtures("bfv")
def test_the_key_of_a_run_opens_for_its_sites_and_study_alone():
    key = RunKey.new(3)
    form = key.sealed("study", PUBLIC)
    for name, own in KEYS.items():
        there = RunKey.opened(form, "study", name, own, 3)
        assert there.decrypt(key.encrypt(words(5, 1)), 40) == words(5, 1)
    stranger = ec.generate_private_key(ec.SECP256R1())
    cut = {**form, "key": form["key"][:-4]}
    for wrong in (
        (form, "study", "anne", stranger),
        (form, "study", "anne", KEYS["northgate"]),
        (form, "another", "anne", KEYS["anne"]),
        (form, "study", "westend", KEYS["anne"]),
        (cut, "study", "anne", KEYS["anne"]),
        (None, "study", "anne", KEYS["anne"]),
        ({"key": "", "sealed": []}, "study", "anne", KEYS["anne"]),
    ):
        with pytest.raises(InvalidDeclaration):
            RunKey.opened(*wrong, 3)


@pytest.mark.usefixtures("bfv")
def test_an_answer_opens_for_the_parties_of_its_run_alone():
    key = RunKey.new(3)
    sealed = key.sealed("study", PUBLIC)["sealed"]
    text = key.encrypt_answer(b"72")
    assert opened_answer(sealed, "study", "anne", KEYS["anne"], text) == b"72"
    assert key.encrypt_answer(b"72") != text
    for wrong in (
        (sealed, "study", "anne", KEYS["northgate"], text),
        (sealed, "another", "anne", KEYS["anne"], text),
        (sealed, "study", "anne", KEYS["anne"], text[:-1]),
        (sealed, "study", "anne", KEYS["anne"], b""),
        (None, "study", "anne", KEYS["anne"], text),
        (RunKey.new(3).sealed("study", PUBLIC)["sealed"], "study", "anne", KEYS["anne"], text),
    ):
        with pytest.raises(InvalidDeclaration):
            opened_answer(*wrong)


@pytest.mark.usefixtures("bfv")
def test_what_is_no_ciphertext_of_the_run_is_refused():
    key = RunKey.new(3)
    share = key.encrypt(words(3, 1))
    for wrong in (
        b"",
        b"xx",
        share[:-1],
        share + share,
        bytes(8),
        RunKey.new(30).encrypt(bytes(8)),
    ):
        with pytest.raises(ValueError, match="no ciphertexts"):
            added_ciphertexts({"a": share, "b": wrong}, 3)
        if wrong != share + share:
            with pytest.raises(StudyFailed):
                key.decrypt(wrong, 24)
    # of another key: a number that nobody sent
    assert RunKey.new(3).decrypt(share, 24) != words(3, 1)


@pytest.mark.usefixtures("bfv")
def test_the_coordinator_sees_ciphertexts_alone_of_shares_sums_and_answers(tmp_path, monkeypatch):
    write_study(tmp_path, more='encryption = "bfv"')
    declared, keys = study_of(tmp_path)
    assert declared.is_encrypted
    world = Life(monkeypatch, declared, keys, tmp_path, places=2)
    assert world.ask() == 111
    # another process of the analyst reads it too
    world.analyst = Study(declared, keys["analyst"])
    assert world.ask() == 111 and [book.paid for book in world.books.values()] == [1, 1, 1]
    sums = sorted((tmp_path / "rounds" / "sums").iterdir())
    total = np.array([111]).tobytes()
    assert len(sums) == 2 and all(total not in place.read_bytes() for place in sums)
    said = (tmp_path / "rounds" / "messages").read_text()
    assert "answered" in said and b64encode(total).decode() not in said
    # the mutant: shares that are masked alone have a sum that it reads
    world.stop()
    plain = Life(monkeypatch, replace(declared, encryption="none"), keys, tmp_path / "plain")
    assert plain.ask() == 111
    (stored,) = (tmp_path / "plain" / "rounds" / "sums").iterdir()
    assert stored.read_bytes() == total
    said = (tmp_path / "plain" / "rounds" / "messages").read_text()
    assert b64encode(total).decode() in said
    plain.stop()


@pytest.mark.usefixtures("bfv")
def test_a_garbled_ciphertext_ends_a_run(tmp_path, monkeypatch):
    write_study(tmp_path, more='encryption = "bfv"')
    world = Life(monkeypatch, *study_of(tmp_path), tmp_path)
    honest = RunKey.encrypt
    monkeypatch.setattr(RunKey, "encrypt", lambda key, share: honest(key, share)[:-9])
    with pytest.raises(StudyFailed):
        world.ask()
    world.stop()


def test_without_its_package_a_study_that_encrypts_is_refused(tmp_path, monkeypatch):
    path = write_study(tmp_path, more='encryption = "bfv"')
    monkeypatch.setattr("sfumato.federated.encryption.find_spec", lambda name: None)
    for refused in (require_bfv, lambda: read_study(path)):
        with pytest.raises(WrongUse, match=r"sfumato\[bfv\]"):
            refused()
