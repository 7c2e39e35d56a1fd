# SPDX-License-Identifier: Apache-2.0
"""People: names that are given once, tokens that end, invitations that work once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.errors import SfumatoError, WrongUse
from sfumato.service.opening import Directory
from sfumato.service.people import DAY, Role
from sfumato.service.refusals import NotVisible, SignInFailed, TooMany

PASSWORD = "correct horse"


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def directory(tmp_path: Path, clock: Clock) -> Iterator[Directory]:
    with Directory(tmp_path / "service.db", clock) as opened:
        for name, role in (("olga", Role.OWNER), ("ann", Role.ANALYST)):
            opened.people.add(name, role, by="test")
        yield opened


def test_a_name_is_never_given_again(directory: Directory) -> None:
    directory.people.disable("ann", by="olga")
    for name in ("ann", "Ann", "ANN"):
        with pytest.raises(WrongUse, match="given before"):
            directory.people.add(name, Role.ANALYST, by="olga")


@pytest.mark.parametrize("name", ["owner", "Owner", "", " ann", "a\u0430", "x" * 300, "a\nb", 7])
def test_a_name_that_no_account_could_have_is_refused(directory: Directory, name: object) -> None:
    with pytest.raises(WrongUse):
        directory.people.add(name, Role.ANALYST, by="olga")  # type: ignore[arg-type]


def test_a_revoked_token_opens_nothing_at_the_next_request(
    directory: Directory, clock: Clock
) -> None:
    people = directory.people
    one, two = (
        people.make_token("ann", days=2, read_only=flag, by="olga") for flag in (False, True)
    )
    caller = people.caller(one.secret)
    assert (caller.name, caller.token, caller.read_only) == ("ann", one.id, False)
    assert people.caller(two.secret).read_only
    people.end_token(caller, one.id)
    for secret in (one.secret, "sfu_", "", two.secret + "x", one.id):
        with pytest.raises(SignInFailed):
            people.caller(secret)
    clock.now += 2 * DAY
    with pytest.raises(SignInFailed):
        people.caller(two.secret)


def test_nobody_ends_the_token_of_another(directory: Directory) -> None:
    people = directory.people
    token = people.make_token("ann", by="olga")
    olga = people.caller(people.make_token("olga", by="olga").secret)
    with pytest.raises(NotVisible):
        people.end_token(olga, token.id)
    assert people.caller(token.secret).name == "ann"


def test_who_is_disabled_has_no_token_left(directory: Directory) -> None:
    people = directory.people
    token, invitation = people.make_token("ann", by="olga"), people.invite("ann", by="olga")
    people.disable("ann", by="olga")
    with pytest.raises(SignInFailed):
        people.caller(token.secret)
    with pytest.raises(NotVisible):
        people.accept(invitation, PASSWORD)
    with pytest.raises(NotVisible):
        people.make_token("ann", by="olga")


def test_the_last_owner_stays(directory: Directory) -> None:
    with pytest.raises(WrongUse, match="last owner"):
        directory.people.disable("olga", by="olga")
    directory.people.add("oscar", Role.OWNER, by="olga")
    directory.people.disable("olga", by="oscar")


def test_an_invitation_sets_a_password_once(directory: Directory, clock: Clock) -> None:
    people = directory.people
    secret = people.invite("ann", by="olga")
    with pytest.raises(WrongUse):
        people.accept(secret, "short")
    assert people.accept(secret, PASSWORD).name == "ann"
    with pytest.raises(NotVisible):
        people.accept(secret, PASSWORD)
    assert people.sign_in("ann", PASSWORD, "here").name == "ann"
    late = people.invite("ann", by="olga")
    clock.now += 7 * DAY
    with pytest.raises(NotVisible):
        people.accept(late, PASSWORD)


def test_the_first_start_makes_one_owner(tmp_path: Path) -> None:
    with Directory(tmp_path / "first.db") as opened:
        people = opened.people
        unused, secret = people.invite_first(), people.invite_first()
        with pytest.raises(NotVisible):
            people.accept(unused, PASSWORD, "eve")
        with pytest.raises(WrongUse, match="without a name"):
            people.accept(secret, PASSWORD)
        assert people.accept(secret, PASSWORD, "olga").role is Role.OWNER
        with pytest.raises(NotVisible):
            people.accept(secret, PASSWORD, "eve")


def test_a_password_is_never_stored(directory: Directory, tmp_path: Path) -> None:
    people = directory.people
    people.set_password("ann", PASSWORD, by="olga")
    token = people.make_token("ann", by="olga")
    people.sign_in("ann", PASSWORD, "here")
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert PASSWORD.encode() not in files
    assert token.secret.encode() not in files and token.secret[4:].encode() not in files


def test_wrong_sign_ins_are_alike_and_slowed_by_name_and_address(directory: Directory) -> None:
    people = directory.people
    people.set_password("ann", PASSWORD, by="olga")
    texts = set()
    for name, password, address in (("ann", "wrong horse", "a"), ("eve", PASSWORD, "b"),
                                    ("olga", "", "c"), ("", "", "d")):  # fmt: skip
        with pytest.raises(SignInFailed) as refusal:
            people.sign_in(name, password, address)
        texts.add(str(refusal.value))
    assert len(texts) == 1
    # the trail has no name that nobody has: it may be a password
    kinds = [(each["kind"], each["who"]) for each in directory.trail.entries()]
    assert kinds[-4:] == [("sign_in_failed", who) for who in ("ann", "unknown", "olga", "unknown")]
    for number in range(3):
        with pytest.raises(SignInFailed):
            people.sign_in("ann", "wrong horse", f"e{number}")
    with pytest.raises(TooMany):
        people.sign_in("ann", PASSWORD, "elsewhere")


def test_a_reset_ends_password_and_tokens(directory: Directory) -> None:
    people = directory.people
    people.set_password("ann", PASSWORD, by="olga")
    token = people.make_token("ann", by="olga")
    secret = people.reset("ann", by="olga")
    with pytest.raises(SignInFailed):
        people.caller(token.secret)
    with pytest.raises(SignInFailed):
        people.sign_in("ann", PASSWORD, "here")
    people.accept(secret, "another horse")
    assert people.sign_in("ann", "another horse", "here").has_password


@pytest.mark.parametrize("days", [0, -1, 4000, True, "7"])
def test_a_token_has_an_end(directory: Directory, days: object) -> None:
    with pytest.raises(SfumatoError):
        directory.people.make_token("ann", days=days, by="olga")  # type: ignore[arg-type]


def test_tokens_of_one_person_are_bounded(directory: Directory) -> None:
    for _ in range(100):
        directory.people.make_token("ann", by="ann")
    with pytest.raises(TooMany):
        directory.people.make_token("ann", by="ann")
    assert len(directory.people.tokens("ann")) == 100
