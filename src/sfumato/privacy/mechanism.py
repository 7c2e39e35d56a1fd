# SPDX-License-Identifier: Apache-2.0
"""The interface of an additive mechanism."""

from collections.abc import Sequence
from typing import Protocol

from sfumato.exact.rational import Number
from sfumato.noise.entropy import SYSTEM, Entropy
from sfumato.privacy.distance import Distance
from sfumato.privacy.event import Event


class Mechanism(Protocol):
    """The interface of a mechanism that adds noise to integers, and states its privacy event and
    its error.

    ``event`` describes the distribution that ``draw`` samples from, for the accountant.

    >>> from sfumato.noise import DiscreteLaplace
    >>> from sfumato.privacy.event import AdditiveNoise
    >>> class Plain:
    ...     noise = DiscreteLaplace(2)
    ...     def event(self, distance):
    ...         return AdditiveNoise(self.noise, distance)
    ...     def draw(self, cells, entropy=SYSTEM):
    ...         return tuple(self.noise.sample(cells, entropy).tolist())
    ...     def release(self, exact, drawn=None):
    ...         drawn = self.draw(len(exact)) if drawn is None else drawn
    ...         return tuple(value + noise for value, noise in zip(exact, drawn))
    ...     def error(self, confidence):
    ...         return self.noise.half_width(confidence)
    >>> mechanism: Mechanism = Plain()
    >>> mechanism.release([10, 20], drawn=[-1, 2]), mechanism.error("0.95")
    ((9, 22), 6)
    """

    def event(self, distance: Distance) -> Event:
        """Returns the privacy event of a release of a statistic whose sensitivity is
        ``distance``.
        """
        ...

    def draw(self, cells: int, entropy: Entropy = SYSTEM) -> tuple[int, ...]:
        """Samples noise for ``cells`` integers, before the data is read (RULES 25)."""
        ...

    def release(self, exact: Sequence[int], drawn: Sequence[int] | None = None) -> tuple[int, ...]:
        """Returns exact integers plus noise: ``drawn``, or a new sample."""
        ...

    def error(self, confidence: Number) -> int:
        """Returns h with P(|noise| <= h) >= confidence, for one integer."""
        ...
