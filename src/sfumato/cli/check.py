# SPDX-License-Identifier: Apache-2.0
"""``sfumato check``: checks the declarations against the data and the ledger."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.language import Declared, say
from sfumato.cli.options import as_json, config
from sfumato.cli.waiting import watching
from sfumato.config.load import Declarations, read_declarations
from sfumato.config.named_section import read_section
from sfumato.config.toml_file import read_toml
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.inspect_columns import read_through
from sfumato.engines.leftovers import held_rows
from sfumato.engines.prepared import Prepared
from sfumato.engines.remote import is_remote
from sfumato.errors import InvalidConfig, LedgerMissing, WrongUse
from sfumato.ledger.spend import Ledger
from sfumato.metadata.contract import Contract
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.unit import Unit
from sfumato.query.data_check import DataCheck, check_data
from sfumato.query.reckless import reckless

if TYPE_CHECKING:
    from sfumato.cli.stream_check import StreamCheck


@click.command("check")
@config
@click.option(
    "--data",
    "counting",
    is_flag=True,
    help="Count how all values are read. The counts are exact: NOT private, for the owner alone.",
)
@click.option("--json", "in_json", is_flag=True, help="With --data: only the counts, as JSON.")
def command(config: str, *, counting: bool, in_json: bool) -> int:
    """Check the declarations, that data and layouts can be read, and that the ledger agrees.

    Nothing is charged and no ledger is created. Files with copies of rows are listed too. With
    --data the exit code is 2 if a column is wholly unread or more than 99% missing.
    """
    if in_json and not counting:
        raise WrongUse("--json without --data.", remedy="sfumato check --data --json")
    declared = read_declarations(config)
    faults: tuple[str, ...] = ()
    if counting:
        # printed at once: what the ledger says later does not lose it
        checked, streams = _count_data(declared.dataset, config, declared.streams)
        if in_json:
            click.echo(
                as_json({**checked.to_json(), "streams": [each.to_json() for each in streams]})
            )
        else:
            say("\n\n".join([repr(checked), *map(repr, streams)]) + "\n")
        faults = checked.faults
    for line in _lines(declared, is_read=counting):
        if not in_json:
            say(line)
    for line in _section_lines(config):
        if not in_json:
            say(line)
    if faults:
        say("Not as declared:\n  " + "\n  ".join(faults), err=True)
        return WrongUse.exit_code
    return 0


def _count_data(
    dataset: Dataset, config: str, streams: Iterable[str]
) -> tuple[DataCheck, list["StreamCheck"]]:
    """Counts how the data is read, for ``--data``; the result is printed and stored nowhere."""
    with (
        watching("checking the data") as (limits, tell),
        _owners_log(),
        closing(DuckDB(dataset.tables, limits=limits)) as engine,
    ):
        checked = check_data(engine, dataset.described, tell)
        if not streams:
            return checked, []
        # imported here: it brings synopses, for which a file without streams need not wait
        module = import_module("sfumato.cli.stream_check")
        return checked, [
            module.check_stream(engine, dataset.described, config, name) for name in streams
        ]


def _lines(declared: Declarations, *, is_read: bool) -> Iterator[str]:
    """Yields the results, each line as soon as it is known; ``is_read``: with ``--data``."""
    for copy in held_rows(declared.prepared):
        yield f"holds rows: {copy.what}, {copy.path}, {copy.size:,} bytes"
    tables = declared.dataset.tables
    if not is_read:
        with _owners_log(), closing(DuckDB(tables)) as engine:
            read_through(engine, tables)
    for name, table in tables.items():
        yield f"table {name}: {table.source}\n  unit: {table.about}"
        unit = table.unit
        if isinstance(unit, Unit) and (is_remote(table) or unit.spellings_apart):
            yield (
                "  ids: spellings that the database calls equal (a collation) are units of "
                "their own; check --data counts them"
            )
        for column, kind in table.columns.items():
            yield Declared(f"  {column}: {kind!r}")
    for notice in (*declared.dataset.notices, *reckless(declared.dataset, declared.budget)):
        yield f"note: {notice}"
    yield f"neighbours: {declared.dataset.relation.value}"
    if declared.prepared is not None:
        kept = Prepared.open(declared.prepared, declared.dataset).kept
        yield f"prepared: {declared.prepared} has layouts of {', '.join(kept)}"
    yield _ledger(declared)


def _section_lines(config: str) -> Iterator[str]:
    """Yields a line for each model and each synthetic fit of the file whose keys are valid.

    Raises:
        InvalidConfig: a key is missing, unknown, or has the wrong form.
    """
    if _has(config, "models"):
        # imported here: it brings learning, for which a file without models need not wait
        models = import_module("sfumato.config.model")
        for name in read_section(config, "models"):
            model = models.read_model(config, name)
            label = "" if model.label is None else f" of {model.label}"
            yield f"model {name}: {type(model.recipe).__name__}{label}: {model.data}"
    if _has(config, "synthetic"):
        fits = import_module("sfumato.config.synthetic")
        for name in read_section(config, "synthetic"):
            tables = fits.read_synthetic(config, [name], {}).tables
            yield f"synthetic {name}: {tables if isinstance(tables, str) else ', '.join(tables)}"


def _has(config: str, section: str) -> bool:
    """Whether a file has a section."""
    return section in read_toml(config)


@contextmanager
def _owners_log() -> Iterator[None]:
    """Writes the owner's log to stderr inside the block."""
    log, handler = logging.getLogger("sfumato.owner"), logging.StreamHandler()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _ledger(declared: Declarations) -> str:
    """Returns a line about the ledger, which may not exist yet.

    Raises:
        InvalidConfig: the limit of the dataset is neither declared nor in the ledger.
    """
    try:
        ledger = Ledger.open(declared.ledger, create=False, key=declared.ledger_key)
    except LedgerMissing as missing:
        if declared.budget is None:
            raise InvalidConfig(
                "No ledger yet, and no [budget] to open one with.", remedy='[budget]\nepsilon = "1"'
            ) from None
        # for a server the error has the address without its password
        place = f"{missing.problem} It"
        if isinstance(declared.ledger, Path):
            place = str(declared.ledger)
        return f"ledger: {place} will be made on first use with {declared.budget}"
    try:
        limit = declared.budget or ledger.budget_of(declared.dataset.name)
        if limit is None:
            raise InvalidConfig(
                "The ledger does not know the dataset, "
                "and there is no [budget] to open an account with."
            )
        ledger.require_contract(Contract.of(declared.dataset, limit))
        # the place has no password
        return f"ledger: {ledger.store.place} agrees; {limit}"
    finally:
        ledger.close()
