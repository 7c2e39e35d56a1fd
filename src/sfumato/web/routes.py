# SPDX-License-Identifier: Apache-2.0
"""The table of routes: what each takes, who may call it, and how it is paced.

``app`` obeys the table, and ``openapi`` describes it, so neither can forget a check.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import sfumato as sf
from sfumato.errors import WrongUse, shown
from sfumato.query.answer import Answer
from sfumato.service import releases
from sfumato.service.charging import Account
from sfumato.service.desk import Desk
from sfumato.service.office import Office
from sfumato.service.opening import Service
from sfumato.service.people import DAYS, Caller, Role
from sfumato.service.questions import COSTS, PRICED
from sfumato.service.refusals import NotVisible
from sfumato.web.reply import (
    FORMS,
    ROW_FORMS,
    Reply,
    as_json,
    cells_writer,
    released,
    run_writer,
    stored,
)

_MOST_NUMBER = 2**53


class Access(Enum):
    """The callers that a route admits: anyone, the signed-in, owners, or owners and auditors."""

    OPEN = None
    SIGNED_IN = frozenset(Role)
    OWNER = frozenset({Role.OWNER})
    READER = frozenset({Role.OWNER, Role.AUDITOR})


class Pace(Enum):
    """The class of work of a route, which decides in which threads it runs, and how many at once.

    A JOB is a question that may be charged and runs in the background. Passwords have threads of
    their own, so that no long reading keeps anybody from signing in.
    """

    LIGHT = "light"
    PREVIEW = "preview"
    HEAVY = "heavy"
    SIGN_IN = "sign-in"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class Visit:
    """An HTTP request that a route accepted: its caller, path variables, options and body."""

    service: Service
    caller: Caller | None
    names: Mapping[str, str]
    options: Mapping[str, str]
    form: Mapping[str, Any]
    address: str = ""
    # of a charged question: its idempotency key, and what stops it
    key: str | None = None
    stop: sf.Stop | None = None

    @property
    def who(self) -> Caller:
        """The authenticated caller; only for routes that need one."""
        assert self.caller is not None, "the table lets nobody else in"
        return self.caller

    @property
    def is_preview(self) -> bool:
        """Whether the body has "preview": true: the question is not asked, only its cost is
        returned.
        """
        is_preview = self.form.get("preview", False)
        if not isinstance(is_preview, bool):
            raise WrongUse("preview that is no true or false.")
        return is_preview

    def number(self, name: str, default: int = 0) -> int:
        """Returns a query parameter of the URL as a non-negative integer."""
        text = self.options.get(name, str(default))
        if not text.isascii() or not text.isdigit() or int(text[:20]) > _MOST_NUMBER:
            raise WrongUse(f"{name}={shown(text)}.", allowed="a whole number")
        return int(text)


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the service: its method, path, permitted callers, parameters and handler.

    ``call`` is None for routes that ``app`` handles itself.
    """

    method: str
    path: str
    does: str
    access: Access
    call: Callable[[Visit], Reply] | None = None
    fields: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    pace: Pace = Pace.LIGHT
    # whether a token that only reads may call it
    reads: bool = False
    # whether a charged route takes an idempotency key
    takes_key: bool = False
    segments: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", tuple(self.path.strip("/").split("/")))

    def match(self, segments: tuple[str, ...]) -> dict[str, str] | None:
        """Returns the path variables of a URL path, split at slashes; None if it does not match."""
        if len(segments) != len(self.segments):
            return None
        names = {}
        for own, segment in zip(self.segments, segments, strict=True):
            if own.startswith("{"):
                if not segment:
                    return None
                names[own.strip("{}")] = segment
            elif own != segment:
                return None
        return names


def _accept(visit: Visit) -> Reply:
    people, form = visit.service.people, visit.form
    person = people.accept(visit.names["invitation"], form.get("password"), form.get("name"))
    return as_json({"name": person.name, "role": person.role.value}, 201)


def _invitation(visit: Visit) -> Reply:
    return as_json({"POST": {"password": "at least 10 characters", "name": "of a first owner"}})


