# SPDX-License-Identifier: Apache-2.0
"""The claimed distance holds for neighbours, is attained, and every broken rule violates it."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import reference, reference_rows
from sfumato.engines.reference import Reference
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import (
    Aggregate,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    Variance,
)
from sfumato.plan.owner import owner_of
from sfumato.plan.relation import Computed, PerUnit, PublicJoin, Scan, Summary, scans
from sfumato.plan.scalar import Field
from sfumato.plan.stages import Bounded, Limits, Raw, Tracked
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation as Neighbourhood
from sfumato.privacy.unit import Unit
from sfumato.query import stability
from sfumato.query.passes import bound
from sfumato.query.pipeline import compile_plan
from tests.contracts import plans as world
from tests.contracts.effort import examples
from tests.contracts.leaves import dense
from tests.query.test_stability_of_rows import alone, owner

LETTERS = Column("letter", sf.Category("a", "b", "c", "d"))


def value(low: int, high: int) -> Value:
    return Value.of(Column("value", sf.Integer(low, high)))


SIGNED, POSITIVE, EVEN, WIDE = value(-5, 3), value(2, 5), value(-5, 5), value(0, 5000)
HALF = (Fraction(1, 2),)
FINE = 2**20
Content = dict[str, list[dict[str, object]]]


@dataclass(frozen=True)
class Pair:
    """Two datasets that one unit tells apart."""

    one: Content
    other: Content


# --- how far the integers of neighbours are apart -----------------------------------------------


def differences(plan: Bounded, pair: Pair) -> list[list[list[int]]]:
    """For each part and group, how far each integer moves."""
    both = [Reference(content).run(plan, "key") for content in (pair.one, pair.other)]
    found = []
    for part, one, other in zip(plan.parts, *both, strict=True):
        found.append(
            [
                [a - b for a, b in zip(*both_dense(part, group, one, other), strict=True)]
                for group in {*one, *other}
            ]
        )
    return found


def both_dense(part, group, one, other):
    """The integers of a group in both, with those that are 0."""
    return [dense(part.aggregate, each.get(group, ())) for each in (one, other)]


def moved(plan: Bounded, pair: Pair) -> list[int]:
    """How far each part's integers really are apart, in the norm of its distance."""
    found = []
    for part, groups in zip(plan.parts, differences(plan, pair), strict=True):
        cells = [each for group in groups for each in group]
        norms = {
            Norm.L1: sum(map(abs, cells)),
            Norm.L2: sum(each * each for each in cells),
            Norm.LINF: max(map(heaviest, groups), default=0),
        }
        found.append(norms[part.distance.norm])
    return found


def heaviest(leaves: Sequence[int]) -> int:
    """The most that the weight of any set of leaves moves."""
    return max(sum(each for each in leaves if each > 0), -sum(each for each in leaves if each < 0))


def exceeds(plan: Bounded, pair: Pair) -> bool:
    """Whether neighbours differ by more than is claimed of any part."""
    far = zip(moved(plan, pair), plan.parts, strict=True)
    return any(each > part.distance.value for each, part in far) or spreads(plan, pair)


def spreads(plan: Bounded, pair: Pair) -> bool:
    """Whether quantiles move in more groups than is claimed, in sums or in sums of squares."""
    for part, groups in zip(plan.parts, differences(plan, pair), strict=True):
        if isinstance(part.aggregate, Quantiles):
            weights = [heaviest(group) for group in groups]
            units = 1 if part.distance.relation is sf.AddRemove else 2
            most, each = part.groups * units, part.distance.value
            if sum(weights) > each * most or sum(weight**2 for weight in weights) > each**2 * most:
                return True
    return False


# --- random questions to one table, every limit and every aggregate -------------------------------

AGGREGATES = (
    CountRows(),
    CountUnits(),
    *(
        make(each)
        for make in (CountValues, CountDistinct, Sum, Mean, Variance)
        for each in (SIGNED, POSITIVE)
    ),
    Quantiles(SIGNED, HALF),
)
ROW = st.tuples(st.sampled_from("abcd"), st.sampled_from([-5, -2, 0, 1, 2, 3, 5, None]))
CLOSED, OPEN, ALL = "closed", "open", "all"
Rows = list[dict[str, object]]


def person(letters: str, values: Sequence[int | None], name: str | None = "p") -> Rows:
    """One row for each letter and value of one unit."""
    return [
        {"person": name, "letter": letter, "value": each}
        for letter, each in zip(letters, values, strict=True)
    ]


