# SPDX-License-Identifier: Apache-2.0
"""Several attributes of a device: each report is about one of them, drawn at random.

So all attributes together cost as much epsilon as one, and each is counted on its share of the
devices. Splitting epsilon over all attributes in every report would be far less accurate (Wang et
al., ICDE 2019). Proof: choice.proof.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, overload

from sfumato.errors import InvalidDeclaration
from sfumato.noise import Integers
from sfumato.telemetry.oracles.choice import MOST_PARTS, ChoiceOracle
from sfumato.telemetry.oracles.frequency import FREQUENCY, FrequencyOracle


@dataclass(frozen=True, slots=True)
class AttributesOracle(ChoiceOracle[FrequencyOracle]):
    """The local mechanism of a device with several attributes: it reports one of them, drawn at
    random.

    ``parts`` has the oracle of each attribute. The number of a value has the attributes as digits,
    the first one the least significant.

    >>> from sfumato.telemetry.oracles.category import category
    >>> oracle = attributes([category(3, 1), category(5, 1)])
    >>> oracle.values, oracle.node(7, 0), oracle.node(7, 1)
    (15, 1, 2)
    """

    kind: ClassVar[str] = "attributes"
    parts: tuple[FrequencyOracle, ...]

    def __post_init__(self) -> None:
        known = all(isinstance(part, FREQUENCY) for part in self.parts)
        if not known or not 2 <= len(self.parts) <= MOST_PARTS or self.values > 1 << 53:
            raise InvalidDeclaration(
                f"{len(self.parts)} attributes.",
                allowed="2 to 256 oracles of counts, with at most 2^53 values together",
            )

    @property
    def values(self) -> int:
        """The number of combinations of the attributes' values."""
        return math.prod(part.values for part in self.parts)

    @overload
    def node(self, value: int, place: int) -> int: ...
    @overload
    def node(self, value: Integers, place: int) -> Integers: ...
    def node(self, value: int | Integers, place: int) -> int | Integers:
        """Returns the value of the attribute with index ``place``, for the number of a device's
        value or an array of them.
        """
        below = math.prod(part.values for part in self.parts[:place])
        return value // below % self.parts[place].values


def attributes(parts: Sequence[FrequencyOracle]) -> AttributesOracle:
    """Returns the local mechanism of several attributes, given that of each.

    >>> from sfumato.telemetry.oracles.category import category
    >>> attributes([category(2, 1), category(2, 1)]).values
    4
    """
    return AttributesOracle(tuple(parts))
