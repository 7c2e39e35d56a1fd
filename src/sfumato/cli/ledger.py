# SPDX-License-Identifier: Apache-2.0
"""``sfumato ledger``: commands of the owner and the auditor.

``verify``, ``head`` and ``log`` are here; the others are in ``ledger_*``.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from sfumato.cli.language import localized, say
from sfumato.cli.options import (
    config,
    require_outputs,
    seconds_to_wait,
    table_or_json,
    waits,
    write_file,
)
from sfumato.config.load import Declarations, default_key, load, read_declarations
from sfumato.engines.files import is_same
from sfumato.errors import LedgerCorrupt, LedgerMissing, WrongUse, shown
from sfumato.ledger.balance import charge_from_json
from sfumato.ledger.journal import Entry
from sfumato.ledger.pins import Known, Pin
from sfumato.ledger.request import SQL
from sfumato.ledger.signed_heads import Head, Signer
from sfumato.ledger.spend import Ledger
from sfumato.ledger.store.base import Rows
from sfumato.ledger.store.open_mark import incomplete, shortfall_in
from sfumato.ledger.verified import Verified
from sfumato.ledger.verify import Report
from sfumato.ledger.verify import verify as verify_ledger
from sfumato.ledger.waiting import open_when_free
from sfumato.query.account import amount_text

# The modules that define the other commands.
_ELSEWHERE = {
    "accounts": "ledger_accounts",
    "allocate": "ledger_accounts",
    "refresh": "ledger_accounts",
    "freeze": "ledger_accounts",
    "thaw": "ledger_accounts",
    "share": "ledger_accounts",
    "restrict": "ledger_accounts",
    "backup": "ledger_backup",
    "restore": "ledger_backup",
    "accept-server": "ledger_backup",
    "rotate-key": "ledger_backup",
    "follow-key": "ledger_backup",
    "export": "ledger_archive",
    "import": "ledger_archive",
    "migrate": "ledger_archive",
    "recover": "ledger_archive",
    "report": "ledger_archive",
}

signing_key = click.option(
    "--key",
    type=click.Path(dir_okay=False),
    help="The signing key [default: ledger_key, or beside the ledger].",
)


class _Ledger(click.Group):
    """A group that imports the commands of other modules when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *_ELSEWHERE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        module = import_module(f"sfumato.cli.{_ELSEWHERE[cmd_name]}")
        command = vars(module)["COMMANDS"][cmd_name]
        assert isinstance(command, click.Command), "each module of commands lists them"
        return localized(command)


@click.group("ledger", cls=_Ledger)
def command() -> None:
    """Accounts, audit, export and report of the ledger."""


@contextmanager
def opened(config: str) -> Iterator[tuple[Ledger, Declarations]]:
    """Context manager that opens the existing ledger that a configuration file declares.

    Yields the ledger and the declarations.
    """
    declared = read_declarations(config)
    ledger = open_when_free(
        declared.ledger,
        seconds_to_wait(),
        lambda: Ledger.open(declared.ledger, create=False, key=declared.ledger_key),
    )
    try:
        yield ledger, declared
    finally:
        ledger.close()


@contextmanager
def opened_or_made(config: str) -> Iterator[tuple[Ledger, Declarations]]:
    """Opens the declared ledger; if there is none, creates it with the declared budget.

    The first question would create it in the same way. So limits can be set before that.
    """
    declared = read_declarations(config)
    if declared.budget is not None and not _is_known(declared):
        load(config, wait=seconds_to_wait()).close()
    with opened(config) as found:
        yield found


def _is_known(declared: Declarations) -> bool:
    """Whether the ledger exists, and has an account for the dataset."""
    try:
        ledger = open_when_free(
            declared.ledger,
            seconds_to_wait(),
            lambda: Ledger.open(declared.ledger, create=False, key=declared.ledger_key),
        )
    except LedgerMissing:
        return False
    try:
        return ledger.budget_of(declared.dataset.name) is not None
    finally:
        ledger.close()


