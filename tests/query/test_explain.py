# SPDX-License-Identifier: Apache-2.0
"""In words: whom it protects, what was bounded, which bias that brings."""

import pytest

import sfumato as sf
from sfumato.metadata.column import ColumnType
from sfumato.metadata.dataset import Dataset
from sfumato.query.choose import Planned, plan_for_price
from sfumato.query.explain import bias, bounding, explain, protection
from sfumato.query.price import price
from sfumato.sql.lower import understand
from tests.contracts.people import dataset

EVERY = "SELECT sex, COUNT(*) AS n, SUM(age) AS s, AVG(hours) AS m FROM people GROUP BY sex"


APART = "the intervals do not hold what that changes."
HOURS = "hours was clipped to its declared [0, 10] and rounded to steps of 0.25, which moves a value by at most 0.125."


def planned(sql: str, **options: object) -> tuple[Planned, object]:
    """A planned question and its dataset."""
    asked = {"rho": 1} if options.pop("gaussian", False) else {"epsilon": 1}
    declared = dataset(**options)
    return plan_for_price(understand(sql, declared), declared, price(**asked)), declared


@pytest.mark.parametrize(
    ("relation", "words"),
    [(sf.AddRemove, "one unit added or removed"), (sf.ReplaceOne, "one unit replaced by another")],
)
def test_the_relation_and_the_unit_are_named(relation: object, words: str) -> None:
    plan, declared = planned(EVERY, relation=relation)
    assert protection(declared, plan.bounded.tracked.unit) == [
        f"Protected: each row is one unit; neighbours differ by {words}."
    ]
    plan, declared = planned(EVERY, unit=sf.Unit("person", max_rows=1, max_groups=1))
    assert (
        "each value of 'person' is one unit" in protection(declared, plan.bounded.tracked.unit)[0]
    )


def test_clipping_and_lattice_are_named_once_a_column() -> None:
    plan, _ = planned("SELECT SUM(age), AVG(age), AVG(hours), AVG(smoker) FROM people")
    assert bounding(plan.bounded) == [
        "age was clipped to its declared [0, 99] and rounded to steps of 1.",
        HOURS,
    ]


WEIGHTS = {
    False: "A unit with n > 2 of them in all groups together counts with weight 2/n in each.",
    True: "A unit of which they are s > 4, squared and added up, counts with weight sqrt(4/s) in each.",
}


@pytest.mark.parametrize("gaussian", WEIGHTS)
def test_the_limits_that_bind_are_named(*, gaussian: bool) -> None:
    unit = sf.Unit("person", max_rows=2, max_groups=1)
    plan, _ = planned("SELECT sex, COUNT(*) FROM people GROUP BY sex", unit=unit, gaussian=gaussian)
    assert bounding(plan.bounded) == [
        "A unit counts with at most 2 rows a group.",
        WEIGHTS[gaussian],
        "Rows whose unit is NULL are not used.",
    ]


def test_quantiles_are_weighed_in_their_own_norm() -> None:
    unit = sf.Unit("person", max_rows=2, max_groups=1)
    both = "SELECT sex, COUNT(*), MEDIAN(age) FROM people GROUP BY sex"
    plan, _ = planned(both, unit=unit, gaussian=True)
    quantiles = WEIGHTS[False].replace("counts with", "counts for quantiles with")
    assert bounding(plan.bounded)[-3:-1] == [WEIGHTS[True], quantiles]
    plan, _ = planned(both.replace("COUNT(*), ", ""), unit=unit, gaussian=True)
    assert bounding(plan.bounded)[-2] == WEIGHTS[False]


def test_a_unit_in_one_group_is_not_weighed() -> None:
    plan, _ = planned(
        "SELECT COUNT(*) FROM people", unit=sf.Unit("person", max_rows=2, max_groups=1)
    )
    assert bounding(plan.bounded) == [
        "A unit counts with at most 2 rows a group.",
        "Rows whose unit is NULL are not used.",
    ]


