# SPDX-License-Identifier: Apache-2.0
"""What sfumato is asked of telemetry."""

import secrets
from collections.abc import Callable
from functools import partial
from itertools import count

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec

import sfumato as sf
from benchmarks.systems import Call, Make
from sfumato.exact.rational import Number
from sfumato.noise import SYSTEM
from sfumato.telemetry import Client, MemoryStore, report_task, signed_task, simulate
from sfumato.telemetry.oracles import bit, category, hashed, projective, unary
from sfumato.telemetry.oracles.frequency import FrequencyOracle

K = 1024
LARGE = 1 << 20
_MAKERS: dict[str, Callable[[int, Number], FrequencyOracle]] = {
    "category": category,
    "projective": projective,
    "bit": bit,
    "hashed": hashed,
    "unary": unary,
}


def _added(name: str, epsilon: float, n: int) -> Call:
    """Encodes and adds up the reports of n devices, and estimates."""
    oracle = _MAKERS[name](K, epsilon)
    values = np.arange(n) % K

    def call() -> object:
        tally = oracle.tally(oracle.encode_many(values, SYSTEM))
        return oracle.support(tally, n)

    return call


def _decoded(name: str, epsilon: float, n: int) -> Call:
    """The estimates of all values, from the bytes of n reports."""
    oracle = _MAKERS[name](LARGE, epsilon)
    payloads = oracle.encode_many(np.arange(n) % LARGE, SYSTEM)
    return lambda: oracle.support(oracle.tally(payloads), n)


def _client(name: str, epsilon: float, _: int) -> Call:
    """One report of one device, unsealed, whose store is memory."""
    oracle = _MAKERS[name](K, epsilon)
    task = report_task(
        "speed",
        "How fast?",
        sf.Integer(0, K - 1),
        oracle=oracle,
        start=0,
        period=60,
        periods=1 << 31,
        expires=1 << 41,
    )
    key = ec.generate_private_key(ec.SECP256R1())
    ticks = count(-1)
    client = Client(
        signed_task(task, key, signed_at=0),
        secrets.token_bytes(32),
        MemoryStore(),
        trusted=[key.public_key()],
        published={task.hash.hex()},
        max_epsilon=10**12,
        clock=lambda: 60 * next(ticks),
    )
    # before the start: a new client is silent once
    client.report(7)
    return lambda: client.report(7)


def _simulated(name: str, epsilon: float, n: int) -> Call:
    """The sums of n devices, each value held by as many."""
    oracle = _MAKERS[name](1000, epsilon)
    task = report_task("many", "?", sf.Integer(0, 999), oracle=oracle, start=0, periods=1)
    return lambda: simulate(task, [n // 1000] * 1000)


def _works() -> dict[str, Make]:
    """Each work by its name."""
    found: dict[str, Make] = {}
    for kind, names, make in (
        ("", ("category", "hashed", "unary"), _added),
        ("decode ", ("projective", "bit"), _decoded),
        ("client ", ("category", "projective", "bit", "hashed"), _client),
        ("simulate ", ("unary",), _simulated),
    ):
        for name in names:
            found[f"telemetry {kind}{name}"] = partial(make, name)
    return found


DEVICES = _works()
