# SPDX-License-Identifier: Apache-2.0
"""The desk: the one place where a person's question meets a session.

It knows no protocol; ``releases`` has what is charged beside answers to SQL. Every method takes the
caller first, and refuses what that person may not do or see; what is not there and what one may not
see raise the same ``NotVisible``.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.ledger.account_path import UNSTATED, Scope, scope_of
from sfumato.ledger.request import SQL
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json
from sfumato.query.account import amounts, left_amounts
from sfumato.query.answer import Answer
from sfumato.service.charging import Account, affordable, ask_charged, learns_limits
from sfumato.service.journal_index import JournalIndex
from sfumato.service.people import Caller, People, Role
from sfumato.service.questions import arguments_of, require_number, time_limit_of
from sfumato.service.refusals import NoAccount, NotAllowed, NotVisible
from sfumato.service.requests import Requests, limit_to_json
from sfumato.service.served import Datasets, Served

MOST_ANSWERS = 100
MOST_ROWS = 10**12


class Desk:
    """The operations of the service's analysts: list datasets, preview, ask, read stored answers.

    Guarantees:
        an account without a limit of its own asks nothing here
        what is not there and what one may not see are refused alike
        a question is checked against the budget by the ledger alone
    """

    def __init__(self, datasets: Datasets, people: People, requests: Requests) -> None:
        self.datasets = datasets
        self._people = people
        self._requests = requests
        self._indexes = {id(ledger): JournalIndex(ledger) for ledger in datasets.ledgers}

    def me(self, caller: Caller) -> dict[str, Json]:
        """Returns the caller's own name, role and tokens (without their secrets) as JSON."""
        return {
            "name": caller.name,
            "role": caller.person.role.value,
            "read_only": caller.read_only,
            "token": caller.token,
            "tokens": list[Json](self._people.tokens(caller.name)),
        }

    def list_datasets(self, caller: Caller) -> list[Json]:
        """Returns the datasets that the caller may see, each with the caller's purposes, as JSON.

        Analysts see the datasets in which they have an account; owners and auditors see all.
        """
        visible: list[Json] = []
        for served in self.datasets:
            purposes = _purposes(served, caller)
            if purposes or caller.person.role is not Role.ANALYST:
                visible.append({"dataset": served.name, "purposes": purposes})
        return visible

    def dataset(self, caller: Caller, name: str) -> dict[str, Json]:
        """Returns a dataset's declared tables and columns as JSON, without the places of its data.

        Raises:
            NotVisible: the caller has neither an account there nor a role.
        """
        served = self.visible(caller, name)
        return {**served.to_json(), "purposes": _purposes(served, caller)}

    def visible(self, caller: Caller, name: str) -> Served:
        """Returns the served dataset with this name, if the caller may see it.

        Raises:
            NotVisible: there is none, or the caller has neither an account there nor a role.
        """
        served = self.datasets.find(name)
        if served is None:
            raise NotVisible
        if caller.person.role is Role.ANALYST and not served.accounts_of(caller.name):
            raise NotVisible
        return served

    def account(self, caller: Caller, dataset: str, purpose: object) -> Account:
        """Returns the caller's ledger account for a purpose, which must have a limit of its own.

        Raises:
            NotVisible: the caller does not see the dataset.
            NotAllowed: an auditor never asks.
            NoAccount: the caller has no account with a limit of its own for this purpose.
        """
        served = self.datasets.find(dataset)
        if served is None:
            raise NotVisible
        if caller.person.role is Role.AUDITOR:
            raise NotAllowed("An auditor asks nothing.")
        scope = _scope(dataset, UNSTATED if purpose is None else purpose, caller.name)
        if scope is None or served.standing(scope).limit is None:
            self.visible(caller, dataset)
            raise NoAccount
        return Account(served, scope, served.session_of(scope))

    def budget(self, caller: Caller, dataset: str, purpose: object) -> dict[str, Json]:
        """Returns JSON of the caller's account: its limit, its spending, what it can still pay."""
        account = self.account(caller, dataset, purpose)
        standing = account.served.standing(account.scope)
        return {
            "purpose": account.scope.purpose,
            "own": {
                "limit": limit_to_json(standing.limit),
                "spent": amounts(standing.spent),
                "reserved": amounts(standing.reserved),
                "frozen": bool(standing.frozen),
            },
            "left": left_amounts(standing.left),
        }

    def preview(self, caller: Caller, dataset: str, form: Mapping[str, Any]) -> dict[str, Json]:
        """Returns a question's cost and expected errors, and how often the account could pay it.

        Raises:
            SfumatoError: as ``Session.preview``; free.
        """
        account = self.account(caller, dataset, form.get("purpose"))
        preview = account.session.preview(**arguments_of(form))
        return {
            "cost": preview.cost.to_json(),
            "columns": list[Json](preview.column_forms),
            "errors": list[Json](preview.error()),
            **affordable(account, preview.cost.charge),
        }

    def dummy(self, caller: Caller, dataset: str, table: str, rows: int, seed: int) -> pa.Table:
        """Returns made-up rows of a table, generated from its declarations alone; costs no budget.

        Raises:
            NotVisible: the caller does not see the dataset, or it has no such table.
            WrongUse: too many rows.
        """
        served = self.visible(caller, dataset)
        if table not in served.session.dataset.tables:
            raise NotVisible
        return served.session.dummy(table, rows=rows, seed=seed)

    def advise(self, caller: Caller, dataset: str, form: Mapping[str, Any]) -> dict[str, Json]:
        """Returns a question's expected errors under other clips, costs and groupings, as JSON.

        Raises:
            SfumatoError: as ``Session.advise``; free.
        """
        account = self.account(caller, dataset, form.get("purpose"))
        rows = form.get("rows")
        if rows is not None and (type(rows) is not int or not 1 <= rows <= MOST_ROWS):
            raise WrongUse(f"rows={shown(rows)}.", allowed=f"1 to {MOST_ROWS:,}")
        return account.session.advise(**arguments_of(form), rows=rows).to_json()

    def query(
        self,
        account: Account,
        form: Mapping[str, Any],
        *,
        key: str | None = None,
        stop: sf.Stop | None = None,
    ) -> Answer:
        """Returns the noisy answer to a SQL question, and charges its cost to the account.

        Raises:
            Ended: it has no answer; says whether it was charged.
        """

        def ask() -> Answer:
            arguments = arguments_of(form)
            limit = time_limit_of(form)
            return account.session.query(**arguments, key=key, stop=stop, time_limit=limit)

        # a sub-query is a charge of its own, and so is a limit that is learnt
        is_one = str(form.get("sql")).lower().count("select") < 2 and not learns_limits(account)
        return ask_charged(account, ask, is_one_charge=is_one)

    def answers(
        self, caller: Caller, dataset: str, purpose: object, *, before: int, limit: int
    ) -> list[Json]:
        """Returns the newest stored answers of the caller's account, with their SQL statements.

        ``before`` is a journal entry number: only older answers are listed (0: all).
        """
        account = self.account(caller, dataset, purpose)
        index = self._indexes[id(account.served.ledger)]
        chosen = index.answers(
            account.scope.root, account.scope.id, before, max(1, min(limit, MOST_ANSWERS))
        )
        lines: list[Json] = []
        for line in chosen:
            assert isinstance(line, dict), "an answer is an object"
            statement = ""
            if line["kind"] == SQL:
                body = account.session.stored(str(line["charge"])).body
                statement = Answer(body).statement
            lines.append({**line, "statement": statement})
        return lines

    def answer(self, caller: Caller, dataset: str, charge: str) -> bytes:
        """Returns the bytes of a stored answer, found by the charge that paid for it.

        Analysts get those of their own accounts; owners and auditors any.

        Raises:
            NotVisible: there is none that the caller may see.
        """
        served = self.visible(caller, dataset)
        row = served.ledger.store.read(lambda rows: rows.charge(charge))
        scope = None if row is None else scope_of(row.account)
        if scope is None or scope.dataset != served.name:
            raise NotVisible
        if caller.person.role is Role.ANALYST and (
            scope.analyst != caller.name or served.standing(scope).limit is None
        ):
            raise NotVisible
        try:
            return served.session_of(scope).stored(charge).body
        except UnknownName:
            raise NotVisible from None

    def request(self, caller: Caller, dataset: str, form: Mapping[str, Any]) -> dict[str, Json]:
        """Stores the caller's request that the owner change an account's limit; returns it."""
        account = self.account(caller, dataset, form.get("purpose"))
        before = account.served.standing(account.scope).limit
        assert before is not None, "an account has a limit"
        reason = require_text("reason", form.get("reason"))
        return self._requests.add(account.scope, budget_of(form), before, reason).to_json()

    def requests(self, caller: Caller) -> list[Json]:
        """Returns the newest requests for other limits: the caller's own, or, to an owner, all."""
        person = None if caller.person.role is Role.OWNER else caller.name
        return [request.to_json() for request in self._requests.newest(person)]