def question(
    aggregates: Sequence[Aggregate], unit: Unit | None, keys: str, relation: Neighbourhood
):
    """Aggregates by letter or in all, of people with a unit or of rows."""
    values = [each.value for each in aggregates if not isinstance(each, CountRows | CountUnits)]
    # SIGNED and POSITIVE name the same column of the data: each reads it by its own declaration
    column = values[0].type if values else EVEN.type
    table = sf.Table("nowhere.csv", unit=unit, columns={"letter": LETTERS.type, "value": column})
    dataset = Dataset("data", {"people": table}, relation)
    columns = (LETTERS, Column("value", column))
    made = {
        ALL: (),
        CLOSED: (GroupKey(Value.of(LETTERS), (0, 1, 2, 3)),),
        OPEN: (GroupKey(Value.of(LETTERS), None),),
    }
    return Raw(
        Scan("people", columns=columns, owner=owner_of(dataset, "people")),
        made[keys],
        tuple(aggregates),
    ), dataset


def case(aggregate, norm, *, unit, keys, relation=sf.AddRemove) -> Bounded:
    """One aggregate, bounded."""
    raw, dataset = question((aggregate,), unit, keys, relation)
    return compile_plan(raw, dataset, norm)


@st.composite
def units(draw) -> Unit:
    total = draw(st.integers(1, 5) | st.none())
    limit = st.integers(1, 3) if total is None else st.integers(1, 3) | st.none()
    return Unit("person", draw(limit), draw(limit), total)


@st.composite
def asked(draw):
    """A question and neighbours."""
    unit, relation = draw(units() | st.none()), draw(st.sampled_from(Neighbourhood))
    kind = draw(st.sampled_from([SIGNED, POSITIVE]))
    possible = [
        each
        for each in AGGREGATES
        if isinstance(each, CountRows | CountUnits) or each.value == kind
    ]
    aggregates = draw(st.lists(st.sampled_from(possible), min_size=1, max_size=3, unique=True))
    names = st.sampled_from(["u", "v", "w", None])
    base = [
        each
        for name in draw(st.lists(names, max_size=3, unique=True))
        for each in draw(rows(name, unit))
    ]
    return question(aggregates, unit, draw(st.sampled_from([ALL, CLOSED, OPEN])), relation), draw(
        pairs(base, unit, relation)
    )


def rows(name: str | None, unit: Unit | None) -> st.SearchStrategy[Rows]:
    held = st.lists(ROW, min_size=1, max_size=9 if unit else 1)
    return held.map(
        lambda found: [each for row in found for each in person(row[0], [row[1]], name)]
    )


@st.composite
def pairs(draw, base: Rows, unit: Unit | None, relation: Neighbourhood) -> Pair:
    """A dataset and one with a unit more, or with one unit replaced by another.

    Rows of nobody may differ too.
    """
    one = base + draw(rows("p", unit)) if relation is sf.ReplaceOne else base
    other = base + draw(rows(draw(st.sampled_from(["p", "q"])), unit))
    return Pair({"people": one}, {"people": other + (draw(rows(None, unit)) if unit else [])})


@settings(deadline=None, max_examples=examples(4))
@given(asked())
def test_neighbours_differ_by_at_most_the_distance(asked):
    (raw, dataset), pair = asked
    for norm in (Norm.L1, Norm.L2):
        plan = compile_plan(raw, dataset, norm)
        for far, part in zip(moved(plan, pair), plan.parts, strict=True):
            assert far <= part.distance.value, (norm, part, far)
        assert not spreads(plan, pair)


# --- random questions over several tables ---------------------------------------------------------


def limited(draw, relation: Neighbourhood) -> Dataset:
    """The small world, each table with limits of its own."""
    by_total = draw(st.booleans())
    tables = {}
    for name, table in world.TABLES.items():
        unit, few = table.unit, st.integers(1, 3)
        if unit is not None:
            limits = (
                (None, None, draw(few))
                if by_total
                else (draw(few), draw(few), draw(few | st.none()))
            )
            unit = Unit(
                list(unit.columns), *limits, via=unit.via, key=unit.key if unit.via else None
            )
        tables[name] = sf.Table(
            "nowhere.csv", unit=unit, columns=table.columns, public=table.public
        )
    return Dataset("world", tables, relation)


@st.composite
def asked_of_the_world(draw):
    """A question over several tables, and neighbours: all rows go that a unit owns."""
    relation = draw(st.sampled_from(Neighbourhood))
    raw = draw(world.questions(depth=2))
    of_rows = any(scan.table == "rows" for scan in scans(raw.relation))
    return raw, limited(draw, relation), draw(neighbours(relation, of_rows=of_rows))


