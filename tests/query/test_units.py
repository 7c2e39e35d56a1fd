# SPDX-License-Identifier: Apache-2.0
"""Row, event, day, person, household, tie: what each unit hides, and what it does not."""

from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any

import pytest

from sfumato.engines.reference import Reference
from sfumato.metadata import Category, Column, Dataset, Integer, Table
from sfumato.plan.aggregate import CountRows, CountUnits, Sum
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Scan
from sfumato.plan.stages import Bounded, Raw
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy import Norm, Unit
from sfumato.query.pipeline import compile_plan

Rows = list[dict[str, Any]]
Data = Mapping[str, Rows]
Whose = Callable[[dict[str, Any]], Hashable]

HOUSEHOLD = {"Ann": "h1", "Bob": "h1", "Cleo": "h1", "Dan": "h2", "Eve": "h3"}
DAYS = ("mon", "tue", "wed")
# two walks a person and day, but one of Eve, who walked on Monday alone
WALKS: Rows = [
    {
        "walk": f"{person} {day} {turn}",
        "person": person,
        "day": day,
        "steps": 100 * (turn + 1) + 10 * place,
    }
    for place, person in enumerate(HOUSEHOLD)
    for day in DAYS
    for turn in (0, 1)
    if person != "Eve" or (day, turn) == ("mon", 0)
]
DATA: Data = {
    "people": [{"person": person, "household": home} for person, home in HOUSEHOLD.items()],
    "walks": WALKS,
    "stops": [
        {"walk": walk["walk"], "day": walk["day"], "steps": 190} for walk in WALKS for _ in (0, 1)
    ],
    "ties": [
        {"a": a, "b": b, "day": "mon", "steps": 190}
        for a, b in (("Ann", "Bob"), ("Ann", "Cleo"), ("Ann", "Dan"), ("Dan", "Ann"))
    ],
}
OF_WALK = {walk["walk"]: walk["person"] for walk in WALKS}
STEPS, DAY = Column("steps", Integer(0, 200)), Column("day", Category(*DAYS))
LOOSE = {"max_rows": 99, "max_groups": 3}

# kind: the units, the table asked, and whose a row of that table is, by a way of its own
KINDS: dict[str, tuple[dict[str, Unit | None], str, Whose]] = {
    "a row": ({"walks": None}, "walks", lambda row: row["walk"]),
    "an event": ({"walks": Unit("walk", max_rows=1, max_groups=1)}, "walks", lambda row: row["walk"]),
    "a day": ({"walks": Unit(["person", "day"], max_rows=2, max_groups=1)}, "walks", lambda row: (row["person"], row["day"])),
    "a person": ({"walks": Unit("person", max_rows=2, max_groups=3)}, "walks", lambda row: row["person"]),
    "a household": (
        {"people": Unit("household"), "walks": Unit("person", via="people.household", max_rows=6, max_groups=3)},
        "walks",
        lambda row: HOUSEHOLD[row["person"]],
    ),
    "a person, of stops": (
        {"walks": Unit("person"), "stops": Unit("walk", via="walks.person", max_rows=4, max_groups=3)},
        "stops",
        lambda row: OF_WALK[row["walk"]],
    ),
    "a household, of stops": (
        {
            "stops": Unit("walk", via="walks.person", max_rows=12, max_groups=3),
            "walks": Unit("person", via="people.household"),
            "people": Unit("household"),
        },
        "stops",
        lambda row: HOUSEHOLD[OF_WALK[row["walk"]]],
    ),
    "a tie": ({"ties": Unit(["a", "b"], max_rows=1, max_groups=1)}, "ties", lambda row: (row["a"], row["b"])),
    "a person with tight bounds": ({"walks": Unit("person", 1, 2, 2)}, "walks", lambda row: row["person"]),
}  # fmt: skip