def _purposes(served: Served, caller: Caller) -> list[Json]:
    return [standing.scope.purpose for standing in served.accounts_of(caller.name)]


def _scope(dataset: str, purpose: object, analyst: str) -> Scope | None:
    """The path of an account; None if no account can have such a name."""
    if not isinstance(purpose, str) or not purpose:
        return None
    try:
        return Scope(dataset, purpose, analyst)
    except WrongUse:
        return None


def budget_of(form: Mapping[str, Any]) -> Budget:
    """Returns the budget limit in a request body: its ``epsilon``, and ``delta`` if there is one.

    Raises:
        SfumatoError: one of them is no number, or out of range.
    """
    if form.get("epsilon") is None:
        raise WrongUse("A limit without epsilon.", allowed='"epsilon": "0.5"')
    epsilon = require_number("epsilon", form["epsilon"])
    delta = form.get("delta")
    return Budget(epsilon, 0 if delta is None else require_number("delta", delta))


def require_text(name: str, value: object, *, optional: bool = False) -> str:
    """Returns a text of a request body, after checking that it is printable and at most 800 bytes.

    It may be missing ("") if it is ``optional``.

    Raises:
        WrongUse: it is none.
    """
    if value is None and optional:
        return ""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise WrongUse(f"{name}={shown(value)}.", allowed="a text of printable characters")
    if len(value.encode()) > 800:
        raise WrongUse(f"A {name} of {len(value.encode())} bytes.", allowed="at most 800")
    return value