def _sign_in(visit: Visit) -> Reply:
    form = visit.form
    name, password = form.get("name"), form.get("password")
    if not isinstance(name, str) or not isinstance(password, str):
        raise WrongUse("A sign-in without a name and a password.")
    read_only = form.get("read_only", False)
    if not isinstance(read_only, bool):
        raise WrongUse("read_only that is no true or false.")
    people = visit.service.people
    person = people.sign_in(name, password, visit.address)
    days = form.get("days", DAYS)
    token = people.make_token(person.name, days=days, read_only=read_only, by=person.name)
    return as_json(token.to_json(), 201)


def _end_token(visit: Visit) -> Reply:
    visit.service.people.end_token(visit.who, visit.names["token"])
    return Reply(b"", 204)


def _act(act: Callable[..., Any], name: str) -> Callable[[Visit], Reply]:
    """The route of an owner's act on what its path names, with the reason of the body."""
    return lambda visit: as_json(
        act(visit.service.office, visit.who, visit.names[name], visit.form)
    )


def _person(act: Callable[..., Any]) -> Callable[[Visit], Reply]:
    """The route of an owner's act on a person."""
    return lambda visit: as_json(act(visit.service.office, visit.who, visit.names["name"]))


def _shown(show: Callable[..., Any]) -> Callable[[Visit], Reply]:
    """The route of what the desk shows free of a question."""
    return lambda visit: as_json(
        show(visit.service.desk, visit.who, visit.names["dataset"], visit.form)
    )


def _me(visit: Visit) -> Reply:
    return as_json(visit.service.desk.me(visit.who))


def _datasets(visit: Visit) -> Reply:
    return as_json(visit.service.desk.list_datasets(visit.who))


def _dataset(visit: Visit) -> Reply:
    return as_json(visit.service.desk.dataset(visit.who, visit.names["dataset"]))


def _budget(visit: Visit) -> Reply:
    desk, purpose = visit.service.desk, visit.options.get("purpose")
    return as_json(desk.budget(visit.who, visit.names["dataset"], purpose))


def _account(visit: Visit) -> Account:
    """The account that pays; within the job, so that a refusal leaves at a multiple too."""
    desk = visit.service.desk
    return desk.account(visit.who, visit.names["dataset"], visit.form.get("purpose"))


def _query(visit: Visit) -> Reply:
    desk = visit.service.desk
    return stored(desk.query(_account(visit), visit.form, key=visit.key, stop=visit.stop))


def _diagnose(visit: Visit) -> Reply:
    return released(releases.diagnose(_account(visit), visit.form))


def _marginals(visit: Visit) -> Reply:
    account = _account(visit)
    if visit.is_preview:
        return as_json(releases.preview_marginals(account, visit.form))
    form, write = cells_writer(visit.options.get("form", "json"))
    cells = releases.marginals(account, visit.form, visit.key, visit.stop, write)
    return released(replace(cells, form=form))


def _publish(visit: Visit) -> Reply:
    account = _account(visit)
    if visit.is_preview:
        return as_json(releases.preview_publication(account, visit.form))
    return released(releases.publish(account, visit.form, visit.stop))


def _run(visit: Visit) -> Reply:
    account, section, name = _account(visit), visit.names["section"], visit.names["name"]
    if visit.is_preview:
        return as_json(releases.preview_run(account, section, name))
    write = run_writer(section, visit.options.get("form", ""))
    return released(releases.run(account, section, name, visit.stop, write))


def _dummy(visit: Visit) -> Reply:
    table, _, ending = visit.names["table"].rpartition(".")
    if ending not in ROW_FORMS:
        raise NotVisible
    rows, seed = visit.number("rows", 100), visit.number("seed")
    desk, dataset = visit.service.desk, visit.names["dataset"]
    return ROW_FORMS[ending](desk.dummy(visit.who, dataset, table, rows, seed))


def _answers(visit: Visit) -> Reply:
    answers = visit.service.desk.answers(
        visit.who,
        visit.names["dataset"],
        visit.options.get("purpose"),
        before=visit.number("before"),
        limit=visit.number("limit", 50),
    )
    return as_json(answers)


def _answer(visit: Visit) -> Reply:
    charge, dot, ending = visit.names["charge"].partition(".")
    if dot and ending not in FORMS:
        raise NotVisible
    body = visit.service.desk.answer(visit.who, visit.names["dataset"], charge)
    try:
        answer = Answer(body, recalled=True)
    except (KeyError, TypeError, ValueError):
        # of another kind of question, asked in process: its bytes alone
        if dot:
            raise NotVisible from None
        return Reply(body, type="application/octet-stream")
    return FORMS[ending](answer) if dot else stored(answer)


