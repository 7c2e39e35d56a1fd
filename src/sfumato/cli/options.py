# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, and checks and writers of output files."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

import click

from sfumato.cli.language import say
from sfumato.config.load import Declarations, read_declarations
from sfumato.engines.files import is_same
from sfumato.engines.sources import holds
from sfumato.errors import InvalidNumber, WrongUse, shown
from sfumato.exact.rational import Number, to_fraction
from sfumato.ledger.waiting import WAIT
from sfumato.metadata.clip import Clipped
from sfumato.metadata.server import is_address
from sfumato.privacy.event import Json
from sfumato.query.answer import Answer
from sfumato.query.price import OnAverage

# The suffixes of the files that belong to a ledger in a file.
_BESIDE = ("-wal", "-shm", ".key", ".head", ".lock", ".open")
F = TypeVar("F", bound=Callable[..., object])

DECLARATIONS = "sfumato.toml"
config = click.option(
    "-c",
    "--config",
    default=DECLARATIONS,
    show_default=True,
    help="The file that declares dataset, tables and ledger.",
)

table_or_json = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
)

_PRICES = (
    ("--epsilon", "The cost in pure differential privacy (discrete Laplace noise)."),
    ("--rho", "The cost in zCDP (discrete Gaussian noise)."),
    ("--delta", "What showing groups that are not public may cost, beside --epsilon or --rho."),
    ("--error", "The 95% half-width wanted in every cell: 100, or 5% of a public reference."),
    ("--max-epsilon", "The most that --error may cost."),
)


_SECONDS = "sfumato.wait"


def _keep_wait(context: click.Context, _: click.Parameter, seconds: float) -> float:
    context.meta[_SECONDS] = seconds
    return seconds


waits = click.option(
    "--wait",
    type=float,
    default=WAIT,
    show_default=True,
    expose_value=False,
    callback=_keep_wait,
    help="Seconds to wait for a ledger file that another process has open.",
)


def seconds_to_wait() -> float:
    """Returns the number of seconds that ``--wait`` of the running command allows."""
    context = click.get_current_context(silent=True)
    seconds: float = WAIT if context is None else context.meta.get(_SECONDS, WAIT)
    return seconds


def priced(command: F) -> F:
    """Decorator that adds the options for the privacy cost of a question (epsilon, error and so on)
    to a command; ``asked`` converts their values.
    """
    command = click.option(
        "--on-average", is_flag=True, help="--error is wanted on average over the cells."
    )(command)
    command = click.option(
        "--clipped", is_flag=True, help="Only statistics of clipped values, at the whole cost."
    )(command)
    command = click.option(
        "--interval", is_flag=True, help="Spend a part of the cost on intervals of quantiles."
    )(command)
    for name, text in reversed(_PRICES):
        command = click.option(name, help=text)(command)
    return command


def asked(
    *, on_average: bool, clipped: bool, interval: bool, **price: str | None
) -> dict[str, Any]:
    """Converts price options to keyword arguments of ``Session.query``."""
    asked: dict[str, Any] = {**price, "interval": interval}
    if clipped:
        asked["values"] = Clipped
    if not on_average:
        return asked
    error = price["error"]
    if error is None:
        raise WrongUse(
            "--on-average without an error.", remedy="--error 100 --on-average --max-epsilon 0.5"
        )
    return {**asked, "error": OnAverage(error)}


parameters = click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of :NAME in the SQL; repeatable.",
)


def named(parameters: Sequence[str]) -> dict[str, Number] | None:
    """Parses ``--parameter NAME=VALUE`` options into the parameters of a question by name; a value
    that can be read as a number becomes one.
    """
    values: dict[str, Number] = {}
    for parameter in parameters:
        name, equals, value = parameter.partition("=")
        if not name or not equals:
            raise WrongUse(f"--parameter {shown(parameter)}.", allowed="--parameter name=value")
        try:
            values[name] = to_fraction(name, value)
        except InvalidNumber:
            values[name] = value
    return values or None


def as_json(form: Json) -> str:
    """Returns a value as indented JSON text."""
    return json.dumps(form, indent=2, ensure_ascii=False)


