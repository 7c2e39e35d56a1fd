# SPDX-License-Identifier: Apache-2.0
"""What a question costs, item by item."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.accounting.account import account
from sfumato.accounting.filter import DELTA_UNIT, charge_for
from sfumato.exact.rational import decimal_text
from sfumato.ledger.balance import units_text
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.plan.show import title
from sfumato.plan.status import Part
from sfumato.privacy.event import AdditiveNoise, Composed, Json


@dataclass(frozen=True, slots=True)
class Cost:
    """The charge (exact decimals, as the ledger books it) and its items.

    ``epsilon`` is "unbounded" where Gaussian noise has no pure loss; ``rho`` is what the
    zCDP gate books.
    """

    epsilon: str
    rho: str
    delta: str
    items: tuple[dict[str, str], ...]

    def to_json(self) -> dict[str, Json]:
        """As in the JSON of an answer."""
        return {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta, "items": [dict(i) for i in self.items]}

    def __str__(self) -> str:
        return f"rho = {self.rho}" if self.epsilon == "unbounded" else f"epsilon = {self.epsilon}"


def cost_of(parts: tuple[Part, ...], events: tuple[AdditiveNoise, ...]) -> Cost:
    """The cost of releasing ``parts`` through ``events``."""
    charge = charge_for(account(Composed(events)))
    items = tuple(_item(part, event) for part, event in zip(parts, events, strict=True))
    return Cost(
        units_text(charge.epsilon), units_text(charge.rho), decimal_text(Fraction(charge.delta, DELTA_UNIT)), items
    )


def _item(part: Part, event: AdditiveNoise) -> dict[str, str]:
    profile = account(event)
    noise = event.noise
    laplace = isinstance(noise, DiscreteLaplace)
    assert isinstance(noise, DiscreteLaplace | DiscreteGaussian), "what a question is planned with"
    return {
        "release": title(part.aggregate),
        "mechanism": "discrete Laplace" if laplace else "discrete Gaussian",
        "parameter": f"scale {noise.scale}" if isinstance(noise, DiscreteLaplace) else f"sigma^2 {noise.sigma_squared}",
        "sensitivity": f"{'L1' if laplace else 'squared L2'} {event.distance.value} steps",
        "epsilon": "unbounded" if profile.epsilon is None else decimal_text(profile.epsilon),
        "rho": decimal_text(profile.rho),
    }
