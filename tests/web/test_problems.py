# SPDX-License-Identifier: Apache-2.0
"""Errors as problem+json, and back to the same class."""

import json

import pytest

from sfumato import errors
from sfumato.errors import (
    BudgetExceeded,
    Cancelled,
    EngineFailed,
    Failed,
    KeyUsed,
    LedgerBusy,
    SfumatoError,
    SqlSyntaxError,
    UnsupportedSql,
    WrongUse,
)
from sfumato.service import refusals
from sfumato.service.ended import Ended
from sfumato.service.refusals import NotVisible, SignInFailed, StateFailed, Stopping, TooMany
from sfumato.web.bodies import NoSuchMethod, TooLarge
from sfumato.web.problems import error_of, problem

KINDS = [
    kind
    for module in (errors, refusals)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, SfumatoError)
]


def made(kind: type[SfumatoError]) -> SfumatoError:
    error = kind.__new__(kind)
    error.problem, error.allowed, error.remedy = "What.", "That.", "Do."
    vars(error).setdefault("after", 5)
    return error


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_that_may_be_charged_is_answered_with_what_clients_repeat(
    kind: type[SfumatoError],
) -> None:
    for charged in (True, False, None):
        status = problem(Ended(made(kind), charged=charged)).status
        assert 400 <= status < 500 and status not in (408, 425, 429)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (WrongUse("x"), 400), (SignInFailed(), 401), (BudgetExceeded("x"), 402),
        (refusals.NotAllowed("x"), 403), (refusals.NoAccount(), 403), (errors.NotListed("x"), 403),
        (NotVisible(), 404), (NoSuchMethod("x"), 405), (KeyUsed("x"), 409),
        (refusals.LimitChanged("x"), 409), (TooLarge("x"), 413), (errors.UnsupportedSql("x"), 422),
        (errors.InvalidSource("x"), 422), (errors.AccountFrozen("x"), 423),
        (TooMany("x"), 429), (LedgerBusy("x"), 503), (Stopping(), 503), (StateFailed("x"), 503),
        (ZeroDivisionError("secret"), 500), (Ended(EngineFailed(), charged=True), 409),
        (Ended(LedgerBusy("x"), charged=None), 409), (Ended(BudgetExceeded("x"), charged=False), 402),
    ],
)  # fmt: skip
def test_each_error_has_its_status(error: Exception, status: int) -> None:
    reply = problem(error)
    form = json.loads(reply.body)
    assert reply.status == status == form["status"]
    assert reply.type == "application/problem+json" and b"secret" not in reply.body
    assert set(form) == {"type", "title", "status", "detail", "allowed", "remedy", "charged"}


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_arrives_as_the_same_class(kind: type[SfumatoError]) -> None:
    arrived = error_of(problem(made(kind)).body, 400)
    assert type(arrived) is kind
    assert str(arrived) == "What.\nAllowed: That.\nWhat to do: Do."


def test_what_is_charged_arrives() -> None:
    for paid in (True, False):
        reply = problem(Ended(Cancelled(paid=paid), charged=paid))
        error = error_of(reply.body, reply.status)
        assert isinstance(error, Cancelled) and error.paid is paid


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"type": "urn:sfumato:Path"}',
        b'{"type": "urn:sfumato:shown"}',
        b"{}",
    ],
)
def test_what_is_no_problem_of_the_service_is_a_failure(body: bytes) -> None:
    error = error_of(body, 502)
    assert type(error) is Failed


def test_waits_and_sign_ins_have_their_headers() -> None:
    assert ("Retry-After", "7") in problem(TooMany("x", 7)).headers
    assert ("WWW-Authenticate", "Bearer") in problem(SignInFailed()).headers
    assert problem(SqlSyntaxError("x", line=1, column=1)).status == 422


def test_the_statement_in_place_of_a_refused_one_is_sent() -> None:
    error = UnsupportedSql("No.")
    assert "instead" not in json.loads(problem(error).body)
    assert isinstance(back := error_of(problem(error).body, 422), UnsupportedSql)
    assert back.instead is None
    error.instead = "SELECT COUNT(*) AS n FROM people"
    again = error_of(problem(error).body, 422)
    assert isinstance(again, UnsupportedSql) and again.instead == error.instead
