# SPDX-License-Identifier: Apache-2.0
"""Refusals of the service itself: who may not, what is not there, what is too much."""

from sfumato.errors import Failed, Refused


class SignInFailed(Refused):
    """No such token, or a name and password that do not fit; never says which."""

    def __init__(self) -> None:
        super().__init__(
            "You are not signed in.", remedy="Send a token: Authorization: Bearer sfu_..."
        )


class NotVisible(Refused):
    """What is not there, and what the caller may not see: the same words for both."""

    def __init__(self) -> None:
        super().__init__("There is no such thing here.", remedy="See GET /v1/datasets.")


class NotAllowed(Refused):
    """The caller's role or token does not do this."""


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
    """Too much at once or in a minute; nothing was begun. ``after`` is in seconds."""

    def __init__(self, problem: str, after: int = 1) -> None:
        self.after = after
        super().__init__(problem, remedy=f"Come again in {after} seconds.")


class Stopping(Failed):
    """The service is stopping and begins nothing new."""

    def __init__(self) -> None:
        super().__init__("The service is stopping; nothing was begun.", remedy="Ask later.")


class StateFailed(Failed):
    """The file of people and tokens cannot be read or written."""
