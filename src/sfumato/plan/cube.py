# SPDX-License-Identifier: Apache-2.0
"""Marginals of one table: each row in one cell of every axis, whatever it holds."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sfumato.errors import MissingDeclaration, UnknownName, WrongUse, shown
from sfumato.metadata.column import Text
from sfumato.plan.aggregate import CountRows
from sfumato.plan.relation import Relation, is_single
from sfumato.plan.stages import Raw
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Distance, Norm

# So many marginals are asked for at once, and so many cells they have together: 256 MB of integers.
MAX_CLIQUES, MAX_CELLS = 10_000, 2**25
# So many values an axis may have, and so much a row may weigh.
MAX_VALUES, MAX_WEIGHT = 2**20, 2**20

# The axes of a marginal, by their places in the cube.
Places: TypeAlias = tuple[int, ...]


def axis(value: Value) -> GroupKey:
    """The total key of a value: a cell for each code that it may have, ascending, and one for missing, the last.

    Raises:
        MissingDeclaration: a text: which values it has is not declared.
        WrongUse: more values than an axis may have.

    >>> from sfumato.metadata.column import Column, Integer
    >>> axis(Value.of(Column("floor", Integer(-1, 3)))).size
    6
    """
    if isinstance(value.type, Text):
        raise MissingDeclaration(
            f"The axis {shown(value.name)} is open: the values of a text are not declared.",
            allowed="columns with declared values: a Category, an Integer, a Boolean, a Date, a Real",
            remedy="Declare it as sf.Category with its values, or leave it out.",
        )
    if value.type.size > MAX_VALUES:
        raise WrongUse(
            f"The axis {shown(value.name)} has {value.type.size:,} values.",
            allowed=f"at most {MAX_VALUES:,}",
            remedy="Declare narrower bounds, or a larger step= for a Real.",
        )
    return GroupKey(
        value, tuple(range(value.type.lower_code, value.type.upper_code + 1)), missing=True
    )


@dataclass(frozen=True, slots=True)
class Cube:
    """The rows of a relation by axes of which each is total: raw, like a question.

    A clique, some of the axes by their names, has a marginal: how many rows are in each of its cells. The
    empty clique has one cell.

    Guarantees:
        every row is in one cell of every marginal

    Raises:
        WrongUse: no axes, or one twice.
        ValueError: a key that is not total.
    """

    relation: Relation
    axes: tuple[GroupKey, ...]

    def __post_init__(self) -> None:
        twice = [name for name, times in Counter(self.names).items() if times > 1]
        if not self.axes or twice:
            raise WrongUse(
                f"Axes: {', '.join(map(shown, twice)) or 'none'}.",
                allowed="at least one, each once",
            )
        if not all(map(_is_total, self.axes)):
            raise ValueError("an axis has a cell for each code and one for missing")

    @property
    def names(self) -> tuple[str, ...]:
        """What the axes are called."""
        return tuple(key.value.name for key in self.axes)

    @property
    def raw(self) -> Raw:
        """The rows by all axes together, as a question."""
        return Raw(self.relation, self.axes, (CountRows(),))

    def shape(self, clique: Places) -> tuple[int, ...]:
        """How many cells a marginal has in each direction."""
        return tuple(len(self.axes[place].codes or ()) + 1 for place in clique)

    def places(self, cliques: Sequence[Sequence[str]]) -> tuple[Places, ...]:
        """The cliques by places, if they may be asked for: nothing is read for it.

        Raises:
            UnknownName: no such axis.
            WrongUse: no cliques or too many, an axis twice in one, too many cells in all.
        """
        if not 1 <= len(cliques) <= MAX_CLIQUES:
            raise WrongUse(
                f"{len(cliques):,} cliques.", allowed=f"from 1 to {MAX_CLIQUES:,} at once"
            )
        found = tuple(self._clique(each) for each in cliques)
        sizes = [math.prod(self.shape(each)) for each in found]
        if sum(sizes) > MAX_CELLS:
            raise WrongUse(
                f"Marginals of {sum(sizes):,} cells in all; the largest is by {', '.join(cliques[sizes.index(max(sizes))])}.",
                allowed=f"at most {MAX_CELLS:,}",
                remedy="Ask for fewer together, or for axes with fewer declared values.",
            )
        return found

    def _clique(self, names: Sequence[str]) -> Places:
        if not isinstance(names, list | tuple):
            raise WrongUse(f"The clique {shown(names)}.", allowed='names of axes: ("age", "sex")')
        for name in names:
            if name not in self.names:
                raise UnknownName(
                    f"There is no axis {shown(name)}.",
                    allowed=", ".join(self.names),
                    remedy="Name declared columns.",
                )
        if len(set(names)) < len(names):
            raise WrongUse(
                f"The clique {', '.join(names)} has an axis twice.", allowed="each axis once"
            )
        return tuple(map(self.names.index, names))


def _is_total(key: GroupKey) -> bool:
    """Whether a key, whose codes ascend, has all those of its value, and missing."""
    kind, codes = key.value.type, key.codes
    if isinstance(kind, Text) or not codes or not key.missing:
        return False
    return (codes[0], codes[-1], len(codes)) == (kind.lower_code, kind.upper_code, kind.size)


@dataclass(frozen=True, slots=True)
class BoundedCube:
    """A cube each of whose units is bounded, by one weight that its rows have in every marginal (RULES 13).

    Of a unit with N rows each weighs floor(``refinement`` min(1, ``most`` / N)), so that marginals are of one
    table: those of the same axes are equal. ``unit`` None: each row is its own unit, and weighs 1.
    ``l1`` and ``l2`` are how far any one marginal moves between neighbours, ``apart`` how far its L1
    distance to any public table of integers does (Linf, of one number).

    Raises:
        ValueError: a limit or a refinement that is none.
    """

    cube: Cube
    unit: str | None
    most: int
    refinement: int
    l1: Distance
    l2: Distance
    apart: Distance

    @property
    def is_weighed(self) -> bool:
        """Whether a unit may have several rows; else each weighs ``refinement``."""
        return self.unit is not None and not is_single(self.cube.relation)

    def __post_init__(self) -> None:
        if self.most < 1 or not 1 <= self.refinement <= MAX_WEIGHT:
            raise ValueError("a unit has a row at most, or more, of which each weighs something")
        if self.unit is None and (self.most, self.refinement) != (1, 1):
            raise ValueError("a row that is its own unit weighs 1")
        if [self.l1.norm, self.l2.norm, self.apart.norm] != [Norm.L1, Norm.L2, Norm.LINF]:
            raise ValueError("a distance in another norm")
