# SPDX-License-Identifier: Apache-2.0
"""Exact integers to released ones: each part through its own mechanism. Proof: noisy.proof.md."""

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from sfumato.engines.base import Codes, Exact
from sfumato.engines.gather import Columns, Groups
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.grid import GridQuantiles
from sfumato.mechanisms.threshold import ThresholdMechanism
from sfumato.plan.aggregate import CountUnits, width
from sfumato.plan.show import title
from sfumato.plan.status import Part
from sfumato.plan.value import GroupKey
from sfumato.query.choose import Mechanism, Planned
from sfumato.query.estimate import Kind, Reading, Released, reading_of

# The noise of each additive part, drawn before the read; None where it cannot be.
Drawn: TypeAlias = list[tuple[int, ...] | None]


def every_group(keys: Sequence[GroupKey]) -> list[Codes]:
    """Every declared combination of keys, missing last where it is a group."""
    declared: list[list[int | str | None]] = []
    for key in keys:
        assert key.codes is not None, "asked of declared keys only"
        declared.append([*key.codes, None] if key.missing else [*key.codes])
    return list(itertools.product(*declared))


def drawn_before(planned: Planned) -> Drawn:
    """The noise that does not depend on what is read (RULES 25).

    That of groups that are not public, and selections, whose law is that of the scores, are
    drawn after it.

    Guarantees:
        additive noise of declared groups is drawn before the read
    """
    raw = planned.bounded.tracked.raw
    if raw.is_open:
        return [None] * len(planned.mechanisms)
    groups = len(every_group(raw.keys))
    return [
        mechanism.draw(groups * width(part.aggregate)) if isinstance(mechanism, AdditiveMechanism) else None
        for mechanism, part in zip(planned.mechanisms, planned.bounded.parts, strict=True)
    ]


def noisy(planned: Planned, exact: Exact, drawn: Drawn) -> tuple[list[Codes], list[Released]]:
    """The groups that are shown, and each part's released integers in them.

    Guarantees:
        a group without rows is zeros
        only groups that pass the threshold are shown
    """
    bounded = planned.bounded
    parts = list(zip(planned.mechanisms, bounded.parts, exact, drawn, strict=True))
    counts: dict[Codes, int] = {}
    if bounded.tracked.raw.is_open:
        mechanism, index = next(
            (each, place) for place, each in enumerate(planned.mechanisms) if isinstance(each, ThresholdMechanism)
        )
        counts = _shown(mechanism, exact[index], bounded.refinement)
    groups = list(counts) if bounded.tracked.raw.is_open else every_group(bounded.tracked.raw.keys)
    released = []
    for mechanism_of, part, integers, noise in parts:
        if isinstance(mechanism_of, ThresholdMechanism):
            values = tuple((counts[group],) for group in groups)
            reading = Reading(Kind.NUMBER, Fraction(1))
            released.append(Released(title(CountUnits()), reading, mechanism_of.noise, values, (1,) * len(groups)))
        else:
            released.append(_released(mechanism_of, part, _rows(part, integers, groups), bounded.refinement, noise))
    return groups, released


def _shown(mechanism: ThresholdMechanism, units: Groups, fine: int) -> dict[Codes, int]:
    """The groups that pass, with their noisy numbers of units."""
    if isinstance(units, Columns):
        return mechanism.release_many(units.first // fine, units.groups)
    return mechanism.release({group: values[0] // fine for group, values in units.items()})


def _rows(part: Part, integers: Groups, groups: Sequence[Codes]) -> list[tuple[int, ...]]:
    """A part's integers, group by group; zeros where there are no rows."""
    zeros = (0,) * width(part.aggregate)
    found = integers.of(groups) if isinstance(integers, Columns) else integers
    return [found.get(group, zeros) for group in groups]


def _released(
    mechanism: Mechanism, part: Part, rows: Sequence[tuple[int, ...]], fine: int, drawn: Sequence[int] | None
) -> Released:
    reading, once = reading_of(part.aggregate, fine), (1,) * len(rows)
    if isinstance(mechanism, GridQuantiles):
        leaves = width(part.aggregate)
        values = tuple(mechanism.release(row) for row in rows)
        return Released(title(part.aggregate), reading, None, values, once, mechanism.rates, leaves)
    assert isinstance(mechanism, AdditiveMechanism), "a threshold is handled above"
    size = width(part.aggregate)
    flat = mechanism.release([value for row in rows for value in row], drawn)
    cells = tuple(flat[start : start + size] for start in range(0, len(flat), size))
    return Released(title(part.aggregate), reading, mechanism.noise, cells, once)
