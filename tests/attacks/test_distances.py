# SPDX-License-Identifier: Apache-2.0
"""Attack on the claimed distances: the corpus, compiled, on units that try to move it as far as
they can.

Every dataset goes through both engines. What one unit adds is at most what is claimed for
add/remove, and what one instead of another changes at most what is claimed for replace-one.
"""

import datetime
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.engines import emit, unit_limits
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.reference import Reference
from sfumato.plan.aggregate import CountUnits
from sfumato.privacy.distance import Norm
from sfumato.query import stability
from sfumato.query.pipeline import compile_plan
from sfumato.sql import understand
from tests.attacks import shop
from tests.attacks.moves import AGREED, Move, integers, moves
from tests.contracts.corpus import DATASET, Statement, statements

REPLACED = replace(DATASET, relation=sf.ReplaceOne)
NORMS = (Norm.L1, Norm.L2)
SCALARS = {"SELECT AVG(amount) FROM events": Fraction(4377, 100)}
TODAY = datetime.date(2024, 6, 1)
# the unit whose name stands in a statement of the corpus
WHO = "1000123"
REGIONS, MONTHS = ("R01", "R02", "R03", "N"), [f"2024-{month:02}-01" for month in range(1, 13)]


def answered() -> list[Statement]:
    """The statements of the corpus that are answered."""
    return [each for each in statements() if each.verdict == "answered"]


def units() -> Mapping[str, shop.Rows]:
    """What one unit may have in ``events``: full, extreme, spread out, broken."""
    event = shop.event
    full = [
        event(WHO, region, f"own {n % 5}", 500.0, f"2024-06-0{1 + n % 5}")
        for region in REGIONS
        for n in range(10)
    ]
    low = [event(WHO, "R01", "tea", 0.0, MONTHS[5]) for _ in range(10)]
    high = [event(WHO, "R01", "tea", 500.0, MONTHS[5]) for _ in range(10)]
    early = [event(WHO, "R01", "tea", 400.0, MONTHS[0]) for _ in range(12)]
    months = [event(WHO, "R02", "map", 499.0, month) for month in MONTHS for _ in range(10)]
    days = [event(WHO, "R02", "tea", 100.0 + n, f"2024-06-{1 + n % 30:02}") for n in range(60)]
    spread = [
        event(WHO, REGIONS[n % 4], f"own {n % 9}", (n * 97) % 501, MONTHS[n % 12])
        for n in range(130)
    ]
    broken = [
        event(WHO, None, None, float("nan"), "x"),
        event(WHO, "?", "tea", float("inf"), "2999-01-01"),
    ]
    return {
        "full": full,
        "low": low,
        "high": high,
        "early": early,
        "months": months,
        "days": days,
        "spread": spread,
        "broken": broken,
        "none": [],
    }


def datasets() -> dict[str, shop.Data]:
    """The shop alone, and with one unit more."""
    base = shop.data()
    found: dict[str, shop.Data] = {"": base}
    for place, (name, rows) in enumerate(units().items()):
        band = ("18-24", "65+")[place % 2]
        user = {"user_id": WHO, "age_band": band, "joined": "2022-01-01"}
        found[name] = {**base, "events": [*base["events"], *rows], "users": [*base["users"], user]}
    return found


@pytest.fixture(scope="module")
def worlds() -> Iterator[dict[str, tuple[DuckDB, Reference]]]:
    """Each dataset in both engines."""
    opened = {
        name: (DuckDB(shop.tables(each)), Reference(each)) for name, each in datasets().items()
    }
    yield opened
    for engine, _ in opened.values():
        engine.close()


def farthest(
    worlds: Mapping[str, tuple[DuckDB, Reference]], text: str, norm: Norm
) -> dict[str, list[Move]]:
    """For each relation, the farthest that any neighbours moved each part."""
    raw = understand(text, DATASET, scalars=SCALARS, today=TODAY).raw
    if raw.is_open:
        raw = replace(raw, aggregates=tuple(dict.fromkeys((*raw.aggregates, CountUnits()))))
    added, replaced = (compile_plan(raw, dataset, norm) for dataset in (DATASET, REPLACED))
    # the relation of neighbours changes what is claimed, never what is computed
    assert replace(added, parts=()) == replace(replaced, parts=())
    exact = integers(worlds, added)
    names = [name for name in exact if name]
    pairs = {
        added: [("", name) for name in names],
        replaced: list(itertools.combinations(names, 2)),
    }
    found = {}
    for plan, compared in pairs.items():
        each = [moves(plan, exact[one], exact[other]) for one, other in compared]
        parts = [max(part, key=lambda move: move.share) for part in zip(*each, strict=True)]
        found[plan.parts[0].distance.relation.value] = parts
    return found


# quantiles, whose integers differ by world: minutes of comparing
_LONG = {"A12", "A13", "A36"}
STATEMENTS = [
    pytest.param(each, id=each.name, marks=[pytest.mark.long] if each.name in _LONG else [])
    for each in answered()
]


@pytest.mark.parametrize("norm", NORMS, ids=str)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_unit_moves_an_answer_of_the_corpus_beyond_the_claim(worlds, statement, norm):
    for relation, found in farthest(worlds, statement.text, norm).items():
        assert all(move.share <= 1 for move in found), (relation, found)
        # and the claim is not idle: some unit of ours comes near to it
        near = Fraction(1, 4) if norm is Norm.L1 else Fraction(1, 16)
        assert all(move.share >= near for move in found), (relation, found)


def halved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sensitivity of half what a unit contributes."""
    honest = stability._contribution
    monkeypatch.setattr(stability, "_contribution", lambda *asked: honest(*asked) // 2)


def one_row_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that clips each group to one row more than the plan says."""
    honest = emit.clipped
    monkeypatch.setattr(
        emit,
        "clipped",
        lambda *given, narrow: honest(*given[:2], given[2] and given[2] + 1, narrow=narrow),
    )


def no_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that forgets that a unit in many groups weighs less in each."""
    monkeypatch.setattr(unit_limits, "most_rows", lambda plan: None)


def one_group_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that keeps one group of a unit too many."""
    honest = unit_limits.kept
    monkeypatch.setattr(
        unit_limits, "kept", lambda plan: None if honest(plan) is None else honest(plan) + 1
    )


MUTANTS = [
    (halved, "SELECT COUNT(*) FROM events"),
    (halved, "SELECT region, AVG(amount) FROM events GROUP BY region"),
    (one_row_more, "SELECT COUNT(*) FROM events"),
    (one_row_more, "SELECT SUM(amount), AVG(amount), VARIANCE(amount) FROM events"),
    (no_weight, "SELECT DATE_TRUNC('month', day) AS m, SUM(amount) FROM events GROUP BY 1"),
    pytest.param(
        *(no_weight, "SELECT day, MEDIAN(amount) FROM events GROUP BY day"), marks=pytest.mark.long
    ),
    (one_group_more, "SELECT product, COUNT(*) FROM events GROUP BY product"),
    (one_group_more, "SELECT day, COUNT(DISTINCT user_id) FROM events GROUP BY day"),
]


@pytest.mark.parametrize(("mutant", "text"), MUTANTS)
def test_a_broken_bound_is_exceeded(worlds, mutant, text, monkeypatch):
    monkeypatch.setattr(Reference, "run", lambda reference, plan, key: AGREED)
    mutant(monkeypatch)
    found = farthest(worlds, text, Norm.L1)
    assert any(move.share > 1 for parts in found.values() for move in parts)
