# SPDX-License-Identifier: Apache-2.0
"""The integers of a group with those that an engine leaves out because they are 0."""

from collections.abc import Sequence

from sfumato.plan.aggregate import Aggregate, Quantiles


def dense(aggregate: Aggregate, integers: Sequence[int]) -> tuple[int, ...]:
    """As many integers as ``aggregate.width``; of quantiles the weight of each leaf."""
    if not isinstance(aggregate, Quantiles):
        return tuple(integers) or (0,) * aggregate.width
    weights = dict(zip(integers[0::2], integers[1::2], strict=True))
    assert all(weights.values()) and list(weights) == sorted(weights)
    assert set(weights) <= set(range(aggregate.width))
    return tuple(weights.get(leaf, 0) for leaf in range(aggregate.width))
