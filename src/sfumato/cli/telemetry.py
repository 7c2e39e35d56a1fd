# SPDX-License-Identifier: Apache-2.0
"""``sfumato telemetry``: plans, signs and adds up what devices report."""

from collections.abc import Iterator
from pathlib import Path

import click

from sfumato.cli.asking import Asking, asks
from sfumato.cli.language import say
from sfumato.cli.options import config, require_outputs, write_file
from sfumato.cli.telemetry_config import read_task
from sfumato.collector.folder import read
from sfumato.errors import InvalidConfig, WrongUse, shown
from sfumato.query.render import number, text_table
from sfumato.telemetry import Aggregator, Estimates, ReportTask, SignedTask, candidates, sign
from sfumato.telemetry.numbers import NumberEstimate
from sfumato.telemetry.oracles.attributes import AttributesOracle
from sfumato.telemetry.oracles.levels import LevelsOracle
from sfumato.telemetry.oracles.mean import MeanOracle
from sfumato.telemetry.oracles.rappor import RapporOracle

_HEADER = ("value", "estimate", "95% interval", "p-value of absent")
_QUANTILES = ("0.25", "0.5", "0.75")


@click.group("telemetry")
def command() -> None:
    """Counts of devices that nobody can read: plan, sign, add up."""


@command.command("plan")
@config
@click.argument("name")
@click.option("--devices", type=int, required=True, help="About how many devices report.")
def _plan(config: str, name: str, devices: int) -> None:
    """Compare the oracles for the task NAME: the error of each; free."""
    task = read_task(config, name)
    epsilon = task.first_epsilon
    rows = []
    for each in candidates(task.domain.size, epsilon):
        half = 1.96 * (each.variance * devices) ** 0.5
        rows.append([each.oracle.kind, f"{each.oracle.size}", f"+- {number(half)}"])
    say(text_table(("oracle", "bytes", "95% error"), rows))
    say(_life(task))


@command.command("sign")
@asks
@click.argument("name")
@click.option("--key", required=True, help="The private key of the owner, PEM (P-256).")
@click.option("--output", "-o", required=True, help="The file of the signed task.")
def _sign(asking: Asking, name: str, key: str, output: str) -> None:
    """Charge the life of a device for the task NAME, and sign it; signing it again is free.

    The task is of [telemetry.NAME]; a key: openssl ecparam -name prime256v1 -genkey -noout.
    """
    require_outputs(asking.config, output)
    task = read_task(asking.config, name)
    with asking.session() as session:
        signed = sign(session, task, _key(key))
        budget = repr(session.budget).splitlines()[-1]
    write_file(output, signed.to_bytes())
    say(_life(task))
    say(f"wrote {output}")
    say(budget)


@command.command("estimate")
@click.argument("task")
@click.argument("folder")
@click.option("--period", type=int, help="Which period; every one without memory, if left out.")
@click.option("--top", type=int, default=20, show_default=True, help="How many values to show.")
@click.option("--candidates", help="A file with a text a line, for texts that nobody listed.")
def _estimate(task: str, folder: str, period: int | None, top: int, candidates: str | None) -> None:
    """Estimate from the reports in FOLDER, for a signed TASK; free.

    FOLDER is that of sfumato collect.
    """
    known = _signed(task).task
    sums = Aggregator(known, period)
    periods = range(known.periods) if period is None else [period]
    for each in periods:
        for part in read(folder, known, each):
            sums.add_many(part)
    say(f"{sums.reports:,} reports, {sums.duplicates:,} duplicates")
    for line in _estimated(sums, top, candidates):
        say(line)


def _estimated(sums: Aggregator, top: int, candidates: str | None) -> Iterator[str]:
    """What the sums say, by the oracle of the task."""
    oracle = sums.task.oracle
    if isinstance(oracle, MeanOracle):
        yield f"mean {_interval(sums.mean())}"
    elif isinstance(oracle, LevelsOracle):
        found = sums.distribution()
        for level in _QUANTILES:
            yield f"quantile {level}: {_interval(found.quantile(level))}"
    elif isinstance(oracle, AttributesOracle):
        for name in sums.task.domain.names:  # type: ignore[union-attr]
            yield f"attribute {name}"
            yield _table(sums.attribute(name), top)
    elif isinstance(oracle, RapporOracle):
        found_texts = sums.texts(_lines(candidates))
        listed = found_texts.to_arrow().to_pylist()
        rows = [[str(cell) for cell in row.values()] for row in listed[:top]]
        yield text_table(tuple(listed[0]), rows, top)
    else:
        yield _table(sums.estimate(), top)


def _table(found: Estimates, top: int) -> str:
    """The largest estimates with their intervals."""
    ordered = sorted(found.to_dicts(), key=lambda row: -float(str(row["estimate"])))
    rows = []
    for row in ordered[:top]:
        low, high, absent = (float(str(row[name])) for name in ("low", "high", "p_value"))
        estimate = number(round(float(str(row["estimate"]))))
        span = f"[{number(round(low))}, {number(round(high))}]"
        rows.append([str(row["value"]), estimate, span, f"{absent:.2g}"])
    return text_table(_HEADER, rows, top)


def _interval(found: NumberEstimate) -> str:
    """A number with its interval."""
    return f"{found.estimate:,.6g}, 95% interval [{found.low:,.6g}, {found.high:,.6g}]"


def _life(task: ReportTask) -> str:
    """What a device gives away, at first and for ever."""
    first, life = float(task.first_epsilon), float(task.life_epsilon)
    return f"first report epsilon {first:.4g}, for ever {life:.4g}"


def _signed(path: str) -> SignedTask:
    """A signed task in a file; its signature is for devices, who trust a key."""
    try:
        return SignedTask.from_bytes(Path(path).read_bytes())
    except OSError as error:
        raise InvalidConfig(f"{shown(path)} cannot be read ({error.strerror}).") from None


def _key(path: str) -> bytes:
    """A private key in a file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise WrongUse(
            f"{shown(path)} cannot be read ({error.strerror}).",
            remedy="openssl ecparam -name prime256v1 -genkey -noout -out owner.key",
        ) from None


def _lines(path: str | None) -> list[str]:
    """The lines of a file of candidates."""
    if path is None:
        raise WrongUse(
            "Texts that nobody listed, and no candidates.", remedy="--candidates words.txt"
        )
    try:
        return [line for line in Path(path).read_text(encoding="utf-8").splitlines() if line]
    except (OSError, UnicodeDecodeError):
        raise WrongUse(f"{shown(path)} cannot be read.", allowed="a text a line, UTF-8") from None
