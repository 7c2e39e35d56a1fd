# SPDX-License-Identifier: Apache-2.0
"""What of a SQL question is asked of the curator, and how it is read. Proof: add_noise.proof.md."""

import itertools
from collections.abc import Sequence
from fractions import Fraction

from sfumato.engines.base import Codes
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.grid import GridQuantiles
from sfumato.mechanisms.threshold import ThresholdMechanism
from sfumato.plan.aggregate import CountUnits, width
from sfumato.plan.show import title
from sfumato.plan.value import GroupKey
from sfumato.query.cells import Cells, Units
from sfumato.query.choose import Planned
from sfumato.query.curator import Curator
from sfumato.query.estimate import Kind, Reading, Released, reading_of


def every_group(keys: Sequence[GroupKey]) -> list[Codes]:
    """Every declared combination of keys, missing last where it is a group."""
    declared: list[list[int | str | None]] = []
    for key in keys:
        assert key.codes is not None, "asked of declared keys only"
        declared.append([*key.codes, None] if key.missing else [*key.codes])
    return list(itertools.product(*declared))


def cells_of(planned: Planned) -> tuple[int | None, ...]:
    """How many integers each additive part releases; of groups that are not public that is known after the threshold.

    Guarantees:
        additive noise of declared groups is drawn before the read
    """
    raw = planned.bounded.tracked.raw
    if raw.is_open:
        return ()
    groups = len(every_group(raw.keys))
    parts = zip(planned.mechanisms, planned.bounded.parts, strict=True)
    return tuple(
        groups * width(part.aggregate)
        for each, part in parts
        if isinstance(each, AdditiveMechanism)
    )


def noisy(planned: Planned, curator: Curator) -> tuple[list[Codes], list[Released]]:
    """The groups that are shown, and each part's released integers in them.

    Guarantees:
        only groups that pass the threshold are shown
    """
    bounded = planned.bounded
    counts: dict[Codes, int] = {}
    if bounded.tracked.raw.is_open:
        mechanism, place = next(
            (each, place)
            for place, each in enumerate(planned.mechanisms)
            if isinstance(each, ThresholdMechanism)
        )
        counts = curator.threshold(Units(bounded, place), mechanism)
    groups = list(counts) if bounded.tracked.raw.is_open else every_group(bounded.tracked.raw.keys)
    released = []
    for place, mechanism_of in enumerate(planned.mechanisms):
        if isinstance(mechanism_of, ThresholdMechanism):
            values = tuple((counts[group],) for group in groups)
            reading = Reading(Kind.NUMBER, Fraction(1))
            released.append(
                Released(
                    title(CountUnits()), reading, mechanism_of.noise, values, (1,) * len(groups)
                )
            )
        else:
            released.append(_released(mechanism_of, Cells(bounded, place, tuple(groups)), curator))
    return groups, released


def _released(
    mechanism: AdditiveMechanism | GridQuantiles, cells: Cells, curator: Curator
) -> Released:
    part, once = cells.part, (1,) * len(cells.groups)
    reading, size = reading_of(part.aggregate, cells.plan.refinement), width(part.aggregate)
    if isinstance(mechanism, GridQuantiles):
        leaves = curator.quantiles(cells, mechanism)
        return Released(title(part.aggregate), reading, None, leaves, once, mechanism.rates, size)
    flat = curator.measure(cells, mechanism)
    values = tuple(flat[start : start + size] for start in range(0, len(flat), size))
    return Released(title(part.aggregate), reading, mechanism.noise, values, once)
