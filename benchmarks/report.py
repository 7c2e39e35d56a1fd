# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a benchmark, prints which bars hold, and writes the results.

The bars are meant for a machine at rest; one that fails is reported, and is no error. With
words as arguments only the cases that hold one of them run, and nothing is written.
"""

import json
import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb

import sfumato
from benchmarks.compare import HEAD, Case, Kind, Row, Work, line, rows
from benchmarks.driver import OURS, Samples, Unavailable, Worker, measure, start


def run(
    chosen: Sequence[Case], workers: dict[str, Worker], skipped: dict[str, str]
) -> Iterator[Row]:
    """Measures case after case; adds what a peer could not do to ``skipped``."""
    for case in chosen:
        if case.ours.system in skipped:
            skipped[case.name] = skipped[case.ours.system]
            continue
        memory = case.unit.kind in (Kind.MEMORY, Kind.PROCESS)
        samples, failed = apart(case, workers) if memory else measure(case, workers)
        skipped.update(
            {f"{work.system}: {work.name}, {work.scale:g}": why for work, why in failed.items()}
        )
        yield from rows(case, samples)


def apart(case: Case, workers: Mapping[str, Worker]) -> tuple[Samples, dict[Work, str]]:
    """Each work once, in a process that has done nothing else."""
    samples: Samples = {}
    failed: dict[Work, str] = {}
    for work in case.works:
        if work.system not in workers:
            continue
        fresh, _ = start([work.system])
        try:
            samples |= measure(replace(case, ours=work, peers=(), repetitions=1), fresh)[0]
        except Unavailable as reason:
            if work == case.ours:
                raise
            failed[work] = str(reason)
        finally:
            for each in fresh.values():
                each.close()
    return samples, failed


def machine() -> dict[str, str | int | float]:
    """What it runs on, and how busy that is now, without what is to be measured."""
    told = Path("/proc/cpuinfo")
    names = (
        re.findall(r"^model name\s*: (.*)$", told.read_text("utf-8"), re.MULTILINE)
        if told.exists()
        else []
    )
    return {
        "processor": names[0] if names else platform.processor(),
        "architecture": platform.machine(),
        "cores": os.cpu_count() or 0,
        "system": f"{platform.system()} {platform.release()}",
        "load": round(os.getloadavg()[0], 2),
    }


def document(
    found: Sequence[Row],
    before: Mapping[str, str | int | float],
    versions: dict[str, dict[str, str]],
    skipped: dict[str, str],
) -> str:
    """The results as JSON, one row a line; ``before``: the machine, before they were measured."""
    head = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": before,
        "versions": versions,
        "skipped": skipped,
    }
    lines = ",\n".join(f"    {json.dumps(asdict(row))}" for row in found)
    return json.dumps(head, indent=2)[:-2] + f',\n  "rows": [\n{lines}\n  ]\n}}\n'


def write_measured(measured: Iterable[Row], results: Path) -> None:
    """Prints each row of a bench of ours as it is measured, and writes all of them."""
    before = machine()
    written = []
    for row in measured:
        written.append(row)
        print(line(row), flush=True)
    versions = {"sfumato": {"sfumato": sfumato.__version__, "duckdb": duckdb.__version__}}
    results.write_text(document(written, before, versions, {}), encoding="utf-8")


def bench(
    words: Sequence[str], cases: Sequence[Case], peers: Sequence[str], results: Path | None
) -> None:
    """Runs, prints and writes, where a whole run has a place."""
    before = machine()
    workers, skipped = start([OURS, *peers])
    print(*[f"skipped: {system} {why}" for system, why in skipped.items()], HEAD, sep="\n")
    found = []
    for row in run(
        [case for case in cases if not words or any(word in case.name for word in words)],
        workers,
        skipped,
    ):
        print(line(row), flush=True)
        found.append(row)
    for worker in workers.values():
        worker.close()
    asked = [row for row in found if row.bar]
    missed = [line(row) for row in asked if not row.holds]
    print(f"\n{len(asked) - len(missed)} of {len(asked)} bars hold.", *missed, sep="\n")
    if results is not None and not words:
        versions = {system: worker.versions for system, worker in workers.items()}
        results.write_text(document(found, before, versions, skipped), encoding="utf-8")
