# SPDX-License-Identifier: Apache-2.0
"""The result of ``preview``: the cost and noise of a fit, computed from declarations; costs no
budget.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sfumato.query.cost import Cost
from sfumato.query.left_after import Balances, left_now
from sfumato.query.paid_series import PaidSeries

# Bytes of memory for each value of a row; measured at 36 to 54 with a million rows of ten.
_BYTES = 50
_MILLION, _GB = 10**6, 10**9
_PART = "in the total"
_TOO_WIDE = (
    "ends far beyond the values put all of them into one bin or at one end: declare nearer ones"
)


@dataclass(frozen=True, slots=True)
class Preview:
    """The plan of a fit: its cost, its releases and their noise.

    ``noise`` is the standard deviation of each released number, in examples (units whose rows add
    their most). ``checkpoints`` is 1 for a recipe with a single task. ``values`` is the number of
    values of a row; ``memory`` follows from it roughly, and a network needs more. ``paid`` is the
    charge of this run if it was begun before, in which case it costs nothing. ``ranges`` says
    between which declared ends each number is read, and how wide its bins are.

    >>> Preview(Cost("1", "0.5", "0", ()), 51, 4, 20, 140.2, 11)
    51 releases of 20 numbers, each with noise of 140.2 examples
    4 checkpoints
    memory: about 0.6 GB for a million rows
    cost: epsilon = 1
    nothing was charged
    """

    cost: Cost
    releases: int
    checkpoints: int
    numbers: int
    noise: float
    values: int = 1
    paid: PaidSeries | None = None
    balances: Balances | None = field(default=None, repr=False, compare=False)
    ranges: tuple[str, ...] = ()

    @property
    def memory(self) -> int:
        """About how many bytes of memory a fit needs for a million rows."""
        return _BYTES * _MILLION * self.values

    def __repr__(self) -> str:
        release = f"{self.releases:,} releases of {self.numbers:,} numbers"
        noise = f"each with noise of {self.noise:,.1f} examples"
        lines = [f"{release}, {noise}", f"{self.checkpoints} checkpoints"]
        lines.append(f"memory: about {self.memory / _GB:,.1f} GB for a million rows")
        if self.ranges:
            lines.append(f"numbers are read between: {', '.join(self.ranges)}")
            lines.append(_TOO_WIDE)
        lines.append(f"cost: {self.cost}")
        lines += [f"of it: {item['release']}" for item in self.cost.items if _is_part(item)]
        if self.paid is not None:
            lines.append(f"paid before: {self.paid}")
        else:
            lines += left_now(self.balances, self.cost.charge)
        return "\n".join([*lines, "nothing was charged"])


def part(release: str, sensitivity: str) -> dict[str, str]:
    """Returns an item of a cost report that describes one part of a release; its cost is contained
    in that of the release.

    >>> part("a count", "4")["rho"]
    'in the total'
    """
    priced = dict.fromkeys(("mechanism", "parameter"), "of the release")
    return priced | {
        "release": release,
        "sensitivity": sensitivity,
        "epsilon": _PART,
        "rho": _PART,
        "delta": "0",
    }


def _is_part(item: Mapping[str, str]) -> bool:
    """Whether an item of a cost was made by ``part``."""
    return item["epsilon"] == _PART
