# SPDX-License-Identifier: Apache-2.0
"""Counts of units by key on all neighbours of small tables, with broken versions."""

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import row_tokens
from sfumato.errors import InvalidDeclaration
from sfumato.mining import unit_keys
from sfumato.mining.unit_keys import KeyCounts, Reading, UnitKeys, differing
from sfumato.privacy.distance import Norm
from tests.mining.notes import counted, differences, plan, rows, together, vector

# Others, each with more words than are kept; a unit that is added brings words before, between and
# after theirs.
OTHERS = together(
    rows("b", ("b d f h", "eye", 1), ("d b", "ear", 2)),
    rows("c", ("h f d", "ear", 3)),
    rows("d", ("b f", "eye", 0), ("h", None, 1)),
)
MINE = [
    ("a c e g i", "eye", 1),
    ("b", "ear", 2),
    ("c b a", None, 0),
    (None, "eye", 3),
    ("zz", "ear", 4),
]
TERMS, GROUPED = Reading(plan(), (0,)), Reading(plan(), (0,), 1)
PATHS = Reading(plan(), (1,), None, 2)
ITEMS = Reading(plan(), (0, 1))
PAIRS = ((0, "b"), (0, "d"), (0, "f")), ((0, "b", "d"), (0, "d", "f"))
STATISTICS = {
    "terms": UnitKeys(TERMS, 2),
    "terms by group": UnitKeys(GROUPED, 2),
    "pairs": UnitKeys(TERMS, 1, PAIRS[:1]),
    "three in a row": UnitKeys(TERMS, 1, PAIRS),
    "paths": UnitKeys(PATHS, 2),
    "pairs of paths": UnitKeys(PATHS, 1, (((0, 0), (0, 1)),)),
    "items": UnitKeys(ITEMS, 3),
}


def neighbours() -> list[list[Any]]:
    """All small sets of rows of one unit."""
    return [rows("a", *some) for size in range(4) for some in itertools.combinations(MINE, size)]


def farthest(statistic: UnitKeys, *, replaced: bool = False) -> tuple[int, int]:
    """The largest move of a count, and the most counts that move, over all neighbours."""
    most, keys = 0, 0
    ways = neighbours()
    without = [ways[0]] if not replaced else ways[::7]
    for other in without:
        base = counted(statistic, together(other, OTHERS))
        for mine in ways:
            moved = differences(counted(statistic, together(mine, OTHERS)), base)
            most, keys = max([most, *moved]), max(keys, len(moved))
    return most, keys


@pytest.mark.parametrize("name", STATISTICS)
def test_the_count_of_a_key_moves_by_at_most_one_and_only_for_keys_of_the_unit(name: str) -> None:
    statistic = STATISTICS[name]
    most, keys = farthest(statistic)
    assert most <= 1 and keys <= statistic.groups
    assert statistic.distance(Norm.LINF).value == 1


def test_a_unit_counts_in_the_stated_number_of_keys() -> None:
    for name, statistic in STATISTICS.items():
        _, keys = farthest(statistic)
        assert keys == statistic.groups or "paths" in name or "row" in name or name == "pairs"


@pytest.mark.parametrize("name", ["terms", "terms by group", "items"])
def test_a_replaced_unit_moves_twice_as_many_keys(name: str) -> None:
    most, keys = farthest(STATISTICS[name], replaced=True)
    assert most <= 1 and keys <= 2 * STATISTICS[name].groups


def test_which_keys_of_a_unit_count_depends_on_its_own_rows_alone() -> None:
    statistic = UnitKeys(TERMS, 2)
    alone = counted(statistic, rows("b", "b d f h"))
    for mine in neighbours():
        # the others of OTHERS have none of these words
        table = together(mine, rows("b", "b d f h"))
        less = counted(statistic, mine)
        assert differences(counted(statistic, table), less) == [1, 1]
        whole = Counter(less) + Counter(alone)
        assert counted(statistic, table) == whole


def cut(change: Any) -> Any:
    """The cut with changed arguments."""
    honest = unit_keys._cut
    return lambda unit, key, hashed, keep: honest(*change(unit, key, hashed, keep))


def by_count(unit: Any, key: Any, hashed: Any, keep: int) -> Any:
    """What most units have, comes first."""
    _, index, counts = np.unique(key, return_inverse=True, return_counts=True)
    return unit, key, np.zeros(len(key), np.uint64) + counts[index].astype(np.uint64), keep


def uncut(unit: Any, key: Any, hashed: Any, keep: int) -> Any:
    return unit, key, hashed, 10**6


def as_numbered(unit: Any, key: Any, hashed: Any, keep: int) -> Any:
    # ids of tokens are numbers that depend on all strings
    return unit, key, unit_keys._mixed(key.astype(np.uint64)), keep


