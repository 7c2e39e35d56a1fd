# SPDX-License-Identifier: Apache-2.0
"""Errors as problem+json (RFC 9457), and errors of the service from it.

Nothing that may be charged is answered with 5xx, 408 or 429: clients ask again by themselves, and a
failed question that is asked again is paid again.
"""

import json
import re

from sfumato import errors
from sfumato.errors import (
    AccountFrozen,
    BudgetExceeded,
    Cancelled,
    Failed,
    InvalidConfig,
    InvalidDeclaration,
    InvalidSource,
    KeyUsed,
    NotListed,
    Refused,
    SfumatoError,
    WrongUse,
)
from sfumato.service import refusals
from sfumato.service.ended import Ended
from sfumato.service.refusals import (
    LimitChanged,
    NoAccount,
    NotAllowed,
    NotVisible,
    ResultDropped,
    SignInFailed,
    StateFailed,
    Stopping,
    TooMany,
)
from sfumato.web.bodies import NoSuchMethod, TooLarge
from sfumato.web.reply import Reply

_PROBLEM = "application/problem+json"
_NAMESPACE = "urn:sfumato:"
# the first class that fits
_STATUS: tuple[tuple[type[SfumatoError], int], ...] = (
    (SignInFailed, 401),
    (NotVisible, 404),
    (NotAllowed, 403),
    (NoAccount, 403),
    (NotListed, 403),
    (LimitChanged, 409),
    (ResultDropped, 410),
    (TooMany, 429),
    (BudgetExceeded, 402),
    (AccountFrozen, 423),
    (KeyUsed, 409),
    (TooLarge, 413),
    (NoSuchMethod, 405),
    (InvalidDeclaration, 422),
    (InvalidConfig, 422),
    (InvalidSource, 422),
    (WrongUse, 400),
    (Refused, 422),
    (Stopping, 503),
    (StateFailed, 503),
    (Failed, 503),
)


def problem(error: Exception) -> Reply:
    """Returns the HTTP reply for an error (RFC 9457), with whether the question was charged.

    An error of another library is reported without its text.
    """
    charged: bool | None = False
    if isinstance(error, Ended):
        charged, cause = error.charged, error.error
        # within a question: what a client repeats by itself could be paid again
        status = _status(cause)
        if status >= 500 or status == 429:
            status = 409
    elif isinstance(error, SfumatoError):
        cause, status = error, _status(error)
    else:
        cause, status = Failed("An internal failure."), 500
    body = {
        "type": _NAMESPACE + type(cause).__name__,
        "title": _title(type(cause).__name__),
        "status": status,
        "detail": cause.problem,
        "allowed": cause.allowed,
        "remedy": cause.remedy,
        "charged": charged,
    }
    if isinstance(cause, Refused) and cause.instead is not None:
        body["instead"] = cause.instead
    headers = []
    if status == 401:
        headers.append(("WWW-Authenticate", "Bearer"))
    if isinstance(cause, TooMany):
        headers.append(("Retry-After", str(cause.after)))
    return Reply(json.dumps(body).encode(), status, _PROBLEM, tuple(headers))


def error_of(body: bytes, status: int) -> SfumatoError:
    """Returns the exception that an HTTP error reply describes, of the class raised in process.

    >>> error_of(b'{"type": "urn:sfumato:BudgetExceeded", "detail": "Nothing left."}', 402)
    BudgetExceeded('Nothing left.')
    """
    try:
        form = json.loads(body)
        name = str(form["type"]).removeprefix(_NAMESPACE)
        texts = {key: str(form.get(key, "")) for key in ("detail", "allowed", "remedy")}
    except (ValueError, KeyError, TypeError):
        return Failed(f"The service answered {status}.", remedy="Is this its address?")
    kind = getattr(errors, name, None) or getattr(refusals, name, Failed)
    if not isinstance(kind, type) or not issubclass(kind, SfumatoError):
        kind = Failed
    error = kind.__new__(kind)
    error.problem, error.allowed, error.remedy = texts["detail"], texts["allowed"], texts["remedy"]
    error.args = (texts["detail"],)
    if isinstance(error, Cancelled):
        error.paid = bool(form.get("charged"))
    if isinstance(error, Refused) and form.get("instead"):
        error.instead = str(form["instead"])
    return error


def _status(error: SfumatoError) -> int:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def _title(name: str) -> str:
    """The name of a class in words.

    >>> _title("BudgetExceeded")
    'Budget exceeded'
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).split()
    return " ".join([words[0], *(word.lower() for word in words[1:])])
