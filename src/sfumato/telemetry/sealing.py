# SPDX-License-Identifier: Apache-2.0
"""Encrypts reports to the aggregator: HPKE (RFC 9180) in base mode, one report a message.

DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, of the package cryptography. The hash of the
task is part of the key, so a report opens as one of its own task alone. All sealed reports of a
task have the same size.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.errors import WrongUse
from sfumato.telemetry.keys import PrivateKey, key_of_point, point_text, private_key
from sfumato.telemetry.report import Layout
from sfumato.telemetry.rows import Reports, rows_of
from sfumato.telemetry.task import ReportTask

SUITE = hpke.Suite(hpke.KEM.P256, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)
# The point of the key that is made for a report, and the tag.
OVERHEAD = 65 + 16
_CONTEXT = b"sfumato telemetry report 1\n"
# Reports that are opened in one piece.
_BLOCK = 1 << 14


def sent_size(task: ReportTask) -> int:
    """Returns the number of bytes of a report as a device sends it, with the overhead of encryption
    if the task is sealed.

    >>> from sfumato.telemetry.task import report_task
    >>> key = ec.generate_private_key(ec.SECP256R1()).public_key()
    >>> task = report_task("t", "?", ["a"], epsilon=1, start=0, periods=1, aggregator=key)
    >>> sent_size(task) - Layout.of(task).size
    81
    """
    return Layout.of(task).size + (OVERHEAD if task.aggregator else 0)


def sealed(task: ReportTask, report: bytes) -> bytes:
    """Returns the bytes that a device sends: the report, encrypted if the task names an
    aggregator's public key.

    >>> from sfumato.telemetry.task import report_task
    >>> sealed(report_task("t", "?", ["a"], epsilon=1, start=0, periods=1), b"report")
    b'report'
    """
    if not task.aggregator:
        return report
    return SUITE.encrypt(report, _key(task.aggregator), _CONTEXT + task.hash)


def opened(
    task: ReportTask,
    key: PrivateKey,
    reports: Reports,
    *,
    told: Callable[[int], None] | None = None,
) -> Iterator[list[bytes]]:
    """Decrypts sealed reports; yields lists of them for ``Aggregator.add_many``.

    A message that does not decrypt (damaged, of another task, or for another key) is left out.
    ``told`` is called with the number of messages that were read since the last call.

    Guarantees:
        a report opens for its own task and key alone

    Raises:
        WrongUse: the task is not sealed, or the key is not that of its aggregator.

    >>> from sfumato.telemetry.task import report_task
    >>> key = ec.generate_private_key(ec.SECP256R1())
    >>> task = report_task("t", "?", ["a"], epsilon=1, start=0, periods=1,
    ...                    aggregator=key.public_key())
    >>> list(opened(task, key, [sealed(task, bytes(Layout.of(task).size)), b"damaged"]))
    [[b'...']]
    """
    secret = private_key(key)
    if not task.aggregator or point_text(secret.public_key()) != task.aggregator:
        raise WrongUse(
            f"The task {task.id!r} is not sealed to this key.",
            allowed="the private key of the aggregator that the task names",
        )
    rows, _ = rows_of(reports, sent_size(task))
    one = partial(_opened, secret, _CONTEXT + task.hash)
    # the package opens outside of Python's lock
    with ThreadPoolExecutor() as threads:
        for start in range(0, len(rows), _BLOCK):
            block = [row.tobytes() for row in rows[start : start + _BLOCK]]
            found = [report for report in threads.map(one, block) if report is not None]
            if told is not None:
                told(len(block))
            yield found


def _opened(key: ec.EllipticCurvePrivateKey, info: bytes, report: bytes) -> bytes | None:
    """Returns the report inside of a sealed one; None if it does not open."""
    try:
        return SUITE.decrypt(report, key, info)
    except InvalidTag:
        return None


@lru_cache(maxsize=8)
def _key(point: str) -> ec.EllipticCurvePublicKey:
    """Returns the public key of a task, read once."""
    return key_of_point(point)
