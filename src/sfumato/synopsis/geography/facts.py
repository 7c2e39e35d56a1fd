# SPDX-License-Identifier: Apache-2.0
"""Public facts about a population: impossible cells and known totals.

They are declared with the census and checked before anything is charged.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

from sfumato.errors import (
    InvalidDeclaration,
    UnknownName,
    WrongUse,
    shown,
)
from sfumato.noise import Integers
from sfumato.synopsis.geography.least_squares import PublicTotals
from sfumato.synopsis.geography.population import Axis
from sfumato.synopsis.geography.spine import Spine
from sfumato.synopsis.geography.tree import Tree
from sfumato.synopsis.geography.tree_squares import Mask

# Axes with labels: a cell is impossible if it has one of the labels on every axis that is named.
Impossible: TypeAlias = Mapping[str, Iterable[object]]
# For a level: the areas whose total is public, with it.
Totals: TypeAlias = Mapping[str, Mapping[str, int]]
_EXAMPLE = '{"state": {"Vermont": 624000}}'


def impossible_cells(axes: Sequence[Axis], zeros: Sequence[Impossible]) -> Mask:
    """Returns a mask over the cells of all axes that marks those whose count is declared to be 0.

    Raises:
        UnknownName: no such axis, or no such label on it.
        InvalidDeclaration: a declaration without axes, or no cell is left.
    """
    impossible = np.zeros([axis.size for axis in axes], bool)
    if isinstance(zeros, str | Mapping) or not isinstance(zeros, Sequence):
        raise WrongUse(
            f"zeros={shown(zeros)}.",
            allowed='a list: [{"age": ["0-14"], "status": ["married"]}]',
        )
    for declared in zeros:
        if not isinstance(declared, Mapping) or not declared:
            raise InvalidDeclaration(
                "Impossible cells without an axis.",
                allowed="axes, each with some of its labels",
            )
        cells = np.ones(impossible.shape, bool)
        for name, labels in declared.items():
            place, chosen = _chosen(axes, name, labels)
            shape = [1] * len(axes)
            shape[place] = len(chosen)
            cells &= chosen.reshape(shape)
        impossible |= cells
    if impossible.all():
        raise InvalidDeclaration("Every cell is declared impossible.", remedy="Leave one.")
    return impossible


def _chosen(axes: Sequence[Axis], name: str, labels: Iterable[object]) -> tuple[int, Mask]:
    """Returns the number of an axis, and which of its cells have one of the labels."""
    names = [axis.name for axis in axes]
    if name not in names:
        raise UnknownName(
            f"Impossible cells by {shown(name)}.",
            allowed=", ".join(names),
        )
    known = axes[names.index(name)].labels
    chosen = np.zeros(len(known), bool)
    listed = [labels] if isinstance(labels, str) or not isinstance(labels, Iterable) else labels
    for label in listed:
        if label not in known:
            raise UnknownName(
                f"{name} has no value {shown(label)}.",
                allowed=", ".join(map(str, known[:20])),
            )
        chosen[known.index(label)] = True
    return names.index(name), chosen


@dataclass(frozen=True, slots=True)
class _Stated:
    """The totals of one level as they were stated; -1 where none was."""

    level: int
    totals: Integers


def public_totals(spine: Spine, tree: Tree, stated: Totals) -> PublicTotals:
    """Returns the declared public totals of areas, with the totals that follow from them by
    addition.

    Raises:
        WrongUse: totals that are not stated as numbers; those of the private data are refused.
        UnknownName: no such level or area.
        InvalidDeclaration: a total that is no count, or totals that contradict one another.
    """
    if not isinstance(stated, Mapping):
        raise WrongUse(
            f"public_totals={shown(stated)}.",
            allowed=f"numbers that are public already: {_EXAMPLE}",
            remedy="Exact totals of the private data are outside differential privacy and cannot "
            "be kept: docs/census.md says why. Measure totals as a table instead: [].",
        )
    levels = [_Stated(level, np.full(size, -1)) for level, size in enumerate(tree.sizes)]
    for name, areas in stated.items():
        level = spine.place(name)
        if level >= len(levels):
            raise WrongUse(
                f"Public totals of the level {name!r}, which has no table, nor has one below.",
                allowed=", ".join(spine.levels[: len(levels)]),
            )
        _state(spine, levels[level], areas)
    return _completed(spine, tree, levels)


def _state(spine: Spine, stated: _Stated, areas: Any) -> None:
    """Writes the stated totals of a level into its array."""
    name = spine.levels[stated.level]
    if not isinstance(areas, Mapping):
        raise WrongUse(
            f"Public totals of {name!r}: {shown(areas)}.",
            allowed=f"a number for each area: {_EXAMPLE}",
            remedy="Exact totals of the private data cannot be kept: docs/census.md says why.",
        )
    places = {code: place for place, code in enumerate(spine.codes[stated.level])}
    for code, total in areas.items():
        if code not in places:
            raise UnknownName(
                f"There is no {name} {shown(code)}.",
                allowed=f"{len(places):,} codes of the spine",
            )
        if not _is_count(total):
            raise InvalidDeclaration(
                f"The public total of {name} {code!r} is {shown(total)}.",
                allowed="a count",
            )
        stated.totals[places[code]] = total


def _is_count(total: object) -> bool:
    """Whether a total is a whole number, of at least 0, that a float holds exactly."""
    if isinstance(total, bool) or not isinstance(total, Integral):
        return False
    return 0 <= int(total) < 2**53


def _completed(spine: Spine, tree: Tree, levels: Sequence[_Stated]) -> PublicTotals:
    """Returns the totals with those that follow: of an area whose children are all known."""
    known, totals = [], []
    least: Integers | None = None
    all_known: Mask | None = None
    for stated in reversed(levels):
        own = stated.totals >= 0
        total = np.where(own, stated.totals, 0)
        if least is not None and all_known is not None:
            below = tree.gathered(stated.level, least)
            unknown = tree.gathered(stated.level, (~all_known).astype(np.int64))
            _require_sums(spine, stated, below, unknown == 0)
            total = np.where(own, total, below)
            own = own | (unknown == 0)
        least, all_known = total, own
        known.append(own)
        totals.append(np.where(own, total, 0).astype(float))
    return PublicTotals(tuple(known[::-1]), tuple(totals[::-1]))


def _require_sums(spine: Spine, stated: _Stated, below: Integers, complete: Mask) -> None:
    """Raises InvalidDeclaration where the totals of children do not fit that of their parent."""
    own = stated.totals
    over = (own >= 0) & ((below > own) | (complete & (below != own)))
    if over.any():
        place = int(np.flatnonzero(over)[0])
        level, inner = spine.levels[stated.level : stated.level + 2]
        raise InvalidDeclaration(
            f"The public total of {level} {spine.codes[stated.level][place]!r} is "
            f"{int(own[place]):,}, and those of its areas of level {inner!r} add up to "
            f"{int(below[place]):,}.",
            allowed="totals that add up",
            remedy="Correct one of them; nothing was charged.",
        )
