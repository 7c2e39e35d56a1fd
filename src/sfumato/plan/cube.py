# SPDX-License-Identifier: Apache-2.0
"""Marginals (contingency tables) of one table, for synthetic data and tasks.

Each row falls into exactly one cell of every axis.
"""

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

# Limits of one question: the number of marginals, and of their cells together (256 MB of integers).
MAX_CLIQUES, MAX_CELLS = 10_000, 2**25
# The most values of an axis, and the largest weight of a row.
MAX_VALUES, MAX_WEIGHT = 2**20, 2**20

# The axes of a marginal, as positions in the cube.
Places: TypeAlias = tuple[int, ...]


def axis(value: Value) -> GroupKey:
    """Returns the axis of a contingency table for a value: a cell for each declared code, then one
    for NULL.

    Raises:
        MissingDeclaration: the value is a text, whose possible values are not declared.
        WrongUse: the value has more codes than an axis may have.

    >>> from sfumato.metadata.column import Column, Integer
    >>> axis(Value.of(Column("floor", Integer(-1, 3)))).size
    6
    """
    if isinstance(value.type, Text):
        raise MissingDeclaration(
            f"The axis {shown(value.name)} is open: the values of a text are not declared.",
            allowed="columns with declared values: a Category, an Integer, a Boolean, a Date, "
            "a Real",
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
    """A contingency table of a relation's rows over declared axes, of which any marginal can be
    counted.

    Like ``Raw``, it is unbounded: the contribution of a unit is not limited yet. A clique is a set
    of axes, given by name. Its marginal counts the rows in each of its cells; the empty clique has
    one cell.

    Guarantees:
        every row is in one cell of every marginal

    Raises:
        WrongUse: there is no axis, or one occurs twice.
        ValueError: an axis without a cell for some code or for NULL.

    >>> from sfumato.metadata.column import Category, Column, Integer
    >>> from sfumato.plan.relation import Scan
    >>> age, sex = Column("age", Integer(0, 9)), Column("sex", Category("F", "M"))
    >>> people = Scan("people", columns=(age, sex))
    >>> cube = Cube(people, (axis(Value.of(age)), axis(Value.of(sex))))
    >>> cube.places([("sex",), ("sex", "age")]), cube.shape((1, 0))
    (((1,), (1, 0)), (3, 11))
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
        """The names of the axes."""
        return tuple(key.value.name for key in self.axes)

    @property
    def raw(self) -> Raw:
        """The equivalent plan that counts rows in each cell of all axes together."""
        return Raw(self.relation, self.axes, (CountRows(),))

    def shape(self, clique: Places) -> tuple[int, ...]:
        """Returns the number of cells along each axis of a marginal."""
        axes = [self.axes[place] for place in clique]
        return tuple(len(key.codes or ()) + 1 for key in axes)

    def places(self, cliques: Sequence[Sequence[str]]) -> tuple[Places, ...]:
        """Returns the positions of each clique's axes, which are given by name; checks that there
        are such axes.

        Raises:
            UnknownName: there is no axis of this name.
            WrongUse: there are no cliques, or too many; a clique has an axis twice; all have too
                many cells together.
        """
        if not 1 <= len(cliques) <= MAX_CLIQUES:
            raise WrongUse(
                f"{len(cliques):,} cliques.", allowed=f"from 1 to {MAX_CLIQUES:,} at once"
            )
        places = tuple(map(self._clique, cliques))
        sizes = [math.prod(self.shape(clique)) for clique in places]
        if sum(sizes) > MAX_CELLS:
            widest = ", ".join(cliques[sizes.index(max(sizes))])
            raise WrongUse(
                f"Marginals of {sum(sizes):,} cells in all; the largest is by {widest}.",
                allowed=f"at most {MAX_CELLS:,}",
                remedy="Ask for fewer together, or for axes with fewer declared values.",
            )
        return places

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
    """Whether a key has a cell for every code of its value, and one for NULL. Its codes ascend."""
    kind, codes = key.value.type, key.codes
    if isinstance(kind, Text) or not codes or not key.missing:
        return False
    declared = (kind.lower_code, kind.upper_code, kind.size)
    return (codes[0], codes[-1], len(codes)) == declared


@dataclass(frozen=True, slots=True)
class BoundedCube:
    """A cube in which the contribution of each unit is bounded by weights (RULES 13), so that its
    marginals have bounded sensitivity.

    ``most`` is the number of rows that a unit counts as. Each row of a unit with N rows has the
    weight floor(``refinement`` min(1, ``most`` / N)), the same in every marginal, so that all
    marginals describe one weighted table. ``unit`` None: each row is its own unit, with weight 1.
    ``l1`` and ``l2`` are the sensitivities of one marginal; ``apart`` is the sensitivity (Linf) of
    the L1 distance between a marginal and any public table of integers, which is a single number.

    Raises:
        ValueError: ``most`` below 1, or a refinement out of range.

    >>> from fractions import Fraction
    >>> from sfumato.metadata.column import Category, Column
    >>> from sfumato.plan.relation import Scan
    >>> sex = Column("sex", Category("F", "M"))
    >>> cube = Cube(Scan("people", columns=(sex,)), (axis(Value.of(sex)),))
    >>> l1, l2, apart = (Distance(norm, Fraction(1)) for norm in (Norm.L1, Norm.L2, Norm.LINF))
    >>> BoundedCube(cube, None, most=1, refinement=1, l1=l1, l2=l2, apart=apart).is_weighed
    False
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
        """Whether a unit may have several rows, whose weights may then differ; if not, each row has
        the weight ``refinement``.
        """
        return self.unit is not None and not is_single(self.cube.relation)

    def __post_init__(self) -> None:
        if self.most < 1 or not 1 <= self.refinement <= MAX_WEIGHT:
            raise ValueError("a unit has a row at most, or more, of which each weighs something")
        if self.unit is None and (self.most, self.refinement) != (1, 1):
            raise ValueError("a row that is its own unit weighs 1")
        norms = [self.l1.norm, self.l2.norm, self.apart.norm]
        if norms != [Norm.L1, Norm.L2, Norm.LINF]:
            raise ValueError("a distance in another norm")
