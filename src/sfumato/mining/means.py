# SPDX-License-Identifier: Apache-2.0
"""The recipe ``Means``: the mean array, as of pictures, of each group."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidDeclaration, MissingDeclaration, UnknownName, WrongUse, shown
from sfumato.exact.rational import Number, positive
from sfumato.metadata.column import Array, Text
from sfumato.mining.found import MISSED, Found
from sfumato.mining.group_sums import GroupSums
from sfumato.mining.means_task import MeansTask
from sfumato.mining.recipe import (
    Asked,
    Recipe,
    declared_terms,
    find_column,
    require_tokens,
    require_values,
)
from sfumato.noise import DiscreteGaussian
from sfumato.plan.rows import BoundedRows
from sfumato.query.clip import LONGEST
from sfumato.show.pictures import picture_chart
from sfumato.show.svg import Figure

# The most numbers that are released.
_NUMBERS = 1 << 21
# How finely numbers are cut: the range of an array has about so many steps.
_STEPS = 1 << 14
# The part of the length that a row's weight has: its noise is the noise of a number, times this.
_WEIGHT = 4


@dataclass(frozen=True, slots=True)
class Means(Recipe):
    """A recipe of ``mine`` for the mean of an array column (``picture``) in each group, over all
    rows that have an array.

    ``by`` is the column of the groups; of a text, ``only`` are the declared terms, each the group
    of the rows that have it. What a person adds, all groups together, is cut to ``length``, in the
    units of the array: the longest distance of a picture from the mean that counts in full, by
    default a third of the longest possible one.

    Raises:
        WrongUse, InvalidNumber: ``only`` with repeats or without ``by``; no positive ``length``.

    >>> Means("scan", by="ward", length=2000).by
    'ward'
    """

    picture: str
    by: str | None = None
    only: Sequence[str] | None = None
    length: Number | None = None

    name: ClassVar[str] = "Means"

    def __post_init__(self) -> None:
        if self.length is not None:
            object.__setattr__(self, "length", positive("length", self.length))
        if self.only is not None:
            if self.by is None:
                raise WrongUse("only= without by=.", allowed="by= the text with these terms")
            object.__setattr__(self, "only", declared_terms(self.only))

    def planned(self, plan: BoundedRows, asked: Asked) -> MeansTask:
        """Returns the task that averages the arrays of some bounded rows, at the cost ``asked``.

        Raises:
            UnknownName, WrongUse, MissingDeclaration, InvalidNumber: what cannot be averaged.
        """
        picture = find_column(plan, self.picture)
        kind = plan.rows.values[picture].type
        if not isinstance(kind, Array):
            raise WrongUse(
                f"picture={shown(self.picture)} is no array.",
                allowed="a column declared as sf.Array",
                remedy="The mean of a number is SQL: SELECT AVG(age) ...",
            )
        by = self._by(plan)
        if asked.epsilon is not None and asked.delta is None:
            raise MissingDeclaration(
                "Means at an epsilon without a delta.", allowed="rho=, or epsilon= with delta="
            )
        allowance = asked.allowance(keys=False, why="")
        scale, bound = self._scale_and_bound(plan, kind)
        terms = tuple(self.only or ())
        origin = ((kind.lower_code + kind.upper_code) * scale // 2,) * kind.length
        weight = max(bound // _WEIGHT, 1)
        try:
            overall = GroupSums(plan, picture, None, (), scale, origin, weight, bound)
            task = MeansTask(self, overall, by, terms, allowance)
            # the noise may put the mean of all rows at an end, from which offsets are longest
            task.by_group((kind.upper_code * scale,) * kind.length)
            size = task.cells[1]
        except InvalidDeclaration as refusal:
            raise WrongUse(
                f"Arrays of {kind.length:,} numbers, {plan.most:,} of a person, length "
                f"{shown(self.length)}.",
                allowed="a shorter length, fewer rows of a person, or arrays with fewer steps",
            ) from refusal
        if size > _NUMBERS:
            raise WrongUse(f"Means of {size:,} numbers.", allowed=f"at most {_NUMBERS:,}")
        return task

    def _scale_and_bound(self, plan: BoundedRows, kind: Array) -> tuple[int, int]:
        """Returns how many steps a code is cut into, and the length of a person in these steps."""
        span = kind.upper_code - kind.lower_code
        longest = span * math.sqrt(kind.length)
        length = longest / 3
        if self.length is not None:
            length = float(Fraction(self.length) / kind.step)
        scale = 1 << max((_STEPS // span).bit_length() - 1, 0)
        # a person's rows together must fit the integers of the statistic
        fits = LONGEST / (plan.most * math.sqrt(max(len(self.only or ()), 1)) * 2)
        while scale > 1 and max(longest, length) * scale >= fits:
            scale //= 2
        return scale, max(int(length * scale), 1)

    def _by(self, plan: BoundedRows) -> int | None:
        """Returns the place of the groups."""
        if self.by is None:
            return None
        by = find_column(plan, self.by)
        value = plan.rows.values[by]
        if self.only is None:
            if isinstance(value.type, Text):
                raise WrongUse(
                    f"by={shown(self.by)} is an open text.",
                    allowed="a column with declared values, or a text with only=",
                    remedy='Name its terms: only=["eye", "ear"].',
                )
            require_values(value, "by=", text=False)
            return by
        if not isinstance(value.type, Text):
            raise WrongUse(f"only= beside by={shown(self.by)}, which is no text.")
        require_tokens(value.type, self.only)
        return by

    @classmethod
    def found(cls, facts: Mapping[str, Any], *, recalled: bool) -> "FoundMeans":
        """Returns the table of mean arrays from the stored JSON of an answer."""
        return FoundMeans(facts, recalled=recalled)


class FoundMeans(Found):
    """The table of the noisy mean array of each group: ``[by], n, low, high, error, mean``.

    ``n`` is the noisy weight of the people of the group, where those that were cut count for less;
    ``error`` the 95% half-width of a number of the mean, from noise alone. ``found[group]`` is the
    mean in the shape of the array. Without ``by``, the group is "all".
    """

    def __init__(self, facts: Mapping[str, Any], *, recalled: bool = False) -> None:
        self.facts = facts
        rows = []
        for label, n in self.counts.items():
            half = self._half_width / int(facts["weight"])
            mean = self._means[label].reshape(-1).tolist()
            rows.append(
                (label, round(n), round(n - half), round(n + half), self.error[label], mean)
            )
        columns = [str(facts["by"] or "group"), "n", "low", "high", "error", "mean"]
        while columns[0] in columns[1:]:
            columns[0] += "_"
        super().__init__(facts, columns, rows, recalled=recalled)

    @cached_property
    def _half_width(self) -> float:
        law = DiscreteGaussian(sigma_squared=Fraction(self.facts["noise"]["scale"]))
        return float(law.half_width(1 - MISSED))

    @cached_property
    def counts(self) -> dict[Any, float]:
        """The noisy total weight of the people of each group; a person weighs 1, or less if it was
        clipped.
        """
        weight = int(self.facts["weight"])
        labels, sums = self.facts["labels"], self.facts["sums"]
        return {label: each[-1] / weight for label, each in zip(labels, sums, strict=True)}

    @cached_property
    def _offsets(self) -> dict[Any, NDArray[np.float64]]:
        """What each mean differs from that of all; nothing where the weight is below a person."""
        return {
            label: np.array(sums[:-1], np.float64) / n if n >= 1 else np.zeros(len(sums) - 1)
            for (label, n), sums in zip(self.counts.items(), self.facts["sums"], strict=True)
        }

    @cached_property
    def _means(self) -> dict[Any, NDArray[np.float64]]:
        origin = np.array(self.facts["origin"], np.float64)
        unit, (low, high) = self._unit, self._ends
        return {
            label: np.clip((origin + each) * unit, low, high).reshape(self.facts["shape"])
            for label, each in self._offsets.items()
        }

    @property
    def _unit(self) -> float:
        return float(Fraction(self.facts["unit"]))

    @property
    def _ends(self) -> tuple[float, float]:
        low, high = (float(Fraction(end)) for end in self.facts["ends"])
        return low, high

    @cached_property
    def error(self) -> dict[Any, float]:
        """The 95% half-width of a single element of each group's mean array, from noise alone; at
        most the declared range.
        """
        low, high = self._ends
        weight, half = int(self.facts["weight"]), self._half_width
        errors = {}
        for label, n in self.counts.items():
            # the noise of the number, and that of the weight by which the sum is divided
            noise = half * (1 + float(np.abs(self._offsets[label]).max()) / weight)
            errors[label] = min(noise / max(n, 1) * self._unit, high - low)
        return errors

    def __getitem__(self, group: Any) -> NDArray[np.float64]:
        """Returns the mean of a group; raises UnknownName if there is no such group."""
        if group not in self._means:
            raise UnknownName(f"No group {shown(group)}.", allowed=", ".join(map(str, self.counts)))
        return self._means[group]

    def nearest(self, array: ArrayLike) -> Any:
        """Returns the group whose mean is nearest to an array (in L2), among groups of weight 1 or
        more.

        Raises:
            WrongUse: the array has another number of numbers, or no group has people.
        """
        point = np.asarray(array, np.float64).reshape(-1)
        groups = [label for label, n in self.counts.items() if n >= 1]
        if not groups or point.shape != (math.prod(self.facts["shape"]),):
            raise WrongUse("No mean to compare with.", allowed=f"shape {self.facts['shape']}")
        away = [((self._means[label].reshape(-1) - point) ** 2).sum() for label in groups]
        return groups[int(np.argmin(away))]

    def plot(self) -> Figure:
        """Returns a chart of the means as pictures; if the arrays are not two-dimensional, of the
        counts as bars.
        """
        if len(self.facts["shape"]) != 2:
            return super().plot()
        pictures = [(str(label), mean) for label, mean in self._means.items()]
        return picture_chart(self.title, pictures, *self._ends)
