# SPDX-License-Identifier: Apache-2.0
"""The rows of an answer: its groups, and the totals of grouping sets. Post-processing.

``release`` makes a ``Rows`` from the released parts; ``table`` turns it into the stored table.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain

from sfumato.engines.base import Codes
from sfumato.plan.levels import Level
from sfumato.plan.output import Output
from sfumato.query.estimate import TOTAL, AnyReleased, ByLevel, Group, Released


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of an answer before HAVING and LIMIT.

    For each row, ``codes`` has its keys and ``members`` the indices of the groups whose sum it is.
    If grouping sets were measured as separate levels, ``released`` has the parts of all levels, and
    ``members`` counts the groups through all levels.
    """

    parts: tuple[AnyReleased, ...]
    codes: tuple[Group, ...]
    members: tuple[tuple[int, ...], ...]
    released: tuple[Released, ...] = ()


def by_level(
    parts: Sequence[Released],
    levels: int,
    members: Sequence[Sequence[int]],
) -> Iterator[ByLevel]:
    """Yields, for each aggregate, the noisy integers that were measured for it in all levels
    (separately measured grouping sets).

    ``members`` has the group indices of each row, counted through all levels (see ``Rows``).
    """
    count = len(parts) // levels
    ends = list(accumulate(parts[level * count].count for level in range(levels)))
    places: list[tuple[int, int]] = []
    members_by_level: list[list[list[int]]] = [[] for _ in range(levels)]
    for groups in members:
        level = bisect_right(ends, groups[0])
        start = ends[level - 1] if level else 0
        places.append((level, len(members_by_level[level])))
        members_by_level[level].append([group - start for group in groups])
    for place in range(count):
        summed = [
            _summed(parts[level * count + place], members_by_level[level])
            for level in range(levels)
        ]
        yield ByLevel(tuple(summed), tuple(places))


def merged(output: Output, parts: Sequence[Released], groups: Sequence[Group]) -> Rows:
    """Returns the rows of every grouping set (ROLLUP, CUBE), computed from noisy integers of the
    finest groups.

    A row is the sum, after the noise, over the groups that share its keys.

    Guarantees:
        a total is the sum of its parts
    """
    if not output.sets:
        return Rows(tuple(parts), tuple(groups), tuple((row,) for row in range(len(groups))))
    rows: list[tuple[Group, list[int]]] = []
    for kept in output.sets:
        classes: dict[Group, list[int]] = {}
        for row, codes in enumerate(groups):
            shown = tuple(code if place in kept else TOTAL for place, code in enumerate(codes))
            classes.setdefault(shown, []).append(row)
        rows += classes.items()
    keys = tuple(group for group, _ in rows)
    members = tuple(tuple(added) for _, added in rows)
    return Rows(tuple(_summed(part, members) for part in parts), keys, members)


def stacked(
    output: Output,
    parts: Sequence[Released],
    levels: Sequence[Level],
    groups: Sequence[Sequence[Codes]],
) -> Rows:
    """Returns the rows of every grouping set (ROLLUP, CUBE), computed from noisy integers of
    several levels that were measured separately.

    Each row is read from the level that serves its grouping set. ``parts`` has the parts of one
    level after the other, and ``groups`` the groups of each level.
    """
    starts = list(accumulate(map(len, groups), initial=0))
    width = len(set(chain.from_iterable(output.sets)))
    rows: list[tuple[Group, list[int]]] = []
    for place, set_keys in enumerate(output.sets):
        (number,) = [number for number, level in enumerate(levels) if place in level.sets]
        classes: dict[Group, list[int]] = {}
        for group, codes in enumerate(groups[number], starts[number]):
            by_key = dict(zip(levels[number].keys, codes, strict=True))
            shown = tuple(by_key[key] if key in set_keys else TOTAL for key in range(width))
            classes.setdefault(shown, []).append(group)
        rows += classes.items()
    members = tuple(tuple(added) for _, added in rows)
    whole = tuple(by_level(parts, len(levels), members))
    return Rows(whole, tuple(group for group, _ in rows), members, tuple(parts))


def _summed(part: Released, rows: Sequence[Sequence[int]]) -> Released:
    """A part with one row for each list of group indices: the sums of their integers."""
    values = []
    copies = []
    for groups in rows:
        columns = zip(*(part.values[group] for group in groups), strict=True)
        values.append(tuple(map(sum, columns)))
        copies.append(sum(part.copies[group] for group in groups))
    return replace(part, values=tuple(values), copies=tuple(copies))
