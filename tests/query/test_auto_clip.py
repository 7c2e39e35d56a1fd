# SPDX-License-Identifier: Apache-2.0
"""Clips that are learnt privately: what is asked, what is chosen from it, and what it costs."""

import math
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import MissingDeclaration
from sfumato.metadata.clip import Values
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.plan.relation import PerUnit, Scan
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.unit import Unit
from sfumato.query.auto_clip import chosen_clip, learning, origin_of, units_seen
from sfumato.query.choose import plan_for_price
from sfumato.query.price import Price
from sfumato.query.release import Asked, release
from sfumato.query.session import Session
from sfumato.sql.clip import Occasion
from tests.contracts.people import EXACTLY

MEAN = "SELECT AVG(income) AS m FROM people"
# 3,960 values up to 1,000, and 40 of 50,000, of a possible 2^20
INCOMES = [*range(1, 991)] * 4 + [50_000] * 40
PERSONS = [f"p{index // 2}" for index in range(4000)]
KIND = sf.Integer(0, 2**20, clip=sf.AUTO)


def declared(incomes: list[int], unit: Unit | None = None) -> Dataset:
    frame = pa.table(
        {
            "income": pa.array(incomes, pa.int64()),
            "person": pa.array(PERSONS[: len(incomes)], pa.string()),
            "sex": pa.array(["FM"[place % 2] for place in range(len(incomes))], pa.string()),
        }
    )
    columns = {"income": KIND, "sex": sf.Category("F", "M")}
    return Dataset("d", {"people": sf.Table(frame, unit, columns)})


def opened(folder: Path, incomes: list[int] = INCOMES, unit: Unit | None = None) -> Session:
    return sf.connect(
        declared(incomes, unit).tables,
        dataset="d", budget=sf.Budget(10**6), ledger=folder / "l.db",
    )  # fmt: skip


def sizes(folder: Path, unit: Unit | None = None) -> dict[int, int]:
    """The counts of the question that learns a clip, nearly without noise."""
    dataset = declared(INCOMES, unit)
    question = learning("people", "income", dataset)
    with opened(folder, INCOMES, unit) as session:
        planned = plan_for_price(question, session.dataset, Price(epsilon=Fraction(EXACTLY)))
        body = release(Asked.of(planned, session._asker), session._engine, session._ledger)
    return {size: count for size, count in sf.Answer(body).rows if count}


def half_octave(value: int) -> int:
    """The place of the least of 2^(20 - 16), ..., 2^20 in half-octaves that is at least a value."""
    for place in range(33):
        if value <= math.ceil(2 ** (20 - (32 - place) / 2)):
            return place
    raise AssertionError


def test_units_are_counted_by_their_largest_value(tmp_path):
    rows: dict[int, int] = {}
    for income in INCOMES:
        rows[half_octave(income)] = rows.get(half_octave(income), 0) + 1
    (tmp_path / "rows").mkdir()
    (tmp_path / "persons").mkdir()
    assert sizes(tmp_path / "rows") == rows
    largest: dict[str, int] = {}
    for person, income in zip(PERSONS, INCOMES, strict=True):
        largest[person] = max(largest.get(person, 0), income)
    persons: dict[int, int] = {}
    for income in largest.values():
        persons[half_octave(income)] = persons.get(half_octave(income), 0) + 1
    assert sizes(tmp_path / "persons", sf.Unit("person", max_rows_total=2)) == persons


def test_the_question_depends_on_declarations_alone():
    """The keys of its groups are sizes below the possible one, whatever the rows are."""
    question = learning("people", "income", declared([1]))
    assert question.raw == learning("people", "income", declared(INCOMES)).raw
    (key,) = question.raw.keys
    assert key.codes == tuple(range(33))
    by_person = learning("people", "income", declared(INCOMES, sf.Unit("person", max_rows=2)))
    assert isinstance(by_person.raw.relation, PerUnit)


class Counted:
    """An answer to ``learning`` with these counts."""

    def __init__(self, counts: dict[int, int], half: float = 0.0) -> None:
        self.counts = counts
        self.half = half

    def error(self) -> list[dict[str, object]]:
        """Its intervals."""
        lines = []
        for size in range(33):
            middle = self.counts.get(size, 0)
            cell = {"low": middle - self.half, "high": middle + self.half, "half_width": self.half}
            lines.append({"size": size, "units": cell})
        return lines


