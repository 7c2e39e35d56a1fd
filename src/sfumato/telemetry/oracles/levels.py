# SPDX-License-Identifier: Apache-2.0
"""The distribution of a number: each device reports its number at one level of detail.

Level 0 has the numbers; a node of each level above joins ``branching`` neighbours of the level
below. A device draws a level before it reads its number, and reports its node there. The share of
devices below any number is then a sum of few nodes. Source: Cormode, Kulkarni, Srivastava,
"Answering Range Queries Under Local Differential Privacy" (VLDB 2019). Proof: choice.proof.md.
"""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias, overload

from sfumato.errors import InvalidDeclaration
from sfumato.exact.rational import Number, positive
from sfumato.noise import Integers
from sfumato.telemetry.oracles.bit import BitOracle, bit
from sfumato.telemetry.oracles.category import CategoryOracle, category
from sfumato.telemetry.oracles.choice import ChoiceOracle
from sfumato.telemetry.oracles.oracle import require_domain
from sfumato.telemetry.oracles.unary import UnaryOracle, unary

# Oracles of which the variance of a sum of estimates is known exactly.
LevelOracle: TypeAlias = CategoryOracle | UnaryOracle | BitOracle
_MOST_LEVELS = 64
# A level of more nodes reports one bit, instead of a bit for each node.
_MOST_BITS = 2048


@dataclass(frozen=True, slots=True)
class LevelsOracle(ChoiceOracle[LevelOracle]):
    """The local mechanism for a distribution of numbers: reports, at a random level of a tree over
    the numbers, the node that contains the device's number.

    ``parts`` has the oracle of each level; each node has ``branching`` children.

    >>> oracle = levels(1024, 1)
    >>> [part.values for part in oracle.parts], oracle.size
    ([1024, 256, 64, 16, 4], 129)
    """

    kind: ClassVar[str] = "levels"
    values: int
    branching: int
    parts: tuple[LevelOracle, ...]

    def __post_init__(self) -> None:
        require_domain(self.values)
        if type(self.branching) is not int or not 2 <= self.branching <= 256:
            raise InvalidDeclaration(f"branching={self.branching}.", allowed="2 to 256")
        known = all(isinstance(part, LevelOracle) for part in self.parts)
        nodes = [part.values for part in self.parts]
        if not known or nodes != sizes(self.values, self.branching):
            raise InvalidDeclaration(
                "Parts that are not the levels of the numbers.",
                allowed="an oracle of the nodes of each level, the numbers first",
            )

    @overload
    def node(self, value: int, place: int) -> int: ...
    @overload
    def node(self, value: Integers, place: int) -> Integers: ...
    def node(self, value: int | Integers, place: int) -> int | Integers:
        """Returns the tree node that contains a number at the level ``place``; also for an array of
        numbers.
        """
        width: int = self.branching**place
        return value // width


def sizes(values: int, branching: int) -> list[int]:
    """Returns the number of nodes of each level, down to the last that has at most ``branching``.

    >>> sizes(10, 4)
    [10, 3]
    """
    found = [values]
    while found[-1] > branching and len(found) < _MOST_LEVELS:
        found.append(-(-found[-1] // branching))
    return found


def levels(values: int, epsilon: Number, branching: int = 4) -> LevelsOracle:
    """Returns the local mechanism for a distribution of ``values`` numbers, with at most this
    epsilon.

    >>> levels(100, 1).branching
    4
    """
    require_domain(values)
    exact = positive("epsilon", epsilon)
    parts = []
    for nodes in sizes(values, branching):
        makers = (category, unary) if nodes <= _MOST_BITS else (bit,)
        made: list[LevelOracle] = [maker(nodes, exact) for maker in makers]
        parts.append(min(made, key=_spread))
    return LevelsOracle(values, branching, tuple(parts))


def _spread(oracle: LevelOracle) -> float:
    """Returns the variance of the estimate of an absent node, for one report."""
    other = oracle.other
    apart = oracle.own - other
    return float(other * (1 - other) / apart**2)
