# SPDX-License-Identifier: Apache-2.0
"""Tasks, batches and requests for the collector."""

import asyncio
import os
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.collector import Collector, Intake, ReportStore
from sfumato.collector.folder import read
from sfumato.noise.entropy import SYSTEM
from sfumato.telemetry import (
    Aggregator,
    ReportTask,
    SignedTask,
    report_task,
    sealed,
    signed_task,
)
from sfumato.telemetry.client import drawn_words
from sfumato.telemetry.oracles.oracle import Payloads
from sfumato.telemetry.report import Layout

KEY = ec.generate_private_key(ec.SECP256R1())
START, PERIOD = 1_800_000_000, 86_400
# In the middle of period 1.
NOW = START + PERIOD + 40_000.0


def asked(name: str = "emoji", **other: Any) -> SignedTask:
    usual = {"epsilon": 2, "start": START, "periods": 4, "min_batch": 2}
    task = report_task(name, "Which?", ["smile", "heart", "moon"], **(usual | other))
    return signed_task(task, KEY, signed_at=0)


def batch(task: ReportTask, count: int, period: int = 1, value: int = 1) -> list[bytes]:
    """Reports of so many devices with the same value."""
    layout, oracle = Layout.of(task), task.oracle
    made = []
    for _ in range(count):
        words = drawn_words(oracle.draws, SYSTEM).tolist()
        made.append(layout.report(period, os.urandom(16), oracle.encode(value, words)))
    return made


AGGREGATOR = ec.generate_private_key(ec.SECP256R1())


def sealed_task(name: str = "emoji", **other: Any) -> SignedTask:
    return asked(name, aggregator=AGGREGATOR.public_key(), **other)


def sealed_batch(task: ReportTask, count: int, period: int = 1) -> list[bytes]:
    """Sealed reports of so many devices."""
    return [sealed(task, each) for each in batch(task, count, period)]


def rows(reports: list[bytes]) -> Payloads:
    """Reports as rows of bytes."""
    return np.frombuffer(b"".join(reports), np.uint8).reshape(len(reports), -1)


def intake(store: ReportStore, signed: SignedTask, now: float = NOW) -> Intake:
    return Intake(signed, store, lambda: now)


def stored(place: Any, task: ReportTask, period: int = 1) -> list[bytes]:
    """All reports that are kept of a period."""
    return [each for part in read(place, task, period) for each in part.to_pylist()]


def counted(place: Any, task: ReportTask, period: int = 1) -> int:
    """How many reports an aggregator counts."""
    sums = Aggregator(task, period)
    for part in read(place, task, period):
        sums.add_many(part)
    return sums.reports


def request(
    app: Collector,
    method: str,
    path: str,
    body: bytes = b"",
) -> tuple[int, bytes]:
    """Status and body of one request, as a server gives it to the application."""
    sent: list[Any] = []
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return waiting.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": method, "path": path, "client": ("203.0.113.7", 4711),
        "headers": [(b"x-forwarded-for", b"203.0.113.7")],
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], sent[1]["body"]
