# SPDX-License-Identifier: Apache-2.0
"""One system at work: ``python -m benchmarks.worker opendp`` in the environment of that system.

Reads a request a line, ``{"name", "scale", "n", "kind"}``, and answers ``{"value", "cpu"}``:
the seconds of a call, its bytes, or the number that it gave. What a system cannot do it answers with ``{"error"}``.
"""

import json
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from importlib import import_module, metadata
from platform import python_version
from typing import Any, TextIO

from benchmarks.compare import Kind
from benchmarks.systems import Call

# what ru_maxrss counts
UNIT = 1 if sys.platform == "darwin" else 1024
# a repetition is so many calls that it lasts at least so many seconds
_LONG = 0.02
# what is taken of many calls in a row
TIMED = (Kind.TIME.value, Kind.CPU.value)

Reply = dict[str, Any]


def answers(system: str, requests: TextIO) -> Iterator[Reply]:
    """The versions of a system, then an answer to each request."""
    try:
        module = import_module(f"benchmarks.systems.{system}")
    except ImportError as failure:
        yield {"error": f"ImportError: {failure}"}
        return
    yield {
        "versions": {name: metadata.version(name) for name in module.PACKAGES}
        | {"python": python_version()}
    }
    # of what works in another process too, the system tells the processor's seconds
    clock = getattr(module, "clock", time.process_time)
    ready: dict[str, tuple[Call, int]] = {}
    for request in requests:
        asked = json.loads(request)
        try:
            if request not in ready:
                call = module.WORKS[asked["name"]](asked["scale"], asked["n"])
                ready[request] = call, enough(call) if asked["kind"] in TIMED else 1
            yield measured(*ready[request], Kind(asked["kind"]), clock)
        except Exception as failure:  # noqa: BLE001 - a peer may fail in any way
            yield {"error": f"{type(failure).__name__}: {failure}"}


def measured(
    call: Call, calls: int, kind: Kind, clock: Callable[[], float] = time.process_time
) -> Reply:
    """One repetition."""
    if kind is Kind.VALUE:
        return {"value": float(call()), "cpu": None}  # type: ignore[arg-type]
    if kind is Kind.MEMORY:
        return {"value": peak(call), "cpu": None}
    if kind is Kind.PROCESS:
        call()
        return {"value": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT, "cpu": None}
    value, cpu = duration(call, calls, clock)
    return {"value": cpu if kind is Kind.CPU else value, "cpu": cpu}


def enough(call: Call) -> int:
    """How many calls are a repetition; afterwards all that they need is warm."""
    calls = 1
    while duration(call, calls)[0] * calls < _LONG:
        calls *= 2
    return calls


def duration(
    call: Call, calls: int, clock: Callable[[], float] = time.process_time
) -> tuple[float, float]:
    """Seconds a call, by the wall clock and by the processor's."""
    processor, wall = clock(), time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - wall) / calls, (clock() - processor) / calls


def peak(call: Call) -> int:
    """The most bytes that a call held at once, above the array that it gives."""
    tracemalloc.start()
    try:
        given = call()
        return tracemalloc.get_traced_memory()[1] - int(getattr(given, "nbytes", 0))
    finally:
        tracemalloc.stop()


if __name__ == "__main__":
    # what a system prints must not come between the answers
    out, sys.stdout = sys.stdout, sys.stderr
    for reply in answers(sys.argv[1], sys.stdin):
        print(json.dumps(reply), file=out, flush=True)
