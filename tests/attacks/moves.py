# SPDX-License-Identifier: Apache-2.0
"""How far neighbouring datasets move the integers of a plan, as a share of what is claimed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import sfumato as sf
from sfumato.engines.base import Exact
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.reference import Reference
from sfumato.plan.aggregate import CountUnits, Quantiles
from sfumato.plan.stages import Bounded, Part
from sfumato.privacy.distance import Norm
from tests.contracts.leaves import dense

# what a reference says that is not asked (of an engine that is broken on purpose)
AGREED: Exact = ()


@dataclass(frozen=True, slots=True)
class Move:
    """How far a part really moved, as a share of what is claimed; squares for L2."""

    title: str
    share: Fraction


def integers(worlds: Mapping[str, tuple[DuckDB, Reference]], plan: Bounded) -> dict[str, Exact]:
    """What both engines give for each dataset."""
    found = {}
    for name, (engine, reference) in worlds.items():
        found[name], other = engine.run(plan, "key"), reference.run(plan, "key")
        assert other in (found[name], AGREED), name
    return found


def moves(plan: Bounded, one: Exact, other: Exact) -> list[Move]:
    """How far each part moved."""
    return [
        Move(type(part.aggregate).__name__, max(_shares(plan, part, *pair)))
        for part, *pair in zip(plan.parts, one, other, strict=True)
    ]


def _shares(plan: Bounded, part: Part, one: Mapping, other: Mapping) -> Iterator[Fraction]:
    apart = []
    for group in {*one, *other}:
        both = [dense(part.aggregate, each.get(group, ())) for each in (one, other)]
        apart.append([a - b for a, b in zip(*both, strict=True)])
    claimed = part.distance.value
    steps = 1 if part.distance.relation is sf.AddRemove else 2
    if isinstance(part.aggregate, Quantiles):
        heavy = [
            max(sum(d for d in group if d > 0), -sum(d for d in group if d < 0)) for group in apart
        ]
        yield max((Fraction(each) / claimed for each in heavy), default=Fraction(0))
        yield sum(heavy) / (claimed * part.groups * steps)
        yield sum(each * each for each in heavy) / (claimed**2 * part.groups * steps)
        return
    cells = [cell for group in apart for cell in group]
    total = sum(map(abs, cells)) if plan.norm is Norm.L1 else sum(cell * cell for cell in cells)
    yield Fraction(total) / claimed
    if isinstance(part.aggregate, CountUnits) and plan.tracked.raw.is_open:
        # what a threshold rests on: at most one more in a group, in at most so many groups
        yield Fraction(max(map(abs, cells), default=0), plan.refinement)
        yield Fraction(sum(cell != 0 for cell in cells), part.groups * steps)