def _request(visit: Visit) -> Reply:
    desk = visit.service.desk
    return as_json(desk.request(visit.who, visit.names["dataset"], visit.form), 201)


def _requests(visit: Visit) -> Reply:
    return as_json(visit.service.desk.requests(visit.who))


def _grant(visit: Visit) -> Reply:
    names = visit.names
    path = (names["dataset"], names["purpose"], names.get("analyst", ""))
    return as_json(visit.service.office.grant(visit.who, path, visit.form))


def _accounts(visit: Visit) -> Reply:
    return as_json(visit.service.office.accounts(visit.who, visit.names["dataset"]))


def _people(visit: Visit) -> Reply:
    return as_json(visit.service.office.people())


def _add_person(visit: Visit) -> Reply:
    return as_json(visit.service.office.add_person(visit.who, visit.form), 201)


def _log(visit: Visit) -> Reply:
    entries = visit.service.office.log(
        visit.who,
        visit.names["dataset"],
        after=visit.number("after"),
        limit=visit.number("limit", 100),
    )
    return as_json(entries)


def _head(visit: Visit) -> Reply:
    text = visit.service.office.head(visit.who, visit.names["dataset"])
    return Reply(text.encode(), type="text/plain; charset=utf-8")


def _report(visit: Visit) -> Reply:
    language = visit.options.get("language", "en")
    page = visit.service.office.report(visit.who, visit.names["dataset"], language)
    return Reply(page.encode(), type="text/html; charset=utf-8")


def _verify(visit: Visit) -> Reply:
    return as_json(visit.service.office.verify(visit.who, visit.names["dataset"], visit.form))


def _trail(visit: Visit) -> Reply:
    limit = visit.number("limit", 100)
    return as_json(visit.service.office.trail(after=visit.number("after"), limit=limit))


def _metrics(visit: Visit) -> Reply:
    return Reply(visit.service.office.metrics().encode(), type="text/plain; charset=utf-8")


RESULT = "/v1/jobs/{job}/result"
_D = "/v1/datasets/{dataset}"
_ACCOUNT = f"{_D}/accounts/{{purpose}}"
_REQUEST = "/v1/requests/{request}"
_LIMIT = ("epsilon", "delta", "reason")
_NAMED = ("purpose", "analyst", "reason")
_ANYBODY, _OWNER, _READER = Access.SIGNED_IN, Access.OWNER, Access.READER