def require_folders(*paths: str | None) -> None:
    """Refuses an output path without an existing folder, before anything is charged.

    Raises:
        WrongUse: an empty path, an address of a server, or a path whose folder does not exist.
    """
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
    """Raises WrongUse for an output path that would overwrite the configuration, data, the ledger
    or another output. An overwritten ledger would mean a fresh budget.

    An overwritten ledger would mean a fresh budget.

    Raises:
        WrongUse: such a path, or one that ``require_folders`` refuses.
    """
    require_folders(*paths)
    declared = read_declarations(config)
    given = [path for path in paths if path is not None]
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


def require_spared(*paths: str | None) -> None:
    """Raises WrongUse for an output path that would overwrite data or a ledger; for commands
    without a configuration file.

    Looks for a ``sfumato.toml`` in the folder of each output, and protects the files that it
    declares.

    Raises:
        WrongUse: as ``require_outputs``.
    """
    if Path(DECLARATIONS).is_file():
        require_outputs(DECLARATIONS, *paths)
    require_folders(*paths)


def _declared(config: str, declared: Declarations, path: Path) -> Iterator[str]:
    """Yields descriptions of what a configuration file declares at a path."""
    if is_same(Path(config), path):
        yield "this file itself"
    if is_same(Path(declared.ledger), path):
        yield "the ledger"
    for suffix in _BESIDE:
        if is_same(Path(f"{declared.ledger}{suffix}"), path):
            yield f"the ledger's {suffix}"
    if declared.ledger_key is not None and is_same(declared.ledger_key, path):
        yield "the ledger's key"
    if declared.prepared is not None and holds(declared.prepared, path):
        yield "in the folder of prepared layouts"
    for name, table in declared.dataset.tables.items():
        if isinstance(table.source, str | Path) and holds(Path(table.source), path):
            yield f"data of table {name!r}"


def write_file(path: str, content: bytes) -> None:
    """Writes a file. Its failure loses nothing, since an answer is stored in the ledger first.

    Raises:
        WrongUse: the file cannot be written.
    """
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise WrongUse(
            f"{path!r} cannot be written ({error.strerror}).",
            remedy="Name another path. What was answered is stored: asked again, it is free.",
        ) from None


excel_option = click.option(
    "--excel",
    is_flag=True,
    help="CSV as Excel opens it, with no more digits than the error allows.",
)


def require_csv(form: str, *, excel: bool, allowed: str = "CSV: --format csv") -> None:
    """Refuses ``--excel`` beside another format than CSV."""
    if excel and form != "csv":
        raise WrongUse(f"--excel with {form}.", allowed=allowed)


def require_csv_file(output: str | None, *, excel: bool) -> None:
    """Refuses ``--excel`` beside an output file that is no CSV file."""
    ending = "" if output is None else Path(output).suffix.lower().removeprefix(".")
    require_csv(ending or "no output", excel=excel, allowed="CSV: --output FILE.csv")


def emit(answer: Answer, form: str, output: str | None, *, excel: bool = False) -> None:
    """Writes an answer in a format to a file or to stdout.

    Raises:
        WrongUse: the file cannot be written, or a library of Excel is not installed.
    """
    if form in ("parquet", "excel"):
        assert output is not None, "required before the question"
        to_file = answer.to_parquet if form == "parquet" else answer.to_excel
        to_file(output)
    elif form == "arrow":
        write_bytes(answer.to_arrow_bytes(), output)
    elif form == "json":
        write_text(as_json(answer.to_json()), output)
    elif form == "csv":
        write_text(answer.to_csv(excel=excel), output)
    elif output is None:
        say(repr(answer).rstrip("\n"))
    else:
        write_text(repr(answer), output)


def write_text(text: str, output: str | None) -> None:
    """Writes a string to a file or to stdout, with a newline at its end."""
    if output is None:
        click.echo(text.rstrip("\n"))
        return
    if not text.endswith("\n"):
        text = f"{text}\n"
    write_file(output, text.encode())


def write_bytes(content: bytes, output: str | None) -> None:
    """Writes bytes to a file or to stdout."""
    if output is None:
        sys.stdout.buffer.write(content)
    else:
        write_file(output, content)
