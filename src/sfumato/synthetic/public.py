# SPDX-License-Identifier: Apache-2.0
"""Marginals that are public, such as official counts; synthetic rows match them exactly."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number, to_fraction
from sfumato.noise import Integers
from sfumato.synthetic.constraints import require_few
from sfumato.synthetic.estimate import Measurement
from sfumato.synthetic.rows import Dice, Given
from sfumato.synthetic.rules import Rule, Together
from sfumato.synthetic.schema import MOST_VALUES, Axis, Schema, TextAxis
from sfumato.synthetic.tree import Clique, components

# The standard deviation that a fit takes public counts to have, as a share of all rows.
_EXACT = 1e-5


@dataclass(frozen=True, slots=True)
class Public:
    """The public shares of the values of one or two columns; made by ``public``.

    >>> public("sex", {"F": 3, "M": 1}).shares
    ((('F',), Fraction(3, 4)), (('M',), Fraction(1, 4)))
    """

    columns: tuple[str, ...]
    shares: tuple[tuple[tuple[Any, ...], Fraction], ...]

    @property
    def told(self) -> dict[str, Any]:
        """Returns the marginal as JSON; values that JSON lacks are strings."""
        shares = []
        for values, share in self.shares:
            shares.append([[_plain(value) for value in values], str(share)])
        return {"columns": list(self.columns), "shares": shares}

    @classmethod
    def remade(
        cls,
        told: Mapping[str, Any],
    ) -> "Public":
        """Builds the public marginal from the JSON of ``told``."""
        shares = tuple((tuple(values), Fraction(share)) for values, share in told["shares"])
        return cls(tuple(told["columns"]), shares)


def _plain(
    value: Any,
) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def _text_of(
    value: Any,
) -> str | None:
    """Returns a value as the string by which it is looked up."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def public(
    columns: str | Sequence[str],
    counts: Mapping[Any, Number],
) -> Public:
    """Declares the counts or shares of the values of one column, or of two together, as public.

    Values that are not listed do not occur; None is a missing value. A value may be written as a
    string ("13", "true", "2020-01-31"). Of n sampled rows, a value always has n times its share,
    rounded up or down (largest remainders). Constraints may tie the columns to others.

    Raises:
        WrongUse: no counts, a negative one, or other than one or two columns.

    >>> public(["sex", "old"], {("F", True): 1, ("M", False): 1}).columns
    ('sex', 'old')
    """
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if not 1 <= len(set(names)) == len(names) <= 2 or not isinstance(counts, Mapping):
        raise WrongUse(
            f"A public marginal of {shown(columns)}.",
            allowed="one or two columns, and the count of each value",
            remedy='sy.public("sex", {"F": 52, "M": 48})',
        )
    counted_values = []
    for value, count in counts.items():
        key = (value,) if len(names) == 1 else value
        if not isinstance(key, tuple) or len(key) != len(names):
            raise WrongUse(f"The value {shown(value)}.", allowed="a value of each column")
        counted_values.append((key, to_fraction("count", count)))
    total = sum((count for _, count in counted_values), Fraction(0))
    if total <= 0 or any(count < 0 for _, count in counted_values):
        raise WrongUse(
            f"Public counts of {', '.join(names)} that are negative or all 0.",
            allowed="counts or shares from 0, one of them above 0",
        )
    return Public(names, tuple((key, count / total) for key, count in counted_values if count))


@dataclass(frozen=True, slots=True)
class PublicCells:
    """A public marginal in cells of columns; ``shape`` has the number of cells of each.

    ``tied`` are the other columns that constraints connect to it, directly or through others.

    Guarantees:
        counts of rows are less than one from their shares

    >>> PublicCells((0,), (3,), (((0,), Fraction(1, 3)), ((1,), Fraction(2, 3)))).counts(4).tolist()
    [1, 3, 0]
    """

    columns: Clique
    shape: tuple[int, ...]
    shares: tuple[tuple[Clique, Fraction], ...]
    tied: Clique = ()

    def counts(
        self,
        rows: int,
    ) -> Integers:
        """Returns how many of ``rows`` rows each cell has, flat: largest remainders."""
        counts = np.zeros(math.prod(self.shape), np.int64)
        remainders = []
        for cells, share in self.shares:
            at = int(np.ravel_multi_index(cells, self.shape))
            counts[at] = math.floor(rows * share)
            remainders.append((counts[at] - rows * share, at))
        for _, at in sorted(remainders)[: rows - int(counts.sum())]:
            counts[at] += 1
        return counts

    def measured(
        self,
        total: float,
    ) -> Measurement:
        """Returns the public marginal as a nearly exact ``Measurement`` for ``total`` rows, so that
        a model can be fitted to it.
        """
        counts = np.zeros(self.shape)
        for cells, share in self.shares:
            counts[cells] = float(share) * total
        return Measurement(self.columns, counts, np.full(self.shape, max(1.0, total) * _EXACT))

    def drawn(
        self,
        counts: Integers,
        dice: Dice,
    ) -> Given:
        """Draws rows with exactly these counts, in random order."""
        flat = np.repeat(np.arange(len(counts)), counts)[dice.order(int(counts.sum()))]
        return Given(self.columns, self._cells(flat))

    def enforced(
        self,
        rows: Integers,
        counts: Integers,
        dice: Dice,
    ) -> tuple[Integers, Given]:
        """Chooses which synthetic rows get other cells in these columns, so that the public counts
        hold exactly.

        Returns the indices of these rows, and their new cells.
        """
        flat = np.ravel_multi_index(tuple(rows[:, list(self.columns)].T), self.shape)
        have = np.bincount(flat, minlength=len(counts))
        order = dice.order(len(flat))
        order = order[np.argsort(flat[order], kind="stable")]
        within = np.arange(len(flat)) - np.repeat(np.cumsum(have) - have, have)
        moved: Integers = order[within >= counts[flat[order]]]
        missing = np.repeat(np.arange(len(counts)), np.maximum(counts - have, 0))
        return moved, Given(self.columns, self._cells(missing[dice.order(len(missing))]))

    def _cells(
        self,
        flat: Integers,
    ) -> Integers:
        """Returns the cells of each column, one row per flat index."""
        return np.column_stack(np.unravel_index(flat, self.shape))


