# SPDX-License-Identifier: Apache-2.0
"""``sfumato ledger accounts|allocate|refresh|freeze|thaw|share|restrict``: the owner's acts on accounts."""

import click

from sfumato.cli.ledger import opened, reading
from sfumato.cli.options import as_json, config
from sfumato.errors import WrongUse
from sfumato.exact.rational import decimal_text
from sfumato.ledger.account_status import Standing
from sfumato.ledger.balance import units_text
from sfumato.ledger.spend import Ledger
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json


def _name(_: click.Context, option: click.Parameter, value: str | None) -> str:
    """A name that was given, or "" for none: an empty shell variable must not mean the account above."""
    if value == "":
        raise WrongUse(
            f"{option.opts[0]} without a name.",
            remedy="Leave the option out for the account above.",
        )
    return value or ""


_purpose = click.option("--purpose", callback=_name, help="The purpose below the dataset.")
_analyst = click.option("--analyst", callback=_name, help="The analyst below the purpose.")
_epsilon = click.option("--epsilon", help="The limit in pure differential privacy.")
_reason = click.option("--reason", default="", help="Why; it is kept in the journal.")
_actor = click.option(
    "--actor", callback=_name, help="Who does it [default: the user of the operating system]."
)
_delta = click.option("--delta", default="0", show_default=True, help="The delta of the limit.")


@click.command("accounts")
@config
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def _accounts(config: str, form: str) -> None:
    """Every account: limit, spent, left."""
    with reading(config) as (ledger, _):
        ledger.require_newest()
        standings = ledger.accounts()
    if form == "json":
        click.echo(as_json([_to_json(each) for each in standings]))
        return
    for each in standings:
        limit = str(each.limit) if each.limit else "as above"
        spent = f"epsilon {units_text(each.spent.epsilon)}, rho {units_text(each.spent.rho)}"
        left = f"epsilon {decimal_text(each.left.epsilon)} or rho {decimal_text(each.left.rho)}"
        frozen = f"  FROZEN ({each.frozen})" if each.frozen else ""
        click.echo(f"{each.scope.id}  limit {limit}  spent {spent}  left {left}{frozen}")


@click.command("allocate")
@config
@_purpose
@_analyst
@_epsilon
@_delta
@click.option(
    "--none", "unlimited", is_flag=True, help="No limit of its own: the account above bounds it."
)
@_reason
@_actor
def _allocate(
    config: str, epsilon: str | None, delta: str, *, unlimited: bool, **about: str
) -> None:
    """Set the limit of an account; without names, the dataset's. A lower one takes nothing back.

    It opens an account too: names beside it that nobody has opened are refused from then on.
    """
    if (epsilon is None) != unlimited:
        raise WrongUse("A limit to allocate.", allowed="--epsilon, or --none below a dataset")
    budget = None if epsilon is None else Budget(epsilon, delta)
    purpose, analyst = about["purpose"], about["analyst"]
    with opened(config) as (ledger, declared):
        name = declared.dataset.name
        _by(ledger, about).allocate(
            name, budget, purpose=purpose, analyst=analyst, reason=about["reason"]
        )
        click.echo(_told(ledger.standing(name, purpose, analyst)))
    if not purpose:
        click.echo(f"write {budget} into {config}: the limit is part of the contract")


@click.command("refresh")
@config
@_purpose
@_analyst
@click.option("--epsilon", required=True, help="The limit of the new period.")
@_delta
@click.option("--reason", required=True, help="Why; it is kept in the journal.")
@_actor
def _refresh(config: str, epsilon: str, delta: str, **about: str) -> None:
    """Begin a new period. The rows stay the same: over their lifetime the limits of all periods add up."""
    purpose, analyst, budget = about["purpose"], about["analyst"], Budget(epsilon, delta)
    with opened(config) as (ledger, declared):
        name = declared.dataset.name
        _by(ledger, about).refresh(
            name, budget, purpose=purpose, analyst=analyst, reason=about["reason"]
        )
        standing = ledger.standing(name, purpose, analyst)
    click.echo(_told(standing))
    if standing.lifetime:
        total, deltas = (decimal_text(each) for each in standing.lifetime)
        click.echo(f"over the lifetime of the rows: epsilon {total}, delta {deltas}")


