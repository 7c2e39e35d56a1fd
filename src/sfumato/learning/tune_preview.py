# SPDX-License-Identifier: Apache-2.0
"""The result of ``preview_tune``: the cost and noise of a tuning, from declarations, at no cost."""

from dataclasses import dataclass, field

from sfumato.noise import NegativeBinomial
from sfumato.query.cost import Cost
from sfumato.query.left_after import Balances, left_now

# Laws have a mean of at most 1,000 runs.
_MOST = 10**6


@dataclass(frozen=True, slots=True)
class TunePreview:
    """The plan of a tuning: the distribution of the secret number of runs, and the noise of each
    run.

    ``noises`` has, per recipe, the standard deviation of its released numbers, in examples.
    ``score`` is that of the count of right predictions by which models are compared, in rows.

    >>> law = NegativeBinomial(0, "0.0246")
    >>> TunePreview(Cost("1", "0.5", "0", ()), law, (4.0, 90.0), 22.6)
    10.7 runs on average: at most 4 in half of all tunings, at most 44 in 95% of them
    noise of each run: 4.0 examples by recipe 0, 90.0 by recipe 1; of its score: 22.6 rows
    cost of all runs: epsilon = 1
    nothing was charged
    """

    cost: Cost
    law: NegativeBinomial
    noises: tuple[float, ...]
    score: float
    balances: Balances | None = field(default=None, repr=False, compare=False)

    @property
    def mean(self) -> float:
        """The mean number of runs."""
        return float(self.law.mean.upper)

    def runs(self, share: float) -> int:
        """Returns the number of runs that a tuning does not exceed with probability ``share``."""
        if not 0 <= share < 1:
            raise ValueError("a share from 0 to below 1")
        shape, stop = float(self.law.shape), float(self.law.stop)
        chance = float(self.law.pmf(1).upper)
        total = chance
        for number in range(1, _MOST):
            if total >= share:
                return number
            chance *= (1 - stop) * (number + shape) / (number + 1)
            total += chance
        return _MOST

    def __repr__(self) -> str:
        half, most = self.runs(0.5), self.runs(0.95)
        noises = [f"{noise:,.1f} by recipe {place}" for place, noise in enumerate(self.noises)]
        noises[0] = noises[0].replace(" by", " examples by")
        mean = f"{self.mean:.1f} runs on average"
        lines = [
            f"{mean}: at most {half} in half of all tunings, at most {most} in 95% of them",
            f"noise of each run: {', '.join(noises)}; of its score: {self.score:,.1f} rows",
            f"cost of all runs: {self.cost}",
            *left_now(self.balances, self.cost.charge),
            "nothing was charged",
        ]
        return "\n".join(lines)