def test_a_total_limit_is_named() -> None:
    plan, _ = planned("SELECT COUNT(*) FROM people", unit=sf.Unit("person", max_rows_total=3))
    assert "A unit counts with at most 3 rows a group." in bounding(plan.bounded)
    plan, _ = planned(
        "SELECT sex, COUNT(*) FROM people GROUP BY sex",
        unit=sf.Unit("person", max_rows=3, max_rows_total=3),
    )
    expected = "A unit with n > 3 of them in all groups together counts with weight 3/n in each."
    assert expected in bounding(plan.bounded)


def test_a_distinct_count_says_how_it_chooses() -> None:
    unit = sf.Unit("person", max_groups=1)
    plan, _ = planned("SELECT sex, COUNT(DISTINCT person) FROM people GROUP BY sex", unit=unit)
    assert any(
        "sees a unit in at most 1 groups, chosen by a keyed hash" in line
        for line in bounding(plan.bounded)
    )
    assert any("units beyond the limits are missing" in line for line in bias(plan.bounded))


def test_the_bias_of_clipping_and_of_missing_keys_is_beside_the_interval() -> None:
    plan, _ = planned(EVERY)
    lines = bias(plan.bounded)
    assert any(
        line.startswith("SUM(age): values beyond the declared bounds of age count as the bound")
        for line in lines
    )
    assert lines[-1] == "Rows where sex is missing or not a declared value are in no group."


def test_a_count_of_rows_has_no_bias_and_says_nothing() -> None:
    plan, _ = planned("SELECT COUNT(*) FROM people")
    assert bias(plan.bounded) == []
    assert bounding(plan.bounded) == []


def test_limits_bring_a_bias_to_counts_and_sums() -> None:
    plan, _ = planned(
        "SELECT COUNT(*), COUNT(age), SUM(age) FROM people", unit=sf.Unit("person", max_rows=1)
    )
    text = "\n".join(bias(plan.bounded))
    assert (
        "COUNT(*): never above the raw count; rows beyond the limits are missing from it." in text
    )
    assert "COUNT(age): never above the raw count" in text
    assert "SUM(age): units beyond the row and group limits weigh less" in text


VISITS = sf.Unit("person", max_rows=3, max_groups=2)


@pytest.mark.parametrize(
    ("sql", "clipped", "cut"),
    [
        ("MAX(age)", ["age was clipped to its declared [0, 99] and rounded to steps of 1."], ""),
        ("MAX(born)", ["born was clipped to its declared [1960-01-01, 1979-12-31]."], ""),
        ("COUNT(*)", [], "the number of rows of a unit in a sub-query{} cut to [1, 6]"),
        ("COUNT(job)", [], "the number of values of a unit in a sub-query{} cut to [0, 6]"),
        (
            "COUNT(DISTINCT job)",
            [],
            "the number of different values of a unit in a sub-query{} cut to [0, 6]",
        ),
        # there are two, and six rows hold them
        ("COUNT(DISTINCT smoker)", [], ""),
        (
            "SUM(hours)",
            [HOURS],
            "the sum of a unit in a sub-query{} cut to [0, 60]",
        ),
    ],
)
def test_what_a_sub_query_clips_is_told_by_the_declared_names(
    sql: str, clipped: list[str], cut: str
) -> None:
    plan, _ = planned(
        f"SELECT MEDIAN(x) AS m FROM (SELECT person, {sql} AS x FROM people GROUP BY person)",
        unit=VISITS,
    )
    lines, words = bounding(plan.bounded), bias(plan.bounded)
    shown = [cut.format(" was").replace("the", "The", 1) + "."] if cut else []
    assert lines == [*clipped, *shown, "Rows whose unit is NULL are not used."]
    ends = "; the interval does not hold what that changes."
    told = [line for line in words if line.endswith(ends)]
    column = {"MAX(age)": "age", "MAX(born)": "born", "SUM(hours)": "hours"}.get(sql)
    expected = [
        f"QUANTILE(x, 0.5): values beyond the declared bounds of {column} count as the bound{ends}"
    ]
    step = {"age": "1", "hours": "0.25"}.get(str(column))
    if step is not None:
        assert f"{column} is rounded to steps of {step}; {APART}" in words
    assert told == expected * bool(column) + [
        f"QUANTILE(x, 0.5): {cut.format(' is')}{ends}"
    ] * bool(cut)
    assert not any("per_unit" in line for line in (*lines, *words))


