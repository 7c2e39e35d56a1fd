# SPDX-License-Identifier: Apache-2.0
"""What a declared proxy says of a request: from which address it came, and who signed in there."""

import hmac
import ipaddress
import logging
from collections.abc import Iterable, Mapping

from sfumato.service.people import Caller, People
from sfumato.service.refusals import NotAllowed, SignInFailed
from sfumato.service.settings import PROOF_HEADER, Settings

_LOG = logging.getLogger("sfumato.service")


class Proxies:
    """Reads the headers by which a trusted proxy states a client's address and signed-in name.

    Headers from any other address are ignored or refused.

    Guarantees:
        a sign-in header counts only from a declared address and with the secret
        a page of another site changes and charges nothing
    """

    def __init__(self, settings: Settings) -> None:
        self._addresses = frozenset(map(ipaddress.ip_address, settings.behind_proxy))
        self._sign_in = settings.sign_in

    def address(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Returns the client's address: the last in X-Forwarded-For that is no declared proxy."""
        if not self._is_proxy(peer):
            return peer
        lists = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
        for entry in reversed(",".join(lists).split(",")):
            address = entry.strip()
            if not _is_address(address):
                return peer
            if not self._is_proxy(address):
                return address
        return peer

    def name(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """Returns the user name that a trusted proxy authenticated; None without a sign-in header.

        Raises:
            SignInFailed: the header comes from elsewhere, without the secret, or twice.
        """
        if self._sign_in is None:
            return None
        wanted = self._sign_in.header.lower().encode(), PROOF_HEADER.lower().encode()
        # all headers: one beyond the number that is read elsewhere could hide a second name
        names, secrets = (
            [value for key, value in headers if key.lower() == header] for header in wanted
        )
        if not names:
            return None
        is_sent = len(secrets) == 1 and hmac.compare_digest(secrets[0], self._sign_in.secret)
        if len(names) != 1 or not is_sent or not self._is_proxy(peer):
            _LOG.warning("a sign-in header was refused")
            raise SignInFailed
        try:
            return names[0].decode("utf-8")
        except UnicodeDecodeError:
            raise SignInFailed from None

    def _is_proxy(self, address: str) -> bool:
        # without a declared proxy no address needs to be read
        if not self._addresses or not _is_address(address):
            return False
        return ipaddress.ip_address(address) in self._addresses


def require_caller(
    people: People, name: str | None, method: str, headers: Mapping[str, str]
) -> Caller:
    """Returns the authenticated sender of a request: by a bearer token, or by a trusted proxy.

    ``name`` is the one from the proxy. With both, the token's rights hold, and both must name the
    same person.

    Raises:
        SignInFailed: neither, or they name two people.
        NotAllowed: a page of another site makes the request through a browser.
    """
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        if not token.isascii():
            raise SignInFailed
        caller = people.caller(token.strip())
        if name is not None and name != caller.name:
            raise SignInFailed
        return caller
    if name is None:
        raise SignInFailed
    # a browser sends along what the proxy signs in with, also for a page of another site
    is_browser = "origin" in headers or "sec-fetch-site" in headers
    if method != "GET" and is_browser and headers.get("sec-fetch-site") != "same-origin":
        raise NotAllowed("A page of another site does nothing here.")
    return people.signed_in(name)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
