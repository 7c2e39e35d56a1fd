# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share: the file, the price, the format."""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

import click

from sfumato.engines.files import is_same
from sfumato.engines.sources import holds
from sfumato.errors import InvalidNumber, WrongUse, shown
from sfumato.exact.rational import Number, to_fraction
from sfumato.metadata.server import is_address
from sfumato.privacy.event import Json
from sfumato.query.answer import Answer
from sfumato.query.load import Declarations, read_declarations
from sfumato.query.price import OnAverage

# What lies beside a ledger's file, and is as much of it as the file.
_BESIDE = ("-wal", "-shm", ".key", ".head", ".lock", ".open")
F = TypeVar("F", bound=Callable[..., object])

config = click.option(
    "-c",
    "--config",
    default="sfumato.toml",
    show_default=True,
    help="The file that declares dataset, tables and ledger.",
)

_PRICES = (
    ("--epsilon", "The cost in pure differential privacy (discrete Laplace noise)."),
    ("--rho", "The cost in zCDP (discrete Gaussian noise)."),
    ("--delta", "What showing groups that are not public may cost, beside --epsilon or --rho."),
    ("--error", "The 95% half-width wanted in every cell: 100, or 5% of a public reference."),
    ("--max-epsilon", "The most that --error may cost."),
)


def priced(command: F) -> F:
    """Adds the options that say what a question may cost; ``asked`` makes a price of them."""
    command = click.option(
        "--on-average", is_flag=True, help="--error is wanted on average over the cells."
    )(command)
    for name, text in reversed(_PRICES):
        command = click.option(name, help=text)(command)
    return command


def asked(*, on_average: bool, **price: str | None) -> dict[str, Any]:
    """What the options say, as a session takes it."""
    if not on_average:
        return dict(price)
    error = price["error"]
    if error is None:
        raise WrongUse(
            "--on-average without an error.", remedy="--error 100 --on-average --max-epsilon 0.5"
        )
    return {**price, "error": OnAverage(error)}


parameters = click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of :NAME in the SQL; repeatable.",
)


def named(parameters: Sequence[str]) -> dict[str, Number] | None:
    """The values of ``--parameter``: a number where it reads as one, else a text."""
    found: dict[str, Number] = {}
    for each in parameters:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise WrongUse(f"--parameter {shown(each)}.", allowed="--parameter name=value")
        try:
            found[name] = to_fraction(name, value)
        except InvalidNumber:
            found[name] = value
    return found or None


def as_json(form: Json) -> str:
    """JSON for a terminal or a file."""
    return json.dumps(form, indent=2, ensure_ascii=False)


def require_folders(*paths: str | None) -> None:
    """Refuses an output that has no folder, before anything is charged."""
    for path in paths:
        if path == "":
            raise WrongUse("An output without a name.", allowed="the path of a file")
        if path is not None and is_address(path):
            raise WrongUse("An output that is written as an address.", allowed="the path of a file")
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise WrongUse(
                f"No folder for {shown(path)}.",
                remedy="Make the folder first; nothing was charged.",
            )


def require_outputs(config: str, *paths: str | None) -> None:
    """As ``require_folders``; refuses besides an output that would replace what the file declares, or itself.

    A ledger that is written over is a budget that nobody remembers.
    """
    require_folders(*paths)
    declared, given = read_declarations(config), [each for each in paths if each is not None]
    for one, other in combinations(given, 2):
        if is_same(Path(one), Path(other)):
            raise WrongUse(f"{one!r} and {other!r} are one file.", remedy="Write to two.")
    for path in given:
        what = next(_declared(config, declared, Path(path)), None)
        if what is not None:
            raise WrongUse(
                f"{shown(path)} is declared in {config!r}: it is {what}.",
                remedy="Write to another path.",
            )


def _declared(config: str, declared: Declarations, path: Path) -> Iterator[str]:
    """What of all that a file declares lies at a path, or would lie there."""
    if is_same(Path(config), path):
        yield "this file itself"
    for end, what in (("", "the ledger"), *((each, f"the ledger's {each}") for each in _BESIDE)):
        if is_same(Path(f"{declared.ledger}{end}"), path):
            yield what
    if declared.ledger_key is not None and is_same(declared.ledger_key, path):
        yield "the ledger's key"
    if declared.prepared is not None and holds(declared.prepared, path):
        yield "in the folder of prepared layouts"
    for name, table in declared.dataset.tables.items():
        if isinstance(table.source, str | Path) and holds(Path(table.source), path):
            yield f"data of table {name!r}"


def write_file(path: str, content: bytes) -> None:
    """Writes an output; the answer is stored, so failing here loses nothing."""
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise WrongUse(
            f"{path!r} cannot be written ({error.strerror}).",
            remedy="Name another path. What was answered is stored: asked again, it is free.",
        ) from None


def emit(answer: Answer, form: str, output: str | None) -> None:
    """Writes an answer in a format to a file or to the terminal."""
    if form == "arrow":
        write_bytes(answer.to_arrow_bytes(), output)
    else:
        write_text(
            {"table": repr, "json": lambda each: as_json(each.to_json()), "csv": _csv}[form](
                answer
            ),
            output,
        )


def write_text(text: str, output: str | None) -> None:
    """Writes a text to a file or to the terminal, with one line end after it."""
    if output is None:
        click.echo(text.rstrip("\n"))
    else:
        write_file(output, (text if text.endswith("\n") else f"{text}\n").encode())


def _csv(answer: Answer) -> str:
    """The table with low and high beside each released column; nothing where nothing can be told."""
    names = [str(column["name"]) for column in answer.columns]
    errors = answer.error()
    released = [str(column["name"]) for column in answer.columns if column["released"]]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        [
            part
            for name in names
            for part in ([name, f"{name}_low", f"{name}_high"] if name in released else [name])
        ]
    )
    for values, row in zip(answer.told, errors, strict=True):
        line: list[object] = []
        for name, value in zip(names, values, strict=True):
            error = row[name]
            line += [value, error["low"], error["high"]] if isinstance(error, Mapping) else [value]
        writer.writerow(line)
    return file.getvalue()


def write_bytes(content: bytes, output: str | None) -> None:
    """Writes bytes to a file or to the terminal."""
    if output is None:
        sys.stdout.buffer.write(content)
    else:
        write_file(output, content)