@st.composite
def neighbours(draw, relation: Neighbourhood, *, of_rows: bool) -> Pair:
    """The small world, and without one unit, or with another one instead."""
    content = draw(world.data(5))
    if of_rows:
        return without_a_row(draw, content, relation)
    names = {
        owner(table, row, content) for table in (*world.OWNED, "days") for row in content[table]
    } - {None}
    gone, instead = (draw(st.sampled_from(sorted(names) or ["p"])) for _ in range(2))
    # of the rows of nobody some may be there and some not
    less = alone(content, lambda each: each not in (gone, None))
    if relation is sf.AddRemove:
        return Pair(content, less)
    return Pair(alone(content, lambda each: each != instead), less)


def without_a_row(draw, content, relation):
    first = draw(world.rows("rows"))
    instead = [draw(world.rows("rows"))] if relation is sf.ReplaceOne else []
    one, other = ({**content, "rows": [*rows, *content["rows"]]} for rows in ([first], instead))
    return Pair(one, other)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(asked_of_the_world())
def test_questions_over_several_tables_keep_to_the_distance(asked):
    raw, dataset, pair = asked
    for norm in (Norm.L1, Norm.L2):
        assert not exceeds(compile_plan(raw, dataset, norm), pair)


# --- worst cases, by hand -------------------------------------------------------------------------


def pair_of(one: Rows, other: Rows) -> Pair:
    return Pair({"people": one}, {"people": other})


def added(letters: str, *values: int | None) -> Pair:
    """One person more, with these values in turn."""
    return pair_of(
        [], person(letters, [values[place % len(values)] for place in range(len(letters))])
    )


def swapped(letters: str, before: int | None, instead: str, after: int | None) -> Pair:
    return pair_of(
        person(letters, [before] * len(letters)), person(instead, [after] * len(instead))
    )


