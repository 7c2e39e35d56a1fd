# SPDX-License-Identifier: Apache-2.0
"""Attacks on clips: a rich person at the possible bound, who looks for a way to show.

The columns of the table's own values and of the clipped ones, and the sizes from which a clip is
learnt, move by at most what is claimed. What is chosen from the sizes depends on what was
released, on nothing else.
"""

import itertools
import shutil
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.audit import Audit, Verdict, audit
from sfumato.audit.seen import EPSILON, RHO, blanked, differences, logs, previewed, seen
from sfumato.engines import emit, expression, sql_tree
from sfumato.engines.base import Exact
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.reference import Reference
from sfumato.metadata.clip import Values
from sfumato.metadata.column import Column, Integer, Real
from sfumato.plan.question import Question
from sfumato.plan.relation import PerUnit, Scan
from sfumato.plan.scalar import Extreme, Field, Scalar
from sfumato.plan.value import Value
from sfumato.privacy import PureDP
from sfumato.privacy.distance import Norm
from sfumato.query import auto_clip, subqueries
from sfumato.query.answer import Answer
from sfumato.query.auto_limits import SHARE
from sfumato.query.choose import Planned, plan_for_price
from sfumato.query.pipeline import compile_plan
from sfumato.query.price import Price
from sfumato.query.subqueries import Step
from sfumato.sql.clip import Clipping, Occasion
from sfumato.sql.lower import question_of, tree
from tests.attacks import rich
from tests.attacks.moves import AGREED, Move, integers, moves

NORMS = (Norm.L1, Norm.L2)
QUESTIONS = rich.questions()
ALONE = {"values": sf.Clipped}
Engines = dict[str, tuple[DuckDB, Reference]]


@pytest.fixture(scope="module")
def worlds() -> Iterator[Engines]:
    """Each dataset in both engines."""
    opened = {}
    for name, each in rich.worlds().items():
        opened[name] = (DuckDB(rich.tables(each)), Reference(each))
    yield opened
    for engine, _ in opened.values():
        engine.close()


def farthest(worlds: Engines, question: Question, norm: Norm) -> dict[str, list[Move]]:
    """For each relation, the farthest that any neighbours move each part."""
    dataset = rich.declared()
    plan = compile_plan(question.raw, dataset, norm)
    exact = integers(worlds, plan)
    names = [name for name in exact if name]
    pairs = {
        plan: [("", name) for name in names],
        compile_plan(question.raw, replace(dataset, relation=sf.ReplaceOne), norm): list(
            itertools.combinations(names, 2)
        ),
    }
    found = {}
    for claimed, compared in pairs.items():
        each = [moves(claimed, exact[one], exact[other]) for one, other in compared]
        parts = [max(part, key=lambda move: move.share) for part in zip(*each, strict=True)]
        found[claimed.parts[0].distance.relation.value] = parts
    return found


@pytest.mark.parametrize("norm", NORMS, ids=str)
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_person_moves_a_part_beyond_its_claim(worlds, name, norm):
    for relation, found in farthest(worlds, QUESTIONS[name], norm).items():
        assert all(move.share <= 1 for move in found), (relation, found)
        # and the claim is not idle: the person at the bound comes near to it
        near = Fraction(1, 4) if norm is Norm.L1 else Fraction(1, 16)
        assert all(move.share >= near for move in found), (relation, found)


def unclipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that adds up the values themselves, under the noise of the clipped ones."""
    honest = expression._extreme

    def as_stored(asked: Extreme) -> sql_tree.Expression:
        inner: Scalar = asked
        while isinstance(inner, Extreme):
            inner = inner.operands[0]
        return expression._code(inner) if isinstance(inner, Field) else honest(asked)

    monkeypatch.setattr(expression, "_extreme", as_stored)


def unit_unclipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, without the bound of what one unit adds."""
    unclipped(monkeypatch)
    honest = emit.clipped
    monkeypatch.setattr(
        emit, "clipped", lambda *given, narrow: honest(*given[:2], None, narrow=narrow)
    )