@contextmanager
def reading(config: str) -> Iterator[tuple[Ledger, Declarations]]:
    """Context manager that opens the ledger that a configuration file declares, read-only.

    Yields the ledger and the declarations.
    """
    declared = read_declarations(config)
    ledger = open_when_free(
        declared.ledger, seconds_to_wait(), lambda: Ledger.open(declared.ledger, read_only=True)
    )
    try:
        yield ledger, declared
    finally:
        ledger.close()


@command.command("verify")
@config
@waits
@click.option(
    "--head",
    "heads",
    multiple=True,
    type=click.Path(),
    help="A head kept elsewhere; may be repeated.",
)
@click.option(
    "--key", help="The public key that must have signed it [default: as pinned at first use]."
)
@click.option(
    "--known",
    type=click.Path(dir_okay=False),
    help="The file of the pins [default: in ~/.local/state].",
)
@click.option(
    "--state",
    type=click.Path(dir_okay=False),
    help="Read only what came since the verification that wrote this file.",
)
def verify(
    config: str, heads: tuple[str, ...], key: str | None, known: str | None, state: str | None
) -> None:
    """Replay the journal: chains, costs, accounts, answers, and heads that are kept elsewhere.

    The first verify with a head pins the ledger and the key that signed; later ones refuse others.
    With --state FILE the state of a sound ledger is stored there, and the next verify with it reads
    only what came since: entries before it are not read again. Run without it to read all.
    """
    signed_heads, pins = [read_head(path) for path in heads], Known(known)
    _require_apart(config, state, str(pins.path), *heads)
    with reading(config) as (ledger, _):
        place, identity = ledger.store.place, ledger.store.identity
        pinned = pins.find(place)
        _require_same(place, identity, pinned, pins)
        if pinned is not None:
            key = key or pinned.key
        since = _verified_before(state, pinned, signed_heads)
        report = verify_ledger(ledger, signed_heads, key=key or "", since=since)
        remembered = bool(ledger.remembered.entries())
    say(f"{report.entries} entries, {report.charges} charges, head {report.head}")
    _require_sound(report, place)
    say(
        "sound: the chain is whole, each charge costs what its event costs, "
        "each account is the sum of its charges"
    )
    if since is not None:
        say(f"since the verification of {state}; entries before it were not read again")
    _say_compared(dict(zip(heads, signed_heads, strict=True)), remembered=remembered)
    pin = _pin(identity, signed_heads, pinned)
    if pin != pinned:
        say(f"pinned in {pins.path}: ledger {identity}, key {signed_heads[0].public_key}")
    if pin is None:
        return
    if state is not None and report.verified is not None:
        write_file(state, report.verified.content)
        pin = replace(pin, state=report.verified.digest)
    if pin != pinned:
        pins.keep(place, pin)


def _say_compared(heads: dict[str, Head], *, remembered: bool) -> None:
    """Prints which heads and pins from outside a sound ledger was compared with."""
    for path, head in heads.items():
        say(f"on the chain: {path}, of {head.at}, signed by {head.public_key}")
    if remembered:
        say("on the chain: the last entry that this user charged on this machine")
    elif not heads:
        say("nothing outside its folder was compared: a head kept elsewhere would show an old copy")


def _require_sound(report: Report, place: str) -> None:
    """Refuses a ledger with problems that a verification has reported.

    Raises:
        LedgerCorrupt: the journal and the rows disagree, or entries are missing at its end.
    """
    if not report.problems:
        return
    if len(report.problems) == 1:
        why = shortfall_in(report.problems[0])
        if why:
            raise incomplete(place, why)
    raise LedgerCorrupt(
        "The ledger does not say what happened:\n" + "\n".join(report.problems[:50]),
        remedy="Stop answering from it; restore the newest backup that verifies.",
    )


def _pin(identity: str, signed_heads: Sequence[Head], pinned: Pin | None) -> Pin | None:
    """Returns the pin after a verification: a new one if heads were given."""
    if not signed_heads:
        return pinned
    state = "" if pinned is None else pinned.state
    return Pin(identity, signed_heads[0].public_key, state)


