# SPDX-License-Identifier: Apache-2.0
"""Every exception of sfumato.

    SfumatoError
    +-- Refused                exit 1: the question is understood and not answered
    |   +-- BudgetExceeded         the account cannot pay
    |   +-- AccountFrozen          three failures; the owner has to look first
    |   +-- NotListed              the dataset is closed, and the name is not on the owner's list
    |   +-- SqlSyntaxError         the text is not SQL (position shown)
    |   +-- UnsupportedSql         the rule that refuses, and what to write instead
    |   +-- UnknownName            no such table, column or value; says which exist
    |   +-- MissingDeclaration     a bound, value or limit that the proof needs
    |   +-- NoReference            a relative error without a public reference
    |   +-- TargetUnreachable      the error asked for costs more than max_epsilon
    +-- WrongUse               exit 2: an argument, a declaration or a file is wrong
    |   +-- InvalidNumber
    |   +-- InvalidDeclaration
    |   +-- InvalidSource
    |   +-- InvalidConfig
    |   +-- ContractMismatch       the ledger knows this dataset under another contract
    |   +-- KeyUsed                an idempotency key that is bound to something else
    +-- Failed                 exit 3: nothing is wrong with the question
        +-- EngineFailed           one constant message; the charge is forfeited
        +-- Cancelled              the caller stopped waiting, or its time_limit was over
        +-- LedgerError
            +-- LedgerBusy, LedgerReadOnly, LedgerTooNew
            +-- LedgerCorrupt
            |   +-- LedgerIncomplete   it cannot be shown to hold all that was spent
            +-- LedgerUnavailable
            |   +-- LedgerMissing      the place holds no ledger, and none was to be made
            |   +-- LedgerMoved        it was migrated, and charges elsewhere
            +-- InProgress         the same question is being answered right now
            +-- LeaseExpired       the charge was closed while its worker was away

Each says what was given, what is allowed and what to do. No message ever holds a
value of the private data, a column that nobody declared, or a password.
"""

import datetime
import re
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Never

_LONGEST = 300
_CONSTANTS = (int, float, Decimal, Fraction, datetime.date, Enum, type(None))
# What follows is a password, or may hold one.
_SECRET = re.compile(r"\b(pass\w*|pwd|secret\w*|token\w*)\s*=.*", re.IGNORECASE | re.DOTALL)


def shown(value: object) -> str:
    """What an error may quote of an argument: a short constant or a declaration; of all else its type.

    Guarantees:
        of a frame nothing but its type is quoted

    >>> shown(3), shown("9 GB"), shown({"ssn": ["078-05"]})
    ('3', "'9 GB'", 'a value of type dict')
    """
    if isinstance(value, str | PurePath):
        text = repr(without_secrets(str(value)))
    elif isinstance(value, int) and abs(value) >= 10**_LONGEST:
        text = "a number of many digits"
    elif isinstance(value, _CONSTANTS) or type(value).__module__.partition(".")[0] == "sfumato":
        text = repr(value)
    else:
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def unknown(node: Never) -> TypeError:
    """The refusal of a node that a dispatch does not know.

    A type checker finds a dispatch that lacks a case, since ``node`` is then not ``Never``.

    >>> unknown(3)
    TypeError('int is not known here')
    """
    return TypeError(f"{type(node).__name__} is not known here")


def without_secrets(place: str) -> str:
    """A path or an address without user, password and options.

    Guarantees:
        no password of an address is quoted

    >>> without_secrets("postgresql://ada:secret@db.example/clinic?sslmode=require")
    'postgresql://db.example/clinic'
    >>> without_secrets("host=db.example password=secret")
    'host=db.example password=...'
    """
    scheme, colon, rest = place.partition(":/")
    if colon:
        # a password may hold any sign, also those that end it in a well-formed address
        slashes = "/" * (len(rest) - len(rest.lstrip("/")))
        after = rest.rpartition("@")[2].lstrip("/")
        place = f"{scheme}:/{slashes}{after.partition('?')[0].partition('#')[0]}"
    return _SECRET.sub(r"\1=...", place)


