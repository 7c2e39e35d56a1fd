# SPDX-License-Identifier: Apache-2.0
"""People: their names, roles, passwords, tokens and invitations.

A name is never given again, since it opens the stored answers of its account.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from sfumato.errors import WrongUse, shown
from sfumato.ledger.account_path import LONGEST_NAME, require_storable
from sfumato.ledger.names import folded, require_well_formed
from sfumato.privacy.event import Json
from sfumato.query.connect import OWNER
from sfumato.service.credentials import (
    INVITATION,
    TOKEN,
    Digests,
    Slowdown,
    hash_password,
    is_password,
    new_id,
    new_secret,
    require_password,
)
from sfumato.service.refusals import NotVisible, SignInFailed, TooMany
from sfumato.service.state import Row, State
from sfumato.service.trail import Trail, moment

_HOUR, DAY = 3600, 86_400
# the first start names nobody yet
_FIRST = ""
_INVITED = 7 * DAY
DAYS, MOST_DAYS = 90, 3660
_MOST_TOKENS = 100


class Role(Enum):
    """The role of a person in the service: owner, auditor or analyst.

    Auditors cannot ask; the others ask by accounts, whose limits an owner sets.

    Analysts may ask only by accounts whose limit an owner has set.
    """

    OWNER = "owner"
    AUDITOR = "auditor"
    ANALYST = "analyst"


@dataclass(frozen=True, slots=True)
class Person:
    """A person as stored."""

    name: str
    role: Role
    disabled: bool
    has_password: bool
    since: int

    def to_json(self) -> dict[str, Json]:
        """The person as the owner sees them."""
        return {
            "name": self.name,
            "role": self.role.value,
            "disabled": self.disabled,
            "has_password": self.has_password,
            "since": moment(self.since),
        }


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request to the service: a person, and the token that authenticated them.

    ``token`` is its id, "" for a person whom a proxy signed in; a ``read_only`` one charges and
    changes nothing.
    """

    person: Person
    token: str
    read_only: bool

    @property
    def name(self) -> str:
        return self.person.name


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just made; ``secret`` is shown once and stored nowhere."""

    id: str
    secret: str
    expires: int

    def to_json(self) -> dict[str, Json]:
        """The token as the reply that makes it shows it."""
        return {"id": self.id, "token": self.secret, "expires": moment(self.expires)}


class People:
    """The people of a service, with their passwords, tokens and invitations, in its state file.

    Guarantees:
        a name is never given again
        a revoked token opens nothing at the next request
        a password is never stored
    """

    def __init__(
        self, state: State, digests: Digests, trail: Trail, clock: Callable[[], float] = time.time
    ) -> None:
        self._state = state
        self._digests = digests
        self._trail = trail
        self._clock = clock
        self._slowdown = Slowdown()

    def everybody(self) -> list[Person]:
        """Returns all people of the service, ordered by name."""
        return [_person(row) for row in self._state.rows(f"{_PERSON} ORDER BY name")]

    def find(self, name: str) -> Person | None:
        """Returns the person with a name; None if there is none."""
        rows = self._state.rows(f"{_PERSON} WHERE name = ?", (name,))
        return _person(rows[0]) if rows else None

    def add(self, name: str, role: Role, *, by: str) -> None:
        """Adds a person to the service, without password or token; ``by`` is recorded as the actor.

        Raises:
            WrongUse: the name breaks the rules of accounts, is reserved, or was given before.
        """
        _require_name(name)
        with self._state.changing():
            if self._state.rows("SELECT 1 FROM people WHERE folded = ?", (folded(name),)):
                raise WrongUse(
                    f"The name {shown(name)} was given before.",
                    allowed="a new name: a name opens the stored answers of its account",
                )
            self._state.rows(
                "INSERT INTO people (name, folded, role, since) VALUES (?, ?, ?, ?)",
                (name, folded(name), role.value, self._now()),
            )
            self._trail.record("person_added", by, f"{name} as {role.value}")

    def invite(self, name: str, *, by: str) -> str:
        """Returns an invitation: a secret with which a person sets a password, once in a week."""
        self.require(name)
        return self._invited(name, _INVITED, by)

    def invite_first(self) -> str:
        """Returns the invitation of a new service: its bearer becomes the first owner.

        It is valid once and for an hour.
        """
        with self._state.changing():
            self._state.rows("DELETE FROM invitations WHERE person = ?", (_FIRST,))
            return self._invited(_FIRST, _HOUR, "operator")

    def _invited(self, name: str, seconds: int, by: str) -> str:
        secret = new_secret(INVITATION)
        with self._state.changing():
            self._state.rows("DELETE FROM invitations WHERE expires <= ?", (self._now(),))
            self._state.rows(
                "INSERT INTO invitations VALUES (?, ?, ?)",
                (self._digests.of(secret), name, self._now() + seconds),
            )
            self._trail.record("invited", by, name or "the first owner")
        return secret

    def accept(self, secret: str, password: object, name: str | None = None) -> Person:
        """Sets the password of the person whom this secret invites, once; returns the person.

        ``name`` is the name that a first owner chooses.

        Raises:
            NotVisible: no such invitation, or it has ended.
            WrongUse: a password of another length; a first owner without a good name.
        """
        stored = hash_password(require_password(password))
        with self._state.changing():
            digest = self._digests.of(secret)
            rows = self._state.rows(
                "SELECT person FROM invitations WHERE digest = ? AND expires > ?",
                (digest, self._now()),
            )
            if not rows:
                raise NotVisible
            (person,) = rows[0]
            if person == _FIRST:
                if name is None:
                    raise WrongUse("A first owner without a name.", allowed='"name": "olga"')
                person = name
                self.add(name, Role.OWNER, by="operator")
            self._state.rows("DELETE FROM invitations WHERE digest = ?", (digest,))
            self._state.rows("UPDATE people SET password = ? WHERE name = ?", (stored, person))
            self._trail.record("password_set", person)
        return self.require(person)

    def set_password(self, name: str, password: object, *, by: str) -> None:
        """Sets a person's password, and ends their tokens and invitations; ``by`` is the actor.

        Raises:
            NotVisible: no such person.
            WrongUse: a password of another length.
        """
        self.require(name)
        stored = hash_password(require_password(password))
        with self._state.changing():
            self._state.rows("UPDATE people SET password = ? WHERE name = ?", (stored, name))
            self._end_tokens(name)
            self._trail.record("password_set", by, name)

    def reset(self, name: str, *, by: str) -> str:
        """Deletes a person's password, tokens and invitations; returns a new invitation."""
        with self._state.changing():
            self.require(name)
            self._state.rows("UPDATE people SET password = '' WHERE name = ?", (name,))
            self._end_tokens(name)
            self._trail.record("reset", by, name)
            return self.invite(name, by=by)

    def disable(self, name: str, *, by: str) -> None:
        """Disables a person for good, so that they cannot sign in; nobody else can get the name.

        Raises:
            NotVisible: no such person.
            WrongUse: it is the last owner who can sign in.
        """
        with self._state.changing():
            person = self.require(name)
            others = self._state.rows(
                "SELECT 1 FROM people WHERE role = ? AND disabled = 0 AND name <> ?",
                (Role.OWNER.value, name),
            )
            if person.role is Role.OWNER and not others:
                raise WrongUse("The last owner.", remedy="Add another owner first.")
            self._state.rows("UPDATE people SET disabled = 1 WHERE name = ?", (name,))
            self._end_tokens(name)
            self._trail.record("disabled", by, name)

    def _end_tokens(self, name: str) -> None:
        self._state.rows("DELETE FROM tokens WHERE person = ?", (name,))
        self._state.rows("DELETE FROM invitations WHERE person = ?", (name,))

    def require(self, name: str) -> Person:
        """Returns the person with a name, who must exist and not be disabled.

        Raises:
            NotVisible: there is none.
        """
        person = self.find(name)
        if person is None or person.disabled:
            raise NotVisible
        return person

    def make_token(
        self, name: str, *, days: int = DAYS, read_only: bool = False, by: str
    ) -> NewToken:
        """Creates an access token for a person, valid for ``days``; only the result has its secret.

        Raises:
            NotVisible: no such person.
            WrongUse: the days are out of range.
            TooMany: the person has 100 tokens.
        """
        if type(days) is not int or not 1 <= days <= MOST_DAYS:
            raise WrongUse(f"A token of {shown(days)} days.", allowed=f"1 to {MOST_DAYS}")
        made = NewToken(new_id(), new_secret(TOKEN), self._now() + days * DAY)
        with self._state.changing():
            self.require(name)
            self._state.rows("DELETE FROM tokens WHERE expires <= ?", (self._now(),))
            ((count,),) = self._state.rows("SELECT COUNT(*) FROM tokens WHERE person = ?", (name,))
            if count >= _MOST_TOKENS:
                raise TooMany(f"{_MOST_TOKENS} tokens of one person.", DAY)
            self._state.rows(
                "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?)",
                (
                    self._digests.of(made.secret),
                    *(made.id, name, made.expires, int(read_only), self._now()),
                ),
            )
            self._trail.record("token_made", by, f"{made.id} of {name}")
        return made

    def end_token(self, caller: Caller, token: str) -> None:
        """Revokes one of the caller's tokens, given by its id.

        Raises:
            NotVisible: the caller has no such token.
        """
        with self._state.changing():
            ended = self._state.rows(
                "DELETE FROM tokens WHERE id = ? AND person = ? RETURNING id", (token, caller.name)
            )
            if not ended:
                raise NotVisible
            self._trail.record("token_ended", caller.name, token)

    def tokens(self, name: str) -> list[dict[str, Json]]:
        """Returns the ids, expiry times and read-only flags of a person's tokens, no secrets."""
        rows = self._state.rows(
            "SELECT id, expires, read_only FROM tokens WHERE person = ? ORDER BY since, id", (name,)
        )
        return [
            {"id": token, "expires": moment(expires), "read_only": bool(read_only)}
            for token, expires, read_only in rows
        ]

    def caller(self, secret: str) -> Caller:
        """Returns the person who owns a token, given its secret; reads the state file at each call.

        Raises:
            SignInFailed: no such token, it has ended, or its person is disabled.
        """
        rows = self._state.rows(
            "SELECT name, role, disabled, password <> '', people.since, id, read_only "
            "FROM tokens JOIN people ON name = person "
            "WHERE digest = ? AND expires > ? AND NOT disabled",
            (self._digests.of(secret), self._now()),
        )
        if not rows:
            raise SignInFailed
        *person, token, read_only = rows[0]
        return Caller(_person(tuple(person)), token, bool(read_only))

    def signed_in(self, name: str) -> Caller:
        """Returns the person, by name, whom a trusted proxy has authenticated; there is no token.

        Raises:
            SignInFailed: nobody has the name, or the person is disabled.
        """
        person = self.find(name)
        if person is None or person.disabled:
            raise SignInFailed
        return Caller(person, "", read_only=False)

    def sign_in(self, name: str, password: str, address: str) -> Person:
        """Returns the person with this name and password; repeated failures have to wait longer.

        Failures are counted by name and by address.

        Raises:
            TooMany: too many have failed; the password was not looked at.
            SignInFailed: they do not fit, whatever the reason.
        """
        keys = [f"name {folded(name)[:LONGEST_NAME]}", f"address {address}"]
        self._slowdown.require(keys)
        rows = self._state.rows(
            "SELECT password FROM people WHERE name = ? AND NOT disabled", (name,)
        )
        if not is_password(password, rows[0][0] if rows else ""):
            self._slowdown.failed(keys)
            # a name that nobody has may be a password in the wrong field
            self._trail.record("sign_in_failed", name if rows else "unknown")
            raise SignInFailed
        self._slowdown.succeeded(keys)
        self._trail.record("sign_in", name)
        return self.require(name)

    def _now(self) -> int:
        return int(self._clock())


_PERSON = "SELECT name, role, disabled, password <> '', since FROM people"


def _person(row: Row) -> Person:
    name, role, disabled, has_password, since = row
    return Person(name, Role(role), bool(disabled), bool(has_password), since)


def _require_name(name: object) -> None:
    """Refuses a name that no account could have, and that of the owner's own session."""
    if not isinstance(name, str) or not name:
        raise WrongUse(f"name={shown(name)}.", allowed="a text that is not empty")
    require_storable("name", name, LONGEST_NAME)
    require_well_formed(name)
    if folded(name) == OWNER:
        raise WrongUse(
            f"The name {shown(name)} is reserved.",
            allowed="another name: it is that of the owner's own session",
        )
