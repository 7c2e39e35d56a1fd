# SPDX-License-Identifier: Apache-2.0
"""A census as its user sees it: charged once, tables that add up, errors as planned."""

import math

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from scipy.stats import chi2

import sfumato as sf
from sfumato import synopsis
from sfumato.errors import WrongUse
from sfumato.privacy.distance import Norm
from sfumato.query.task import Stored
from sfumato.synopsis.geography.census import Census, census, measure_census
from sfumato.synopsis.geography.least_squares import by_axes
from sfumato.synopsis.geography.plan import census_plan, reach
from sfumato.testing import assert_at_most
from tests.synopsis.geography.surveys import ASKED, SPINE, opened, rows, truth


@pytest.mark.parametrize("cost", [{"epsilon": 10**5}, {"rho": 10**5}])
def test_with_hardly_any_noise_it_is_the_table(tmp_path, cost):
    frame = rows()
    with opened(tmp_path, frame) as session:
        found = synopsis.census(session, "people", SPINE, **ASKED, **cost)
    for level in ("nation", "state", "county"):
        lines = found.table(level, ["sex"]).to_pylist()
        counts = {(line[level], line["sex"]): line["estimate"] for line in lines}
        assert counts == truth(frame, level)


def test_a_census_is_consistent_and_recalled_for_free(tmp_path):
    with opened(tmp_path) as session:
        first = census(session, "people", SPINE, rho="0.01", **ASKED)
        before = repr(session.budget)
        # facts that are public are post-processing of the same measurement
        totals = {"state": {"s0": 2000}}
        zeros = [{"age_group": ["young"], "sex": ["M"]}]
        again = census(
            session, "people", SPINE, rho="0.01", public_totals=totals, zeros=zeros, **ASKED
        )
        assert repr(session.budget) == before
        assert again.stored.recalled
    design = first.plan.design
    for found in (first, again):
        for level in (1, 2):
            above = by_axes(found.counts[level - 1], design.detail(level - 1), design.detail(level))
            assert (design.tree.gathered(level - 1, found.counts[level]) == above).all()
            assert found.counts[level].min() >= 0
    assert again.counts[1][0].sum() == 2000
    assert again.counts[1][:, 0, 1].sum() == 0
    assert "Census of 'people'" in repr(first)