def _require_apart(config: str, state: str | None, *others: str) -> None:
    """Refuses a state file that is also a head, the file of pins or a declared file."""
    require_outputs(config, state)
    for other in others:
        if state is not None and is_same(Path(state), Path(other)):
            raise WrongUse(
                f"{state!r} and {other!r} are one file.", remedy="Keep the state in another."
            )


def _verified_before(path: str | None, pinned: Pin | None, heads: list[Head]) -> Verified | None:
    """Returns the state that an earlier verification stored; None to verify the whole ledger.

    Raises:
        WrongUse: no pin is known, so the state could be of another ledger.
    """
    if path is None:
        return None
    if pinned is None and not heads:
        raise WrongUse(
            "--state of a ledger that is not pinned.",
            remedy="Give a head that was kept elsewhere: --head.",
        )
    if not Path(path).exists():
        return None
    digest = "" if pinned is None else pinned.state
    return Verified.read(path, digest)


def _require_same(place: str, identity: str, pinned: Pin | None, pins: Known) -> None:
    """Refuses a ledger that is not the one that was pinned at this place."""
    if pinned is not None and pinned.ledger != identity:
        raise LedgerCorrupt(
            f"At {place} lies another ledger ({identity}) than the one that was verified there "
            f"before ({pinned.ledger}).",
            remedy="Find out why. If it is meant to be another, "
            f"take the line of this place out of {pins.path}.",
        )


@command.command("head")
@config
@waits
@click.option(
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    help="Where to write it: keep it elsewhere.",
)
@signing_key
def head(config: str, output: str, key: str | None) -> None:
    """Sign the current heads of all chains, for 'verify --head'."""
    require_outputs(config, output)
    if key is not None and is_same(Path(key), Path(output)):
        raise WrongUse(
            f"{output!r} is the key that signs.", remedy="Write the head to another path."
        )
    with opened(config) as (ledger, declared):
        signer = Signer(key or default_key(declared))
        signed = ledger.store.read(lambda rows: signer.sign(ledger.store.identity, rows))
    write_file(output, signed.to_text().encode())
    say(f"public key {signed.public_key}")


@command.command("log")
@config
@waits
@table_or_json
@click.option("--last", type=click.IntRange(min=1), help="Only the last entries of each chain.")
def log(config: str, form: str, last: int | None) -> None:
    """Show the entries of the journal: time, number, kind, and what they are about."""

    def show(rows: Rows) -> None:
        for chain in rows.chains():
            after = 0
            end = rows.last_entry(chain)
            if end and last:
                after = max(end.seq - last, 0)
            for entry in rows.entries(chain, after):
                click.echo(_logged(chain, entry, form))

    with reading(config) as (ledger, _):
        ledger.store.read(show)


def _logged(chain: str, entry: Entry, form: str) -> str:
    """Returns a line of the log for an entry."""
    body = json.loads(entry.body)
    if form == "json":
        facts = {"chain": chain, "seq": entry.seq, "at": entry.at, "kind": entry.kind}
        return json.dumps({**facts, **body})
    about = body.get("charge") or body.get("account") or chain
    return f"{entry.at}  {entry.seq:>7}  {entry.kind:<9}  {about}{_line(body)}"


def _line(body: dict[str, Any]) -> str:
    """Returns the text of an entry about its question, or about its instalments."""
    if "line" in body:
        told = f"  {body.get('kind', SQL)}: {body['line']}"
        if "cost" not in body:
            return told
        return f"{told}  {amount_text(charge_from_json(body['cost']))}, by {body['account']}"
    if "up_to" in body:
        return f"  up to {body['up_to']}"
    if "place" in body:
        return f"  {body['place']}"
    return ""


def read_head(path: str) -> Head:
    """Reads a signed head from a file.

    Raises:
        WrongUse: the file cannot be read.
    """
    try:
        return Head.from_text(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise WrongUse(
            f"{shown(path)} cannot be read.", allowed="a file that 'sfumato ledger head' wrote"
        ) from None