def occasion(groups: int = 1, aggregates: int = 1) -> Occasion:
    """A question over so many groups."""
    column = Column("k", sf.Integer(0, groups))
    keys = (GroupKey(Value.of(column), tuple(range(groups))),) if groups > 1 else ()
    return Occasion(Scan("people"), keys, aggregates)


def least_error(counts: dict[int, int], epsilon: float, groups: int) -> int:
    """The clip of least mean squared error among all half-octaves, worked out one by one."""
    bounds = [math.ceil(2 ** (20 - (32 - place) / 2)) for place in range(33)]

    def squared(clip: int) -> float:
        lost = 0.0
        for place, count in counts.items():
            typical = math.sqrt(bounds[place - 1] * bounds[place]) if place else 0.0
            lost += count * max(typical - clip, 0.0)
        return 2 * (clip / epsilon) ** 2 + (lost / groups) ** 2

    return min(bounds, key=squared)


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1", "10"])
@pytest.mark.parametrize("groups", [1, 40])
def test_the_chosen_clip_has_the_least_noise_and_loss(epsilon, groups):
    counts = {10: 500, 18: 3000, 20: 300, 25: 40, 32: 2}
    price = Price(epsilon=Fraction(epsilon))
    low, high = chosen_clip(Counted(counts), KIND, occasion(groups), price)
    assert (low, high) == (0, least_error(counts, float(epsilon), groups))


def test_more_noise_keeps_less_and_more_groups_lose_less():
    counts = {18: 3000, 25: 400, 30: 50}

    def high(epsilon: str, groups: int = 1, aggregates: int = 1) -> int:
        price = Price(epsilon=Fraction(epsilon))
        return chosen_clip(Counted(counts), KIND, occasion(groups, aggregates), price)[1]

    assert high("0.01") < high("0.1") <= high("1")
    assert high("0.1", groups=100) < high("0.1")
    assert high("0.1", aggregates=20) < high("0.1")
    rho = chosen_clip(Counted(counts), KIND, occasion(), Price(rho=Fraction(1, 2)))[1]
    assert rho >= high("0.7")


def test_a_count_within_its_noise_is_taken_as_nothing():
    counts = {18: 3000, 32: 5}
    price = Price(epsilon=Fraction(1))
    assert chosen_clip(Counted(counts), KIND, occasion(), price)[1] > 2**16
    assert chosen_clip(Counted(counts, 5.5), KIND, occasion(), price)[1] < 2**14


def test_nothing_at_all_keeps_the_least_size():
    price = Price(epsilon=Fraction(1))
    assert chosen_clip(Counted({}), KIND, occasion(), price) == (0, 16)
    both = sf.Integer(-(2**20), 100, clip=sf.AUTO)
    assert chosen_clip(Counted({32: 10**6}), both, occasion(), price) == (-(2**20), 100)
    # no value of this column is as small as its least size
    far = sf.Integer(2**19, 2**20, clip=sf.AUTO)
    assert chosen_clip(Counted({}), far, occasion(), price)[1] <= 2**20


def test_a_learnt_clip_is_itemised_stored_and_used_again(tmp_path):
    with opened(tmp_path) as session:
        first = session.query(MEAN, epsilon=1, values=sf.Clipped)
        assert 10**6 - session.budget.left == 1
        assert str(first.cost) == "epsilon = 0.9"
        (note,) = [note for note in first.notes if "was learnt privately" in note]
        assert session.query(MEAN, epsilon=1, values=sf.Clipped).recalled
        # another question, at another price: the clip is there already
        session.query("SELECT sex, SUM(income) FROM people GROUP BY sex", epsilon=2)
        assert 10**6 - session.budget.left == Fraction("2.8")
    with opened(tmp_path) as session:
        again = session.query(MEAN, epsilon=1, values=sf.Clipped)
        assert again.recalled and again.bytes == first.bytes
    assert note.startswith("clip of income = [0, ")


def test_a_learnt_clip_belongs_to_its_asker(tmp_path):
    with opened(tmp_path) as session:
        session.query(MEAN, epsilon=1)
        other = session.asking_as("b")
        other.query("SELECT SUM(income) FROM people", epsilon=2)
        assert 10**6 - session.budget.left == 3


