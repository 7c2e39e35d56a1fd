# SPDX-License-Identifier: Apache-2.0
"""``sfumato ledger export|import|migrate|recover|report``: move, recover and report a ledger."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from sfumato.cli.language import present, say
from sfumato.cli.ledger import opened, read_head, reading, signing_key
from sfumato.cli.options import config, require_outputs, seconds_to_wait, waits, write_file
from sfumato.config.load import default_key, read_declarations
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
from sfumato.ledger.waiting import open_when_free
from sfumato.metadata.server import SERVERS


@click.command("export")
@config
@waits
@click.option("--output", required=True, type=click.Path(dir_okay=False), help="The file to write.")
@signing_key
def _export(config: str, output: str, key: str | None) -> None:
    """Write the whole ledger as lines of JSON; it has all answers and is as confidential."""
    require_outputs(config, output)
    with reading(config) as (ledger, declared):
        damage = ledger.store.damage()
        if damage:
            raise LedgerCorrupt(
                f"The ledger is not exported: {damage[0]}.", remedy="See: sfumato ledger verify"
            )
        # what is imported has another identity, under which nobody remembers what is missing
        ledger.require_newest()
        if not ledger.store.exclusive:
            # as a session opens it: a restored dump and a replaced server are refused
            open_store(declared.ledger, create=False).close()
        signer = Signer(key or default_key(declared))

        def write(rows: Rows) -> int:
            head = signer.sign(ledger.store.identity, rows)
            return _write_lines(output, lines(rows, head))

        say(f"{ledger.store.read(write)} lines, signed by {signer.public_key}")


def _write_lines(output: str, content: Iterable[str]) -> int:
    """Writes lines to a file that only its owner can read; returns their number."""
    count = 0
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        for line in content:
            file.write(f"{line}\n")
            count += 1
    return count


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
    """Load an export into the declared ledger, which must be new or empty, and verify it."""
    source = Path(archive)
    if not source.is_file():
        raise WrongUse(
            f"No file {shown(archive)}.", remedy="Name what 'sfumato ledger export' wrote."
        )
    kept = [read_head(path) for path in heads]
    with source.open(encoding="utf-8", errors="replace") as file:
        count = _load_into(read_declarations(config).ledger, file, kept)
    say(f"{count} entries, verified")


@click.command("migrate")
@config
@waits
@click.option("--to", "target", help="Another place: the path of a new file, or postgresql://...")
def _migrate(config: str, target: str | None) -> None:
    """Convert the ledger to the format of this version; with --to, move and verify it."""
    if target is None:
        with opened(config) as (ledger, _):
            say(f"{ledger.store.place} has the newest format")
        return
    if not target.startswith(SERVERS):
        require_outputs(config, target)
    declared = read_declarations(config)
    count = open_when_free(
        declared.ledger,
        seconds_to_wait(),
        lambda: migrate(declared.ledger, target, key=declared.ledger_key),
    )
    say(f"{count} entries moved and verified to {shown(target)}; name that as ledger in {config}")
    say("the old ledger stays, to be read: it charges nothing any more")


@click.command("recover")
@config
@waits
@click.option(
    "--accept-loss", is_flag=True, help="Go on with what is left, although something is missing."
)
@click.option("--reason", required=True, help="Why; it is kept in the journal.")
def _recover(config: str, reason: str, *, accept_loss: bool) -> None:
    """Open a ledger file that lost its newest entries; datasets are frozen until you thaw them."""
    if not accept_loss:
        raise WrongUse(
            "A recovery without --accept-loss.", remedy="Restore the newest files if you have them."
        )
    declared = read_declarations(config)
    place, sinks = declared.ledger, [sink_at(address) for address in declared.ledger_heads]
    if str(place).startswith(SERVERS):
        raise WrongUse(
            "A ledger on a server.", remedy="Recover the server; this command is for files."
        )
    missing = open_when_free(
        place,
        seconds_to_wait(),
        lambda: recover(place, reason=reason, sinks=sinks, key=declared.ledger_key),
    )
    say(f"missing: {missing}")
    say(
        "every dataset is frozen: "
        "lower its limit by what may be missing (sfumato ledger allocate), then"
    )
    say("sfumato ledger thaw")


@click.command("report")
@config
@waits
@click.option(
    "--output", required=True, type=click.Path(dir_okay=False), help="The HTML file to write."
)
@click.option("--language", type=click.Choice(list(LANGUAGES)), help="Of the page.")
def _report(config: str, output: str, language: str | None) -> None:
    """Write one page: what was released, to whom, for what purpose, at what cost, what is left."""
    require_outputs(config, output)
    with reading(config) as (ledger, declared):
        facts = summary(ledger, declared.dataset.name)
    write_file(output, page(facts, language or present().code).encode())
    say(output)


def _load_into(place: str | Path, archive: Iterable[str], heads: Sequence[Head]) -> int:
    """Loads an archive into a ledger; returns the number of entries.

    If that fails, a new ledger file is removed: it would be a fresh budget.
    """
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


_ALL = (_export, _import, _migrate, _recover, _report)
COMMANDS = {command.name: command for command in _ALL}
