# SPDX-License-Identifier: Apache-2.0
"""``sfumato budget``: shows what is spent and left; sets limits of accounts from a file."""

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import click

from sfumato.accounting.budget_gates import NOTHING, Charge
from sfumato.cli.asking import Asking, asks
from sfumato.cli.language import say
from sfumato.cli.ledger import opened_or_made, reading
from sfumato.cli.options import as_json, table_or_json
from sfumato.config.limits_file import read_limits
from sfumato.errors import without_secrets
from sfumato.exact.rational import decimal_text
from sfumato.ledger.account_path import Scope
from sfumato.ledger.account_status import Standing
from sfumato.ledger.balance import charge_from_json, delta_text
from sfumato.ledger.spend import Ledger
from sfumato.ledger.store.base import Rows
from sfumato.query.account import Account, amount_text, reserved_text

# How far back the last question of an asker is looked for.
_RECENT = 10_000
# An increment of epsilon and rho.
_INCREMENT = Fraction(1, 10**12)


@click.command("budget")
@asks
@table_or_json
@click.option("--details", is_flag=True, help="Show the dataset's account with both gates.")
@click.option(
    "--allocate",
    "limits",
    type=click.Path(),
    help="Set the limits of the accounts in a CSV or TOML file.",
)
@click.option("--reason", default="", help="Why, with --allocate; it is kept in the journal.")
def command(asking: Asking, form: str, *, details: bool, limits: str | None, reason: str) -> None:
    """What the asker has spent and what is left, then the accounts above; every number exact."""
    if limits is not None:
        with opened_or_made(asking.config) as (ledger, declared):
            wanted = read_limits(limits, declared.dataset.name)
            changed = ledger.allocate_all(wanted, reason=reason)
        say(f"{changed} of {len(wanted)} accounts have another limit now")
        return
    with asking.session() as session:
        budget = session.budget
    if form == "json":
        click.echo(as_json(budget.to_json()))
    elif details:
        say(repr(budget))
    else:
        with reading(asking.config) as (ledger, _):
            for line in _lines(ledger, budget):
                # a name of an account is whatever an analyst wrote
                say(without_secrets(line))


def _lines(ledger: Ledger, budget: Account) -> Iterator[str]:
    """Lines on the asker's account, the accounts above it, and how many questions are left."""
    asker_standing, delta = budget.standing, budget.limit.delta
    scope = asker_standing.scope
    dataset_standing = ledger.standing(scope.dataset)
    yield f"you       {scope.analyst}, for {scope.purpose}: {_spent(asker_standing, delta)}"
    left = f"one question of epsilon up to {decimal_text(asker_standing.left.epsilon)}"
    if asker_standing.left.rho:
        left += f", or of rho up to {decimal_text(asker_standing.left.rho)}"
    if dataset_standing.spent.delta:
        left += f"; of delta up to {delta_text(asker_standing.left.delta)}"
    yield f"left      {left}"
    if asker_standing.reserved != NOTHING:
        yield f"reserved  {reserved_text(asker_standing.reserved)}"
    if asker_standing.frozen:
        yield f"frozen    {asker_standing.frozen}"
    above = {
        f"the purpose {scope.purpose}": ledger.standing(scope.dataset, scope.purpose),
        f"the dataset {scope.dataset}": dataset_standing,
    }
    for index, (name, standing) in enumerate(above.items()):
        yield f"{'' if index else 'above':<10}{name}: {_spent(standing, delta)}"
        # what is reserved by others; what the asker reserved is in it
        if standing.reserved != asker_standing.reserved:
            yield f"          reserved {reserved_text(standing.reserved)}"
    last = ledger.store.read(partial(_last_cost, scope))
    if last is not None:
        yield _questions_left(last, asker_standing)


def _spent(standing: Standing, delta: Fraction) -> str:
    """A line on what an account has spent and its limit; ``delta`` is that of the budget."""
    spent = amount_text(standing.spent, delta)
    if standing.limit is None:
        return f"{spent} spent, no limit of its own"
    limit = f"epsilon {decimal_text(standing.limit.epsilon)}"
    if standing.limit.delta:
        limit += f", delta {decimal_text(standing.limit.delta)}"
    return f"{spent} spent of {limit}"


def _last_cost(scope: Scope, rows: Rows) -> Charge | None:
    """The cost of the newest charge of an account; None if there is no recent one."""
    last = rows.last_entry(scope.root)
    if last is None:
        return None
    for seq in range(last.seq, max(0, last.seq - _RECENT), -1):
        entry = rows.entry(scope.root, seq)
        if entry is None or entry.kind != "reserve":
            continue
        body = json.loads(entry.body)
        if body.get("account") == scope.id:
            return charge_from_json(body["cost"])
    return None


def _questions_left(cost: Charge, standing: Standing) -> str:
    """A sentence on how many questions of this cost the asker has left, by the better gate."""
    left = 0
    cost_text = amount_text(cost)
    if cost.epsilon:
        left = int(standing.left.epsilon / (cost.epsilon * _INCREMENT))
    if cost.rho:
        left = max(left, int(standing.left.rho / (cost.rho * _INCREMENT)))
    if cost.delta:
        left = min(left, standing.left.delta // cost.delta)
    if standing.frozen or not left:
        return f"You cannot ask another question like the last, which cost {cost_text}."
    questions = "1 more question" if left == 1 else f"about {left:,} more questions"
    return f"You can ask {questions} like the last, which cost {cost_text}."
