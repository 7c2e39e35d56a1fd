# SPDX-License-Identifier: Apache-2.0
"""Releases the parts of a planned SQL question through the curator. Proof: add_noise.proof.md.

``release.SqlTask.run`` calls ``noisy`` inside a charge, and ``cells_of`` before it, so that the
noise of declared groups can be drawn before the data is read.
"""

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction

from sfumato.engines.base import Codes
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.grid import GridQuantiles
from sfumato.mechanisms.threshold import ThresholdMechanism
from sfumato.plan.aggregate import CountUnits
from sfumato.plan.reading import Kind, Reading
from sfumato.plan.value import GroupKey
from sfumato.query.cells import Cells, Units, WeightedLeaves
from sfumato.query.choose import Planned
from sfumato.query.curator import Curator
from sfumato.query.estimate import Released


def every_group(keys: Sequence[GroupKey]) -> list[Codes]:
    """Returns the group keys of every combination of declared key values, as integer codes.

    A missing value comes after the other values of its key, if it is a group of its own.
    """
    declared: list[list[int | str | None]] = []
    for key in keys:
        assert key.codes is not None, "called with declared keys only"
        codes: list[int | str | None] = list(key.codes)
        if key.missing:
            codes.append(None)
        declared.append(codes)
    return list(itertools.product(*declared))


def cells_of(planned: Planned) -> tuple[int | None, ...]:
    """Returns the number of noisy integers of each additive mechanism of a plan; empty if the
    groups are not public.

    Then the number is known only after the threshold.

    Guarantees:
        additive noise of declared groups is drawn before the read
    """
    if planned.bounded.tracked.raw.is_open:
        return ()
    sizes = []
    for mechanism, (bounded, place) in zip(planned.mechanisms, planned.sources, strict=True):
        if isinstance(mechanism, AdditiveMechanism):
            groups = every_group(bounded.tracked.raw.keys)
            sizes.append(len(groups) * bounded.parts[place].aggregate.width)
    return tuple(sizes)


def noisy(planned: Planned, curator: Curator) -> tuple[list[Codes], list[Released]]:
    """Releases all aggregates of a plan through the curator; returns the group keys to show and the
    noisy integers.

    There is a ``Released`` for each part (aggregate), with a row for each group. If grouping sets
    are measured as separate levels, each part has the groups of its own level, and the groups that
    are returned are those of the whole statement.

    Guarantees:
        only groups that pass the threshold are shown
    """
    raw = planned.bounded.tracked.raw
    counts: dict[Codes, int] = {}
    if raw.is_open:
        counts = _counts_above_threshold(planned, curator)
        groups = list(counts)
    else:
        groups = every_group(raw.keys)
    released = []
    for mechanism, (bounded, place) in zip(planned.mechanisms, planned.sources, strict=True):
        if isinstance(mechanism, ThresholdMechanism):
            part = _counts_as_part(counts, mechanism)
        else:
            own = every_group(bounded.tracked.raw.keys) if planned.levels else groups
            part = _released(mechanism, Cells(bounded, place, tuple(own)), curator)
        released.append(part)
    return groups, released


def _counts_above_threshold(planned: Planned, curator: Curator) -> dict[Codes, int]:
    """The groups that pass the threshold of an open plan, each with its noisy number of units."""
    for place, mechanism in enumerate(planned.mechanisms):
        if isinstance(mechanism, ThresholdMechanism):
            return curator.threshold(Units(planned.bounded, place), mechanism)
    raise AssertionError("an open plan has a threshold")


def _counts_as_part(counts: Mapping[Codes, int], mechanism: ThresholdMechanism) -> Released:
    """The noisy numbers of units as a released part."""
    values = tuple((count,) for count in counts.values())
    reading = Reading(Kind.NUMBER, Fraction(1))
    once = (1,) * len(counts)
    title = CountUnits().title
    return Released(title, reading, mechanism.noise, values, once, threshold=mechanism.threshold)


def _released(
    mechanism: AdditiveMechanism | GridQuantiles, cells: Cells, curator: Curator
) -> Released:
    """Releases one part through its mechanism."""
    aggregate = cells.part.aggregate
    once = (1,) * len(cells.groups)
    reading = aggregate.reading(cells.plan.refinement)
    size = aggregate.width
    if isinstance(mechanism, GridQuantiles):
        leaves = curator.quantiles(WeightedLeaves(cells), mechanism)
        rates = mechanism.rates
        shifts = mechanism.shifts(size)
        return Released(aggregate.title, reading, None, leaves, once, rates, size, shifts)
    flat = curator.measure(cells, mechanism)
    starts = range(0, len(flat), size)
    values = tuple(flat[start : start + size] for start in starts)
    return Released(aggregate.title, reading, mechanism.noise, values, once)
