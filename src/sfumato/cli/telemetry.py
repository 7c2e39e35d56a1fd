# SPDX-License-Identifier: Apache-2.0
"""``sfumato telemetry``: plans and signs tasks for devices, and estimates from their reports."""

import csv
import json
import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

import click
import pyarrow as pa
from rich.console import Console
from rich.progress import Progress

from sfumato.cli.asking import Asking, asks
from sfumato.cli.language import say
from sfumato.cli.options import config, require_outputs, require_spared, write_file
from sfumato.cli.telemetry_estimates import Counts, Mean, Spread, findings
from sfumato.cli.telemetry_plan import planned_errors
from sfumato.collector import stored_reports
from sfumato.config.telemetry import read_task
from sfumato.engines.files import is_same
from sfumato.errors import InvalidConfig, WrongUse, shown
from sfumato.exact.rounding import float_up
from sfumato.metadata.side_file import required_text
from sfumato.show.svg import Figure
from sfumato.telemetry import (
    Aggregator,
    Lattice,
    Record,
    ReportTask,
    SignedTask,
    Texts,
    central,
    opened,
    sign,
    simulate,
)
from sfumato.telemetry.domain import Domain
from sfumato.telemetry.rows import Reports

# The delta of one shuffled batch that is shown.
_DELTA = "1e-9"
_HASH = re.compile(r"[0-9a-f]{64}")
_some = click.IntRange(min=1)
_devices = click.option(
    "--devices", type=_some, required=True, help="About how many devices report."
)
_top = click.option(
    "--top", type=_some, default=20, show_default=True, help="How many values to show."
)
_plot = click.option("--save-plot", type=click.Path(dir_okay=False), help="Write a chart as SVG.")


@click.group("telemetry")
def command() -> None:
    """Counts of devices that nobody can read: plan, sign, add up."""


@command.command("plan")
@config
@click.argument("name")
@_devices
@_plot
def _plan(
    config: str,
    name: str,
    devices: int,
    save_plot: str | None,
) -> None:
    """Compare the oracles for the task NAME: the error of each; free."""
    require_outputs(config, save_plot)
    task = read_task(config, name)
    planned = planned_errors(task, devices)
    picture = planned.picture(task, devices) if save_plot else None
    say(planned.text)
    say(_lifetime_text(task))
    if task.aggregator and not task.memory:
        say(_shuffled_text(task))
    _draw(save_plot, picture)


@command.command("simulate")
@config
@click.argument("name")
@click.argument("counts")
@_top
@_plot
def _simulate(
    config: str,
    name: str,
    counts: str,
    top: int,
    save_plot: str | None,
) -> None:
    """Show what the task NAME would estimate if COUNTS were true; free.

    COUNTS is a CSV file of made-up values and how many devices hold each, without a header.
    """
    require_outputs(config, save_plot)
    task = read_task(config, name)
    say(_lifetime_text(task))
    held = _counts(counts, task)
    # the candidates are the texts of the file; 0 devices: one that nobody holds
    texts = [str(text) for text in held] if isinstance(task.domain, Texts) else None
    _tell(findings(simulate(task, held), texts), top, save_plot)


@command.command("sign")
@asks
@click.argument("name")
@click.option("--key", required=True, help="The private key of the owner, PEM (P-256).")
@click.option("--output", "-o", required=True, help="The file of the signed task.")
@click.option("--published", help="The JSON list of all hashes, for clients: made, or added to.")
def _sign(asking: Asking, name: str, key: str, output: str, published: str | None) -> None:
    """Charge the life of a device for the task NAME, and sign it; signing it again is free.

    The task is of [telemetry.NAME]; a key: openssl ecparam -name prime256v1 -genkey -noout.
    """
    require_outputs(asking.config, output, published)
    task = read_task(asking.config, name)
    hashes = {*_hashes(published), task.hash.hex()}
    with asking.session() as session:
        signed = sign(session, task, _key(key))
        budget = repr(session.budget).splitlines()[-1]
    write_file(output, signed.to_bytes())
    say(_lifetime_text(task))
    say(f"hash {task.hash.hex()}")
    say(f"wrote {output}")
    if published:
        write_file(published, json.dumps(sorted(hashes), indent=1).encode() + b"\n")
        say(f"wrote {published}")
    say(budget)


def _hashes(path: str | None) -> list[str]:
    """The hashes in a file of published tasks; [] if there is no file yet."""
    if path is None or not Path(path).exists():
        return []
    try:
        hashes = json.loads(required_text(path))
        if isinstance(hashes, list) and all(_HASH.fullmatch(each) for each in hashes):
            return hashes
    except (ValueError, TypeError):
        pass
    raise WrongUse(
        f"{shown(path)} is no list of published tasks.",
        allowed='a JSON list of hashes of 64 hexadecimal digits: ["a1..."]',
    )


