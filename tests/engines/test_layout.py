# SPDX-License-Identifier: Apache-2.0
"""A layout holds the codes of the source, and of each unit the rows that the reference takes."""

from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import duckdb, emit, grouped_rows, layout, relation, sql_tree
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.prepare import prepare
from sfumato.errors import EngineFailed
from sfumato.metadata.dataset import Dataset
from sfumato.plan.aggregate import (
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    Variance,
)
from sfumato.plan.owner import Owner
from sfumato.plan.relation import Filter, PublicJoin, Scan, Semi, UnitJoin
from sfumato.plan.scalar import Arithmetic, Constant, IsNull, Member, Operation
from sfumato.plan.stages import Raw
from sfumato.plan.value import GroupKey, Value
from tests.contracts import layouts, plans, world
from tests.contracts.effort import examples
from tests.contracts.layouts import any_row, both, plan
from tests.contracts.verbatim import Verbatim
from tests.contracts.world import by, content, read, scan

PEOPLE = scan("people")
N, T = read(PEOPLE, "n"), read(PEOPLE, "t")
EVERY = (
    CountRows(),
    CountUnits(),
    *(each(N) for each in (CountValues, CountDistinct, Sum, Mean, Variance)),
)
MEDIAN = Quantiles(N, (Fraction(1, 2),))


@settings(deadline=None, max_examples=examples(0.2), suppress_health_check=list(HealthCheck))
@given(st.data(), plans.data())
def test_a_layout_has_the_rows_of_the_reference(data, rows):
    with both(rows) as engines:
        for _ in range(5):
            found, expected = engines.run(data.draw(layouts.questions()))
            assert found == expected


# Units with many rows, equal ones among them: what is kept of them tells every order from every
# other.
CROWD = content(
    people=[
        {"who": who, "n": number, "c": letter, "t": word}
        for who, times in (("p", 1), ("q", 2), ("r", 5), ("Ü", 1))
        for _ in range(times)
        for number in ("-3", "0", "1", "4", None)
        for letter, word in (("a", "x"), ("b", None), (None, "空"))
    ]
    + [{"who": None, "n": "4"}]
    + [{"who": str(who), "n": "0"} for who in range(20)],
    # several of each, and of p and r none: which one is taken agrees by chance with a probability
    # of 3^-22
    stays=[
        {"patient": who, "n": number, "c": "ab"[int(number) % 2]}
        for who in ("Ü", "q", *map(str, range(20)))
        for number in "012"
    ],
)
STAYS = scan("stays", "S.")
OF_STAYS, BESIDE = (
    UnitJoin(PEOPLE, any_row(STAYS, "S.rank")),
    UnitJoin(PEOPLE, any_row(STAYS, "S.rank"), outer=True),
)
# In the stays of q and Ü, and of half of the others, the first row by the order of the layout
# decides.
HERE = Filter(STAYS, Member(read(STAYS, "S.n").expression, (0,)))
SOME, OTHERS = Semi(PEOPLE, HERE), Semi(PEOPLE, HERE, negated=True)
LETTERS = by(PEOPLE, "c", missing=True)
ASKED = (
    plan(PEOPLE, *EVERY, MEDIAN, CountDistinct(T), kept=7),
    plan(PEOPLE, *EVERY, MEDIAN, keys=(LETTERS,), kept=7),
    plan(PEOPLE, CountUnits(), CountRows(), keys=(by(PEOPLE, "t"),), limits=(2, 2, None), kept=7),
    plan(PEOPLE, CountUnits(), keys=(LETTERS,), limits=(2, 3, None), kept=7),
    plan(Filter(PEOPLE, Member(N.expression, (0, 4))), CountUnits(), keys=(LETTERS,), kept=7),
    plan(PEOPLE, CountUnits(), CountRows(), Sum(N), keys=(LETTERS,), limits=(2, 1, 3), kept=5),
    plan(
        OF_STAYS,
        *EVERY,
        Sum(read(OF_STAYS, "S.n")),
        keys=(by(OF_STAYS, "S.c", missing=True),),
        kept=7,
    ),
    plan(BESIDE, *EVERY, keys=(by(BESIDE, "S.n", missing=True), LETTERS), kept=5),
    plan(SOME, *EVERY, keys=(LETTERS,), kept=7),
    plan(OTHERS, *EVERY, MEDIAN, limits=(2, 2, None), kept=7),
)


