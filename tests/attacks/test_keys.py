# SPDX-License-Identifier: Apache-2.0
"""Attacks by groups: keys of one person alone, keys that are computed, raw values where only groups
may stand.

Where the groups are not public, which of them are shown is random: there the laws of
neighbours are compared, by the exact law of the mechanism and by running the release.
"""

import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import EngineFailed, Refused
from sfumato.mechanisms.threshold import ThresholdMechanism
from sfumato.noise import DiscreteLaplace
from sfumato.privacy.distance import Norm
from sfumato.query import add_noise, choose
from sfumato.query.add_noise import noisy
from sfumato.query.curator import Curator
from sfumato.query.passes import prune
from sfumato.query.pipeline import compile_plan
from sfumato.query.reserved import Reserved
from sfumato.query.statistic import Opened
from sfumato.sql import lower, understand
from sfumato.testing import Replay, assert_at_most
from tests.attacks import shop
from tests.attacks.questions import ANSWERED
from tests.contracts.corpus import DATASET

event = shop.event
DELTA = Fraction(1, 10)
TRIALS = 4000
OPEN = [
    "SELECT product, COUNT(*) FROM events GROUP BY product",
    "SELECT region, product, AVG(amount) FROM events GROUP BY region, product",
    "SELECT product, COUNT(DISTINCT region), MEDIAN(amount) FROM events GROUP BY product ORDER BY product LIMIT 3",
]
PRICES = [{"epsilon": 5}, {"rho": 1}]


def planned(session: sf.Session, text: str, price: Mapping[str, object]) -> choose.Planned:
    return session.preview(text, **price, delta=DELTA).planned


def threshold_of(found: choose.Planned) -> ThresholdMechanism:
    return next(each for each in found.mechanisms if isinstance(each, ThresholdMechanism))


def alone(keys: int) -> shop.Data:
    """The shop with one unit in keys that nobody else is in."""
    base = shop.data()
    return {
        **base,
        "events": [
            *base["events"],
            *(event("x", "R01", f"own {n}", 1.0, "2024-06-06") for n in range(keys)),
        ],
    }


def gives_away(session: sf.Session, found: choose.Planned, trials: int = TRIALS) -> int:
    """In how many releases a key of the unit's own is shown."""
    exact = session._engine.run(found.bounded, "key")
    times = 0
    for _ in range(trials):
        groups, _ = noisy(
            found, Curator("attack", Reserved(found.event), Opened(found.bounded, lambda: exact))
        )
        times += any(str(group[-1]).startswith("own") for group in groups)
    return times


def lone(found: choose.Planned, relation: object) -> Fraction:
    """The chance, by the law, that neighbours are told apart by a key of one unit alone."""
    mechanism = threshold_of(found)
    kept = found.bounded.tracked.limits.groups
    assert kept == 5 and mechanism.shown(0).upper == 0
    # each of the keys that a unit may be in, of each of the units that neighbours differ by
    return Fraction(mechanism.shown(1).upper) * kept * (1 if relation is sf.AddRemove else 2)


@pytest.mark.parametrize("price", PRICES, ids=str)
@pytest.mark.parametrize("text", OPEN)
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_keys_of_one_unit_alone_are_shown_with_at_most_delta(tmp_path, text, price, relation):
    with shop.connected(tmp_path, shop.data(), relation=relation) as session:
        found = planned(session, text, price)
    assert lone(found, relation) <= DELTA
    assert Fraction(found.cost.delta) <= DELTA
    assert (
        lone(lower_by_one(found), relation) > DELTA
        or lone(lower_by_one(lower_by_one(found)), relation) > DELTA
    )
    assert lone(for_one_key(found, price), relation) > DELTA


def released(folder, monkeypatch, mutant) -> tuple[int, int]:
    """Releases of data with a unit in thirty keys of its own, and how many gave one away."""
    honest = ThresholdMechanism.release
    entropy = Replay(5)
    monkeypatch.setattr(
        ThresholdMechanism, "release", lambda mechanism, counts: honest(mechanism, counts, entropy)
    )
    price = {"epsilon": "2.5"}
    with shop.connected(folder, alone(30)) as session:
        text = "SELECT product, COUNT(DISTINCT user_id) FROM events GROUP BY product"
        return gives_away(session, mutant(planned(session, text, price), price)), TRIALS


def test_a_release_gives_a_lone_key_away_with_at_most_delta(tmp_path, monkeypatch):
    found, trials = released(tmp_path, monkeypatch, lambda found, price: found)
    # the same bits in every run
    assert_at_most(found, trials, float(DELTA), notices=0.25)


def lower_by_one(found: choose.Planned) -> choose.Planned:
    """A threshold that is rounded down (google/differential-privacy#101)."""
    return replace(
        found,
        mechanisms=tuple(
            replace(each, threshold=each.threshold - 1)
            if isinstance(each, ThresholdMechanism)
            else each
            for each in found.mechanisms
        ),
    )


