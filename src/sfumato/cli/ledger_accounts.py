# SPDX-License-Identifier: Apache-2.0
"""``sfumato ledger accounts|allocate|refresh|freeze|thaw|share|restrict``: manage accounts."""

import click

from sfumato.accounting.budget_gates import NOTHING
from sfumato.cli.language import say
from sfumato.cli.ledger import opened, opened_or_made, reading
from sfumato.cli.options import as_json, config, table_or_json, waits
from sfumato.errors import WrongUse
from sfumato.exact.rational import decimal_text
from sfumato.ledger.account_status import Standing
from sfumato.ledger.balance import delta_text, increments_text
from sfumato.ledger.planned_epsilon import planned_text
from sfumato.ledger.spend import Ledger
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json
from sfumato.query.account import amounts, left_amounts, reserved_text


def _name(_: click.Context, option: click.Parameter, value: str | None) -> str:
    """Returns the value of an option that takes a name; "" if the option is absent.

    An empty value is refused: an empty shell variable must not select the account above.
    """
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
@waits
@table_or_json
def _accounts(config: str, form: str) -> None:
    """Show every account: limit, spent, left."""
    with reading(config) as (ledger, _):
        ledger.require_newest()
        standings = ledger.accounts()
    if form == "json":
        click.echo(as_json([_to_json(standing) for standing in standings]))
        return
    deltas = {
        standing.scope.dataset: standing.limit.delta
        for standing in standings
        if not standing.scope.parent and standing.limit is not None
    }
    for standing in standings:
        limit = str(standing.limit) if standing.limit else "as above"
        spent = standing.spent
        shown = f"rho {increments_text(spent.rho)}"
        if spent.epsilon is not None:
            shown = f"epsilon {increments_text(spent.epsilon)}, {shown}"
        if spent.delta:
            shown += f", delta {delta_text(spent.delta)}"
        planned = planned_text(spent, deltas[standing.scope.dataset])
        if planned:
            shown += f" ({planned})"
        if standing.reserved != NOTHING:
            shown += f"  reserved {reserved_text(standing.reserved)}"
        frozen = f"  FROZEN ({standing.frozen})" if standing.frozen else ""
        say(f"{standing.scope.id}  limit {limit}  spent {shown}  left {_left(standing)}{frozen}")


@click.command("allocate")
@config
@waits
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
    """Set the limit of an account; without names, that of the dataset.

    A lower limit takes nothing back. This also opens the account: from then on other names that
    were not opened are refused.
    """
    if (epsilon is None) != unlimited:
        raise WrongUse("A limit to allocate.", allowed="--epsilon, or --none below a dataset")
    budget = None if epsilon is None else Budget(epsilon, delta)
    purpose, analyst = about["purpose"], about["analyst"]
    # the limit of a dataset whose ledger is missing is that of its [budget]
    at_ledger = opened_or_made if purpose else opened
    with at_ledger(config) as (ledger, declared):
        name = declared.dataset.name
        _by(ledger, about).allocate(
            name, budget, purpose=purpose, analyst=analyst, reason=about["reason"]
        )
        say(_told(ledger.standing(name, purpose, analyst)))
    if not purpose:
        say(f"write {budget} into {config}: the limit is part of the contract")


@click.command("refresh")
@config
@waits
@_purpose
@_analyst
@click.option("--epsilon", required=True, help="The limit of the new period.")
@_delta
@click.option("--reason", required=True, help="Why; it is kept in the journal.")
@_actor
def _refresh(config: str, epsilon: str, delta: str, **about: str) -> None:
    """Begin a new period with a new limit. The limits of all periods add up for the same rows."""
    purpose, analyst, budget = about["purpose"], about["analyst"], Budget(epsilon, delta)
    with opened(config) as (ledger, declared):
        name = declared.dataset.name
        _by(ledger, about).refresh(
            name, budget, purpose=purpose, analyst=analyst, reason=about["reason"]
        )
        standing = ledger.standing(name, purpose, analyst)
    say(_told(standing))
    if standing.lifetime:
        total, deltas = (decimal_text(amount) for amount in standing.lifetime)
        say(f"over the lifetime of the rows: epsilon {total}, delta {deltas}")


@click.command("freeze")
@config
@waits
@_purpose
@_analyst
@click.option(
    "--reason", default="frozen by the owner", show_default=True, help="For whoever is refused."
)
@_actor
def _freeze(config: str, purpose: str, analyst: str, **about: str) -> None:
    """Refuse questions of an account and those below it, stored answers included."""
    with opened(config) as (ledger, declared):
        name = declared.dataset.name
        _by(ledger, about).freeze(name, purpose=purpose, analyst=analyst, reason=about["reason"])
        say(_told(ledger.standing(declared.dataset.name, purpose, analyst)))


@click.command("thaw")
@config
@waits
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
    say(f"{seen} failures acknowledged")


@click.command("share")
@config
@waits
@click.option(
    "--allow/--forbid", "allowed", required=True, help="Whether analysts get each other's answers."
)
@_reason
@_actor
def _share(config: str, allowed: bool, **about: str) -> None:
    """Set whether an answer of one analyst is shared with another, who pays for it too."""
    with opened(config) as (ledger, declared):
        _by(ledger, about).share_answers(
            declared.dataset.name, allowed=allowed, reason=about["reason"]
        )
    say("answers are shared" if allowed else "answers are not shared")


@click.command("restrict")
@config
@waits
@click.option(
    "--closed/--open",
    "closed",
    required=True,
    help="Only accounts that were opened, or any name that asks.",
)
@_reason
@_actor
def _restrict(config: str, closed: bool, **about: str) -> None:
    """Set whether only accounts that the owner opened may spend, or any name that asks."""
    with opened(config) as (ledger, declared):
        if declared.closed not in (None, closed):
            raise WrongUse(
                f"{config} says otherwise under [budget].",
                remedy="Change closed = there, or take it out.",
            )
        _by(ledger, about).restrict(declared.dataset.name, closed=closed, reason=about["reason"])
    say("only accounts that were opened may spend" if closed else "any name may spend")


_ALL = (_accounts, _allocate, _refresh, _freeze, _thaw, _share, _restrict)
COMMANDS = {command.name: command for command in _ALL}


def _by(ledger: Ledger, about: dict[str, str]) -> Ledger:
    """Returns the ledger with ``--actor`` as the author of its entries."""
    if not about["actor"]:
        return ledger
    return ledger.acting_as(about["actor"])


def _left(standing: Standing) -> str:
    """Returns what is left of an account, as text."""
    left = standing.left
    told = f"epsilon {decimal_text(left.epsilon)} or rho {decimal_text(left.rho)}"
    return f"{told}; delta {delta_text(left.delta)}" if standing.spent.delta else told


def _told(standing: Standing) -> str:
    """Returns an account as a line of text."""
    limit = str(standing.limit) if standing.limit else "no limit of its own"
    frozen = f", frozen ({standing.frozen})" if standing.frozen else ""
    return f"{standing.scope.id}: {limit}, left {_left(standing)}{frozen}"


def _to_json(standing: Standing) -> dict[str, Json]:
    """Returns an account as JSON."""
    limit: Json = None
    if standing.limit is not None:
        epsilon, delta = standing.limit.epsilon, standing.limit.delta
        limit = {"epsilon": decimal_text(epsilon), "delta": decimal_text(delta)}
    return {
        "account": standing.scope.id,
        "limit": limit,
        "spent": amounts(standing.spent),
        "reserved": amounts(standing.reserved),
        "left": left_amounts(standing.left),
        "frozen": standing.frozen,
    }
