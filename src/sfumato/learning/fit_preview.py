# SPDX-License-Identifier: Apache-2.0
"""What a fit would cost and how noisy it would be, from declarations alone; free."""

from dataclasses import dataclass

from sfumato.query.cost import Cost


@dataclass(frozen=True, slots=True)
class Preview:
    """The plan of a fit.

    ``noise`` is the standard deviation of each number of a release, in examples (persons whose rows
    add their most). ``checkpoints`` is 1 for a recipe that measures once.

    >>> Preview(Cost("1", "0.5", "0", ()), 51, 4, 20, 140.2)
    51 releases of 20 numbers, each with noise of 140.2 examples
    4 checkpoints
    cost: epsilon = 1
    nothing was charged
    """

    cost: Cost
    releases: int
    checkpoints: int
    numbers: int
    noise: float

    def __repr__(self) -> str:
        release = f"{self.releases:,} releases of {self.numbers:,} numbers"
        noise = f"each with noise of {self.noise:,.1f} examples"
        pieces = f"{self.checkpoints} checkpoints"
        return f"{release}, {noise}\n{pieces}\ncost: {self.cost}\nnothing was charged"
