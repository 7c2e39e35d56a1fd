# SPDX-License-Identifier: Apache-2.0
"""All exceptions of sfumato.

    SfumatoError
    +-- Refused                exit 1: a valid request that is not answered
    |   +-- BudgetExceeded         the budget of the account does not suffice
    |   +-- AccountFrozen          three failures; the owner must thaw the account
    |   +-- NotListed              the dataset is closed, and this account was not opened
    |   +-- SqlSyntaxError         invalid SQL (with line and column)
    |   +-- UnsupportedSql         which rule refuses it, and what to write instead
    |   +-- UnknownName            no such table, column or value; lists those that exist
    |   +-- MissingDeclaration     a bound, value or limit that the proof needs
    |   +-- NoReference            a relative error without a public reference
    |   +-- TargetUnreachable      the wanted error costs more than max_epsilon
    |   +-- TaskRefused            a device does not answer such a telemetry task
    |   +-- TooFewReports          fewer reports than the smallest batch
    +-- StudyRefused           exit 1: a site of a study refuses, or is silent; free everywhere
    +-- WrongUse               exit 2: an invalid argument, declaration or file
    |   +-- InvalidNumber
    |   +-- InvalidDeclaration
    |   +-- InvalidSource
    |   +-- InvalidConfig
    |   +-- ContractMismatch       the ledger has another contract for this dataset
    |   +-- KeyUsed                an idempotency key of another request
    +-- Failed                 exit 3: a failure that the request did not cause
        +-- EngineFailed           one constant message; the charge is forfeited
        +-- Cancelled              cancelled by the caller, or by its time_limit
        +-- OuterFailed            SQL over private answers failed; the answers are paid and stored
        +-- StudyFailed            a run of a study broke off; paid where it was executed
        +-- LedgerError
            +-- LedgerBusy, LedgerReadOnly, LedgerTooNew
            +-- LedgerCorrupt
            |   +-- LedgerIncomplete   it may lack charges
            +-- LedgerUnavailable
            |   +-- LedgerMissing      no ledger at this address
            |   +-- LedgerMoved        it was migrated to another address
            +-- InProgress         the same question is being answered at the moment
            +-- LeaseExpired       another worker took over or closed the charge

Each error states what was given, what is allowed and what to do. No message contains a value of
the private data, an undeclared column or a password.
"""

import datetime
import re
import traceback
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Never

_LONGEST = 300
_PACKAGE = Path(__file__).parent
_CONSTANTS = (int, float, Decimal, Fraction, datetime.date, Enum, type(None))
# Names after which a password may follow.
_SECRET = re.compile(r"\b(pass\w*|pwd|secret\w*|token\w*)\s*=.*", re.IGNORECASE | re.DOTALL)