@command.command("estimate")
@click.argument("task")
@click.argument("folder")
@click.option("--period", type=int, help="Which period; every one without memory, if left out.")
@_top
@click.option("--candidates", help="A file with a text a line: the values that are asked about.")
@click.option("--key", help="The private key of the aggregator, for sealed reports.")
@_plot
def _estimate(
    task: str,
    folder: str,
    *,
    period: int | None,
    top: int,
    candidates: str | None,
    key: str | None,
    save_plot: str | None,
) -> None:
    """Estimate from the reports in FOLDER, for a signed TASK; free.

    FOLDER is that of sfumato collect, or the address of its PostgreSQL server.
    """
    require_spared(save_plot)
    _require_another(save_plot, task, candidates, key)
    known = _signed(task).task
    if known.memory and period is None:
        raise WrongUse(
            "Devices repeat their answer from period to period of this task.",
            remedy=f"Choose one: --period 0 to {known.periods - 1}",
        )
    sums = Aggregator(known, period)
    for reports in _reports(known, folder, period, key):
        sums.add_many(reports)
    say(f"{sums.reports:,} reports, {sums.duplicates:,} duplicates")
    texts = None if candidates is None else _lines(candidates)
    _tell(findings(sums, texts), top, save_plot)


def _tell(estimates: Mean | Spread | Counts, top: int, save_plot: str | None) -> None:
    """Prints estimates, and draws them if a plot is wanted."""
    for line in estimates.lines(top):
        say(line)
    _draw(save_plot, estimates.picture(top) if save_plot else None)


def _draw(path: str | None, picture: Figure | None) -> None:
    """Writes a picture, if there is one."""
    if path and picture:
        write_file(path, picture.svg.encode())
        say(f"wrote {path}")


def _require_another(output: str | None, *inputs: str | None) -> None:
    """Refuses an output that would overwrite an input file."""
    for each in inputs:
        if output and each and is_same(Path(output), Path(each)):
            raise WrongUse(f"{shown(output)} is read.", remedy="Write to another path.")


def _reports(
    task: ReportTask, folder: str, period: int | None, key: str | None
) -> Iterator[Reports]:
    """Yields the reports of a period (or of all), decrypted if they are sealed."""
    # a sealed report may lie in a later period than its own, which nobody could read
    periods = range(task.periods) if period is None or task.aggregator else [period]
    if not task.aggregator:
        yield from _stored(task, folder, periods)
        return
    if key is None:
        raise WrongUse("Sealed reports, and no key.", remedy="--key aggregator.key")
    secret = _key(key)
    console = Console(stderr=True)
    total = sum(map(len, _stored(task, folder, periods)))
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("opening reports", total=total)
        for part in _stored(task, folder, periods):
            yield from opened(task, secret, part, told=partial(progress.advance, bar))


def _stored(task: ReportTask, folder: str, periods: Iterable[int]) -> Iterator[pa.Array]:
    """Yields the reports of some periods as they are stored, in chunks."""
    for period in periods:
        yield from stored_reports(folder, task, period)


def _counts(path: str, task: ReportTask) -> dict[object, int]:
    """Parses made-up counts by value; a value of a task with attributes is a tuple."""
    counts_by_value: dict[object, int] = {}
    for line in _lines(path):
        value, _, count = line.rpartition(",")
        try:
            counts_by_value[_parse_value(value, task.domain)] = int(count)
        except (ValueError, ZeroDivisionError):
            allowed = "heart,60000"
            if isinstance(task.domain, Record):
                allowed = f"a value of {', '.join(task.domain.names)}, and a count: en,3,60000"
            raise WrongUse(
                f"A line of {shown(path)} is no value and count.", allowed=allowed
            ) from None
    return counts_by_value


def _parse_value(written: str, domain: Domain) -> object:
    """Parses a value of a domain from a file."""
    if isinstance(domain, Lattice):
        return Fraction(written)
    if not isinstance(domain, Record):
        return written
    (parts,) = csv.reader([written])
    pairs = zip(parts, domain.domains, strict=True)
    return tuple(_parse_value(part, each) for part, each in pairs)


def _lifetime_text(task: ReportTask) -> str:
    """A sentence on what a device reveals over its life, by its first report and by all."""
    first, life = float(task.first_epsilon), float(task.life_epsilon)
    return f"first report epsilon {first:.4g}, for ever {life:.4g}"


def _shuffled_text(task: ReportTask) -> str:
    """A sentence on what a device reveals to observers of shuffled batches."""
    found = central(task, _DELTA)
    one, life = float_up(found.epsilon), float_up(found.life_epsilon)
    delta = float_up(found.life_delta)
    return f"in shuffled batches epsilon {one:.4g} (1e-9), for ever {life:.4g} ({delta:.3g})"


def _signed(path: str) -> SignedTask:
    """Reads a signed task; its signature is not checked, since only devices rely on it."""
    try:
        return SignedTask.from_bytes(Path(path).read_bytes())
    except OSError as error:
        raise InvalidConfig(f"{shown(path)} cannot be read ({error.strerror}).") from None


def _key(path: str) -> bytes:
    """Reads a private key from a file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise WrongUse(
            f"{shown(path)} cannot be read ({error.strerror}).",
            remedy="openssl ecparam -name prime256v1 -genkey -noout -out owner.key",
        ) from None


def _lines(path: str) -> list[str]:
    """The lines of a file."""
    return [line for line in required_text(path, "a text a line").splitlines() if line]
