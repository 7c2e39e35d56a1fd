# SPDX-License-Identifier: Apache-2.0
"""``sfumato ledger export|import|migrate|recover|report``: what leaves a ledger, and what enters one."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from sfumato.cli.ledger import default_key, opened, read_head, reading, signing_key
from sfumato.cli.options import config, require_outputs, write_file
from sfumato.errors import LedgerCorrupt, WrongUse, shown
from sfumato.ledger.archive import lines, load
from sfumato.ledger.head_sinks import sink_at
from sfumato.ledger.migrate import migrate
from sfumato.ledger.recover import recover
from sfumato.ledger.report import page
from sfumato.ledger.report_text import LANGUAGES
from sfumato.ledger.signed_heads import Head, Signer
from sfumato.ledger.store.base import Rows
from sfumato.ledger.store.open import open_store
from sfumato.ledger.summary import summary
from sfumato.metadata.server import SERVERS
from sfumato.query.load import read_declarations


@click.command("export")
@config
@click.option("--output", required=True, type=click.Path(dir_okay=False), help="The file to write.")
@signing_key
def _export(config: str, output: str, key: str | None) -> None:
    """Write the whole ledger, answers included, as lines of JSON. It is as confidential as they are."""
    require_outputs(config, output)
    with reading(config) as (ledger, declared):
        damage = ledger.store.damage()
        if damage:
            raise LedgerCorrupt(
                f"The ledger is not exported: {damage[0]}.", remedy="See: sfumato ledger verify"
            )
        signer = Signer(key or default_key(declared))

        def write(rows: Rows) -> int:
            count = 0
            descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                for line in lines(rows, signer.sign(ledger.store.identity, rows)):
                    file.write(f"{line}\n")
                    count += 1
            return count

        click.echo(f"{ledger.store.read(write)} lines, signed by {signer.public_key}")


@click.command("import")
@click.argument("archive", type=click.Path(dir_okay=False))
@config
@click.option(
    "--head",
    "heads",
    multiple=True,
    type=click.Path(),
    help="A head kept elsewhere; may be repeated.",
)
def _import(archive: str, config: str, heads: tuple[str, ...]) -> None:
    """Read an export into the declared ledger, which must be new or empty; it is verified on the way."""
    source = Path(archive)
    if not source.is_file():
        raise WrongUse(
            f"No file {shown(archive)}.", remedy="Name what 'sfumato ledger export' wrote."
        )
    kept = [read_head(path) for path in heads]
    with source.open(encoding="utf-8", errors="replace") as file:
        click.echo(f"{_load_into(read_declarations(config).ledger, file, kept)} entries, verified")


@click.command("migrate")
@config
@click.option("--to", "target", help="Another place: the path of a new file, or postgresql://...")
def _migrate(config: str, target: str | None) -> None:
    """Bring the ledger to this version's format; with --to, move it to another place and verify it there."""
    if target is None:
        with opened(config) as (ledger, _):
            click.echo(f"{ledger.store.place} has the newest format")
        return
    if not target.startswith(SERVERS):
        require_outputs(config, target)
    declared = read_declarations(config)
    count = migrate(declared.ledger, target, key=declared.ledger_key)
    click.echo(
        f"{count} entries moved and verified to {shown(target)}; name that as ledger in {config}"
    )
    click.echo("the old ledger stays, to be read: it charges nothing any more")


@click.command("recover")
@config
@click.option(
    "--accept-loss", is_flag=True, help="Go on with what is left, although something is missing."
)
@click.option("--reason", required=True, help="Why; it is kept in the journal.")
def _recover(config: str, reason: str, *, accept_loss: bool) -> None:
    """Open a ledger file whose newest entries are lost; its datasets are frozen until you thaw them."""
    if not accept_loss:
        raise WrongUse(
            "A recovery without --accept-loss.", remedy="Restore the newest files if you have them."
        )
    declared = read_declarations(config)
    place, sinks = declared.ledger, [sink_at(each) for each in declared.ledger_heads]
    if str(place).startswith(SERVERS):
        raise WrongUse(
            "A ledger on a server.", remedy="Recover the server; this command is for files."
        )
    click.echo(f"missing: {recover(place, reason=reason, sinks=sinks, key=declared.ledger_key)}")
    click.echo(
        "every dataset is frozen: lower its limit by what may be missing (sfumato ledger allocate), then"
    )
    click.echo("sfumato ledger thaw")


@click.command("report")
@config
@click.option(
    "--output", required=True, type=click.Path(dir_okay=False), help="The HTML file to write."
)
@click.option("--language", type=click.Choice(list(LANGUAGES)), default="en", show_default=True)
def _report(config: str, output: str, language: str) -> None:
    """One page in plain words: what was released, by whom, for what purpose, at what cost, what is left."""
    require_outputs(config, output)
    with reading(config) as (ledger, declared):
        found = summary(ledger, declared.dataset.name)
    write_file(output, page(found, language).encode())
    click.echo(output)


def _load_into(place: str | Path, archive: Iterable[str], heads: Sequence[Head]) -> int:
    """Loads an archive; a file that was made for it is removed if that fails, or it would be a fresh budget."""
    is_new = not str(place).startswith(SERVERS) and not Path(place).exists()
    store = open_store(place)
    try:
        return load(store, archive, heads)
    except BaseException:
        store.close()
        if is_new:
            Path(place).unlink(missing_ok=True)
        raise
    finally:
        store.close()


COMMANDS = {each.name: each for each in (_export, _import, _migrate, _recover, _report)}
