# SPDX-License-Identifier: Apache-2.0
"""Questions of many names: the work once grew with the square of them.

Counted in lines run, not in seconds.
"""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

import sfumato as sf
from sfumato.errors import UnsupportedSql
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm
from sfumato.query.passes import prune
from sfumato.query.pipeline import compile_plan
from sfumato.sql import names, understand

Ask = Callable[[int], str]
BOTH = "SELECT SUM(a1) FROM (SELECT * FROM t UNION ALL SELECT * FROM t)"


def wide(columns: int) -> Dataset:
    """A table of many columns."""
    kinds = {f"a{place}": sf.Integer(0, 9) for place in range(columns)}
    return Dataset("d", {"t": sf.Table("x.csv", unit=sf.Unit("u", max_rows=2), columns=kinds)})


def ranked(columns: int) -> str:
    """The first row of each unit, where a question reads every column."""
    tests = " OR ".join(f"a{place} = 1" for place in range(columns))
    rank = "ROW_NUMBER() OVER (PARTITION BY u ORDER BY a1) AS r"
    return f"SELECT SUM(a1) FROM (SELECT a1, {rank} FROM t WHERE {tests}) WHERE r = 1"


def work(ask: Ask, columns: int) -> int:
    """The lines of ours that understanding and compiling takes."""
    lines = 0

    def count(frame: FrameType, event: str, _: object) -> object:
        nonlocal lines
        lines += event == "line"
        file = frame.f_code.co_filename
        return count if "sfumato" in file or file in ("<string>", __file__) else None

    dataset, sql = wide(columns), ask(columns)
    before = sys.gettrace()
    sys.settrace(count)
    try:
        compile_plan(understand(sql, dataset).raw, dataset, Norm.L1)
    finally:
        sys.settrace(before)
    return lines


def grows_evenly(ask: Ask) -> bool:
    """Whether four times the columns are less than five and a half times the work (a square would
    be 16).
    """
    return 2 * work(ask, 600) < 11 * work(ask, 150)


ASKED: dict[str, Ask] = {
    "rows of two tables": lambda columns: BOTH,
    "the first row": ranked,
    "every column": lambda columns: (
        f"SELECT SUM(a1) FROM t WHERE {' OR '.join(f'a{each} = 1' for each in range(columns))}"
    ),
    "columns renamed": lambda columns: (
        f"SELECT SUM(b1) FROM (SELECT {', '.join(f'a{each} AS b{each}' for each in range(columns))} FROM t)"
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_the_work_grows_with_the_columns_and_no_faster(name: str) -> None:
    assert grows_evenly(ASKED[name])


def test_names_that_are_looked_for_from_the_start_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def name(self: names.Context, wanted: str) -> str:
        count, chosen = 1, wanted
        while chosen in self._taken:
            count += 1
            chosen = f"{wanted}{count}"
        self._taken.add(chosen)
        return chosen

    monkeypatch.setattr(names.Context, "name", name)
    assert not grows_evenly(ASKED["rows of two tables"])


def test_ties_that_are_compared_with_each_other_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = prune._cut

    def cut(relation: object, read: set[str]) -> object:
        found = whole(relation, read)
        if isinstance(found, prune.Ranked):
            assert all(any(each == other for other in found.ties) for each in reversed(found.ties))
        return found

    monkeypatch.setattr(prune, "_cut", cut)
    assert not grows_evenly(ranked)


def test_more_names_in_with_than_anyone_writes_are_refused_at_once() -> None:
    for many in (201, 1900):
        defined = ",".join(f"x{place} AS(SELECT 1)" for place in range(many))
        with pytest.raises(UnsupportedSql, match=f"{many:,} names in WITH in one SELECT"):
            understand(f"WITH {defined} SELECT COUNT(*) FROM t", wide(2))
        with pytest.raises(UnsupportedSql, match="names in WITH"):
            understand(f"SELECT COUNT(*) FROM (WITH {defined} SELECT * FROM t)", wide(2))
    few = ",".join(f"x{place} AS(SELECT * FROM t)" for place in range(200))
    understand(f"WITH {few} SELECT COUNT(*) FROM x7", wide(2))
