# SPDX-License-Identifier: Apache-2.0
"""The integers of a part against its proved distance: on all neighbours of small tables, with a
mutant.
"""

import itertools
from collections.abc import Callable
from fractions import Fraction

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines.base import Exact
from sfumato.engines.reference import Reference
from sfumato.engines.result_rows import columns
from sfumato.errors import InvalidDeclaration
from sfumato.metadata.dataset import Dataset
from sfumato.plan.stages import Bounded
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.add_noise import every_group
from sfumato.query.cells import Cells, Units, WeightedLeaves
from sfumato.query.pipeline import compile_plan
from sfumato.query.statistic import Opened
from sfumato.sql.lower import understand
from tests.contracts.tasks import BY_SEX, cells, plan_of

PEOPLE = [{"person": who, "sex": sex, "age": age} for who in "ab" for sex in "FM" for age in (1, 3)]


def declared(relation: object) -> Dataset:
    """People with at most two rows a group and two groups."""
    made = {"sex": sf.Category("F", "M"), "age": sf.Integer(0, 3)}
    table = sf.Table(
        pa.Table.from_pylist(PEOPLE), unit=sf.Unit("person", max_rows=2, max_groups=2), columns=made
    )
    return Dataset("tiny", {"people": table}, relation)


def exact(plan: Bounded, rows: list[dict[str, object]], statistic: Cells) -> list[int]:
    found = Reference({"people": rows}).run(plan, "key")
    return statistic.exact(Opened(plan, lambda: found))


def farthest(plan: Bounded, statistic: Cells) -> tuple[int, int, int]:
    """L1, squared L2 and Linf between any small table and the same without one of its units."""
    most = (0, 0, 0)
    for size in range(5):
        for rows in itertools.combinations(PEOPLE, size):
            whole = exact(plan, list(rows), statistic)
            for unit in {row["person"] for row in rows}:
                other = exact(plan, [row for row in rows if row["person"] != unit], statistic)
                moved = [abs(one - two) for one, two in zip(whole, other, strict=True)]
                most = tuple(
                    map(max, most, (sum(moved), sum(each**2 for each in moved), max(moved)))
                )
    return most


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@pytest.mark.parametrize("what", ["COUNT(*)", "SUM(age)"])
def test_the_cells_of_a_part_move_by_at_most_its_proved_distance(norm: Norm, what: str) -> None:
    people = declared(sf.AddRemove)
    plan = compile_plan(
        understand(f"SELECT sex, {what} AS n FROM people GROUP BY sex", people).raw, people, norm
    )
    statistic = cells(plan)
    taxi, square, largest = farthest(plan, statistic)
    assert (taxi if norm is Norm.L1 else square) <= statistic.distance(norm).value
    if norm is Norm.L1:
        assert largest <= statistic.distance(Norm.LINF).value


def weights(plan: Bounded, rows: list[dict[str, object]]) -> list[dict[int, int]]:
    """The weight of each leaf in each group."""
    found = Reference({"people": rows}).run(plan, "key")
    exact = WeightedLeaves(cells(plan)).exact(Opened(plan, lambda: found))
    return [dict(zip(*map(list, pair), strict=True)) for pair in exact]


def heaviest(plan: Bounded) -> int:
    """The most that a set of leaves of a group moves when a unit of any small table leaves."""
    most = 0
    for size in range(5):
        for rows in itertools.combinations(PEOPLE, size):
            for unit in {row["person"] for row in rows}:
                others = [row for row in rows if row["person"] != unit]
                for one, other in zip(weights(plan, [*rows]), weights(plan, others), strict=True):
                    moved = [one.get(leaf, 0) - other.get(leaf, 0) for leaf in {*one, *other}]
                    most = max(most, sum(each for each in moved if each > 0), -sum(moved))
    return most


def quantiles_by_sex() -> Bounded:
    people = declared(sf.AddRemove)
    sql = "SELECT sex, MEDIAN(age) AS m FROM people GROUP BY sex"
    return compile_plan(understand(sql, people).raw, people, Norm.L1)


def test_the_leaves_of_a_group_move_by_at_most_their_proved_distance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = quantiles_by_sex()
    claimed = WeightedLeaves(cells(plan)).distance(Norm.LINF).value
    assert 0 < heaviest(plan) <= claimed
    # a mutant of the leaves: each counts twice
    honest = WeightedLeaves.exact
    monkeypatch.setattr(
        WeightedLeaves,
        "exact",
        lambda self, opened: [(leaves, 2 * own) for leaves, own in honest(self, opened)],
    )
    assert heaviest(plan) > claimed


def test_leaves_are_those_of_columns_and_of_groups_without_rows() -> None:
    plan = quantiles_by_sex()
    table = pa.table({"k": [1, 1], "leaf": [3, 1], "n": pa.array([5, 7], pa.decimal128(38))})
    statistic = WeightedLeaves(cells(plan))
    (part,) = columns(plan, (0,), table).values()
    first, second = statistic.exact(Opened(plan, lambda: (part,)))
    assert [array.tolist() for array in (*first, *second)] == [[], [], [1, 3], [7, 5]]
    flat = ({(1,): (1, 7, 3, 5)},)
    first, second = statistic.exact(Opened(plan, lambda: flat))
    assert [array.tolist() for array in (*first, *second)] == [[], [], [1, 3], [7, 5]]
    with pytest.raises(InvalidDeclaration, match="Leaves"):
        WeightedLeaves(cells(plan_of(BY_SEX)))