def compiled(units: dict[str, Unit | None], table: str, norm: Norm) -> Bounded:
    """COUNT(*), SUM(steps), COUNT(DISTINCT unit) by day."""
    columns = {"steps": STEPS.type, "day": DAY.type}
    dataset = Dataset(
        "walking", {name: Table(f"{name}.csv", unit, columns) for name, unit in units.items()}
    )
    key = GroupKey(Value.of(DAY), tuple(range(len(DAYS))))
    parts = (CountRows(), Sum(Value.of(STEPS)), CountUnits())
    return compile_plan(
        Raw(Scan(table, "", (DAY, STEPS), owner_of(dataset, table)), (key,), parts), dataset, norm
    )


def distances(plan: Bounded, table: str, whose: Whose) -> list[Fraction]:
    """For each part, how far its integers move at most when the rows of one unit go, over the
    plan's claim.
    """
    full, worst = Reference(DATA).run(plan, "key"), [Fraction(0)] * len(plan.parts)
    for unit in {whose(row) for row in DATA[table]}:
        rest = {**DATA, table: [row for row in DATA[table] if whose(row) != unit]}
        for place, (part, before, after) in enumerate(
            zip(plan.parts, full, Reference(rest).run(plan, "key"), strict=True)
        ):
            moved = [
                abs(one - other)
                for group in {*before, *after}
                for one, other in zip(before.get(group, (0,)), after.get(group, (0,)), strict=True)
            ]
            power = 2 if plan.norm is Norm.L2 else 1
            worst[place] = max(
                worst[place], sum(each**power for each in moved) / part.distance.value
            )
    return worst


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@pytest.mark.parametrize("kind", KINDS)
def test_what_one_unit_changes_is_claimed_and_reached(kind: str, norm: Norm) -> None:
    units, table, whose = KINDS[kind]
    worst = distances(compiled(units, table, norm), table, whose)
    assert all(Fraction(1, 3) < each <= 1 for each in worst), kind
    if "tight" not in kind:
        # the bounds are those of the data, so somebody uses them up
        assert worst[0] == worst[2] == 1


def test_the_same_question_needs_more_noise_for_the_larger_unit() -> None:
    kinds = ("an event", "a day", "a person", "a household")
    plans = [compiled(*KINDS[kind][:2], Norm.L1) for kind in kinds]
    counts, sums = (
        [plan.parts[place].distance.value / plan.refinement for plan in plans] for place in (0, 1)
    )
    assert counts == [1, 2, 6, 18]
    assert sums == [200 * count for count in counts]


@pytest.mark.parametrize(
    ("declared", "larger"),
    [
        ("an event", "a day"),
        ("an event", "a person"),
        ("a day", "a person"),
        ("a person", "a household"),
        ("a person, of stops", "a household, of stops"),
        ("a tie", "a person of ties"),
    ],
)
def test_what_hides_the_smaller_unit_does_not_hide_the_larger_one(
    declared: str, larger: str
) -> None:
    units, table, _ = KINDS[declared]
    whose = KINDS[larger][2] if larger in KINDS else lambda row: row["a"]
    assert max(distances(compiled(units, table, Norm.L1), table, whose)) > 1


def test_a_row_of_nobody_is_not_used_and_a_key_of_two_belongs_to_one() -> None:
    units, table, _ = KINDS["a person, of stops"]
    plan = compiled(units, table, Norm.L1)
    walks = [
        {"walk": "w", "person": "Bob"},
        {"walk": "w", "person": "Ann"},
        {"walk": None, "person": "Cleo"},
    ]
    stops = [{"walk": walk, "day": "mon", "steps": 1} for walk in ("w", "w", "elsewhere", None)]
    both, only_ann, only_bob, neither = (
        Reference({"walks": known, "stops": stops}).run(plan, "key")
        for known in (walks, walks[1:], [walks[0], walks[2]], walks[2:])
    )
    counts, _, persons = both
    assert (counts[0,], persons[0,]) == ((2 * plan.refinement,), (plan.refinement,))
    assert both == only_ann == only_bob
    assert not any(any(integers) for part in neither for integers in part.values())
