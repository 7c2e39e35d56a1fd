# SPDX-License-Identifier: Apache-2.0
"""Sends the reports of many made-up devices: ``python send.py FOLDER NAME``."""

import secrets
import sys
import time
import urllib.request
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from sfumato.telemetry import Client, MemoryStore

_BATCH = 1000


def main(folder: Path, name: str) -> None:
    """Sends the reports of all tasks of a folder."""
    for line in (folder / "tasks.tsv").read_text("utf-8").splitlines():
        task, kind, digest, start, address = line.split("\t")
        begun = time.monotonic()
        values = _values(folder / f"{task}.{name}.tsv", kind)
        sent = sum(_post(address, batch) for batch in _batches(folder, task, digest, start, values))
        print(f"{task}\t{sent}\t{time.monotonic() - begun:.3f}")


def _batches(
    folder: Path, task: str, digest: str, start: str, values: Iterator[str | int]
) -> Iterator[list[bytes]]:
    """The reports of devices with these values, a thousand at a time."""
    now = [int(start)]
    client = Client(
        (folder / f"{task}.task").read_bytes(),
        secrets.token_bytes(32),
        MemoryStore(),
        trusted=[folder / "owner.pem"],
        published=[digest],
        max_epsilon=100,
        clock=lambda: now[0],
    )
    while taken := list(islice(values, _BATCH)):
        yield [_report(client, now, int(start), value) for value in taken]


def _values(path: Path, kind: str) -> Iterator[str | int]:
    """What each device holds."""
    for line in path.read_text("utf-8").splitlines():
        count, told = line.split("\t")
        for _ in range(int(count)):
            yield int(told) if kind == "number" else told


def _report(client: Client, now: list[int], start: int, value: str | int) -> bytes:
    """The report of a new device, which was there before the task began."""
    device = client.device(secrets.token_bytes(32), MemoryStore())
    now[0] = start - 1
    device.report(value)
    now[0] = int(time.time())
    report = device.report(value)
    assert report is not None, "the period is open"
    return report


def _post(address: str, reports: list[bytes]) -> int:
    """Sends a batch; returns how many it had."""
    # an address of this machine, see demo_telemetry.py
    request = urllib.request.Request(address, b"".join(reports), method="POST")  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        assert answer.status == 202, "the collector keeps a batch or fails"
    return len(reports)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
