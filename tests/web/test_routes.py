# SPDX-License-Identifier: Apache-2.0
"""The table of routes: who may call what."""

import pytest

from sfumato.errors import WrongUse
from sfumato.service.people import Role
from sfumato.web.routes import ROUTES, Access, Pace, Route, Visit

OPEN = {
    ("GET", "/v1/openapi.json"), ("GET", "/setup/{invitation}"), ("POST", "/setup/{invitation}"),
    ("POST", "/v1/tokens"),
}  # fmt: skip


def test_nothing_but_signing_in_is_open() -> None:
    assert {(r.method, r.path) for r in ROUTES if r.access is Access.OPEN} == OPEN
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


def test_acts_are_the_owners_and_analysts_see_no_log() -> None:
    owners = {r.path for r in ROUTES if r.access is Access.OWNER}
    assert {"/v1/people", "/v1/datasets/{dataset}/freeze"} <= owners
    readers = {r.path for r in ROUTES if r.access is Access.READER}
    assert {"/v1/trail", "/v1/metrics", "/v1/datasets/{dataset}/log"} <= readers
    assert Role.ANALYST not in Access.READER.value and Role.AUDITOR not in Access.OWNER.value


def test_a_read_only_token_meets_no_act() -> None:
    reads = {route.path for route in ROUTES if route.reads}
    free = {f"/v1/datasets/{{dataset}}/{name}" for name in ("preview", "advise", "verify")}
    assert reads == free
    assert all(route.call is not None or route.pace is Pace.JOB or route.method in ("GET", "DELETE")
               for route in ROUTES)  # fmt: skip


def test_a_path_is_matched_by_segments() -> None:
    route = Route("GET", "/v1/x/{name}", "x", Access.OPEN)
    assert route.match(("v1", "x", "a/b")) == {"name": "a/b"}
    for other in (("v1", "x"), ("v1", "x", ""), ("v1", "y", "a"), ("v1", "x", "a", "b")):
        assert route.match(other) is None


@pytest.mark.parametrize("text", ["-1", "1.5", "x", "", "٣", "9" * 30])
def test_options_that_are_no_whole_numbers_are_refused(text: str) -> None:
    visit = Visit(None, None, {}, {"limit": text}, {})  # type: ignore[arg-type]
    with pytest.raises(WrongUse):
        visit.number("limit")
    assert visit.number("after", 7) == 7