def next_counts(
    left: Integers,
    rows: int,
) -> Integers:
    """Returns how many of the next ``rows`` rows go to each cell, given the counts ``left`` to
    draw.

    Guarantees:
        counts of parts add up, and each is less than one from its share

    >>> next_counts(np.array([6, 3, 0]), 4).tolist()
    [3, 1, 0]
    """
    whole = max(int(left.sum()), 1)
    found, remainders = np.divmod(left * rows, whole)
    largest = np.argsort(-remainders, kind="stable")[: rows - int(found.sum())]
    found[largest] += 1
    return found


def public_cells(
    schema: Schema,
    publics: Sequence[Public],
    rules: Sequence[Rule],
) -> tuple[PublicCells, ...]:
    """Converts public marginals to cells; reads declarations only.

    Raises:
        UnknownName: a column that is not synthesised.
        WrongUse: an undeclared value; a column with bins; one in two public marginals; one that
            constraints contradict, or tie to that of another public marginal.
    """
    marginals: list[PublicCells] = []
    taken: set[int] = set()
    for public_marginal in publics:
        marginal = _resolve_marginal(schema, public_marginal)
        if taken & set(marginal.columns):
            raise WrongUse(
                f"Two public marginals of {', '.join(public_marginal.columns)}.",
                allowed="one for each column",
                remedy="State the two columns together.",
            )
        taken |= set(marginal.columns)
        marginals.append(marginal)
    cliques = [marginal.columns for marginal in marginals] + [rule.columns for rule in rules]
    within = components(len(schema.axes), cliques)
    _require_apart(publics, [within[marginal.columns[0]] for marginal in marginals])
    for place, marginal in enumerate(marginals):
        component = within[marginal.columns[0]]
        near = tuple(rule for rule in rules if within[rule.columns[0]] == component)
        marginals[place] = _tie_by_rules(schema, publics[place], marginal, near)
    return tuple(marginals)


def _require_apart(
    publics: Sequence[Public],
    within: Sequence[int],
) -> None:
    """Raises WrongUse if constraints connect two public marginals."""
    before: dict[int, str] = {}
    for each, component in zip(publics, within, strict=True):
        names = ", ".join(each.columns)
        if component in before:
            raise WrongUse(
                f"Constraints tie {names} to {before[component]}; both have public marginals.",
                allowed="one public marginal among columns that constraints tie to each other",
                remedy="Leave one of them out, or state two columns together.",
            )
        before[component] = names


def _resolve_marginal(
    schema: Schema,
    marginal: Public,
) -> PublicCells:
    places = [schema.place(name) for name in marginal.columns]
    axes = [schema.axes[place] for place in places]
    cells_by_value = [_cells(axis) for axis in axes]
    order = sorted(range(len(places)), key=lambda at: places[at])
    shares = []
    for values, share in marginal.shares:
        cells = []
        for at in order:
            value = _text_of(values[at])
            if value not in cells_by_value[at]:
                raise WrongUse(
                    f"The public value {shown(values[at])} of {shown(axes[at].name)}.",
                    allowed="declared values, and None where missing= is declared",
                )
            cells.append(cells_by_value[at][value])
        shares.append((tuple(cells), share))
    if len({cells for cells, _ in shares}) < len(shares):
        raise WrongUse(
            f"A value twice in the public marginal of {', '.join(marginal.columns)}.",
            allowed="each value once",
        )
    columns = tuple(places[at] for at in order)
    shape = tuple(axes[at].cells for at in order)
    return PublicCells(columns, shape, tuple(shares))


def _cells(
    axis: Axis,
) -> dict[Any, int]:
    """Maps each declared value to its cell."""
    if axis.starts is not None or axis.bins > MOST_VALUES or isinstance(axis, TextAxis):
        raise WrongUse(
            f"A public marginal of {shown(axis.name)}.",
            allowed=f"columns of at most {MOST_VALUES} declared values, without bins",
        )
    listed = axis.values(axis.limits[:-1]).to_pylist()
    found = {_text_of(value): at for at, value in enumerate(listed)}
    if axis.is_nullable:
        found[None] = axis.bins
    return found


def _tie_by_rules(
    schema: Schema,
    marginal: Public,
    resolved: PublicCells,
    rules: tuple[Rule, ...],
) -> PublicCells:
    """Adds the columns that rules tie to a marginal; raises WrongUse if they forbid one of its
    values.
    """
    if not rules:
        return resolved
    rows = Together(rules, schema.cells, resolved.columns)
    require_few(rows, ", ".join(shown(schema.names[place]) for place in rows.columns))
    allowed = rows.allowed()
    for (cells, _), (values, _) in zip(resolved.shares, marginal.shares, strict=True):
        if not allowed[cells]:
            named = ", ".join(shown(value) for value in values)
            raise WrongUse(
                f"A constraint contradicts the public marginal of {', '.join(marginal.columns)}: "
                f"no row can have {named}.",
                remedy="Leave one of them out.",
            )
    tied = tuple(place for place in rows.columns if place not in resolved.columns)
    return replace(resolved, tied=tied)