ROWS = Unit("person", max_rows=2)
GROUPS = Unit("person", max_rows=2, max_groups=2)
TOTAL = Unit("person", max_rows=2, max_groups=3, max_rows_total=3)
ADD, REPLACE = sf.AddRemove, sf.ReplaceOne
DISTINCT, SPREAD = CountDistinct(EVEN), Variance(SIGNED)
THREE_EACH = added("aaabbbcccddd", 1, 2, 3)
# A question of which one pair of neighbours attains the claim, and the claim in L1 and in squared
# L2.
TIGHT = {
    "a row": (CountRows(), None, CLOSED, ADD, added("a", 0), 1, 1),
    "a row replaced": (CountRows(), None, CLOSED, REPLACE, swapped("a", 0, "b", 0), 2, 2),
    "a row replaced, one cell": (
        CountValues(EVEN),
        None,
        ALL,
        REPLACE,
        swapped("a", 0, "a", None),
        1,
        1,
    ),
    "a row by an open key": (CountRows(), None, OPEN, REPLACE, swapped("a", 0, "b", 0), 2, 2),
    "a value of a row": (Sum(SIGNED), None, ALL, ADD, added("a", -9), 5, 25),
    "a value of a row replaced": (Sum(SIGNED), None, ALL, REPLACE, swapped("a", -9, "a", 9), 8, 64),
    "a distinct value of a row": (DISTINCT, None, CLOSED, REPLACE, swapped("a", 0, "b", 1), 2, 2),
    "row limit": (CountRows(), ROWS, ALL, ADD, added("aaaaa", 0), 2, 4),
    "row limit of values": (CountValues(EVEN), ROWS, ALL, ADD, added("aaa", 0), 2, 4),
    "the lower bound is larger": (Sum(SIGNED), ROWS, ALL, ADD, added("aaa", -9), 10, 100),
    "the upper bound is larger": (Sum(POSITIVE), ROWS, ALL, ADD, added("aaa", 9), 10, 100),
    "a mean moves by its range": (Mean(SIGNED), ROWS, ALL, ADD, added("aaa", -5), 16, 256),
    "a variance moves by its range squared": (
        SPREAD,
        ROWS,
        ALL,
        ADD,
        added("aaa", -5),
        128,
        128**2,
    ),
    "a variance of many levels": (
        Variance(WIDE, 2**10),
        ROWS,
        ALL,
        ADD,
        added("aaa", 0),
        2 * 10**6,
        4 * 10**12,
    ),
    "distinct values": (DISTINCT, ROWS, ALL, ADD, added("aaa", 1, 2, 3), 2, 4),
    "distinct values by group": (DISTINCT, GROUPS, CLOSED, ADD, THREE_EACH, 4, 8),
    "distinct values by total": (DISTINCT, TOTAL, CLOSED, ADD, THREE_EACH, 6, 12),
    "distinct values by open key": (DISTINCT, GROUPS, OPEN, ADD, THREE_EACH, 4, 8),
    "group limit": (CountRows(), GROUPS, CLOSED, ADD, added("aabbccdd", 0), 4, 8),
    "group limit of sums": (Sum(SIGNED), GROUPS, CLOSED, ADD, added("aabbccdd", -5), 20, 200),
    "group limit of means": (Mean(SIGNED), GROUPS, CLOSED, ADD, added("aabbccdd", 3), 32, 512),
    "group limit of variances": (
        SPREAD,
        GROUPS,
        CLOSED,
        ADD,
        added("aabbccdd", 3),
        256,
        2 * 128**2,
    ),
    "total": (CountRows(), TOTAL, CLOSED, ADD, added("aabbccdd", 0), 3, 6),
    "open keys": (CountRows(), GROUPS, OPEN, ADD, added("aabbccdd", 0), 4, 8),
    "open keys by total": (CountRows(), TOTAL, OPEN, ADD, added("aabbccdd", 0), 3, 6),
    "distinct units": (CountUnits(), GROUPS, CLOSED, ADD, added("abcd", 0), 2, 2),
    "distinct units by total": (CountUnits(), TOTAL, CLOSED, ADD, added("abcd", 0), 3, 3),
    "distinct units by open key": (CountUnits(), TOTAL, OPEN, ADD, added("abcd", 0), 3, 3),
    "one count replaced": (
        CountValues(EVEN),
        ROWS,
        ALL,
        REPLACE,
        swapped("aa", 0, "aa", None),
        2,
        4,
    ),
    "one sum replaced": (Sum(SIGNED), ROWS, ALL, REPLACE, swapped("aaa", -9, "aaa", 9), 16, 256),
    "one mean replaced": (Mean(SIGNED), ROWS, ALL, REPLACE, swapped("aa", -5, "aa", 3), 32, 512),
    "one variance replaced": (
        SPREAD,
        ROWS,
        ALL,
        REPLACE,
        swapped("aa", -5, "aa", 3),
        256,
        2 * 128**2,
    ),
    "one set of values replaced": (
        DISTINCT,
        Unit("person", 1),
        ALL,
        REPLACE,
        swapped("a", 0, "a", None),
        1,
        1,
    ),
    "counts replaced": (CountRows(), GROUPS, CLOSED, REPLACE, swapped("aabb", 0, "ccdd", 0), 8, 16),
    "sums replaced": (Sum(EVEN), GROUPS, CLOSED, REPLACE, swapped("aabb", -5, "aabb", 5), 40, 800),
    "positive sums replaced": (
        Sum(POSITIVE),
        GROUPS,
        CLOSED,
        REPLACE,
        swapped("aabb", 5, "ccdd", 5),
        40,
        400,
    ),
    "values replaced": (
        DISTINCT,
        GROUPS,
        CLOSED,
        REPLACE,
        pair_of(person("aabb", [1, 2, 1, 2]), person("ccdd", [1, 2, 1, 2])),
        8,
        16,
    ),
}


@pytest.mark.parametrize("norm", (Norm.L1, Norm.L2))
@pytest.mark.parametrize("name", TIGHT)
def test_the_claim_is_the_one_worked_out_by_hand_and_is_attained(name, norm):
    aggregate, unit, keys, relation, pair, first, second = TIGHT[name]
    plan = case(aggregate, norm, unit=unit, keys=keys, relation=relation)
    fine = plan.refinement if norm is Norm.L1 else plan.refinement**2
    claimed = plan.parts[0].distance
    assert claimed == Distance(
        norm, Fraction((first if norm is Norm.L1 else second) * fine), relation
    )
    assert (1 - Fraction(1, 10**5)) * claimed.value <= moved(plan, pair)[0] <= claimed.value


