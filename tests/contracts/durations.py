# SPDX-License-Identifier: Apache-2.0
"""CPU seconds of each test, its fixtures and the processes that it waits for included.

``make durations`` runs all tests with this plugin and writes ``tests/durations.json``: the sum of
each file, and every test above half a second. A server or a JVM that outlives a test is included
too, where the system tells (Linux): it works for the test that runs.

The same work takes twice the seconds on a slower or busier machine. So a fixed loop is timed
throughout the run, and the seconds that are written are those of a machine that takes
``STANDARD`` for it: figures of two machines can be compared.
"""

import itertools
import json
import os
import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parents[1] / "durations.json"
LISTED = 0.5
# CPU seconds of the loop on the machine for which the limits were set
STANDARD = 0.00435
_TIMED_EVERY = 50
_PROPERTY = "cpu_seconds"
_LOOP = "loop_seconds"
_recorded: dict[str, float] = defaultdict(float)
_loops: list[float] = []


def _cpu_seconds() -> float:
    """CPU time of this process and of its children, ended or alive."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    ended = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    threads = (int(path.name) for path in Path("/proc/self/task").glob("*"))
    alive = itertools.chain.from_iterable(map(_children, threads))
    return ended + sum(map(_ticks, alive)) / os.sysconf("SC_CLK_TCK")


def _children(thread: int) -> Iterator[int]:
    """The living processes that a thread started, and theirs.

    Of those, the first thread alone is asked: a JVM has a hundred that start nothing, and to ask
    them took longer than most tests.
    """
    with suppress(OSError):
        for child in map(int, Path(f"/proc/{thread}/task/{thread}/children").read_text().split()):
            yield child
            yield from _children(child)


def _ticks(pid: int) -> int:
    """Clock ticks that a process and its ended children have worked; 0 if it has just ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    # proc(5): utime, stime, cutime and cstime are fields 14 to 17; the state is field 3
    return sum(map(int, fields[11:15]))


def loop_seconds() -> float:
    """CPU time of a fixed loop."""
    begun = time.process_time()
    sum(number * number % 7 for number in range(100_000))
    return time.process_time() - begun


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if next(_count) % _TIMED_EVERY == 0:
        item.user_properties.append((_LOOP, loop_seconds()))
    item.stash[_begun] = _cpu_seconds()
    return (yield)


_count = itertools.count()
_begun = pytest.StashKey[float]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Each phase reports the time since the one before; the report travels to the first process."""
    report = yield
    now = _cpu_seconds()
    report.user_properties = [(_PROPERTY, now - item.stash[_begun]), *item.user_properties]
    item.user_properties.clear()
    item.stash[_begun] = now
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _recorded[report.nodeid] += sum(
        seconds for name, seconds in report.user_properties if name == _PROPERTY
    )
    _loops.extend(seconds for name, seconds in report.user_properties if name == _LOOP)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The first process writes what all have reported."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    recorded = standard(_recorded, _loops)
    files: dict[str, float] = defaultdict(float)
    for test, seconds in recorded.items():
        files[test.split("::")[0]] += seconds
    slow = {test: seconds for test, seconds in recorded.items() if seconds > LISTED}
    rounded = {
        "files": {name: round(seconds, 1) for name, seconds in sorted(files.items())},
        "tests": {name: round(seconds, 2) for name, seconds in sorted(slow.items())},
    }
    PATH.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")


def standard(recorded: dict[str, float], loops: list[float]) -> dict[str, float]:
    """Returns the seconds as a machine takes them on which the loop takes ``STANDARD``."""
    slower = statistics.median(loops) / STANDARD
    return {test: seconds / slower for test, seconds in recorded.items()}
