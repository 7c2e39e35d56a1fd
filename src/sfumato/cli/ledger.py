# SPDX-License-Identifier: Apache-2.0
"""``sfumato ledger``: what the owner does with the ledger."""

import click

from sfumato.cli.options import config
from sfumato.errors import LedgerCorrupt
from sfumato.ledger.spend import Ledger
from sfumato.ledger.verify import verify as verify_ledger
from sfumato.query.load import read_declarations


@click.group("ledger")
def command() -> None:
    """Verify the ledger; thaw a frozen account."""


@command.command("verify")
@config
def verify(config: str) -> None:
    """Replay the journal: the chain, every cost, every account, every answer."""
    ledger = Ledger.open(read_declarations(config).ledger, create=False)
    try:
        report = verify_ledger(ledger)
    finally:
        ledger.close()
    click.echo(f"{report.entries} entries, {report.charges} charges, head {report.head}")
    if report.problems:
        raise LedgerCorrupt(
            "The ledger does not say what happened:\n" + "\n".join(report.problems[:50]),
            remedy="Stop answering from it; restore the newest backup that verifies.",
        )
    click.echo(
        "sound: the chain is whole, each charge costs what its event costs, each account is the sum of its charges"
    )


@command.command("thaw")
@config
def thaw(config: str) -> None:
    """Acknowledge failures, so that a frozen account answers again."""
    declared = read_declarations(config)
    ledger = Ledger.open(declared.ledger, create=False)
    try:
        click.echo(f"{ledger.thaw(declared.dataset.name)} failures acknowledged")
    finally:
        ledger.close()
