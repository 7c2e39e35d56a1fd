# SPDX-License-Identifier: Apache-2.0
"""Random interleavings of questions and owner's acts, against a ledger of plain integers."""

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import AccountFrozen, BudgetExceeded, InProgress, LedgerUnavailable, NotListed
from sfumato.ledger import Ledger, verify
from sfumato.ledger.account_transaction import LockedAccounts
from sfumato.ledger.store.base import COMMITTED, EXECUTING, FORFEITED, RESERVED, VOIDED
from sfumato.privacy import Budget
from tests.contracts.charges import contract, pure

STEPS = {
    "execute": (RESERVED, EXECUTING),
    "void": (RESERVED, VOIDED),
    "commit": (EXECUTING, COMMITTED),
    "forfeit": (EXECUTING, FORFEITED),
}
NAMES = ("ann", "bob")
PURPOSES = ("p", "q")
ACCOUNTS = [("d",), *(("d", p) for p in PURPOSES), *(("d", p, a) for p in PURPOSES for a in NAMES)]


@dataclass
class Plain:
    """The same ledger in tenths of epsilon: obviously right, and forgetful."""

    limits: dict[tuple[str, ...], int] = field(default_factory=lambda: {("d",): 10})
    charges: list[list[object]] = field(default_factory=list)
    frozen: set[tuple[str, ...]] = field(default_factory=set)
    failures: list[tuple[str, ...]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    stored: set[tuple[str, ...]] = field(default_factory=lambda: {("d",)})
    closed: set[tuple[str, ...]] = field(default_factory=set)

    def taken(self, account: tuple[str, ...], *states: str) -> int:
        """What the charges below an account add up to."""
        below = [each for each in self.charges if each[0][: len(account)] == account]
        return sum(cost for _, cost, _, state in below if state in states)

    def reserve(self, path: tuple[str, ...], cost: int, question: str) -> type[Exception] | None:
        """The error, if there is one."""
        asked = [state for _, _, other, state in self.charges if other == question]
        if {RESERVED, EXECUTING, COMMITTED} & set(asked):
            return InProgress
        accounts = [path[: depth + 1] for depth in range(3)]
        if ("d",) in self.closed and any(
            each[:-1] in self.closed and each not in self.stored for each in accounts
        ):
            return NotListed
        if self.frozen & set(accounts) or sum(each[2] == path[2] for each in self.failures) >= 3:
            return AccountFrozen
        for account in accounts:
            limit = self.limits.get(account)
            if (
                limit is not None
                and self.taken(account, RESERVED, EXECUTING, COMMITTED, FORFEITED) + cost > limit
            ):
                return BudgetExceeded
        self.stored |= set(accounts)
        self.charges.append([path, cost, question, RESERVED])
        return None

    def step(self, name: str, place: int) -> type[Exception] | None:
        """The error, if there is one."""
        before, after = STEPS[name]
        charge = self.charges[place]
        if charge[3] != before:
            return LedgerUnavailable
        if name == "execute" and self.frozen & {charge[0][: depth + 1] for depth in range(3)}:
            charge[3] = VOIDED
            return AccountFrozen
        charge[3] = after
        if name == "forfeit":
            self.failures.append(charge[0])
        return None

    def reopen(self) -> None:
        """What was open is closed."""
        for charge in self.charges:
            if charge[3] == EXECUTING:
                self.failures.append(charge[0])
            charge[3] = {RESERVED: VOIDED, EXECUTING: FORFEITED}.get(charge[3], charge[3])


reserves = st.tuples(
    st.just("reserve"),
    st.sampled_from(PURPOSES),
    st.sampled_from(NAMES),
    st.integers(1, 4),
    st.integers(0, 5),
)
steps = st.tuples(st.sampled_from(list(STEPS)), st.integers(0, 7))
acts = st.tuples(st.sampled_from(["freeze", "thaw", "reopen"]), st.sampled_from(ACCOUNTS))
limits = st.tuples(st.just("allocate"), st.sampled_from(ACCOUNTS), st.integers(0, 12))


def act(ledger: Ledger, plain: Plain, wanted: tuple) -> tuple[object, object]:
    """Does one thing on both; the errors."""
    name, *rest = wanted
    try:
        if name == "reserve":
            purpose, analyst, cost, number = rest
            question = f"q{number} of {analyst} for {purpose}"
            expected = plain.reserve(("d", purpose, analyst), cost, question)
            asked = replace(pure(f"{cost}e-1", question, analyst=analyst), purpose=purpose)
            plain.ids.append(ledger.reserve(asked))
        elif name in STEPS:
            if not plain.ids:
                return None, None
            place = rest[0] % len(plain.ids)
            expected = plain.step(name, place)
            more = {"commit": (b"x",), "forfeit": ("engine",)}.get(name, ())
            getattr(ledger, name)(plain.ids[place], *more)
        elif name == "allocate":
            account, limit = rest
            expected = None
            budget = Budget(f"{limit}e-1") if limit else None
            if limit:
                plain.limits[account] = limit
            elif len(account) > 1:
                plain.limits.pop(account, None)
            else:
                return None, None
            above = {account[:depth] for depth in range(1, len(account))}
            plain.closed |= above
            plain.stored |= above | {account}
            ledger.allocate(
                "d", budget, **dict(zip(("purpose", "analyst"), account[1:], strict=False))
            )
        else:
            expected = None
            account = rest[0]
            plain.stored |= {account} if name in ("freeze", "thaw") else set()
            names = dict(zip(("purpose", "analyst"), account[1:], strict=False))
            if name == "freeze":
                plain.frozen.add(account)
                ledger.freeze("d", reason="r", **names)
            elif name == "thaw":
                plain.frozen.discard(account)
                plain.failures = [
                    each for each in plain.failures if each[: len(account)] != account
                ]
                ledger.thaw("d", **names)
    except (InProgress, AccountFrozen, BudgetExceeded, LedgerUnavailable, NotListed) as error:
        return expected, type(error)
    return expected, None


def agree(ledger: Ledger, plain: Plain) -> None:
    """Every account says what the plain one says."""
    for account in ACCOUNTS:
        standing = ledger.standing(*account)
        assert standing.spent.epsilon == plain.taken(account, COMMITTED, FORFEITED) * 10**11, (
            account
        )
        assert standing.reserved.epsilon == plain.taken(account, RESERVED, EXECUTING) * 10**11, (
            account
        )
        lefts = []
        for depth in range(len(account)):
            above = account[: depth + 1]
            if above in plain.limits:
                lefts.append(
                    plain.limits[above]
                    - plain.taken(above, RESERVED, EXECUTING, COMMITTED, FORFEITED)
                )
        assert standing.left.epsilon * 10 == max(min(lefts), 0), account


def interleave(wanted: list[tuple]) -> None:
    """A whole history on both."""
    with tempfile.TemporaryDirectory() as folder:
        ledger, plain = Ledger.open(Path(folder) / "l.db"), Plain()
        ledger.adopt(contract(Budget(1)), Budget(1))
        try:
            for each in wanted:
                if each[0] == "reopen":
                    ledger.close()
                    ledger = Ledger.open(Path(folder) / "l.db")
                    plain.reopen()
                expected, found = act(ledger, plain, each)
                assert expected is found, each
            agree(ledger, plain)
            assert verify(ledger).problems == ()
        finally:
            ledger.close()


@settings(deadline=None)
@given(st.lists(reserves | reserves | steps | steps | acts | limits, max_size=30))
def test_any_interleaving_is_what_plain_integers_say(wanted: list[tuple]) -> None:
    interleave(wanted)


def test_a_ledger_that_forgot_one_account_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = LockedAccounts.hold

    def forgetful(self: LockedAccounts, cost: object) -> None:
        """A broken hold: the analyst's account is not among those that move."""
        kept = dict(self.accounts)
        del self.accounts[self.lineage[-1]]
        hold(self, cost)
        self.accounts = kept | self.accounts

    monkeypatch.setattr(LockedAccounts, "hold", forgetful)
    with pytest.raises(AssertionError):
        interleave([("reserve", "p", "ann", 1, 0)])
