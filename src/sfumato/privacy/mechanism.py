# SPDX-License-Identifier: Apache-2.0
"""The promise that every mechanism makes."""

from collections.abc import Sequence
from typing import Protocol

from sfumato.exact.rational import Number
from sfumato.noise.entropy import Entropy
from sfumato.privacy.distance import Distance
from sfumato.privacy.event import Event


class Mechanism(Protocol):
    """A private answer. No mechanism object exists without all of this.

    ``event`` names the distribution that ``draw`` draws from; ``release`` takes exact
    integers to noisy ones; ``error`` bounds the noise on one of them.
    """

    def event(self, distance: Distance) -> Event:
        """What happens to data whose neighbours are at most ``distance`` apart."""
        ...

    def draw(self, cells: int, entropy: Entropy = ...) -> tuple[int, ...]:
        """The noise of ``cells`` integers; drawn before the data is read (RULES 25)."""
        ...

    def release(self, exact: Sequence[int], drawn: Sequence[int] | None = None) -> tuple[int, ...]:
        """Exact integers plus noise, drawn earlier or now."""
        ...

    def error(self, confidence: Number) -> int:
        """h with P(|noise| <= h) >= confidence."""
        ...