def test_estimates_depend_on_the_stored_bytes_alone(tmp_path):
    """A mutant that looks at the data itself is noticed: two datasets, one stored answer."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with opened(tmp_path / "one") as one, opened(tmp_path / "two", rows(2000, 9)) as two:
        here = census(one, "people", SPINE, rho="0.01", **ASKED)
        there = census(two, "people", SPINE, rho="0.01", **ASKED)
        moved = Census(there.plan, there.split, here.stored, "")
        peeking = Peeking(there.plan, there.split, here.stored, two)
        assert all((a == b).all() for a, b in zip(here.counts, moved.counts, strict=True))
        assert not all((a == b).all() for a, b in zip(here.counts, peeking.counts, strict=True))


class Peeking(Census):
    """The mutant keeps the exact total of the data."""

    def __init__(self, plan: object, split: object, stored: Stored, session: object) -> None:
        super().__init__(plan, split, stored, "")
        exact = session.query("SELECT COUNT(*) AS n FROM people", epsilon=1000)
        self._total = exact.to_dicts()[0]["n"]

    @property
    def counts(self) -> list[object]:
        first, *others = Census.counts.func(self)
        first = first.copy()
        first.flat[0] += self._total - first.sum()
        return [first, *others]


def test_errors_are_as_planned_and_margins_cover(tmp_path):
    """60 releases: the margin of least squares holds in at least 95% of them."""
    frame = rows(400)
    exact = truth(frame, "county")
    missed = 0
    squares = 0.0
    with opened(tmp_path, frame) as session:
        planned = census_plan(session.dataset, "people", SPINE, rho="0.05", **ASKED)
        (split, *_), cells = planned.splits, planned.squares(planned.splits[0])
        error = math.sqrt(cells.variances(2, (1,))[3])
        for release in range(60):
            found = measure_census(session.asking_as(f"a{release}"), planned)
            wrong = found.least_squares[2][3, 0] - exact["c3", "F"]
            missed += abs(wrong) > reach(Norm.L2) * error
            squares += (wrong / error) ** 2
    assert found.split == split
    assert_at_most(missed, 60, 0.05, notices=0.9)
    # nearly Gaussian errors: the sum of their squares has a chi-squared distribution
    least, most = chi2.ppf([5e-10, 1 - 5e-10], 60)
    assert least < squares < most


def test_tables_are_written_in_long_form(tmp_path):
    with opened(tmp_path) as session:
        found = census(session, "people", SPINE, rho=1, **ASKED)
    table = found.to_arrow()
    assert table.column_names == [
        "level", "geography", "table", "age_group", "sex", "estimate", "standard_error", "margin", "low", "high",
    ]  # fmt: skip
    assert table.num_rows == 6 + 1 + 2 * 6 + 6 * 2
    found.to_csv(tmp_path / "t.csv")
    found.to_parquet(tmp_path / "t.parquet")
    assert pa.parquet.read_table(tmp_path / "t.parquet").equals(table)
    assert (
        pa.csv.read_csv(tmp_path / "t.csv")["estimate"].to_pylist() == table["estimate"].to_pylist()
    )


def test_progress_is_reported_level_by_level(tmp_path):
    with opened(tmp_path) as session:
        found = census(session, "people", SPINE, rho=1, **ASKED)
    seen: list[str] = []
    assert found.estimate(seen.append) is found.counts
    assert seen == ["nation", "state", "county"]


def test_another_split_is_chosen_by_name(tmp_path):
    with opened(tmp_path) as session:
        found = census(session, "people", SPINE, rho=1, split="even by level", **ASKED)
        assert [str(share) for share in found.split.shares] == ["1/6", "1/6", "1/3", "1/3"]
        with pytest.raises(WrongUse, match="least error"):
            census(session, "people", SPINE, rho=1, split="best", **ASKED)


def test_codes_that_a_recode_skips_are_no_cells(tmp_path):
    steps = {"steps": "CASE WHEN sex = 'F' THEN 3 ELSE 7 END"}
    frame = rows(300)
    women = frame["sex"].to_pylist().count("F")
    with opened(tmp_path, frame) as session:
        found = census(
            session, "people", SPINE, epsilon=10**5, recodes=steps, tables={"nation": ["steps"]}
        )
    table = found.table("nation", ["steps"]).to_pylist()
    assert [(line["steps"], line["estimate"]) for line in table] == [
        ("3", women),
        ("7", 300 - women),
    ]


def test_rows_out_of_every_area_or_cell_are_in_no_table(tmp_path):
    frame = pa.concat_tables(
        [
            rows(10),
            pa.table(
                {"county": ["c9", None], "age": ["3", "3"], "sex": ["F", "F"], "job": ["", ""]}
            ),
            pa.table({"county": ["c1"], "age": ["3"], "sex": ["X"], "job": [""]}),
        ]
    )
    with opened(tmp_path, frame) as session:
        found = census(session, "people", SPINE, epsilon=10**5, **ASKED)
    assert [counts.sum() for counts in found.counts] == [10, 10, 10]


def test_a_household_can_be_the_unit_and_two_tables_cost_their_sum(tmp_path):
    """Persons and households are two tables of one unit: two charges, in one account."""
    columns = {"county": sf.Category(*[f"c{number}" for number in range(6)])}
    persons = pa.table({"home": [str(n // 3) for n in range(90)], "county": ["c1"] * 90})
    homes = pa.table({"home": [str(n) for n in range(30)], "county": ["c1"] * 30})
    tables = {
        "persons": sf.Table(persons, unit=sf.Unit("home", max_rows_total=3), columns=columns),
        "homes": sf.Table(homes, unit=sf.Unit("home", max_rows_total=1), columns=columns),
    }
    with sf.connect(
        tables, dataset="both", budget=sf.Budget(10**5), ledger=tmp_path / "l.db"
    ) as session:
        wanted = {"state": [], "county": []}
        found = census(session, "persons", SPINE, epsilon=1000, tables=wanted)
        assert [counts.sum() for counts in found.counts] == [90] * 3
        found = census(session, "homes", SPINE, epsilon=1000, tables=wanted)
        assert [counts.sum() for counts in found.counts] == [30] * 3
        assert session.budget.spent == "2000"