@pytest.mark.parametrize("incomes", [[], [7], [7] * 4000, [2**20] * 4000], ids=len)
def test_no_rows_one_value_and_only_the_largest_are_ordinary_answers(tmp_path, incomes):
    with opened(tmp_path, incomes) as session:
        answer = session.query(MEAN, epsilon="0.001")
    assert next(column["name"] for column in answer.columns) == "m"


def test_a_preview_is_free_and_says_what_is_not_seen(tmp_path):
    with opened(tmp_path) as session:
        preview = session.preview(MEAN, epsilon="0.1")
        assert any("300 units" in note for note in preview.planned.notes)
        assert 10**6 - session.budget.left == 0


def test_the_number_of_units_that_are_seen_follows_from_the_price():
    assert units_seen(Price(epsilon=Fraction(1, 100))) == 300
    assert units_seen(Price(rho=Fraction(1, 200))) == 20


def test_the_origin_of_a_column_is_the_table_that_declares_it():
    column = Column("p.income", KIND)
    scan = Scan("people", "p.", (column,))
    dataset = declared(INCOMES)
    found = Occasion(scan, (), 1)
    assert origin_of(column, found, dataset) == ("people", "income")
    assert origin_of(Column("computed", KIND), found, dataset) is None
    # computed, with the name of another column
    assert origin_of(Column("p.income", sf.Integer(0, 5, clip=sf.AUTO)), found, dataset) is None


LIMITS = [
    {"max_rows": sf.AUTO, "max_groups": 2},
    {"max_rows": sf.AUTO, "max_groups": sf.AUTO},
    {"max_rows_total": sf.AUTO, "max_groups": 2},
]


@pytest.mark.parametrize("clip", [200, sf.AUTO], ids=str)
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_clips_and_limits_that_are_learnt_share_the_cost(tmp_path, clip, limits):
    columns = {"income": sf.Integer(0, 2**20, clip=clip), "sex": sf.Category("F", "M")}
    table = sf.Table(
        declared(INCOMES).tables["people"].source, sf.Unit("person", **limits), columns
    )
    with sf.connect(
        {"people": table}, dataset="d", budget=sf.Budget(10**6), ledger=tmp_path / "l.db"
    ) as session:
        answer = session.query("SELECT sex, AVG(income) AS m FROM people GROUP BY sex", epsilon=1)
        assert answer.columns[1]["name"] == "m"
        assert 10**6 - session.budget.left == 1


def wide(folder: Path, columns: int) -> Session:
    names = [f"c{place}" for place in range(columns)]
    kinds = {name: sf.Integer(0, 1000, clip=sf.AUTO) for name in names}
    frame = pa.table({name: [1, 2, 3] for name in names})
    return sf.connect(
        {"people": sf.Table(frame, columns=kinds)},
        dataset="d", budget=sf.Budget(10**6), ledger=folder / "l.db",
    )  # fmt: skip


def sum_of(columns: int) -> str:
    return f"SELECT SUM({' + '.join(f'c{place}' for place in range(columns))}) AS s FROM people"


def test_more_clips_than_half_of_the_cost_learns_are_refused_before_any_charge(tmp_path):
    with wide(tmp_path, 12) as session:
        for columns in (6, 10, 12):
            for values in (sf.Clipped, Values.TABLE):
                for ask in (session.query, session.preview):
                    with pytest.raises(MissingDeclaration, match="at most 5"):
                        ask(sum_of(columns), epsilon=1, values=values)
        assert 10**6 - session.budget.left == 0
        session.query(sum_of(5), epsilon=1)
        assert 10**6 - session.budget.left == 1


def test_a_column_that_is_computed_or_public_says_that_it_is_not_clipped(tmp_path):
    sql = (
        "SELECT AVG(n) AS m FROM (SELECT person, MAX(income) AS n FROM people GROUP BY person) AS t"
    )
    with opened(tmp_path, INCOMES, sf.Unit("person", max_rows=2)) as session:
        answer = session.query(sql, epsilon=1, values=sf.Clipped)
        assert any("is computed or public is not clipped" in note for note in answer.notes)
        assert 10**6 - session.budget.left == 1