def largest_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that are counted once for each row of a person, not once for each person."""
    honest = auto_clip.learning

    def learning(*asked: Any) -> Question:
        question = honest(*asked)
        per_unit = question.raw.relation
        assert isinstance(per_unit, PerUnit)
        (largest,) = per_unit.computed
        (key,) = question.raw.keys
        assert largest.value is not None
        raw = replace(
            question.raw, relation=per_unit.source, keys=(replace(key, value=largest.value),)
        )
        return replace(question, raw=raw)

    monkeypatch.setattr(auto_clip, "learning", learning)


BROKEN = [
    (unclipped, "Clipped SELECT STDDEV(debt) AS s, SUM(income - 2 * debt) AS t"),
    (unclipped, "Table SELECT STDDEV(debt) AS s, SUM(income - 2 * debt) AS t"),
    (unit_unclipped, "Table SELECT SUM(income) AS s, AVG(debt) AS d"),
    (unit_unclipped, "Clipped SELECT sex, AVG(income) AS m, VARIANCE(income) AS v"),
]


@pytest.mark.parametrize(("mutant", "begins"), BROKEN)
def test_a_twin_that_is_not_clipped_exceeds_its_claim(worlds, mutant, begins, monkeypatch):
    (name,) = (each for each in QUESTIONS if each.startswith(begins))
    monkeypatch.setattr(Reference, "run", lambda reference, plan, key: AGREED)
    mutant(monkeypatch)
    found = farthest(worlds, QUESTIONS[name], Norm.L1)
    assert any(move.share > 1 for parts in found.values() for move in parts)


def test_a_value_cannot_claim_a_clip_that_it_does_not_have():
    income = Value.of(Column("income", Integer(0, rich.INCOME)))
    with pytest.raises(ValueError, match="may leave the range"):
        Value("clipped", Integer(0, 1_000), income.expression)


# --- what is seen --------------------------------------------------------------------------------

WAYS: list[dict[str, object]] = [dict(EPSILON), dict(RHO), {**EPSILON, "values": sf.Clipped}]


def shown(ledger: Path, content: rich.Data) -> dict[str, object]:
    """Everything but released numbers of each question, asked in each way, and of previews."""
    found: dict[str, object] = {}
    with rich.connected(ledger, content) as session:
        found |= previewed(session, rich.QUESTIONS)
        for text in rich.QUESTIONS:
            for place, way in enumerate(WAYS):
                found[f"{text} ({place})"] = seen(session, text, way)
        for column in ("people", "flat"):
            planned = session._statements.planned(learning_step(column))
            found[f"sizes of {column}"] = session._engine.statement(planned.bounded)
    return found


def learning_step(table: str) -> Step:
    """The step that learns the clip of ``wealth`` in a table."""
    question = auto_clip.learning(table, "wealth", rich.declared())
    return Step(question, rich.declared(), Price(epsilon=Fraction(1, 10)))


@pytest.fixture(scope="module")
def learnt(tmp_path_factory) -> Path:
    """A ledger with the sizes of the ordinary persons."""
    place = tmp_path_factory.mktemp("learnt") / "l.db"
    with rich.connected(place, rich.data()) as session:
        for table in ("people", "flat"):
            session.query(f"SELECT SUM(wealth) AS s FROM {table}", epsilon=5)
    return place


@pytest.fixture(scope="module")
def ordinary(learnt, tmp_path_factory) -> dict[str, object]:
    return shown(copied(learnt, tmp_path_factory.mktemp("ordinary")), rich.data())


def copied(ledger: Path, folder: Path) -> Path:
    """The same ledger again."""
    place = folder / "l.db"
    shutil.copy(ledger, place)
    return place


@pytest.mark.parametrize("name", list(rich.worlds())[1:])
def test_after_the_same_release_everything_but_numbers_is_the_same(
    learnt, ordinary, tmp_path, name
):
    found = shown(copied(learnt, tmp_path), rich.worlds()[name])
    assert differences(ordinary, found) == []


def test_a_clip_that_is_read_off_the_data_is_seen(learnt, ordinary, tmp_path, monkeypatch):
    content = rich.worlds()["at the possible bound"]

    def largest(answer: Answer, kind: Integer | Real, *asked: object) -> tuple[int, int]:
        most = max(each["wealth"] for each in content["people"])
        return kind.lower_code, int(most)

    monkeypatch.setattr(subqueries, "chosen_clip", largest)
    assert differences(ordinary, shown(copied(learnt, tmp_path), content))


def test_what_learns_a_clip_shows_nothing_but_its_sizes(tmp_path):
    """The charges, the log and the form of the sizes are those of nobody more."""
    looks = []
    for place, content in enumerate(rich.worlds().values()):
        with rich.connected(tmp_path / f"{place}.db", content) as session, logs() as lines:
            session.query(rich.QUESTIONS[2], epsilon=1)
            asked = auto_clip.learning("people", "wealth", session.dataset)
            sizes = session._statements.first_answer(asked)
            assert sizes is not None
            form = blanked(sizes, open_keys=False)
            looks.append((form, list(lines), session.budget.spent))
    assert looks == looks[:1] * len(looks)


# --- what is released ----------------------------------------------------------------------------

RUNS = 400
EPSILON_OF_ALL = Fraction(1)
KIND = sf.Integer(0, rich.WEALTH, clip=sf.AUTO)
SUM_OF_WEALTH = "SELECT SUM(wealth) AS s FROM flat"


class Sizes:
    """Released sizes, as an answer shows them."""

    def __init__(self, counts: list[int], half: int) -> None:
        self._counts = counts
        self._half = half

    def error(self) -> list[dict[str, object]]:
        """The intervals."""
        lines = []
        for size, count in enumerate(self._counts):
            cell = {"low": count - self._half, "high": count + self._half, "half_width": self._half}
            lines.append({"size": size, "units": cell})
        return lines


class Attack:
    """Learns a clip and asks for the sums, at one price: what comes out is all that is released.

    The integers are those of the engine, the noise is that of the plan.
    """

    def __init__(self, worlds: Engines, values: Values = Values.TABLE) -> None:
        self._values = values
        self._worlds = {name: worlds[name] for name in ("", "at the possible bound")}
        self._learning = auto_clip.learning("flat", "wealth", rich.declared())
        self._asked: dict[tuple[int, int], Question] = {}
        self._plans: dict[object, tuple[Planned, dict[str, Exact]]] = {}

    def run(self, world: str) -> tuple[int, ...]:
        """The largest sizes, the clip and both sums of one run, together the attacker's guess."""
        price = Price(epsilon=EPSILON_OF_ALL)
        planned, (sizes,) = self._noisy("sizes", self._learning, price.scaled(SHARE), world)
        (mechanism,) = planned.mechanisms
        rest = price.scaled(1 - SHARE)
        ends = self.chosen(Sizes(sizes, mechanism.error("0.95")), rest, world)
        if ends not in self._asked:
            clipping = Clipping(self._values, lambda column, occasion: ends)
            self._asked[ends] = question_of(tree(SUM_OF_WEALTH), rich.declared(), clipping=clipping)
        _, sums = self._noisy(ends, self._asked[ends], rest, world)
        return sizes[-1], ends[1], *(value for (value,) in sums)

    def chosen(self, sizes: Sizes, price: Price, world: str) -> tuple[int, int]:
        """The clip that the released sizes lead to."""
        occasion = Occasion(Scan("flat"), (), 1)
        return auto_clip.chosen_clip(sizes, KIND, occasion, price)  # type: ignore[arg-type]

    def _noisy(
        self, name: object, question: Question, price: Price, world: str
    ) -> tuple[Planned, list[list[int]]]:
        if name not in self._plans:
            planned = plan_for_price(question, rich.declared(), price)
            self._plans[name] = planned, integers(self._worlds, planned.bounded)
        planned, exact = self._plans[name]
        found = []
        for mechanism, groups in zip(planned.mechanisms, exact[world], strict=True):
            values = [groups.get((size,), (0,))[0] for size in range(33)]
            if name != "sizes":
                values = [groups.get((), (0,))[0]]
            drawn = mechanism.draw(len(values))
            found.append([value + noise for value, noise in zip(values, drawn, strict=True)])
        return planned, found