def test_without_limits_a_sub_query_cuts_nothing() -> None:
    plan, _ = planned(
        "SELECT AVG(LEAST(n, 20)) AS m FROM (SELECT person, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY person)",
        unit=sf.Unit("person"),
    )
    assert bounding(plan.bounded) == ["Rows whose unit is NULL are not used."]


def test_a_union_clips_what_its_parts_read() -> None:
    parts = "SELECT person, age AS x FROM people UNION ALL SELECT person, age + 1 FROM people WHERE born > '1970-01-01'"
    plan, _ = planned(f"SELECT SUM(x) AS s FROM ({parts})", unit=VISITS)
    assert (
        bounding(plan.bounded)[0]
        == "age was clipped to its declared [0, 99] and rounded to steps of 1."
    )
    assert (
        "WHERE: people.born is compared as declared: clipped to its bounds, on its steps."
        in bias(plan.bounded)
    )
    assert not any("union" in line for line in (*bounding(plan.bounded), *bias(plan.bounded)))


def test_a_key_and_a_test_of_clipped_values_are_told_and_no_count_is_called_too_small() -> None:
    plan, _ = planned(
        "SELECT age, COUNT(*) AS n FROM people WHERE hours = 10 GROUP BY age", unit=VISITS
    )
    lines = bias(plan.bounded)
    assert "COUNT(*): rows beyond the limits are missing from it." in lines
    assert "WHERE: hours is compared as declared: clipped to its bounds, on its steps." in lines
    assert "GROUP BY: age is grouped as declared: clipped to its bounds, on its steps." in lines


def test_a_distinct_count_of_rows_has_the_bias_of_clipping_and_no_other() -> None:
    plan, _ = planned("SELECT COUNT(DISTINCT age) AS n FROM people")
    ends = "the interval does not hold what that changes."
    assert bias(plan.bounded) == [
        f"COUNT(DISTINCT age): values beyond the declared bounds of age count as the bound; {ends}",
        f"age is rounded to steps of 1; {APART}",
    ]


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        (sf.Integer(0, 5), "1"),
        (sf.Integer(0, 10**9), "1"),
        (sf.Real(0, 5, step=1), "1"),
        (sf.Real(0, 5, step="0.00001"), None),
        (sf.Real(0, 5, step="0.0001"), "0.0001"),
        (sf.Real(0, 5), None),
    ],
)
def test_what_may_be_rounded_names_the_step(kind: ColumnType, step: str | None) -> None:
    data = Dataset("d", {"t": sf.Table("t.csv", columns={"x": kind})})
    plan = plan_for_price(understand("SELECT SUM(x) AS s FROM t", data), data, price(epsilon=1))
    told = [line for line in bias(plan.bounded) if "rounded" in line]
    assert told == ([f"x is rounded to steps of {step}; {APART}"] if step else [])


@pytest.mark.parametrize(
    ("gaussian", "words"), [(False, "discrete Laplace noise"), (True, "discrete Gaussian noise")]
)
def test_the_whole_text_names_noise_and_cost(*, gaussian: bool, words: str) -> None:
    plan, declared = planned(EVERY, gaussian=gaussian)
    text = explain(plan, declared)
    assert text.count(words) == 3
    pure = (
        "Gaussian noise closes the pure gate"
        if gaussian
        else f"the pure gate books {plan.cost.epsilon}"
    )
    booked = (
        f"the zCDP gate books {plan.cost.rho}" if gaussian else f"the zCDP gate {plan.cost.rho}"
    )
    assert f"Cost: {plan.cost}; {pure}, {booked}." in text
    assert "unbounded" not in text
