# SPDX-License-Identifier: Apache-2.0
"""``sfumato ledger export|import|migrate|report``: what leaves a ledger, and what enters one."""

import os
from collections.abc import Iterable
from pathlib import Path

import click

from sfumato.cli.ledger import opened, reading
from sfumato.cli.options import config, require_outputs, write_file
from sfumato.errors import WrongUse
from sfumato.ledger.archive import lines, load
from sfumato.ledger.report import page
from sfumato.ledger.store.base import Rows
from sfumato.ledger.store.open import open_store
from sfumato.ledger.summary import summary
from sfumato.ledger.words import LANGUAGES
from sfumato.metadata.server import SERVERS
from sfumato.query.load import read_declarations


@click.command("export")
@config
@click.option("--output", required=True, type=click.Path(dir_okay=False), help="The file to write.")
def _export(config: str, output: str) -> None:
    """Write the whole ledger, answers included, as lines of JSON. It is as confidential as they are."""
    require_outputs(config, output)

    def write(rows: Rows) -> int:
        count = 0
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            for line in lines(rows):
                file.write(f"{line}\n")
                count += 1
        return count

    with opened(config) as (ledger, _):
        click.echo(f"{ledger.store.read(write)} lines")


@click.command("import")
@click.argument("archive", type=click.Path(dir_okay=False))
@config
def _import(archive: str, config: str) -> None:
    """Read an export into the declared ledger, which must be new or empty; it is verified on the way."""
    source = Path(archive)
    if not source.is_file():
        raise WrongUse(f"No file {archive!r}.", remedy="Name what 'sfumato ledger export' wrote.")
    with source.open(encoding="utf-8") as file:
        click.echo(f"{_load_into(read_declarations(config).ledger, file)} entries, verified")


@click.command("migrate")
@config
@click.option("--to", "target", help="Another place: the path of a new file, or postgresql://...")
def _migrate(config: str, target: str | None) -> None:
    """Bring the ledger to this version's format; with --to, copy it to another place and verify it there."""
    if target is not None and not target.startswith(SERVERS):
        require_outputs(config, target)
    with opened(config) as (ledger, _):
        click.echo(f"{ledger.store.place} has the newest format")
        if target is not None:
            count = _load_into(target, ledger.store.read(lambda rows: list(lines(rows))))
            click.echo(f"{count} entries copied and verified; write ledger = {target!r} into {config}")
            click.echo("two ledgers over the same data would spend twice: remove the old one")


@click.command("report")
@config
@click.option("--output", required=True, type=click.Path(dir_okay=False), help="The HTML file to write.")
@click.option("--language", type=click.Choice(list(LANGUAGES)), default="en", show_default=True)
def _report(config: str, output: str, language: str) -> None:
    """One page in plain words: what was released, by whom, for what purpose, at what cost, what is left."""
    require_outputs(config, output)
    with reading(config) as (ledger, declared):
        found = summary(ledger, declared.dataset.name)
    write_file(output, page(found, language).encode())
    click.echo(output)


def _load_into(place: str | Path, archive: Iterable[str]) -> int:
    """Loads an archive; a file that was made for it is removed if that fails, or it would be a fresh budget."""
    is_new = not str(place).startswith(SERVERS) and not Path(place).exists()
    store = open_store(place)
    try:
        return load(store, archive)
    except BaseException:
        store.close()
        if is_new:
            Path(place).unlink(missing_ok=True)
        raise
    finally:
        store.close()


COMMANDS = {each.name: each for each in (_export, _import, _migrate, _report)}