def for_one_key(found: choose.Planned, price: Mapping[str, object]) -> choose.Planned:
    """A threshold for one lone key, not for each of five (opendp/opendp#2922)."""
    honest = threshold_of(found)
    make = choose.threshold_geometric if "epsilon" in price else choose.threshold_gaussian
    # the noise of five keys, which is wider, with the delta of one
    wide = make(5, *price.values(), DELTA * 5, sf.AddRemove)
    lower = replace(honest, noise=wide.noise, threshold=wide.threshold)
    return replace(
        found, mechanisms=tuple(lower if each is honest else each for each in found.mechanisms)
    )


def without_bound(found: choose.Planned, price: Mapping[str, object]) -> choose.Planned:
    """All thirty keys of the unit, where five are paid for."""
    limits = replace(found.bounded.tracked.limits, groups=99)
    return replace(
        found, bounded=replace(found.bounded, tracked=replace(found.bounded.tracked, limits=limits))
    )


@pytest.mark.parametrize("mutant", [for_one_key, without_bound])
def test_a_lone_key_that_is_shown_too_often_is_noticed(tmp_path, monkeypatch, mutant):
    found, trials = released(tmp_path, monkeypatch, mutant)
    with pytest.raises(AssertionError, match=r"failed; 0\.1 was stated"):
        assert_at_most(found, trials, float(DELTA), notices=0.25)


# --- computed keys -------------------------------------------------------------------------------

COMPUTED = [
    "SELECT product, COUNT(*) FROM events GROUP BY product",
    "SELECT COALESCE(product, 'x') AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT CASE WHEN amount > 3 THEN product ELSE 'x' END AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT LOWER(product) AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT product COLLATE NOCASE AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT region || product AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT MD5(product) AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT RANDOM() AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT UUID() AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT amount AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT amount * 1000 + MONTH(day) AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT ROW_NUMBER() OVER (ORDER BY day) AS k, COUNT(*) FROM events GROUP BY k",
    "SELECT k, COUNT(*) FROM (SELECT user_id, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day) AS k FROM events) AS t GROUP BY k",
    "SELECT k, COUNT(*) FROM (SELECT user_id, SUM(amount) AS k FROM events GROUP BY user_id) AS t GROUP BY k",
    "SELECT p.product, COUNT(*) FROM events e JOIN products p ON e.product = p.product GROUP BY p.product",
]


def free(folder, texts: list[str]) -> list[str]:
    """The questions by groups that nobody declared which are answered without a delta."""
    found = []
    with shop.connected(folder, shop.data()) as session:
        for text in texts:
            try:
                session.query(text, epsilon=1)
            except Refused:
                continue
            found.append(text)
    return found


def test_groups_that_nobody_declared_are_refused_or_cost_a_delta(tmp_path):
    assert free(tmp_path, COMPUTED) == []


def test_groups_that_are_taken_from_what_occurs_are_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(choose, "_require_delta", lambda raw, price: None)
    monkeypatch.setattr(choose, "_with_unit_count", lambda raw: raw)
    everything = ThresholdMechanism(DiscreteLaplace(1), 1, 1)
    monkeypatch.setattr(
        add_noise,
        "_counts_above_threshold",
        lambda planned, curator: curator.threshold(add_noise.Units(planned.bounded, 0), everything),
    )
    with pytest.raises(EngineFailed):  # the curator knows of no units in what is counted here
        free(tmp_path, COMPUTED[:1])
    monkeypatch.setattr("sfumato.query.add_noise.Units", lambda plan, place: plan)
    monkeypatch.setattr(
        Curator, "threshold", lambda self, plan, _: dict.fromkeys(self._opened.integers(plan)[0], 1)
    )
    (tmp_path / "again").mkdir()
    assert COMPUTED[0] in free(tmp_path / "again", COMPUTED[:1])


# --- raw values ----------------------------------------------------------------------------------