def shown(value: object) -> str:
    """Returns the text that an error message shows for an argument.

    It is the value of a constant, a declaration, or only the type of anything else.

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
    """Returns the error for a ``match`` over node types that has no case for a node.

    A type checker reports such a ``match``, because the node's type is then not ``Never``.

    >>> unknown(3)
    TypeError('int is not known here')
    """
    return TypeError(f"{type(node).__name__} is not known here")


def without_secrets(place: str) -> str:
    """Returns a path or address without user, password and options.

    Guarantees:
        no password of an address is quoted

    >>> without_secrets("postgresql://ada:secret@db.example/clinic?sslmode=require")
    'postgresql://db.example/clinic'
    >>> without_secrets("host=db.example password=secret")
    'host=db.example password=...'
    """
    scheme, colon, rest = place.partition(":/")
    if colon:
        # a password may have any character, even those that end it in a well-formed address
        slashes = "/" * (len(rest) - len(rest.lstrip("/")))
        after = rest.lstrip("/").rpartition("@")[2]
        place = f"{scheme}:/{slashes}{after.partition('?')[0].partition('#')[0]}"
    return _SECRET.sub(r"\1=...", place)


class SfumatoError(Exception):
    """Base class of all errors.

    Its parts are the ``problem`` (what was given), what is ``allowed``, and the ``remedy``.
    """

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

    def _render_traceback_(self) -> list[str]:
        """What IPython shows for a traceback: the caller's own line, and the message.

        >>> WrongUse("No.", remedy="Ask otherwise.")._render_traceback_()
        ['WrongUse: No.', 'What to do: Ask otherwise.']
        """
        own = []
        for frame in traceback.extract_tb(self.__traceback__):
            if Path(frame.filename).is_relative_to(_PACKAGE):
                break
            own = [f"line {frame.lineno}: {frame.line}", ""]
        return [*own, *f"{type(self).__name__}: {self}".splitlines()]


def _rebuilt(kind: type[SfumatoError], state: dict[str, object]) -> SfumatoError:
    """Rebuilds a pickled error, for example one from another process."""
    error = kind.__new__(kind)
    error.__dict__.update(state)
    error.args = (state["problem"],)
    return error


class Refused(SfumatoError):
    """A valid request that is refused, for example because the budget is spent.

    ``instead`` is a whole statement that a session answers at the same price, in place of one that
    is not part of the language; None if it knows none.
    """

    exit_code = 1
    instead: str | None = None


class BudgetExceeded(Refused):
    """The account cannot pay for the question."""


class AccountFrozen(Refused):
    """The account is frozen after three failures while data was read; the owner must thaw it."""


class NotListed(Refused):
    """The dataset is closed, and the owner has not opened this account."""


class SqlSyntaxError(Refused):
    """The string is not valid SQL; ``line`` and ``column`` count from 1."""

    def __init__(self, problem: str, *, line: int, column: int, remedy: str = "") -> None:
        self.line = line
        self.column = column
        super().__init__(problem, remedy=remedy)


class UnsupportedSql(Refused):
    """A SQL construct that sfumato does not support."""


class UnknownName(Refused):
    """No such table, column or declared value."""


class MissingDeclaration(Refused):
    """The privacy proof needs a bound, a list of values or a limit that is not declared."""


class NoReference(Refused):
    """A relative error was requested, but there is no public number that it could be relative to."""


class TargetUnreachable(Refused):
    """The requested accuracy costs more than ``max_epsilon``."""


class TaskRefused(Refused):
    """A telemetry task that is unsigned, not published, or dearer than the application allows."""


class TooFewReports(Refused):
    """Fewer reports than the smallest batch that the telemetry task allows to look at."""


class StudyRefused(SfumatoError):
    """A site of a study refuses a question, or is silent; nothing was charged at any site.

    No ``Refused``: those are counted in a ledger, and an analyst of a study has none.
    """

    exit_code = 1


class WrongUse(SfumatoError):
    """An invalid argument, declaration or file."""

    exit_code = 2


class InvalidNumber(WrongUse):
    """A value that is not a number, or is out of range."""


class InvalidDeclaration(WrongUse):
    """An invalid declaration of a column, unit, table, budget or mechanism."""


class InvalidSource(WrongUse):
    """The data cannot be opened at the path or address that the declaration states."""


class InvalidConfig(WrongUse):
    """``sfumato.toml`` is missing or invalid."""


class ContractMismatch(WrongUse):
    """The ledger has another contract for this dataset."""


class KeyUsed(WrongUse):
    """An idempotency key that was used before, for another request or one without an answer."""


class Failed(SfumatoError):
    """A failure that is not caused by the request, such as an I/O error."""


class EngineFailed(Failed):
    """The engine failed. The message is constant, and the charge stays spent."""

    def __init__(self) -> None:
        super().__init__(
            "The engine could not complete the query.",
            remedy="The cost stays spent, whatever the reason was. The owner finds the kind of "
            "failure in the log 'sfumato.owner'.",
        )


class StudyFailed(Failed):
    """A run of a study ended after it had begun: what a site has executed stays spent there."""


class Cancelled(Failed):
    """The caller cancelled the question, or its time limit ended.

    If ``paid``, it had been charged by then, and the charge stays spent.
    """

    def __init__(self, *, paid: bool) -> None:
        self.paid = paid
        problem = "The question was cancelled before the data was read: nothing was charged."
        if paid:
            problem = (
                "The question was cancelled after the data may have been read: "
                "what it was charged by then stays spent."
            )
        super().__init__(problem, remedy="Ask again; a larger time_limit= waits longer.")


class OuterFailed(Failed):
    """SQL over private answers failed after these were paid.

    ``charges`` are their ids; ``cause`` is what DuckDB says, which may quote released numbers.
    """

    def __init__(self, cause: str, charges: tuple[str, ...]) -> None:
        self.cause = cause
        self.charges = charges
        super().__init__(
            f"The SQL over the private answers failed: {cause}.",
            remedy="The private answers are paid and stored: a mended text over the same "
            "questions costs nothing.",
        )


class LedgerError(Failed):
    """The ledger cannot be used."""


class LedgerBusy(LedgerError):
    """The ledger is locked by another process."""


class LedgerCorrupt(LedgerError):
    """The file is not a ledger, or its content was changed."""


class LedgerIncomplete(LedgerCorrupt):
    """The ledger may lack charges (for example an old backup), so it refuses new ones."""


class LedgerReadOnly(LedgerError):
    """The ledger cannot be written, so nothing can be charged."""


class LedgerTooNew(LedgerError):
    """The ledger was written by a newer version."""


class LedgerUnavailable(LedgerError):
    """The ledger's path or server does not exist, or an I/O error occurred."""


class LedgerMissing(LedgerUnavailable):
    """There is no ledger at the path or address, and none may be created."""


class LedgerMoved(LedgerUnavailable):
    """The ledger was migrated, and only the new one accepts charges."""


class InProgress(LedgerError):
    """The same question is being answered at the moment; it is not charged twice."""


class LeaseExpired(LedgerError):
    """The lease of a worker expired: its charge was closed or taken over, its answer dropped."""
