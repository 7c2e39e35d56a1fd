# SPDX-License-Identifier: Apache-2.0
"""Sums by group on all neighbours of small tables, with broken versions."""

import itertools
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidDeclaration
from sfumato.mining import group_sums
from sfumato.mining.group_sums import GroupSums
from sfumato.privacy.distance import Norm
from tests.mining.scans import BOUND, NOTE, SCAN, TERMS, WARD, Row, plan, rows, statistic, sums

# by ward, by terms, and all in one group
GROUPED: Any = [(WARD, ()), (NOTE, TERMS), (None, ())]


OTHERS = [*rows("b", ([1, 1], "eye", "red")), *rows("c", ([-3, 2], None, "eye zebra"))]
MINE: Any = [
    ([3, -3], "eye", "red eye red"),
    ([3, -3], "ear", "eye eye"),
    ([-3, 3], "eye", "the red"),
    ([0, 0], None, None),
    (None, "ear", "red"),
]


def units() -> list[list[Row]]:
    pairs = itertools.combinations_with_replacement(MINE, 2)
    return [[], *(rows("a", one) for one in MINE), *(rows("a", *pair) for pair in pairs)]


def farthest(counted: GroupSums, *, replaced: bool = False) -> int:
    """How far, squared, sums are from those without a unit, or with another in its place."""
    found = [sums(counted, [*mine, *OTHERS]) for mine in units()]
    others = found if replaced else found[:1]
    return max(int(((one - other) ** 2).sum()) for one in found for other in others)


@pytest.mark.parametrize(("by", "only"), GROUPED)
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
@pytest.mark.parametrize("bound", [7, BOUND, 1000])
def test_sums_of_groups_move_by_at_most_their_proved_distance(
    by: int | None, only: tuple[str, ...], relation: Any, bound: int
) -> None:
    counted = statistic(by, only, relation=relation, bound=bound)
    moved = farthest(counted, replaced=relation is sf.ReplaceOne)
    proved = counted.distance(Norm.L2).value
    assert moved <= proved
    if relation is sf.AddRemove and bound == BOUND:
        assert moved > proved / 2, "the bound is nearly attained"


def test_broken_versions_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = group_sums.clipped

    def not_cut(vectors: Any, bound: int, norm: Norm, owners: Any) -> Any:
        return vectors

    def cut_group_by_group(vectors: Any, bound: int, norm: Norm, owners: Any) -> Any:
        return honest(vectors, bound, norm)

    def cut_without_the_weight(vectors: Any, bound: int, norm: Norm, owners: Any) -> Any:
        shorter = vectors.copy()
        shorter[:, :-1] = honest(vectors[:, :-1], bound, norm, owners)
        return shorter

    for broken, (by, only) in (
        (not_cut, (WARD, ())),
        (cut_group_by_group, (WARD, ())),
        (cut_group_by_group, (NOTE, TERMS)),
        (cut_without_the_weight, (None, ())),
    ):
        monkeypatch.setattr(group_sums, "clipped", broken)
        counted = statistic(by, only)
        assert farthest(counted) > counted.distance(Norm.L2).value, broken


@pytest.mark.parametrize("cells", [1, 1 << 21])
def test_the_sums_are_those_of_the_definition(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row with a token twice is once in its group; one without an array in none."""
    monkeypatch.setattr(group_sums, "_CELLS", cells)
    table = [*rows("a", MINE[0], MINE[1]), *rows("d", MINE[4]), *OTHERS]
    # offsets: 4 * [3, -3] - [2, -2] = [10, -10]; b [2, 6]; c [-14, 10]; then the weight
    by_ward = sums(statistic(WARD, bound=1000), table).reshape(3, 3).tolist()
    assert by_ward == [[12, -4, 6], [10, -10, 3], [-14, 10, 3]]
    by_term = sums(statistic(NOTE, TERMS, bound=1000), table).reshape(2, 3).tolist()
    assert by_term == [[12, -4, 6], [6, -10, 9]]
    assert sums(statistic(None, bound=1000), table).tolist() == [8, -4, 12]


def test_a_person_does_not_move_what_others_add(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token of one person changes the numbers of tokens, not the groups of others."""
    with_another = [*OTHERS, *rows("a", (None, "eye", "aaa exit zzz"))]
    before = sums(statistic(NOTE, TERMS), OTHERS)
    assert (sums(statistic(NOTE, TERMS), with_another) == before).all()

    def by_number(self: GroupSums, tokens: Any, begin: int, end: int) -> Any:
        """The mutant: the numbers that "eye" and "red" have in OTHERS are taken for their names."""
        row = np.repeat(np.arange(end - begin), np.diff(tokens.starts[begin : end + 1]))
        number = tokens.numbers[tokens.starts[begin] : tokens.starts[end]]
        return row[number < 2], 1 - number[number < 2]

    monkeypatch.setattr(GroupSums, "_of_tokens", by_number)
    assert (sums(statistic(NOTE, TERMS), OTHERS) == before).all()
    assert (sums(statistic(NOTE, TERMS), with_another) != before).any(), "the mutant is noticed"


@pytest.mark.parametrize(
    "given",
    [
        {"picture": WARD},
        {"origin": (0,)},
        {"by": NOTE},
        {"by": NOTE, "only": ("red", "red")},
        {"by": WARD, "only": ("red",)},
        {"by": SCAN},
        {"weight": 0},
        {"bound": 0},
        {"bound": 1 << 31},
        {"scale": 1 << 28},
        {"origin": (0, 1 << 31)},
    ],
    ids=repr,
)
def test_what_has_no_bound_is_refused(given: Any) -> None:
    fields: Any = {"picture": SCAN, "by": None, "only": (), "scale": 1, "origin": (0, 0)}
    with pytest.raises(InvalidDeclaration):
        GroupSums(plan=plan(), **(fields | {"weight": 1, "bound": 9} | given))
    with pytest.raises(InvalidDeclaration):
        statistic(None).distance(Norm.L1)
