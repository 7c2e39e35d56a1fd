# SPDX-License-Identifier: Apache-2.0
"""Keys as objects, PEM and files; the point that a task holds."""

import base64

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from sfumato.errors import InvalidDeclaration, WrongUse
from sfumato.telemetry import point_text, report_task, task_from_bytes
from sfumato.telemetry.keys import key_of_point, private_key, public_key

KEY = ec.generate_private_key(ec.SECP256R1())
PRIVATE = KEY.private_bytes(
    serialization.Encoding.PEM,
    serialization.PrivateFormat.PKCS8,
    serialization.NoEncryption(),
)
PUBLIC = KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)
OTHERS = [None, 3, b"", b"-----BEGIN", "nowhere.pem", ec.generate_private_key(ec.SECP384R1())]
OTHERS += [ed25519.Ed25519PrivateKey.generate()]


def test_a_key_is_read_from_an_object_from_bytes_and_from_a_file(tmp_path):
    for body, read, point in (
        (PRIVATE, private_key, lambda key: point_text(key.public_key())),
        (PUBLIC, public_key, point_text),
    ):
        (tmp_path / "key.pem").write_bytes(body)
        # a text is PEM, as for the clients in other languages, or the path of a file
        texts = (body.decode(), str(tmp_path / "key.pem"))
        for given in (body, tmp_path / "key.pem", *texts):
            assert point(read(given)) == point_text(KEY.public_key())


@pytest.mark.parametrize("given", OTHERS, ids=range(len(OTHERS)))
def test_anything_else_is_refused_and_not_quoted(given):
    for read in (private_key, public_key):
        with pytest.raises(WrongUse, match="curve P-256") as refused:
            read(given)
        assert "BEGIN" not in str(refused.value)


def test_a_point_is_65_bytes_in_base64_and_leads_back():
    text = point_text(KEY.public_key())
    body = base64.b64decode(text)
    assert len(body) == 65 and body[0] == 4
    numbers = KEY.public_key().public_numbers()
    assert body[1:] == numbers.x.to_bytes(32, "big") + numbers.y.to_bytes(32, "big")
    assert point_text(key_of_point(text)) == text


@pytest.mark.parametrize("text", ["", "x", base64.b64encode(bytes(65)).decode(), "é"])
def test_no_point_is_refused(text):
    with pytest.raises(ValueError):
        key_of_point(text)


def test_a_task_holds_the_point_only_where_it_is_sealed():
    usual = {"epsilon": 1, "start": 0, "periods": 1}
    plain = report_task("t", "?", ["a"], **usual)
    tied = report_task("t", "?", ["a"], aggregator=PUBLIC, **usual)
    assert b"aggregator" not in plain.to_bytes()
    assert task_from_bytes(tied.to_bytes()).aggregator == point_text(KEY.public_key())
    for body in (
        plain.to_bytes().replace(b'{"domain"', b'{"aggregator":"","domain"'),
        tied.to_bytes().replace(b'"aggregator":"B', b'"aggregator":"C'),
        plain.to_bytes().replace(b'{"domain"', b'{"aggregator":7,"domain"'),
    ):
        with pytest.raises(InvalidDeclaration):
            task_from_bytes(body)


def test_a_path_without_a_file_is_said_and_not_quoted(tmp_path):
    for read in (private_key, public_key):
        with pytest.raises(WrongUse, match="no file of that name") as refused:
            read(str(tmp_path / "anne.pem"))
        assert "anne" not in str(refused.value)