RAW = [
    "SELECT DISTINCT region FROM events WHERE amount > 3",
    "SELECT DISTINCT ON (region) COUNT(*) FROM events",
    "SELECT region FROM events",
    "SELECT region, COUNT(*) FROM events",
    "SELECT COUNT(*) FROM events HAVING amount > 3",
    "SELECT region, COUNT(*) FROM events GROUP BY region HAVING amount > 3",
    "SELECT region, COUNT(*) FROM events GROUP BY region ORDER BY amount",
    "SELECT COUNT(*) FROM (SELECT * FROM events LIMIT 10) AS t",
    "SELECT COUNT(*) FROM (SELECT * FROM events ORDER BY amount LIMIT 10) AS t",
    "SELECT COUNT(*) FROM (SELECT DISTINCT product FROM events) AS t",
    "SELECT COUNT(*) FROM (SELECT product, COUNT(*) AS n FROM events GROUP BY product) AS t WHERE n > 1",
    "SELECT COUNT(*) FROM (SELECT user_id FROM events UNION SELECT user_id FROM users) AS t",
    "SELECT COUNT(*) FROM (SELECT user_id FROM events EXCEPT SELECT user_id FROM users) AS t",
    "SELECT COUNT(*) FROM (SELECT user_id FROM events INTERSECT ALL SELECT user_id FROM users) AS t",
    "SELECT AVG(amount - m) FROM (SELECT user_id, amount, AVG(amount) OVER () AS m FROM events) AS t",
    "SELECT AVG(r) FROM (SELECT user_id, RANK() OVER (PARTITION BY region ORDER BY amount) AS r FROM events) AS t",
    "SELECT COUNT(*) FROM events WHERE amount > ALL (SELECT amount FROM events WHERE region = 'R01')",
    "SELECT COUNT(*) FROM events WHERE amount IN (SELECT amount FROM orders)",
    "SELECT FIRST(product) FROM events",
    "SELECT ANY_VALUE(region) FROM events",
    "SELECT MIN(product) FROM events",
    "SELECT MODE(region) FROM events",
    "SELECT ARG_MAX(region, amount) FROM events",
    "SELECT STRING_AGG(region) FROM events",
    "SELECT HISTOGRAM(region) FROM events",
    "SELECT LIST(DISTINCT region) FROM events",
    "SELECT COLUMNS(*) FROM events",
    "SELECT COUNT(*) FROM events USING SAMPLE 10%",
    "SELECT COUNT(*), (SELECT region FROM events LIMIT 1) FROM events",
    "SELECT region, COUNT(*) FROM events GROUP BY GROUPING SETS ((region), (product))",
    "SUMMARIZE events",
    "DESCRIBE events",
    "PIVOT events ON region USING COUNT(*)",
    "FROM events",
    "SELECT COUNT(*) FROM duckdb_tables()",
    "SELECT COUNT(*) FROM information_schema.tables",
    "SELECT COUNT(*) FROM sqlite_master",
]


def answers(folder, texts: list[str]) -> list[str]:
    """The questions that are not refused."""
    found = []
    with shop.connected(folder, shop.data()) as session:
        for text in texts:
            try:
                session.query(text, epsilon=1)
            except Refused:
                continue
            found.append(text)
        if not found:
            assert session.budget.spent == "0"
    return found


def test_raw_values_stand_nowhere(tmp_path):
    assert answers(tmp_path, RAW) == []


def test_a_clause_that_is_dropped_instead_of_refused_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(lower, "require_only", lambda node, *allowed: None)
    assert answers(tmp_path, RAW)


# --- the order of the rows -----------------------------------------------------------------------


def shuffled(content: shop.Data, seed: int) -> shop.Data:
    """The same rows in another order."""
    order = random.Random(seed)
    return {name: order.sample(rows, len(rows)) for name, rows in content.items()}


def tied() -> shop.Data:
    """One unit with rows that agree in nearly everything, and public keys that are there twice."""
    base = shop.data()
    rows = [event("x", f"R0{n % 3 + 1}", "tea", n % 2, "2024-06-06") for n in range(40)]
    again = [{"product": "tea", "category": "toys"}, {"product": "cup", "category": None}]
    return {**base, "events": [*base["events"], *rows], "products": [*base["products"], *again]}


ORDERED = (
    "SELECT region, COUNT(*) FROM (SELECT user_id, region, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day) AS n"
    " FROM events) AS t WHERE n <= 3 GROUP BY region"
)


LOOKED_UP = (
    "SELECT region, COUNT(*) FROM (SELECT user_id, region, LAG(region) OVER (PARTITION BY user_id ORDER BY day) AS b"
    " FROM events) AS t WHERE b = 'R01' GROUP BY region"
)


@pytest.fixture(scope="module")
def orders() -> Iterator[list[DuckDB]]:
    """The engine over the same rows in several orders."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(closing(DuckDB(shop.tables(content))))
            for content in (tied(), *(shuffled(tied(), seed) for seed in range(3)))
        ]


def in_every_order(text: str, orders: list[DuckDB]) -> list[object]:
    """The integers of a question, for the rows in several orders."""
    raw = understand(text, DATASET, scalars=lambda inner: Fraction(9)).raw
    plan = compile_plan(raw, DATASET, Norm.L1)
    return [engine.run(plan, "key") for engine in orders]


@pytest.mark.parametrize("text", [*ANSWERED, ORDERED, LOOKED_UP])
def test_the_order_of_the_rows_changes_nothing(text, orders):
    first, *others = in_every_order(text, orders)
    assert others == [first] * 3


@pytest.mark.parametrize("text", [ORDERED, LOOKED_UP])
def test_an_order_that_leaves_ties_to_chance_is_noticed(monkeypatch, text, orders):
    honest = prune._cut

    def cut(relation, read):
        found = honest(relation, read)
        return (
            replace(found, ties=()) if isinstance(found, prune.Ranked | prune.Windowed) else found
        )

    monkeypatch.setattr(prune, "_cut", cut)
    first, *others = in_every_order(text, orders)
    assert others != [first] * 3