def by_place(unit: Any, key: Any, hashed: Any, keep: int) -> Any:
    return unit, key, unit_keys._mixed(hashed + unit.astype(np.uint64) * np.uint64(977)), keep


BROKEN = {
    "kept by number": as_numbered,
    "kept by count": by_count,
    "kept by place": by_place,
    "cut after counting": uncut,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_cut_that_other_people_change_is_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_keys, "_cut", cut(BROKEN[name]))
    if name == "kept by count":
        monkeypatch.setattr(unit_keys, "_mixed", lambda numbers: numbers)
    worst = [farthest(UnitKeys(TERMS, keep)) for keep in (1, 2, 3)]
    assert any(keys > keep for keep, (_, keys) in zip((1, 2, 3), worst, strict=True))


def test_occurrences_in_place_of_units_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_keys, "_cut", lambda unit, key, hashed, keep: (unit, key))
    most, _ = farthest(UnitKeys(TERMS, 5))
    assert most > 1


def test_keys_kept_in_each_group_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = unit_keys._cut

    def by_group(unit: Any, key: Any, hashed: Any, keep: int) -> Any:
        _, group = np.unique(key // max(int(key.max(initial=0)) // 3, 1), return_inverse=True)
        places, kept = honest(unit * 100 + group, key, hashed, keep)
        return places // 100, kept

    monkeypatch.setattr(unit_keys, "_cut", by_group)
    _, keys = farthest(UnitKeys(GROUPED, 2))
    assert keys > 2


def brute(table: list[Any], *, by: bool) -> Counter[Any]:
    """The units of each word, by plain Python."""
    wards = {"eye": 0, "ear": 1, None: None}
    pairs = set()
    for row in table:
        for word in (row["note"] or "").split():
            pairs.add((row["who"], (wards[row["ward"]] if by else 0, word)))
    return Counter(key for _, key in pairs)


@pytest.mark.parametrize("by", [True, False])
def test_with_room_for_all_keys_the_counts_are_those_of_units(by: bool) -> None:
    statistic = UnitKeys(GROUPED if by else TERMS, 100)
    for mine in neighbours():
        table = together(mine, OTHERS)
        assert counted(statistic, table) == brute(table, by=by)


def test_a_short_hash_as_key_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two words with one hash, the one of a lone person would be shown with the count of both."""

    class Short(row_tokens._Numbers):
        def __missing__(self, string: str) -> int:
            short = ord(string[0]) % 2
            for known, number in self.items():
                if ord(known[0]) % 2 == short:
                    return number
            return super().__missing__(string)

    monkeypatch.setattr(row_tokens, "_Numbers", Short)
    table = together(rows("a", "b"), OTHERS)
    assert counted(UnitKeys(TERMS, 100), table) != brute(table, by=False)


def sequences(table: list[Any], size: int) -> Counter[Any]:
    """The units of each sequence of words within a row, by plain Python."""
    found = set()
    for row in table:
        words = (row["note"] or "").split()
        for start in range(len(words) - size + 1):
            found.add((row["who"], (0, *words[start : start + size])))
    return Counter(key for _, key in found)


def test_longer_keys_are_made_of_released_parts_that_follow_each_other_in_a_row() -> None:
    known = {(0, word) for word in "abcdefgh"}
    table = together(rows("a", "a b a b c", "c d"), OTHERS)
    pairs = counted(UnitKeys(TERMS, 100, (tuple(sorted(known)),)), table)
    assert pairs == sequences(table, 2)
    three = counted(UnitKeys(TERMS, 100, (tuple(sorted(known)), tuple(pairs))), table)
    assert three == sequences(table, 3)
    fewer = tuple(key for key in sorted(known) if key != (0, "b"))
    assert counted(UnitKeys(TERMS, 100, (fewer,)), table) == {
        key: n for key, n in sequences(table, 2).items() if "b" not in key
    }
    assert counted(UnitKeys(TERMS, 100, ((),)), table) == {}


def test_paths_follow_the_order_of_rows_and_skip_rows_without_it() -> None:
    mine = rows("a", ("", "ear", 3), ("", "eye", 1), ("", "ear", 2), ("", "eye", None))
    statistic = UnitKeys(Reading(plan(most=9), (1,), None, 2), 9, (((0, 0), (0, 1)),))
    codes = {"eye": 0, "ear": 1}
    expected = {(0, codes["eye"], codes["ear"]): 1, (0, codes["ear"], codes["ear"]): 1}
    assert counted(statistic, mine) == expected


def test_items_are_told_apart_by_their_columns() -> None:
    table = together(rows("a", ("eye", "eye", 1)), rows("b", ("eye ear", "ear", 1)))
    assert counted(UnitKeys(ITEMS, 9), table) == {
        (0, "eye"): 2,
        (0, "ear"): 1,
        (1, 0): 1,
        (1, 1): 1,
    }


# --- public keys ----------------------------------------------------------------------------------

PUBLIC = ((0, "b"), (0, "d"), (0, "f"), (0, "never"))


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
@pytest.mark.parametrize("keep", [1, 2, 9])
def test_counts_of_public_keys_move_by_at_most_their_proved_distance(
    norm: Norm, relation: Any, keep: int
) -> None:
    statistic = KeyCounts(Reading(plan(relation), (0,)), keep, PUBLIC)
    base = vector(statistic, OTHERS)
    others = [base]
    if relation is sf.ReplaceOne:
        others = [vector(statistic, together(mine, OTHERS)) for mine in neighbours()[::5]]
    for mine in neighbours():
        found = np.array(vector(statistic, together(mine, OTHERS)))
        for other in others:
            moved = np.abs(found - np.array(other))
            size = moved.sum() if norm is Norm.L1 else (moved**2).sum()
            assert size <= statistic.distance(norm).value


def test_public_keys_count_the_units_that_have_them() -> None:
    table = together(rows("a", "b never", "d"), OTHERS)
    assert vector(KeyCounts(TERMS, 9, PUBLIC), table) == [3, 3, 3, 1]
    people = KeyCounts(Reading(plan()), 1, ((0,),))
    assert vector(people, table) == [4] and vector(people, []) == [0]
    groups = KeyCounts(Reading(plan(), (), 1), 3, ((0,), (1,), (None,)))
    assert sorted(vector(groups, OTHERS)) == [1, 2, 2]


def test_a_public_key_twice_is_refused() -> None:
    for keys in ((), ((0, "b"), (0, "b")), ((0, 1), (0, True))):
        with pytest.raises(InvalidDeclaration):
            KeyCounts(TERMS, 2, keys)


def test_what_cannot_be_read_is_refused() -> None:
    wide = plan(statement="SELECT day * 700 + day * 3 + 1 AS wide, note FROM notes")
    for refused in (
        lambda: Reading(plan(), (0, 1), 2),
        lambda: Reading(plan(), (1,), 0),
        lambda: Reading(wide, (0,)),
        lambda: UnitKeys(TERMS, 0),
        lambda: UnitKeys(TERMS, 2).distance(Norm.L1),
        lambda: differing(2, Norm.LINF, plan()),
    ):
        with pytest.raises(InvalidDeclaration):
            refused()


@given(st.lists(st.text("abcd ", max_size=9), max_size=4), st.integers(1, 3))
def test_any_unit_changes_at_most_as_many_keys_as_are_kept(texts: list[str], keep: int) -> None:
    statistic = UnitKeys(TERMS, keep)
    base = counted(statistic, OTHERS)
    moved = differences(counted(statistic, together(rows("a", *texts), OTHERS)), base)
    assert len(moved) <= keep and set(moved) <= {1}


def test_units_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same counts however many values are read at once, and however often sums are merged."""
    table = together(rows("a", "a b c", "c d"), OTHERS)
    expected = [counted(statistic, table) for statistic in STATISTICS.values()]
    monkeypatch.setattr(unit_keys, "_AT_ONCE", 2)
    monkeypatch.setattr(unit_keys, "_MERGED", 1)
    assert [counted(statistic, table) for statistic in STATISTICS.values()] == expected
    assert vector(KeyCounts(TERMS, 9, PUBLIC), table) == [3, 3, 3, 0]


def test_equal_hashes_are_cut_in_the_order_of_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two words of one hash are still two keys, and others do not change which of them is kept."""
    monkeypatch.setattr(unit_keys, "_hash", lambda value: 7)
    most, keys = farthest(UnitKeys(TERMS, 2))
    assert (most, keys) == (1, 2)
    assert counted(UnitKeys(TERMS, 2), rows("b", "d b f")) == {(0, "b"): 1, (0, "d"): 1}


def test_who_has_few_keys_keeps_all_whoever_else_has_many() -> None:
    """Where nobody is cut no hash is compared; the counts are those of a cut that leaves all."""
    few = together(rows("b", "b d b", "d"), rows("c", "d", ("h", "ear", 1)))
    many = rows("a", "p q r s t u v")
    for statistic in (UnitKeys(TERMS, 4), UnitKeys(GROUPED, 4), UnitKeys(TERMS, 4, PAIRS[:1])):
        alone, beside = counted(statistic, few), counted(statistic, [*few, *many])
        assert alone == {key: n for key, n in beside.items() if key[1] not in "pqrstuv"}