def agrees():
    """Whether a layout that is written now gives what the reference does."""
    with both(CROWD, rows=7) as engines:
        return all(found == expected for found, expected in map(engines.run, ASKED))


def is_noticed():
    """Whether a wrong layout gives other integers, or a statement that the engine refuses."""
    try:
        return not agrees()
    except EngineFailed:
        return True


def test_rows_of_many_units_agree():
    assert agrees()


def without(module, name, cut, put=""):
    honest = getattr(module, name)

    def wrong(*arguments, **options):
        made = honest(*arguments, **options)
        assert cut in made
        return made.replace(cut, put)

    return module, name, wrong


MUTANTS = {
    "an order without the key": lambda: without(layout, "placed", "md5('", "md5('0"),
    "an order without the unit": lambda: without(
        layout, "placed", " || '|' || CAST(unit AS VARCHAR)"
    ),
    "equal rows not told apart": lambda: without(
        layout, "placed", " || '|' || CAST(number AS VARCHAR)"
    ),
    "numbers of all equal rows": lambda: without(
        layout, "placed", 'PARTITION BY unit, "c_n"', 'PARTITION BY "c_n"'
    ),
    "places among all rows": lambda: without(layout, "placed", "PARTITION BY unit ORDER", "ORDER"),
    "places forgotten": lambda: (relation, "_scan", _every_row),
    "marks of all units": lambda: without(
        layout, "_mark", "PARTITION BY p.unit, ", "PARTITION BY "
    ),
    "marks of any row": lambda: without(layout, "_mark", "ORDER BY place)", "ORDER BY place DESC)"),
    "marks of a row that is filtered": lambda: (emit, "key_alone", _any_key),
    "units counted by row": lambda: (emit, "_units", _rows_for_units),
    "units numbered anew in each table": lambda: (duckdb, "layout_statements", _numbered_anew),
    "looked up in all rows": lambda: (grouped_rows, "rows", _looked_up_in_all),
    "those without instead of those with": lambda: (grouped_rows, "rows", _without_instead_of_with),
    "any of the rows joined": lambda: (relation.Tables, "joined", property(lambda tables: tables)),
}
_honest_scan = relation._scan


def _any_key(raw):
    """The marks of a key, whatever else is asked of a row."""
    return raw.keys[0].value.expression.column if raw.keys else None


def _numbered_anew(*arguments):
    return ["DROP TABLE IF EXISTS units", *layout.layout_statements(*arguments)]


def _every_row(found, tables):
    return replace(_honest_scan(found, tables), where=None)


def _looked_up_in_all(found, tables):
    made = relation.rows(found, tables)
    if not isinstance(found, Semi):
        return made
    (join,) = made.joins
    every = sql_tree.Item(relation.rows(found.units, tables), join.item.alias)
    return replace(made, joins=(replace(join, item=every),))


def _without_instead_of_with(found, tables):
    return Verbatim(printed(relation.rows(found, tables)).replace(" ANTI JOIN ", " SEMI JOIN "))


def _rows_for_units(found, tables):
    tables = replace(tables, first=None)
    return emit._linear(found, tables, [found.tracked.raw.aggregates.index(CountRows())], "key")


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_layout_that_was_made_wrong_is_noticed(monkeypatch, mutant):
    module, name, wrong = MUTANTS[mutant]()
    monkeypatch.setattr(module, name, wrong)
    assert is_noticed()


def test_a_sample_is_even_among_equal_rows(tmp_path):
    # nine of ten rows of each of 400 people are alike: nine of ten of those kept are, too, or the
    # sample is bent
    rows = [{"who": str(who), "c": "b" if row else "a"} for who in range(400) for row in range(10)]
    with both(content(people=rows), rows=1) as engines:
        ((counts,), _) = engines.run(plan(PEOPLE, CountRows(), keys=(by(PEOPLE, "c"),), kept=1))
        assert sum(each[0] for each in counts.values()) == 400
        # binomial(400, 1/10): more than 100 has a probability below 1e-16
        assert counts[(0,)][0] < 100


