# SPDX-License-Identifier: Apache-2.0
"""``sfumato check``: checks the declarations against the data and the ledger."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from sfumato.cli.options import config
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.leftovers import held_rows
from sfumato.engines.prepared import Prepared
from sfumato.errors import InvalidConfig, LedgerMissing
from sfumato.ledger.spend import Ledger
from sfumato.metadata.contract import Contract
from sfumato.query.load import Declarations, read_declarations


@click.command("check")
@config
def command(config: str) -> None:
    """Check the declarations, that data and layouts can be read, and that the ledger agrees.

    Nothing is charged and no ledger is created. Files with copies of rows are listed first.
    """
    declared = read_declarations(config)
    for copy in held_rows(declared.prepared):
        click.echo(f"holds rows: {copy.what}, {copy.path}, {copy.size:,} bytes")
    with _owners_log():
        engine = DuckDB(declared.dataset.tables)
        try:
            engine.read_through(declared.dataset.tables)
        finally:
            engine.close()
    for name, table in declared.dataset.tables.items():
        click.echo(f"table {name}: {table.source}\n  unit: {table.about}")
        for column, kind in table.columns.items():
            click.echo(f"  {column}: {kind!r}")
    click.echo(f"neighbours: {declared.dataset.relation.value}")
    if declared.prepared is not None:
        kept = Prepared.open(declared.prepared, declared.dataset).kept
        click.echo(f"prepared: {declared.prepared} has layouts of {', '.join(kept)}")
    click.echo(_ledger(declared))


@contextmanager
def _owners_log() -> Iterator[None]:
    """Writes the owner's log to stderr while the data is read."""
    log, handler = logging.getLogger("sfumato.owner"), logging.StreamHandler()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _ledger(declared: Declarations) -> str:
    """Returns a line about the ledger, which need not exist yet.

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