ROUTES = (
    Route("GET", "/v1/openapi.json", "This description.", Access.OPEN),
    Route("GET", "/setup/{invitation}", "What an invitation takes.", Access.OPEN, _invitation),
    Route("POST", "/setup/{invitation}", "Set a password, once.", Access.OPEN, _accept,
          ("password", "name"), pace=Pace.SIGN_IN),
    Route("POST", "/v1/tokens", "Sign in: a token for a name and a password.", Access.OPEN,
          _sign_in, ("name", "password", "days", "read_only"), pace=Pace.SIGN_IN),
    Route("DELETE", "/v1/tokens/{token}", "End a token of one's own.", _ANYBODY, _end_token),
    Route("GET", "/v1/me", "Who one is.", _ANYBODY, _me),
    Route("GET", "/v1/datasets", "Where one has an account or a role.", _ANYBODY, _datasets),
    Route("GET", _D, "The declarations, without sources.", _ANYBODY, _dataset),
    Route("GET", f"{_D}/budget", "What one's account spent, and has left.", _ANYBODY, _budget,
          options=("purpose",)),
    Route("POST", f"{_D}/preview", "Cost and error of a question; free.", _ANYBODY,
          _shown(Desk.preview), ("purpose", *PRICED), pace=Pace.PREVIEW, reads=True),
    Route("POST", f"{_D}/advise", "Errors under other clips, costs, groupings; free.", _ANYBODY,
          _shown(Desk.advise), ("purpose", "sql", "parameters", "epsilon", "rho", "delta", "rows"),
          pace=Pace.PREVIEW, reads=True),
    Route("GET", f"{_D}/dummy/{{table}}", "Made-up rows; .csv or .parquet.", _ANYBODY, _dummy,
          options=("rows", "seed"), pace=Pace.PREVIEW),
    Route("POST", f"{_D}/query", "Ask a question; it is charged once.", _ANYBODY, _query,
          ("purpose", *PRICED, "time_limit"), ("wait",), pace=Pace.JOB, takes_key=True),
    Route("POST", f"{_D}/diagnose", "How much is clipped; charged once.", _ANYBODY, _diagnose,
          ("purpose", "sql", "parameters", "epsilon", "rho"), ("wait",), pace=Pace.JOB),
    Route("POST", f"{_D}/marginals", "Noisy marginals; charged once.", _ANYBODY, _marginals,
          ("purpose", "table", "cliques", *COSTS, "time_limit", "preview"), ("wait", "form"),
          pace=Pace.JOB, takes_key=True),
    Route("POST", f"{_D}/publish", "Several questions for one cost.", _ANYBODY, _publish,
          ("purpose", "questions", *COSTS, "weights", "sizes", "preview"), ("wait",),
          pace=Pace.JOB),
    Route("POST", f"{_D}/run/{{section}}/{{name}}", "Measure what the file declares; once.",
          _ANYBODY, _run, ("purpose", "preview"), ("wait", "form"), pace=Pace.JOB),
    Route("GET", f"{_D}/answers", "One's answers, newest first.", _ANYBODY, _answers,
          options=("purpose", "before", "limit")),
    Route("GET", f"{_D}/answers/{{charge}}", "A stored answer; also .csv .arrow .parquet .svg.",
          _ANYBODY, _answer),
    Route("POST", f"{_D}/requests", "Ask for another limit.", _ANYBODY, _request,
          ("purpose", *_LIMIT)),
    Route("GET", "/v1/requests", "One's requests; an owner's: all.", _ANYBODY, _requests),
    Route("GET", "/v1/jobs/{job}", "The state of one's question.", _ANYBODY, None,
          options=("wait",)),
    Route("GET", RESULT, "The reply that one's question would have had at once.", _ANYBODY, None,
          options=("wait",)),
    Route("DELETE", "/v1/jobs/{job}", "Stop one's question.", _ANYBODY, None),
    Route("GET", f"{_D}/accounts", "Every account.", _READER, _accounts),
    Route("PUT", _ACCOUNT, "Set the limit of a purpose.", _OWNER, _grant, _LIMIT),
    Route("PUT", f"{_ACCOUNT}/{{analyst}}", "Set the limit of an analyst.", _OWNER, _grant, _LIMIT),
    Route("POST", f"{_D}/freeze", "Refuse every new charge.", _OWNER,
          _act(Office.freeze, "dataset"), _NAMED),
    Route("POST", f"{_D}/thaw", "Accept charges again.", _OWNER,
          _act(Office.thaw, "dataset"), _NAMED),
    Route("POST", f"{_REQUEST}/approve", "Give the wanted limit.", _OWNER,
          _act(Office.approve, "request"), ("reason",)),
    Route("POST", f"{_REQUEST}/decline", "Leave the limit.", _OWNER,
          _act(Office.decline, "request"), ("reason",)),
    Route("GET", "/v1/people", "Everybody.", _OWNER, _people),
    Route("POST", "/v1/people", "Add a person.", _OWNER, _add_person, ("name", "role")),
    Route("POST", "/v1/people/{name}/disable", "Close the service to a person.", _OWNER,
          _person(Office.disable)),
    Route("POST", "/v1/people/{name}/reset", "A new invitation; tokens end.", _OWNER,
          _person(Office.reset)),
    Route("GET", f"{_D}/log", "The journal.", _READER, _log, options=("after", "limit")),
    Route("GET", f"{_D}/head", "A signed head, to be kept elsewhere.", _READER, _head),
    Route("GET", f"{_D}/report", "The report page.", _READER, _report, options=("language",),
          pace=Pace.HEAVY),
    Route("POST", f"{_D}/verify", "Replay the journal; compare heads.", _READER, _verify,
          ("heads",), pace=Pace.HEAVY, reads=True),
    Route("GET", "/v1/trail", "Sign-ins, people, tokens, refusals.", _READER, _trail,
          options=("after", "limit")),
    Route("GET", "/v1/metrics", "For Prometheus.", _READER, _metrics),
)  # fmt: skip