# A set of leaves moves by at most the first (in whole rows), in at most the second number of
# groups.
MEDIAN = Quantiles(SIGNED, HALF)
QUANTILES = {
    "of rows": (None, CLOSED, ADD, added("a", 0), 1, 1),
    "of rows replaced": (None, CLOSED, REPLACE, swapped("a", 0, "b", 0), 1, 1),
    "row limit of leaves": (ROWS, ALL, ADD, added("aaaaa", 0), 2, 1),
    "group limit of leaves": (GROUPS, CLOSED, ADD, added("aabb", 0), 2, 2),
    "more groups than the limit": (GROUPS, CLOSED, ADD, added("aabbccdd", 0), 2, 2),
    "open keys of leaves": (GROUPS, OPEN, ADD, added("aabbccdd", 0), 2, 2),
    "total of leaves": (Unit("person", 2, 3, 4), CLOSED, ADD, added("aabb", 0), 2, 2),
    "total of leaves by open key": (Unit("person", 2, 3, 4), OPEN, ADD, added("aabbcc", 0), 2, 2),
    "leaves replaced": (GROUPS, CLOSED, REPLACE, swapped("aabb", 0, "ccdd", 0), 2, 2),
}


@pytest.mark.parametrize("norm", (Norm.L1, Norm.L2))
@pytest.mark.parametrize("name", QUANTILES)
def test_a_unit_moves_the_quantiles_of_no_more_groups(name, norm):
    unit, keys, relation, pair, rows, groups = QUANTILES[name]
    plan = case(MEDIAN, norm, unit=unit, keys=keys, relation=relation)
    (part,), (moves,) = plan.parts, differences(plan, pair)
    assert part.distance == Distance(Norm.LINF, Fraction(rows * (FINE if unit else 1)), relation)
    assert part.groups == groups
    weights = [heaviest(each) for each in moves]
    most = part.distance.value * groups * (1 if relation is ADD else 2)
    assert max(weights) <= part.distance.value
    assert (1 - Fraction(1, 10**5)) * most <= sum(weights) <= most