def test_the_file_holds_codes_in_order_of_place_and_no_name_of_a_unit(tmp_path):
    source = tmp_path / "visits.parquet"
    visits = {
        "person": ["ann", "ann", "ann", "bob", None],
        "ward": ["A", "B", "?", "A", "B"],
        "stay": [1.4, 99.0, None, 1.6, 0.0],
        "note": ["x", None, "y", "x", "z"],
        "big": [1, 2, 3, 4, 5],
    }
    pq.write_table(pa.table(visits), source)
    table = sf.Table(
        source,
        unit=sf.Unit("person", max_rows=2),
        columns={
            "ward": sf.Category("A", "B"),
            "stay": sf.Real(0, 9, step="0.5"),
            "note": sf.Text(),
            "big": sf.Integer(0, 2**40),
        },
    )
    folder = prepare({"visits": table}, dataset="clinic", folder=tmp_path / "layouts")
    (file,) = folder.glob("*.parquet")
    found = pq.read_table(file)
    assert found.column_names == [
        "c_ward",
        "c_stay",
        "c_note",
        "c_big",
        "f_ward",
        "f_note",
        "unit",
        "place",
    ]
    types = ["int8", "int8", "string", "int64", "bool", "bool", "int64", "int32"]
    assert [str(each) for each in found.schema.types] == types
    places = found["place"].to_pylist()
    assert places == sorted(places) and max(places) == 2
    assert sorted(found["unit"].to_pylist()) in ([1, 1, 2], [1, 2, 2])
    codes = {
        (row["c_ward"], row["c_stay"], row["c_note"], row["c_big"]) for row in found.to_pylist()
    }
    assert (
        codes < {(0, 3, "x", 1), (1, 18, None, 2), (None, None, "y", 3), (0, 3, "x", 4)}
        and len(codes) == 3
    )


def test_a_unit_has_one_number_in_all_tables(tmp_path):
    # one table holds as a number what the other holds as a text; 7 and 8 are in one of them only
    held = {"visits": pa.array([3, 3, 7, 1, None]), "homes": pa.array(["1", "8", "3"])}
    for name, people in held.items():
        pq.write_table(pa.table({"person": people, "n": people}), tmp_path / f"{name}.parquet")
    tables = {
        name: sf.Table(
            tmp_path / f"{name}.parquet",
            unit=sf.Unit("person", max_rows=2),
            columns={"n": sf.Integer(0, 9)},
        )
        for name in held
    }
    folder = prepare(tables, dataset="clinic", folder=tmp_path / "layouts")
    found = {name: pq.read_table(*folder.glob(f"*{name}*.parquet")).to_pylist() for name in tables}
    assert {name: len(rows) for name, rows in found.items()} == {"visits": 4, "homes": 3}
    pairs = {(row["c_n"], row["unit"]) for rows in found.values() for row in rows}
    assert {person for person, _ in pairs} == {1, 3, 7, 8} and len(
        {number for _, number in pairs}
    ) == 4 == len(pairs)


def test_the_whole_table_is_what_a_layout_holds():
    dataset = Dataset("world", world.TABLES)
    assert layout.whole(dataset, "people") == Scan("people", "", PEOPLE.columns, Owner(("who",)))
    assert layout.whole(dataset, "notes").owner == scan("notes").owner


def test_units_are_counted_by_marks_only_where_the_key_alone_decides():
    letter, drugs = read(PEOPLE, "c"), scan("drugs", "d.")
    own, other = (Filter(PEOPLE, IsNull(each.expression)) for each in (letter, N))
    joined = PublicJoin(PEOPLE, drugs, Constant(1), drugs.columns[0], outer=True)
    sum_of = Value("k", sf.Integer(-6, 8), Arithmetic(Operation.ADD, N.expression, N.expression))
    for relation_, keys, column in (
        (PEOPLE, (LETTERS,), "c"),
        (PEOPLE, (by(PEOPLE, "t"),), "t"),
        (own, (LETTERS,), "c"),
        (other, (LETTERS,), None),
        (joined, (LETTERS,), None),
        (OF_STAYS, (LETTERS,), None),
        (SOME, (LETTERS,), "c"),
        (Filter(OTHERS, IsNull(letter.expression)), (LETTERS,), "c"),
        (Semi(other, HERE), (LETTERS,), None),
        (OF_STAYS, (by(OF_STAYS, "S.c"),), None),
        (PEOPLE, (), None),
        (PEOPLE, (LETTERS, by(PEOPLE, "b")), None),
        (PEOPLE, (GroupKey(sum_of, None),), None),
        (PEOPLE, (GroupKey(read(PEOPLE, "x"), None),), None),
        (PEOPLE, (GroupKey(read(PEOPLE, "Big"), None),), None),
    ):
        found = layout.key_alone(Raw(relation_, keys, (CountUnits(),)))
        assert (None if found is None else found.name) == column
