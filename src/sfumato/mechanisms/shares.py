# SPDX-License-Identifier: Apache-2.0
"""A site's share of a noisy sum over sites: exact integers, one draw of noise each, and masks.

Source: Kairouz, Liu, Steinke, "The Distributed Discrete Gaussian Mechanism for Federated Learning
with Secure Aggregation" (ICML 2021). Proof: shares.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.mechanisms.masks import Masks
from sfumato.noise import DiscreteGaussian, Integers
from sfumato.privacy.distance import Distance
from sfumato.privacy.event import SharedNoise

# What the exact integers of all sites add up to at most.
_MOST = 2**62


@dataclass(frozen=True, slots=True)
class ShareMechanism:
    """A mechanism of a federated sum: releases a site's vector only as a masked share, readable
    inside its sum over at least ``least`` sites of a roster.

    The other fields are as in ``SharedNoise``.

    Guarantees:
        a share is cut so that no two move apart
        the sum of the shares is the sum of the integers and the noise
    """

    noise: DiscreteGaussian
    least: int
    colluders: int
    cells: int
    overlap: int
    roster: str

    def event(self, distance: Distance) -> SharedNoise:
        """Returns the privacy event of a share of a statistic whose sensitivity at one site is
        ``distance``.
        """
        return SharedNoise(
            self.noise,
            self.least,
            self.colluders,
            distance,
            self.cells,
            self.overlap,
            self.roster,
        )

    def release(
        self,
        exact: Integers | Sequence[int],
        drawn: Integers,
        masks: Masks,
        step: int,
    ) -> bytes:
        """Returns a site's share for the sum: exact integers plus noise plus masks, modulo 2^64.

        The bytes are little-endian, 8 for each integer. ``drawn`` is noise that was sampled before
        the data was read, with at least one draw for each integer. ``step`` numbers the sums of a
        run.

        Raises:
            InvalidDeclaration: masks of another roster or of too few sites; more integers than
                ``cells``, or than draws.
        """
        if masks.roster != self.roster or masks.sites < self.least:
            raise InvalidDeclaration(
                f"Masks of {masks.sites} sites.", allowed=f"{self.least} or more of the roster"
            )
        count = len(exact)
        if count > min(self.cells, len(drawn)) or drawn.dtype != np.int64:
            raise InvalidDeclaration(f"{count} integers.", allowed=f"at most {self.cells}")
        most = _MOST // masks.sites
        if isinstance(exact, np.ndarray) and exact.dtype == np.int64:
            cut = np.clip(exact, -most, most)
        else:
            cut = np.array([max(-most, min(most, value)) for value in exact], np.int64)
        # far below 2^63: noise has a sigma of at most 2^50
        return masks.masked(step, cut + drawn[:count])