class Declared(Attack):
    """The clip is the same in every run."""

    def chosen(self, sizes: Sizes, price: Price, world: str) -> tuple[int, int]:
        return rich.LEARNT


class Peeking(Attack):
    """The clip is the largest value of the table."""

    def chosen(self, sizes: Sizes, price: Price, world: str) -> tuple[int, int]:
        most = max(each["wealth"] for each in rich.worlds()[world]["flat"])
        return 0, int(most)


def audited(attack: Attack) -> Audit:
    """What runs prove of the privacy loss against what is charged for all of it."""
    neighbours = "", "at the possible bound"
    return audit(attack.run, neighbours, RUNS, claim=PureDP(EPSILON_OF_ALL))


@pytest.mark.parametrize("values", list(Values))
@pytest.mark.parametrize("attack", [Attack, Declared])
def test_the_clip_and_the_sums_together_lose_no_more_than_is_charged(worlds, attack, values):
    # a false alarm has a chance below 1e-9; the two mutants that follow are sure to be noticed
    assert audited(attack(worlds, values)).verdict is not Verdict.VIOLATED


def test_a_clip_that_is_the_largest_value_is_noticed_by_runs(worlds):
    assert audited(Peeking(worlds)).verdict is Verdict.VIOLATED


def test_a_sum_that_is_not_clipped_is_noticed_by_runs(worlds, monkeypatch):
    monkeypatch.setattr(Reference, "run", lambda reference, plan, key: AGREED)
    unclipped(monkeypatch)
    assert audited(Declared(worlds, sf.Clipped)).verdict is Verdict.VIOLATED