def test_a_group_twice_would_move_further_and_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    people = declared(sf.AddRemove)
    plan = compile_plan(understand(BY_SEX, people).raw, people, Norm.L1)
    twice = (*every_group(plan.tracked.raw.keys),) * 2
    with pytest.raises(InvalidDeclaration):
        Cells(plan, 0, twice)
    monkeypatch.setattr(Cells, "__post_init__", lambda self: None)
    statistic = Cells(plan, 0, twice)
    assert farthest(plan, statistic)[0] > statistic.distance(Norm.L1).value


class Code(int):
    """A code that equals what it stands for, and no other code."""

    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other if isinstance(other, Code) else int(self) == other


def test_a_group_of_codes_that_lie_is_refused() -> None:
    with pytest.raises(InvalidDeclaration, match="Code"):
        Cells(plan_of(), 0, tuple((Code(1),) for _ in range(2000)))


@pytest.mark.parametrize("made", [list, lambda groups: tuple(map(list, groups)), iter])
def test_groups_that_may_change_are_refused(made: Callable[[object], object]) -> None:
    with pytest.raises(InvalidDeclaration, match="change"):
        Cells(plan_of(), 0, made([(0,), (1,)]))


def test_a_group_that_comes_after_the_check_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    people = declared(sf.AddRemove)
    plan = compile_plan(understand(BY_SEX, people).raw, people, Norm.L1)
    monkeypatch.setattr(Cells, "__post_init__", lambda self: None)
    groups = every_group(plan.tracked.raw.keys)
    statistic = Cells(plan, 0, groups)
    groups += groups
    assert farthest(plan, statistic)[0] > statistic.distance(Norm.L1).value


def test_a_part_is_released_in_its_own_norm() -> None:
    one, two = cells(plan_of()), cells(plan_of(norm=Norm.L2))
    assert one.distance(Norm.LINF) == Distance(Norm.LINF, one.distance(Norm.L1).value)
    for statistic, norm in ((one, Norm.L2), (two, Norm.L1), (two, Norm.LINF)):
        with pytest.raises(InvalidDeclaration):
            statistic.distance(norm)


def test_a_group_without_rows_is_zeros() -> None:
    plan = plan_of("SELECT sex, AVG(age) AS m FROM people GROUP BY sex")
    assert cells(plan).exact(Opened(plan, lambda: ({(1,): (30, 15)},))) == [0, 0, 30, 15]


JOBS = "SELECT job, COUNT(*) AS n, COUNT(DISTINCT person) AS u FROM people GROUP BY job"


def by_job() -> tuple[Bounded, Units]:
    """Groups that are not public, with the part that counts their units."""
    people = sf.Table(
        pa.table({"person": ["a"], "job": ["cook"]}),
        unit=sf.Unit("person", max_rows=1, max_groups=3),
        columns={"job": sf.Text()},
    )
    made = Dataset("tiny", {"people": people}, sf.AddRemove)
    plan = compile_plan(understand(JOBS, made).raw, made, Norm.L1)
    return plan, Units(plan, 1)


def test_the_number_of_units_of_a_group_moves_by_at_most_one() -> None:
    plan, units = by_job()
    assert units.groups == 3
    assert units.distance(Norm.LINF) == Distance(Norm.LINF, Fraction(1))
    with pytest.raises(InvalidDeclaration):
        units.distance(Norm.L1)
    rows = [{"person": who, "job": job} for who in "abc" for job in ("cook", "judge")]

    def counts(rows: list[dict[str, object]]) -> dict[object, int]:
        found: Exact = Reference({"people": rows}).run(plan, "key")
        return units.exact(Opened(plan, lambda: found))

    whole, other = counts(rows), counts([row for row in rows if row["person"] != "a"])
    assert whole == {("cook",): 3, ("judge",): 3} and other == {("cook",): 2, ("judge",): 2}


def test_units_of_columns_are_those_of_mappings() -> None:
    plan, units = by_job()
    fine = plan.refinement
    found = columns(
        plan, (0, 1), pa.table({"job": ["cook", "judge"], "n": [4, 2], "u": [3 * fine, 2 * fine]})
    )
    counts, groups = units.exact(Opened(plan, lambda: (found[0], found[1])))
    assert (counts.tolist(), groups([1])) == ([3, 2], [("judge",)])
    assert units.exact(Opened(plan, lambda: tuple(map(dict, found.values())))) == {
        ("cook",): 3,
        ("judge",): 2,
    }


def test_units_are_counted_by_what_counts_units() -> None:
    with pytest.raises(InvalidDeclaration):
        Units(by_job()[0], 0)
