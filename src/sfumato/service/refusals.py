# SPDX-License-Identifier: Apache-2.0
"""Refusals of the service itself: who may not, what is not there, what is too much."""

from sfumato.errors import Failed, Refused


class SignInFailed(Refused):
    """The token is unknown, or name and password do not match; the message never says which."""

    def __init__(self) -> None:
        super().__init__(
            "You are not signed in.", remedy="Send a token: Authorization: Bearer sfu_..."
        )


class NotVisible(Refused):
    """What was requested does not exist, or the caller may not see it; the message is the same."""

    def __init__(self) -> None:
        super().__init__("There is no such thing here.", remedy="See GET /v1/datasets.")


class NotAllowed(Refused):
    """The caller's role or token does not permit this operation of the service."""


class NoAccount(Refused):
    """The caller has no account with a limit of its own for this purpose."""

    def __init__(self) -> None:
        super().__init__(
            "You have no account for this purpose.",
            allowed="the purposes that GET /v1/datasets lists",
            remedy="Ask the owner for a limit.",
        )


class LimitChanged(Refused):
    """A request that cannot be approved: the account has another limit than when it was made."""


class TooMany(Refused):
    """Too many questions at once, or too many attempts; nothing was started, nothing charged.

    ``after`` is the number of seconds to wait.
    """

    def __init__(self, problem: str, after: int = 1) -> None:
        self.after = after
        super().__init__(problem, remedy=f"Come again in {after} seconds.")


class ResultDropped(Refused):
    """The result of a finished question is no longer held for it; it is paid and stored."""

    def __init__(self) -> None:
        super().__init__(
            "The result is no longer held.", remedy="Ask the same question again: it is paid."
        )


class Stopping(Failed):
    """The service is shutting down and starts no further questions."""

    def __init__(self) -> None:
        super().__init__("The service is stopping; nothing was begun.", remedy="Ask later.")


class StateFailed(Failed):
    """The service's state file, with people and tokens, cannot be read or written."""