@click.command("freeze")
@config
@_purpose
@_analyst
@click.option(
    "--reason", default="frozen by the owner", show_default=True, help="For whoever is refused."
)
@_actor
def _freeze(config: str, purpose: str, analyst: str, **about: str) -> None:
    """Refuse questions on an account and below it; stored answers are not given either."""
    with opened(config) as (ledger, declared):
        name = declared.dataset.name
        _by(ledger, about).freeze(name, purpose=purpose, analyst=analyst, reason=about["reason"])
        click.echo(_told(ledger.standing(declared.dataset.name, purpose, analyst)))


@click.command("thaw")
@config
@_purpose
@_analyst
@_reason
@_actor
def _thaw(config: str, purpose: str, analyst: str, **about: str) -> None:
    """Acknowledge failures, so that a frozen account answers again."""
    with opened(config) as (ledger, declared):
        name = declared.dataset.name
        seen = _by(ledger, about).thaw(
            name, purpose=purpose, analyst=analyst, reason=about["reason"]
        )
    click.echo(f"{seen} failures acknowledged")


@click.command("share")
@config
@click.option(
    "--allow/--forbid", "allowed", required=True, help="Whether analysts get each other's answers."
)
@_reason
@_actor
def _share(config: str, allowed: bool, **about: str) -> None:
    """Whether an answer that one analyst paid for is given to another, who pays for it too."""
    with opened(config) as (ledger, declared):
        _by(ledger, about).share_answers(
            declared.dataset.name, allowed=allowed, reason=about["reason"]
        )
    click.echo("answers are shared" if allowed else "answers are not shared")


@click.command("restrict")
@config
@click.option(
    "--closed/--open",
    "closed",
    required=True,
    help="Only accounts that were opened, or any name that asks.",
)
@_reason
@_actor
def _restrict(config: str, closed: bool, **about: str) -> None:
    """Whether only accounts that the owner has opened may spend, or any name that asks."""
    with opened(config) as (ledger, declared):
        if declared.closed not in (None, closed):
            raise WrongUse(
                f"{config} says otherwise under [budget].",
                remedy="Change closed = there, or take it out.",
            )
        _by(ledger, about).restrict(declared.dataset.name, closed=closed, reason=about["reason"])
    click.echo("only accounts that were opened may spend" if closed else "any name may spend")


COMMANDS = {
    each.name: each for each in (_accounts, _allocate, _refresh, _freeze, _thaw, _share, _restrict)
}


def _by(ledger: Ledger, about: dict[str, str]) -> Ledger:
    """The ledger for whoever ``--actor`` names."""
    return ledger.acting_as(about["actor"]) if about["actor"] else ledger


def _told(standing: Standing) -> str:
    limit = str(standing.limit) if standing.limit else "no limit of its own"
    frozen = f", frozen ({standing.frozen})" if standing.frozen else ""
    left = f"epsilon {decimal_text(standing.left.epsilon)} or rho {decimal_text(standing.left.rho)}"
    return f"{standing.scope.id}: {limit}, left {left}{frozen}"


def _to_json(standing: Standing) -> dict[str, Json]:
    limit = standing.limit
    return {
        "account": standing.scope.id,
        "limit": None
        if limit is None
        else {"epsilon": decimal_text(limit.epsilon), "delta": decimal_text(limit.delta)},
        "spent": {
            "epsilon": units_text(standing.spent.epsilon),
            "rho": units_text(standing.spent.rho),
        },
        "reserved": {
            "epsilon": units_text(standing.reserved.epsilon),
            "rho": units_text(standing.reserved.rho),
        },
        "left": {
            "epsilon": decimal_text(standing.left.epsilon),
            "rho": decimal_text(standing.left.rho),
        },
        "frozen": standing.frozen,
    }
