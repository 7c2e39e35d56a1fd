# SPDX-License-Identifier: Apache-2.0
"""A proxy's headers: only from a declared address, only with the secret, only once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.service.refusals import SignInFailed
from sfumato.service.settings import Settings, SignIn
from sfumato.web.proxy import Proxies
from tests.contracts.clinic import COUNT, QUERY, Clinic

SECRET = "0123456789abcdef" * 2
PROXY = "10.0.0.5"
SIGN_IN = SignIn("X-Remote-User", SECRET.encode())
ANN = {"X-Remote-User": "ann", "X-Sfumato-Secret": SECRET}
ME = "/v1/me"


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    with Clinic(tmp_path, behind_proxy=(PROXY,), sign_in=SIGN_IN) as opened:
        opened.peer = PROXY
        yield opened


def test_whom_the_proxy_names_asks_in_their_own_account(clinic: Clinic) -> None:
    me = clinic.call(None, "GET", ME, None, ANN)
    assert me.status == 200 and me.json["name"] == "ann" and me.json["token"] == ""
    form = {"purpose": "study", "sql": COUNT, "epsilon": "0.25"}
    assert clinic.call(None, "POST", QUERY, form, ANN).status == 200
    assert clinic.spent("ann") > 0 and clinic.spent("bob") == 0
    assert clinic.call(None, "GET", "/v1/people", None, ANN).status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Remote-User": "olga"},
        {"X-Sfumato-Secret": SECRET},
        {**ANN, "X-Sfumato-Secret": SECRET[:-1]},
        {**ANN, "X-Sfumato-Secret": ""},
        {**ANN, "X-Remote-User": "nobody"},
        {**ANN, "X-Remote-User": ""},
        {**ANN, "X-Remote-User": "ANN"},
        {**ANN, "X-Remote-User": "ann\u00e9"},
        {**ANN, "X-Remote-User ": "olga"},
        {**ANN, "X-Sfumato-Secret ": SECRET},
    ],
)
def test_a_header_without_the_secret_or_a_known_name_is_refused(
    clinic: Clinic, headers: dict[str, str]
) -> None:
    unsigned = clinic.call(None, "GET", ME)
    got = clinic.call(None, "GET", ME, None, headers)
    assert got.status == unsigned.status == 401 and got.body == unsigned.body


def test_a_sign_in_header_counts_only_from_a_declared_address_and_with_the_secret(
    clinic: Clinic,
) -> None:
    for peer in ("10.0.0.6", "127.0.0.1", "", "unix:"):
        clinic.peer = peer
        forwarded = {**ANN, "X-Forwarded-For": PROXY}
        assert clinic.call(None, "GET", ME, None, forwarded).status == 401
        assert clinic.call("ann", "GET", ME, None, forwarded).status == 401
        assert clinic.call("ann", "GET", ME).status == 200


def test_a_second_name_behind_many_headers_is_refused() -> None:
    proxies = Proxies(Settings((), Path("s"), behind_proxy=(PROXY,), sign_in=SIGN_IN))
    sent = [(b"x-remote-user", b"olga"), (b"x-sfumato-secret", SECRET.encode())]
    assert proxies.name(PROXY, sent) == "olga"
    with pytest.raises(SignInFailed):
        proxies.name(PROXY, [*sent, *[(b"x-a", b"")] * 200, (b"X-Remote-User", b"ann")])
    with pytest.raises(SignInFailed):
        proxies.name(PROXY, [(b"x-remote-user", b"\xff"), sent[1]])


def test_without_a_declared_header_none_signs_in(tmp_path: Path) -> None:
    with Clinic(tmp_path, behind_proxy=(PROXY,)) as clinic:
        clinic.peer = PROXY
        assert clinic.call(None, "GET", ME, None, ANN).status == 401


def test_a_token_beside_the_header_must_be_of_the_same_person(clinic: Clinic) -> None:
    assert clinic.call("bob", "GET", ME, None, ANN).status == 401
    reading = clinic.service.people.make_token("ann", read_only=True, by="test").secret
    form = {"purpose": "study", "sql": COUNT, "epsilon": "0.25"}
    assert clinic.call(reading, "GET", ME, None, ANN).status == 200
    assert clinic.call(reading, "POST", QUERY, form, ANN).status == 403
    # what the proxy's own sign-in left there is no token
    basic = {**ANN, "Authorization": "Basic YW5uOmE="}
    assert clinic.call(None, "GET", ME, None, basic).status == 200


def test_a_disabled_person_is_refused_at_the_next_request(clinic: Clinic) -> None:
    clinic.service.people.disable("ann", by="test")
    assert clinic.call(None, "GET", ME, None, ANN).status == 401


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"Origin": "https://elsewhere.example"}, 403),
        ({"Origin": "null", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "https://clinic.example", "Sec-Fetch-Site": "same-origin"}, 200),
        ({}, 200),
    ],
)
def test_a_page_of_another_site_changes_and_charges_nothing(
    clinic: Clinic, sent: dict[str, str], status: int
) -> None:
    form = {"purpose": "study", "sql": COUNT, "epsilon": "0.25"}
    assert clinic.call(None, "POST", QUERY, form, {**ANN, **sent}).status == status
    assert (clinic.spent("ann") > 0) is (status == 200)


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        (PROXY, b"192.0.2.1", "192.0.2.1"),
        (PROXY, b"198.51.100.9, 192.0.2.1", "192.0.2.1"),
        (PROXY, b"192.0.2.1, 10.0.0.5", "192.0.2.1"),
        (PROXY, b"10.0.0.5", PROXY),
        (PROXY, b"anything", PROXY),
        (PROXY, b"", PROXY),
        ("192.0.2.7", b"192.0.2.1", "192.0.2.7"),
    ],
)
def test_the_address_is_the_last_that_is_no_proxy(
    peer: str, forwarded: bytes, address: str
) -> None:
    proxies = Proxies(Settings((), Path("s"), behind_proxy=(PROXY,)))
    assert proxies.address(peer, [(b"x-forwarded-for", forwarded)]) == address
