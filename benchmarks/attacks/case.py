# SPDX-License-Identifier: Apache-2.0
"""A case: what is given to each system, and what a broken and a right one do.

It imports nothing else, since it runs in the environment of each system.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

RIGHT, REFUSED, BROKEN = "right", "refused", "broken"
NOT_EXPRESSED, NOT_RUN = "cannot be expressed", "not run"
# What a system did, and what was seen.
Seen = tuple[str, str]
Try = Callable[[], Seen]


@dataclass(frozen=True)
class Case:
    """An attack.

    ``text`` is the docstring of its file: a title, then lines that begin with "Given: ",
    "Broken: ", "Right: " and "Source: ". ``systems`` has a function for each system that is
    tried. ``sources`` has the public thread or page for each system that may be broken: what
    nobody has published is not written down.
    """

    text: str | None
    systems: Mapping[str, Try]
    sources: Mapping[str, str] = field(default_factory=dict)
    not_expressed: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name of the attack."""
        return (self.text or "").partition("\n")[0].rstrip(".")

    @property
    def facts(self) -> str:
        """The other lines of the text."""
        return " ".join((self.text or "").partition("\n")[2].split())


def judged(*, holds: bool, seen: str) -> Seen:
    """Right if it holds, else broken."""
    return (RIGHT if holds else BROKEN), seen


def refused(ask: Callable[[], object], expected: type[BaseException]) -> Seen:
    """Refused if this error is raised, else broken."""
    try:
        return BROKEN, f"answered {ask()}"
    except expected as error:
        return REFUSED, type(error).__name__