def test_many_rows_in_many_leaves_keep_their_weight():
    # nine rows in nine leaves count as two in all: each leaf two ninths
    plan = case(MEDIAN, Norm.L1, unit=ROWS, keys=ALL)
    (moves,) = differences(plan, added("a" * 9, *range(-5, 4)))
    # the leaves of -5 to 3 of those of -5 to 5
    assert moves == [[-(2 * FINE // 9)] * 9 + [0] * (MEDIAN.width - 9)]


def test_a_step_is_cut_only_where_a_weight_can_be_below_one():
    free, groups, total = Limits(2, None, None), Limits(2, 2, None), Limits(2, 2, 3)
    distinct = CountDistinct(EVEN)
    for aggregates, limits, known, cut in (
        ((CountRows(),), free, 4, 1),
        ((CountRows(),), groups, 4, FINE),
        ((CountRows(),), groups, None, 1),
        ((CountRows(),), total, None, FINE),
        ((CountUnits(), distinct), total, 4, 1),
        ((CountUnits(), CountRows()), Limits(2, None, 3), 4, FINE),
        ((MEDIAN,), free, 4, FINE),
    ):
        raw = Raw(Scan("people"), (GroupKey(Value.of(LETTERS), (0, 1, 2, 3)),), aggregates)
        assert stability.refinement(Tracked(raw, "person", limits, known)) == cut
        assert stability.refinement(Tracked(raw, None, Limits(None, None, None), known)) == 1


@pytest.mark.parametrize("letters", ["".join(each) for each in product("abcd", repeat=4)][::7])
def test_a_unit_in_any_groups_stays_within_the_claim(letters):
    for norm, keys, aggregate in product((Norm.L1, Norm.L2), (CLOSED, OPEN), (CountRows(), MEDIAN)):
        for unit in (GROUPS, TOTAL, Unit("person", max_rows=1, max_groups=3)):
            assert not exceeds(case(aggregate, norm, unit=unit, keys=keys), added(letters, 1))


# --- mutants: each broken rule violates the claim in its worst case -------------------------------

HONEST = {
    name: getattr(reference._Unit, name) for name in ("of", "weight", "distinct", "integers")
} | {
    name: getattr(reference, name)
    for name in ("_linear", "_smaller", "_grouped", "_of_units", "_at_most")
}


def unclipped(aggregate, inside, limit):
    return HONEST["_linear"](aggregate, inside, None)


def weight_rounded_up(unit, norm):
    limits, count = unit.plan.tracked.limits, sum(map(len, unit.shown.values()))
    exact = min(
        Fraction(1),
        Fraction(limits.groups or 9, len(unit.shown)),
        Fraction(limits.total or count, count),
    )
    fine = unit.plan.refinement
    if norm is Norm.L1:
        return -(-exact * fine // 1)
    root = math.isqrt(math.floor(exact * fine**2))
    return root if root * root == exact * fine**2 else root + 1


def weight_without(limit):
    def weight(unit, norm):
        tracked = unit.plan.tracked
        freed = replace(tracked, limits=replace(tracked.limits, **{limit: None}))
        return HONEST["weight"](replace(unit, plan=replace(unit.plan, tracked=freed)), norm)

    return weight


def weight_of_the_other_norm(unit, norm):
    return HONEST["weight"](unit, Norm.L2 if norm is Norm.L1 else Norm.L1)


def weight_of_gauss(unit, norm):
    return HONEST["weight"](unit, Norm.L2)


def one_more(*limits):
    least = HONEST["_smaller"](*limits)
    return None if least is None else least + 1


def every_value(unit, aggregate, group):
    return set(reference._codes(aggregate.value, unit.shown[group]))


def every_group_shown(plan, name, held, sampling_key):
    unit = HONEST["of"](plan, name, held, sampling_key)
    return replace(unit, shown=held)


def rows_of_leaves_unlimited(count, limit):
    return count


def without_refinement(aggregate, plan, norm, relation, fine):
    return honest_distance(aggregate, plan, norm, relation, 1)


def one_group_fewer(aggregate, plan):
    return max(honest_occupied(aggregate, plan) - 1, 1)


honest_distance, honest_occupied, honest_limits = (
    stability.distance,
    stability.occupied,
    stability._limits,
)


def range_of_sum(aggregate):
    """The mutant of a Sum alone."""
    return aggregate.value.numeric.upper_code - aggregate.value.numeric.lower_code


def one_value_a_group(aggregate, plan):
    rows, groups, total = honest_limits(aggregate, plan)
    return (1, groups, groups) if isinstance(aggregate, CountDistinct) else (rows, groups, total)


def not_replaced(aggregate, plan, norm, one):
    return one


def level_as_code(aggregate):
    """The range of a mean for that of a variance."""
    return aggregate.value.numeric.upper_code - aggregate.value.numeric.lower_code


UNIT = reference._Unit
BOTH, ONLY_L2, ONLY_L1 = [True, True], [False, True], [True, False]
MUTANTS = {
    "row limit ignored in clipping": (reference, "_linear", unclipped, "row limit", BOTH),
    "row limit of sums ignored": (
        reference,
        "_linear",
        unclipped,
        "the upper bound is larger",
        BOTH,
    ),
    "row limit of variances ignored": (
        reference,
        "_linear",
        unclipped,
        "a variance moves by its range squared",
        BOTH,
    ),
    "groups limit ignored": (UNIT, "weight", weight_without("groups"), "group limit", BOTH),
    "total ignored": (UNIT, "weight", weight_without("total"), "total", BOTH),
    "total ignored by open key": (
        UNIT,
        "weight",
        weight_without("total"),
        "open keys by total",
        BOTH,
    ),
    "weights of Gauss for Laplace": (
        UNIT,
        "weight",
        weight_of_the_other_norm,
        "group limit",
        ONLY_L1,
    ),
    "groups of open keys not dropped": (UNIT, "of", every_group_shown, "open keys", BOTH),
    "one group more kept": (reference, "_smaller", one_more, "distinct units", BOTH),
    "one value more kept": (reference, "_smaller", one_more, "distinct values", BOTH),
    "every value counted": (UNIT, "distinct", every_value, "distinct values by group", BOTH),
    "refinement ignored": (bound, "distance", without_refinement, "group limit", BOTH),
    "one value a group": (stability, "_limits", one_value_a_group, "distinct values", BOTH),
    "replace factor dropped": (stability, "_replaced", not_replaced, "counts replaced", BOTH),
    "replace factor of values dropped": (
        stability,
        "_replaced",
        not_replaced,
        "values replaced",
        BOTH,
    ),
    "replace factor of one sum dropped": (
        stability,
        "_replaced",
        not_replaced,
        "one sum replaced",
        BOTH,
    ),
    "replace factor of one mean dropped": (
        stability,
        "_replaced",
        not_replaced,
        "one mean replaced",
        BOTH,
    ),
    "one variance taken as one integer": (
        stability,
        "_replaced",
        not_replaced,
        "one variance replaced",
        BOTH,
    ),
    "signed sums taken as positive": (
        Sum,
        "never_negative",
        property(lambda _: True),
        "sums replaced",
        ONLY_L2,
    ),
    "the range of a sum for its size": (
        Sum,
        "largest",
        property(range_of_sum),
        "the upper bound is larger",
        BOTH,
    ),
    "the range of a variance not squared": (
        Variance,
        "largest",
        property(level_as_code),
        "a variance moves by its range squared",
        BOTH,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_rule_violates_the_claim(name, monkeypatch):
    place, function, broken, tight, expected = MUTANTS[name]
    aggregate, unit, keys, relation, pair, *_ = TIGHT[tight]
    caught = []
    for norm in (Norm.L1, Norm.L2):
        assert not exceeds(case(aggregate, norm, unit=unit, keys=keys, relation=relation), pair)
        with monkeypatch.context() as patch:
            patch.setattr(place, function, broken)
            caught.append(
                exceeds(case(aggregate, norm, unit=unit, keys=keys, relation=relation), pair)
            )
    assert caught == expected


LEAVES = {
    "row limit of leaves ignored": (
        reference,
        "_at_most",
        rows_of_leaves_unlimited,
        "row limit of leaves",
        BOTH,
    ),
    "weights of Gauss for leaves": (
        UNIT,
        "weight",
        weight_of_gauss,
        "more groups than the limit",
        BOTH,
    ),
    "groups of leaves ignored": (
        UNIT,
        "weight",
        weight_without("groups"),
        "more groups than the limit",
        BOTH,
    ),
    "total of leaves ignored": (
        UNIT,
        "weight",
        weight_without("total"),
        "total of leaves by open key",
        BOTH,
    ),
    "groups of leaves not dropped": (UNIT, "of", every_group_shown, "open keys of leaves", BOTH),
    "one group fewer claimed": (bound, "occupied", one_group_fewer, "group limit of leaves", BOTH),
    "refinement of leaves ignored": (
        bound,
        "distance",
        without_refinement,
        "row limit of leaves",
        BOTH,
    ),
}


@pytest.mark.parametrize("name", LEAVES)
def test_a_broken_rule_of_quantiles_violates_the_claim(name, monkeypatch):
    place, function, broken, tight, expected = LEAVES[name]
    unit, keys, relation, pair, *_ = QUANTILES[tight]
    caught = []
    for norm in (Norm.L1, Norm.L2):
        assert not exceeds(case(MEDIAN, norm, unit=unit, keys=keys, relation=relation), pair)
        with monkeypatch.context() as patch:
            patch.setattr(place, function, broken)
            caught.append(
                exceeds(case(MEDIAN, norm, unit=unit, keys=keys, relation=relation), pair)
            )
    assert caught == expected


@pytest.mark.parametrize("norm", (Norm.L1, Norm.L2))
def test_a_weight_rounded_up_violates_the_claim(norm, monkeypatch):
    thirds = Unit("person", max_rows=1, max_groups=2)
    plan, pair = case(CountRows(), norm, unit=thirds, keys=CLOSED), added("abc", 0)
    assert not exceeds(plan, pair)
    monkeypatch.setattr(UNIT, "weight", weight_rounded_up)
    assert exceeds(plan, pair)


# --- what others have must not decide what is kept of a unit --------------------------------------


def by_popularity(plan, found, sampling_key):
    """Groups, and values in them, in the order of how many rows have them: most first."""
    counts = Counter(
        group for group, inside in HONEST["_grouped"](plan, found).items() for _ in inside
    )
    kinds = Counter(row.values.get("value") for row in found)

    def order(_, *parts):
        rank = counts[parts[:-1]] if parts[:-1] in counts else kinds[parts[-2]]
        return -rank

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "place", order)
        return HONEST["_of_units"](plan, found, sampling_key)


def crowd(letters: str, values: Sequence[int]) -> Rows:
    return [row for name in "uvwxyz" for row in person(letters, values, name)]


def tastes() -> Rows:
    """Each has once what all have, and seven times a value of its own."""
    return [
        row for own, name in enumerate("uvwxy", 1) for row in person("a" * 8, [0, *[own] * 7], name)
    ]


ONE = Unit("person", max_rows=1, max_groups=1)
CROWDS = {
    "units": (CountUnits(), CLOSED, crowd("ab", [0, 0]), "b", [0]),
    "rows by open key": (CountRows(), OPEN, crowd("ab", [0, 0]), "b", [0]),
    "values": (DISTINCT, ALL, tastes(), "a" * 9, [0] * 9),
    "leaves": (MEDIAN, OPEN, crowd("ab", [0, 0]), "b", [0]),
}


@pytest.mark.parametrize("name", CROWDS)
def test_an_order_by_what_others_have_violates_the_claim(name, monkeypatch):
    aggregate, keys, base, letters, values = CROWDS[name]
    plan, pair = (
        case(aggregate, Norm.L1, unit=ONE, keys=keys),
        pair_of(base, base + person(letters, values)),
    )
    assert not exceeds(plan, pair)
    monkeypatch.setattr(reference, "_of_units", by_popularity)
    assert exceeds(plan, pair)


# --- relations: where a bound above the tree does not save a wrong node ---------------------------


def test_a_join_that_multiplies_rows_violates_the_claim_of_rows(monkeypatch):
    price = Column("price.value", EVEN.type)
    tables = {
        "people": sf.Table("p.csv", columns={"value": EVEN.type}),
        "prices": sf.Table("c.csv", columns={"value": EVEN.type}, public=True),
    }
    joined = PublicJoin(
        Scan("people", columns=(Column("value", EVEN.type),)),
        Scan("prices", "price.", (price,)),
        Field(Column("value", EVEN.type)),
        price,
    )
    plan = compile_plan(Raw(joined, (), (CountRows(),)), Dataset("data", tables), Norm.L1)
    prices = [{"value": 1}, {"value": 1}]
    pair = Pair({"people": [], "prices": prices}, {"people": [{"value": 1}], "prices": prices})
    assert not exceeds(plan, pair)

    def every_match(join, tables):
        return [
            row
            for public in tables["prices"]
            for row in honest(join, {**tables, "prices": [public]})
        ]

    honest = reference_rows._public_join
    monkeypatch.setattr(reference_rows, "_public_join", every_match)
    assert exceeds(plan, pair)


def per_unit() -> list[Bounded]:
    """The mean over people of what each has in all, cut to 0..3."""
    table = sf.Table("p.csv", unit=Unit("person", max_rows=9), columns={"value": EVEN.type})
    dataset = Dataset("data", {"people": table})
    scan = Scan("people", columns=(EVEN.expression.column,), owner=owner_of(dataset, "people"))
    total = Column("total", sf.Integer(0, 3))
    summed = PerUnit(scan, (), (Computed(total, Summary.SUM, EVEN),))
    return [
        compile_plan(Raw(summed, (), (make(Value.of(total)),)), dataset, Norm.L1)
        for make in (Mean, Variance)
    ]


@pytest.mark.parametrize("letters", ["aaa", "a" * 9])
def test_a_summary_that_is_not_cut_violates_the_claim(letters, monkeypatch):
    pair = added(letters, 5)
    for plan in per_unit():
        assert not exceeds(plan, pair)
    monkeypatch.setattr(reference_rows, "_cut", lambda column, number: number)
    for plan in per_unit():
        assert exceeds(plan, pair)


@pytest.mark.parametrize("norm", (Norm.L1, Norm.L2))
def test_rows_of_nobody_count_nowhere(norm, monkeypatch):
    plan = case(CountRows(), norm, unit=ROWS, keys=ALL)
    pair = pair_of([], person("aa", [1, 1]) + person("aaa", [1, 1, 1], name=None))
    assert not exceeds(plan, pair)
    monkeypatch.setattr(reference_rows, "_named", lambda raw, columns, **_: str(raw["person"]))
    assert exceeds(plan, pair)


NOTES_OF_NOBODY = {
    "people": [{"who": "p"}],
    "stays": [{"patient": "p", "id": "1"}],
    "days": [],
    "rows": [],
    "drugs": [],
}


@pytest.mark.parametrize("norm", (Norm.L1, Norm.L2))
def test_rows_whose_key_nobody_has_count_nowhere(norm, monkeypatch):
    tables = {
        name: sf.Table("t.csv", unit=replace_limits(table.unit), columns=table.columns)
        for name, table in world.TABLES.items()
        if name in world.OWNED
    }
    dataset = Dataset("world", tables)
    plan = compile_plan(Raw(world.scan("notes"), (), (CountRows(),)), dataset, norm)
    full = {**NOTES_OF_NOBODY, "notes": [{"stay": "1"}, {"stay": "8"}, {"stay": "9"}]}
    gone = {**NOTES_OF_NOBODY, "people": [], "stays": [], "notes": []}
    assert not exceeds(plan, Pair(full, gone))
    honest = reference_rows._owners

    def of_the_key(owner, tables):
        find = honest(owner, tables)
        return lambda raw: find(raw) or raw[owner.columns[0]]

    monkeypatch.setattr(reference_rows, "_owners", of_the_key)
    assert exceeds(plan, Pair(full, gone))


def replace_limits(unit: Unit) -> Unit:
    return Unit(list(unit.columns), max_rows=1, via=unit.via, key=unit.key if unit.via else None)
