# SPDX-License-Identifier: Apache-2.0
"""A signature is of the canonical task, by a trusted key of P-256."""

import base64
import json
import time
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from sfumato.errors import InvalidDeclaration, TaskRefused, WrongUse
from sfumato.telemetry import SignedTask, report_task, signed_task, verified

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
TASK = report_task("t", "?", ["a"], epsilon=1, start=0, periods=1)
DEARER = report_task("t", "?", ["a"], epsilon=2, start=0, periods=1)


def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def public_pem(key):
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def test_a_task_that_was_changed_after_it_was_signed_is_refused():
    signed = signed_task(TASK, KEY)
    assert verified(signed, [OTHER.public_key(), KEY.public_key()]) == signed
    for wrong in (SignedTask(DEARER, signed.signature), SignedTask(TASK, bytes(64))):
        with pytest.raises(TaskRefused):
            verified(wrong.to_bytes(), [KEY.public_key()])
    with pytest.raises(TaskRefused):
        verified(signed, [OTHER.public_key()])
    with pytest.raises(TaskRefused):
        verified(signed, [])


def test_a_signature_is_what_webcrypto_verifies():
    signed = signed_task(TASK, KEY, signed_at=1_234)
    assert len(signed.signature) == 64
    first, second = (int.from_bytes(signed.signature[at : at + 32], "big") for at in (0, 32))
    text = b"sfumato telemetry task 2\n1234\n" + TASK.to_bytes()
    der = encode_dss_signature(first, second)
    KEY.public_key().verify(der, text, ec.ECDSA(hashes.SHA256()))


def test_a_signature_is_of_the_moment_at_which_it_was_made():
    before = int(time.time())
    signed = signed_task(TASK, KEY)
    assert before <= signed.signed_at <= time.time()
    for moment in (signed.signed_at - 1, 0, None):
        with pytest.raises(TaskRefused):
            verified(replace(signed, signed_at=moment), [KEY.public_key()])
    for moment in (-1, 2**41, 1.5, True, "0"):
        with pytest.raises(WrongUse, match="signed_at"):
            signed_task(TASK, KEY, signed_at=moment)
        form = json.loads(signed.to_bytes()) | {"signed_at": moment}
        with pytest.raises(InvalidDeclaration):
            SignedTask.from_bytes(json.dumps(form).encode())


def test_a_task_of_an_earlier_version_does_not_say_when_it_was_signed():
    der = KEY.sign(b"sfumato telemetry task 1\n" + TASK.to_bytes(), ec.ECDSA(hashes.SHA256()))
    signature = b"".join(part.to_bytes(32, "big") for part in decode_dss_signature(der))
    earlier = SignedTask(TASK, signature)
    assert list(json.loads(earlier.to_bytes())) == ["signature", "task"]
    assert verified(earlier.to_bytes(), [KEY.public_key()]) == earlier
    assert earlier.signed_at is None
    # it is none of a moment
    with pytest.raises(TaskRefused):
        verified(replace(earlier, signed_at=0), [KEY.public_key()])


def test_keys_come_as_objects_bytes_and_files(tmp_path):
    (tmp_path / "key").write_bytes(pem(KEY))
    (tmp_path / "pub").write_bytes(public_pem(KEY))
    for private in (KEY, pem(KEY), tmp_path / "key", str(tmp_path / "key")):
        for public in (KEY.public_key(), public_pem(KEY), tmp_path / "pub"):
            assert verified(signed_task(TASK, private), [public]).task == TASK


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"-----BEGIN",
        "nowhere",
        None,
        3,
        pem(ec.generate_private_key(ec.SECP384R1())),
        pem(ed25519.Ed25519PrivateKey.generate()),
        public_pem(KEY),
    ],
    ids=["empty", "cut", "text", "none", "number", "another curve", "no curve", "public"],
)
def test_another_key_is_refused_and_never_quoted(key):
    with pytest.raises(WrongUse, match="P-256") as refused:
        signed_task(TASK, key)
    assert "BEGIN" not in str(refused.value)


def test_a_private_key_is_no_public_one():
    with pytest.raises(WrongUse, match="public key"):
        verified(signed_task(TASK, KEY), [pem(KEY)])


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"null", b'{"task":"{}","signature":"AA=="}', b'{"task":3,"signature":3}']
)
def test_what_is_no_signed_task_is_refused(body):
    with pytest.raises(InvalidDeclaration):
        verified(body, [KEY.public_key()])


def test_a_signed_task_is_json_that_holds_the_signed_bytes():
    signed = signed_task(TASK, KEY)
    form = json.loads(signed.to_bytes())
    assert form["task"].encode() == TASK.to_bytes()
    assert base64.b64decode(form["signature"]) == signed.signature
    assert SignedTask.from_bytes(signed.to_bytes()) == signed


@pytest.mark.parametrize("size", [0, 63, 65, 1000])
def test_a_signature_of_another_length_is_refused(size):
    with pytest.raises(TaskRefused):
        verified(SignedTask(TASK, b"1" * size), [KEY.public_key()])