class SfumatoError(Exception):
    """Base of all errors: ``problem`` (what was given), ``allowed``, ``remedy``."""

    exit_code = 3

    def __init__(self, problem: str, *, allowed: str = "", remedy: str = "") -> None:
        self.problem = problem
        self.allowed = allowed
        self.remedy = remedy
        super().__init__(problem)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), dict(self.__dict__))

    def __str__(self) -> str:
        lines = [self.problem]
        if self.allowed:
            lines.append(f"Allowed: {self.allowed}")
        if self.remedy:
            lines.append(f"What to do: {self.remedy}")
        return "\n".join(lines)


def _rebuilt(kind: type[SfumatoError], state: dict[str, object]) -> SfumatoError:
    """An error that crossed a process."""
    error = kind.__new__(kind)
    error.__dict__.update(state)
    error.args = (state["problem"],)
    return error


class Refused(SfumatoError):
    """The question is understood and not answered."""

    exit_code = 1


class BudgetExceeded(Refused):
    """The account cannot pay for the question."""


class AccountFrozen(Refused):
    """Three failures after the data was touched: the owner has to look first."""


class NotListed(Refused):
    """The owner has closed the dataset, and the account is not one that was opened."""


class SqlSyntaxError(Refused):
    """The text is not SQL. ``line`` and ``column`` count from 1."""

    def __init__(self, problem: str, *, line: int, column: int, remedy: str = "") -> None:
        self.line = line
        self.column = column
        super().__init__(problem, remedy=remedy)


class UnsupportedSql(Refused):
    """A construct that the language of private questions does not have."""


class UnknownName(Refused):
    """No such table, column or declared value."""


class MissingDeclaration(Refused):
    """The proof needs a bound, a value list or a limit that nobody declared."""


class NoReference(Refused):
    """A relative error needs a public reference, and there is none."""


class TargetUnreachable(Refused):
    """The error asked for costs more than ``max_epsilon``."""


class WrongUse(SfumatoError):
    """An argument, a declaration or a file is wrong."""

    exit_code = 2


class InvalidNumber(WrongUse):
    """A number that is not one, or outside what is allowed."""


class InvalidDeclaration(WrongUse):
    """A column, unit, table or budget that cannot be declared so."""


class InvalidSource(WrongUse):
    """The data cannot be opened where the declaration says that it lies."""


class InvalidConfig(WrongUse):
    """``sfumato.toml`` is missing or wrong."""


class ContractMismatch(WrongUse):
    """The ledger knows this dataset under another contract."""


class KeyUsed(WrongUse):
    """An idempotency key is bound to another request, or to one that has ended without an answer."""


class Failed(SfumatoError):
    """Nothing is wrong with the question."""


class EngineFailed(Failed):
    """The engine gave no result. The message is constant and the charge is spent."""

    def __init__(self) -> None:
        super().__init__(
            "The engine could not complete the query.",
            remedy="The cost stays spent, whatever the reason was. The owner finds the kind of "
            "failure in the log 'sfumato.owner'.",
        )


class Cancelled(Failed):
    """The caller stopped waiting. ``paid``: the question was charged by then, and what it was charged stays spent."""

    def __init__(self, *, paid: bool) -> None:
        self.paid = paid
        super().__init__(
            "The question was cancelled after the data may have been read: what it was charged by then stays spent."
            if paid
            else "The question was cancelled before the data was read: nothing was charged.",
            remedy="Ask again; a larger time_limit= waits longer.",
        )


class LedgerError(Failed):
    """The ledger cannot be used."""


class LedgerBusy(LedgerError):
    """Another process holds the ledger."""


class LedgerCorrupt(LedgerError):
    """The file is not a ledger, or no longer says what it said."""


class LedgerIncomplete(LedgerCorrupt):
    """The ledger cannot be shown to hold all that was spent, so it does not charge."""


class LedgerReadOnly(LedgerError):
    """The ledger cannot be written, so nothing can be charged."""


class LedgerTooNew(LedgerError):
    """The ledger was written by a newer version."""


class LedgerUnavailable(LedgerError):
    """The ledger's place does not exist, or the disk refuses it."""


class LedgerMissing(LedgerUnavailable):
    """There is no ledger at the place, and none was to be made."""


class LedgerMoved(LedgerUnavailable):
    """The ledger was migrated to another place, and charges there only."""


class InProgress(LedgerError):
    """The same question is being answered right now, and is not paid for twice."""


class LeaseExpired(LedgerError):
    """The charge was closed at full cost while its worker was away; its answer is not stored."""
