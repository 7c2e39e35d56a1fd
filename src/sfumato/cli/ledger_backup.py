# SPDX-License-Identifier: Apache-2.0
"""``sfumato ledger backup|restore|accept-server|rotate-key|follow-key``: copies and keys."""

from collections.abc import Sequence
from pathlib import Path

import click

from sfumato.cli.language import say
from sfumato.cli.ledger import opened, read_head, reading, signing_key
from sfumato.cli.options import config, require_outputs, waits
from sfumato.config.load import default_key, read_declarations
from sfumato.errors import WrongUse, shown
from sfumato.ledger.backup import backup, restore
from sfumato.ledger.failover import accept_server
from sfumato.ledger.head_sinks import Sink, sink_at
from sfumato.ledger.head_watch import kept, replace_heads
from sfumato.ledger.pins import Known
from sfumato.ledger.rotation import Handover, rotate
from sfumato.ledger.signed_heads import Signer

heads = click.option(
    "--head", "heads", multiple=True, type=click.Path(), help="A head kept elsewhere; repeatable."
)
accept_loss = click.option(
    "--accept-loss",
    is_flag=True,
    help="Whatever it lacks is lost: every dataset is frozen until it is thawed.",
)


@click.command("backup")
@click.argument("file", type=click.Path(dir_okay=False))
@config
@signing_key
def _backup(file: str, config: str, key: str | None) -> None:
    """Write the whole ledger into one file while it is in use, and its signed head beside it.

    The backup is verified. It is as confidential as the ledger.
    """
    require_outputs(config, file, f"{file}.head")
    declared = read_declarations(config)
    head = backup(declared.ledger, file, Signer(key or default_key(declared)))
    entries = sum(seq for seq, _ in head.chains.values())
    say(
        f"{file}: {entries} entries, verified; "
        f"head of {head.at} in {file}.head, key {head.public_key}"
    )


@click.command("restore")
@click.argument("backup", type=click.Path(dir_okay=False))
@config
@heads
@accept_loss
def _restore(backup: str, config: str, heads: Sequence[str], accept_loss: bool) -> None:
    """Restore the declared ledger, which must not exist; compare it with heads kept elsewhere."""
    declared = read_declarations(config)
    sinks = [sink_at(address) for address in declared.ledger_heads]
    known = [*map(read_head, heads), *kept(sinks)]
    lacking = restore(backup, declared.ledger, known, accept_loss=accept_loss)
    if lacking:
        _publish(config, sinks)
    _say_losses(lacking, "restored and verified; it holds all that the heads know")


@click.command("accept-server")
@config
@heads
@accept_loss
def _accept(config: str, heads: Sequence[str], accept_loss: bool) -> None:
    """Let the ledger charge on its present server, after a fail-over, a restore or an upgrade."""
    declared = read_declarations(config)
    sinks = [sink_at(address) for address in declared.ledger_heads]
    known = [*map(read_head, heads), *kept(sinks)]
    lacking = accept_server(str(declared.ledger), known, accept_loss=accept_loss)
    if lacking:
        _publish(config, sinks)
    _say_losses(lacking, "accepted; it holds all that the heads know")


@click.command("rotate-key")
@config
@waits
@signing_key
@click.option(
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    help="The handover: for whoever verifies.",
)
def _rotate(config: str, key: str | None, output: str) -> None:
    """Replace the signing key: the old key signs the new one and is deleted."""
    require_outputs(config, output)
    with opened(config) as (ledger, declared):
        handover = rotate(key or default_key(declared), ledger.store.identity, output)
    say(f"public key {handover.new}; before it {handover.old}")


@click.command("follow-key")
@click.argument("handover", type=click.Path(dir_okay=False))
@config
@waits
@click.option(
    "--known",
    type=click.Path(dir_okay=False),
    help="The file of the pins [default: in ~/.local/state].",
)
def _follow(handover: str, config: str, known: str | None) -> None:
    """Pin the new key of a ledger, which the pinned key has signed."""
    pins = Known(known)
    with reading(config) as (ledger, _):
        place = ledger.store.place
    pin = pins.find(place)
    if pin is None:
        raise WrongUse(
            "No key is pinned for this ledger.", remedy="sfumato ledger verify --head FILE"
        )
    followed = _read_handover(handover).applied(pin)
    pins.keep(place, followed)
    say(f"pinned in {pins.path}: ledger {followed.ledger}, key {followed.key}")


def _read_handover(path: str) -> Handover:
    """Reads a handover of keys from a file."""
    try:
        return Handover.from_text(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise WrongUse(
            f"{shown(path)} cannot be read.", allowed="what 'rotate-key' wrote"
        ) from None


def _publish(config: str, sinks: Sequence[Sink]) -> None:
    """Replaces the published heads by the head of a ledger whose loss was accepted."""
    if sinks:
        with opened(config) as (ledger, declared):
            signer, store = Signer(default_key(declared)), ledger.store
            head = store.read(lambda rows: signer.sign(store.identity, rows))
            replace_heads(sinks, head)


def _say_losses(lacking: Sequence[str], sound: str) -> None:
    """Prints what a ledger has lost, or the line ``sound`` if nothing."""
    if not lacking:
        say(sound)
        return
    for loss in lacking:
        say(f"lost: {loss}")
    say("every dataset is frozen; after the decision: sfumato ledger thaw")


_ALL = (_backup, _restore, _accept, _rotate, _follow)
COMMANDS = {command.name: command for command in _ALL}
