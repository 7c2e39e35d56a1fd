# SPDX-License-Identifier: Apache-2.0
"""Sealed reports: RFC 9180 to the letter, one size, opened by one key and as one task's alone."""

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.errors import WrongUse
from sfumato.telemetry import (
    Aggregator,
    Client,
    MemoryStore,
    opened,
    report_task,
    sealed,
    sent_size,
)
from sfumato.telemetry import sealing as module
from sfumato.telemetry.report import Layout
from sfumato.telemetry.signing import signed_task
from tests.telemetry.hpke import point, seal

OWNER = ec.generate_private_key(ec.SECP256R1())
AGGREGATOR = ec.generate_private_key(ec.SECP256R1())


def task(name="t", **fields):
    usual = {"epsilon": 1, "start": 1000, "periods": 3, "min_batch": 2}
    usual |= {"aggregator": AGGREGATOR.public_key()}
    return report_task(name, "?", ["yes", "no"], **(usual | fields))


def report(asked, number=0):
    layout = Layout.of(asked)
    return layout.report(0, number.to_bytes(16, "big"), bytes(asked.oracle.size))


def one(asked, key, given):
    (found,) = opened(asked, key, given)
    return found


# RFC 9180, appendix A.3.1, the first message
RFC = {
    "info": "4f6465206f6e2061204772656369616e2055726e",
    "sender": "4995788ef4b9d6132b249ce59a77281493eb39af373d236a1fe415cb0c2d7beb",
    "made": "04a92719c6195d5085104f469a8b9814d5838ff72b60501e2c4466e5e67b325ac9"
    "8536d7b61a1af4b78e5b7f951c0900be863c403ce65c9bfcb9382657222d18c4",
    "receiver": "f3ce7fdae57e1a310d87f1ebbde6f328be0a99cdbcadf4d6589cf29de4b8ffd2",
    "text": "4265617574792069732074727574682c20747275746820626561757479",
    "beside": "436f756e742d30",
    "sealed": "5ad590bb8baa577f8619db35a36311226a896e7342a6d836d8b7bcd2f20b6c7f"
    "9076ac232e3ab2523f39513434",
}


def test_the_suite_is_that_of_the_rfc():
    given = {name: bytes.fromhex(text) for name, text in RFC.items()}
    sender, receiver = (
        ec.derive_private_key(int.from_bytes(given[name], "big"), ec.SECP256R1())
        for name in ("sender", "receiver")
    )
    assert point(sender.public_key()) == given["made"]
    # the words of the RFC give its message, and the package opens what they give
    message = seal(sender, receiver.public_key(), given["info"], given["text"], given["beside"])
    assert message == given["made"] + given["sealed"]
    plain = seal(sender, receiver.public_key(), given["info"], given["text"])
    assert module.SUITE.decrypt(plain, receiver, given["info"]) == given["text"]


def test_what_the_client_sends_the_aggregator_opens():
    asked, now = task(), [999]
    client = Client(
        signed_task(asked, OWNER, signed_at=0), bytes(32), MemoryStore(), trusted=[OWNER.public_key()],
        published=[asked.hash.hex()], max_epsilon=9, clock=lambda: now[0],
    )  # fmt: skip
    assert client.report("yes") is None
    now[0] = 1000
    sent = client.report("yes")
    assert len(sent) == sent_size(asked) == Layout.of(asked).size + 81
    sums = Aggregator(asked)
    assert sums.add_many([sent]) == 0
    assert sums.add_many(one(asked, AGGREGATOR, [sent])) == 1


def test_a_report_opens_for_its_own_task_and_key_alone():
    asked, plain = task(), report(task())
    sent = sealed(asked, plain)
    assert one(asked, AGGREGATOR, [sent]) == [plain]
    other = task("u")
    assert one(other, AGGREGATOR, [sealed(other, plain), sent]) == [plain]
    with pytest.raises(WrongUse, match="not sealed to this key"):
        list(opened(asked, OWNER, [sent]))
    with pytest.raises(WrongUse, match="not sealed"):
        list(opened(task(aggregator=None), AGGREGATOR, [sent]))


def test_no_two_sealed_reports_are_alike_and_nothing_of_one_shows():
    asked, plain = task(), report(task(), 7)
    sent = [sealed(asked, plain) for _ in range(50)]
    assert len(set(sent)) == 50
    assert not [each for each in sent if plain[:9] in each or plain[9:] in each]
    assert not [each for each in sent if asked.hash[:8] in each]


@pytest.mark.parametrize("place", [0, 1, 64, 65, -1])
def test_what_is_damaged_does_not_open(place):
    asked = task()
    sent = bytearray(sealed(asked, report(asked)))
    sent[place] ^= 1
    given = [bytes(sent), sealed(asked, report(asked, 1)), bytes(sent)[:-1], b"", bytes(len(sent))]
    assert one(asked, AGGREGATOR, given) == [report(asked, 1)]


def test_many_are_opened_in_blocks_in_their_order_and_told(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 8)
    asked, told = task(), []
    plain = [report(asked, number) for number in range(20)]
    column = pa.array([sealed(asked, each) for each in plain], pa.binary(sent_size(asked)))
    found = list(opened(asked, AGGREGATOR, column, told=told.append))
    assert [each for block in found for each in block] == plain and told == [8, 8, 4]


def test_a_client_that_seals_without_the_task_is_noticed(monkeypatch):
    monkeypatch.setattr(module, "_CONTEXT", b"")
    asked, other = task(), task("u")
    sent = module.SUITE.encrypt(report(asked), AGGREGATOR.public_key(), b"")
    assert one(asked, AGGREGATOR, [sent]) == [] == one(other, AGGREGATOR, [sent])


def test_sealing_takes_the_same_bytes_whatever_is_sealed():
    asked = task()
    sizes = {len(sealed(asked, bytes(row))) for row in np.eye(30, dtype=np.uint8)}
    assert sizes == {30 + 81}
