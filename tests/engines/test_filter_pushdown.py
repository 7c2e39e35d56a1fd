# SPDX-License-Identifier: Apache-2.0
"""A test of a stored value passes the rows that the test of its code passes, in files with
statistics of small pieces.
"""

import datetime
import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines import filter_pushdown
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.duckdb_printer import printed
from sfumato.engines.filter_pushdown import names_read, passing, split
from sfumato.engines.reference import Reference
from sfumato.engines.value_sql import Source
from sfumato.metadata.column import Column
from sfumato.plan.aggregate import CountRows, Sum
from sfumato.plan.evaluate import evaluate
from sfumato.plan.relation import Filter, PublicJoin, Semi, UnitJoin, first, scans
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Compare,
    Comparison,
    Constant,
    Field,
    IsNull,
    Member,
    Not,
    Operation,
    Or,
)
from sfumato.plan.stages import Raw
from tests.contracts.conformance import differs, noticed
from tests.contracts.examples import PEOPLE, STAYS, N
from tests.contracts.verbatim import Verbatim
from tests.contracts.world import content, plan, read, scan

NAN, INF = float("nan"), float("inf")
DAYS = [
    datetime.date(1969, 12, 31),
    datetime.date(1970, 1, 5),
    datetime.date(1970, 2, 1),
    datetime.date(2999, 1, 1),
]
# a declaration, and the values that are stored
COLUMNS = {
    "words": (
        sf.Category("a", "b", "空", "o'c", missing="N"),
        pa.array(["a", "b", "空", "o'c", "", "N", "A", "a ", None] * 2),
    ),
    "numbered": (
        sf.Category("1", "2", "-3", "01", "x"),
        pa.array([1, 2, -3, 0, 127, None], pa.int8()),
    ),
    "switch": (sf.Boolean(missing="7"), pa.array([0, 1, 2, 7, None], pa.uint16())),
    "truth": (sf.Boolean(), pa.array([True, False, None])),
    "price": (sf.Category("1", "2.50"), pa.array([1.0, 2.0, float("nan"), None])),
    "day": (
        sf.Date("1970-01-01", "1970-01-31", missing="1970-01-05"),
        pa.array([*DAYS, None], pa.date32()),
    ),
    "days": (sf.Date("0001-01-07", "9999-12-31"), pa.array([*DAYS, None], pa.date32())),
    **{
        f"whole{bits}": (
            sf.Integer(-3, 4, missing=("2", "x")) if bits % 2 else sf.Integer(-(2**20), 2**20),
            pa.array([-(2**bits), -4, -3, -1, 0, 2, 4, 5, 2**bits - 1, None], width),
        )
        for width, bits in {pa.int8(): 7, pa.int32(): 31, pa.int64(): 63}.items()
    },
    "real": (
        sf.Real(-2, 3, step="0.5", missing="1.5"),
        pa.array(
            [
                -9.0,
                -2.0,
                -1.75,
                -1.5,
                -0.25,
                -0.0,
                0.25,
                0.75,
                1.5,
                2.5,
                2.75,
                3.0,
                8.0,
                NAN,
                INF,
                -INF,
                None,
            ]
        ),
    ),
    "single": (
        sf.Real(0, 1, step="0.1"),
        pa.array([0.05, 0.15, 0.25, 0.35, 0.95, 1.05, -1.0, None], pa.float32()),
    ),
    "rounded": (
        sf.Integer(-(2**20), 2**20),
        pa.array([-(2.0**20), -1.5, -0.5, 0.5, 1.5, 2.5, 2.0**20, 1e300, NAN]),
    ),
    "coarse": (
        sf.Real(-(2**52), 2**52, step=1),
        pa.array([-(2.0**52), -0.5, 0.5, 1.5, 2.0**52, None]),
    ),
    "wide": (
        sf.Integer(-(2**40), 2**40),
        pa.array([-(2**63), -(2**40), -7, 0, 2**40, 2**63 - 1, None], pa.int64()),
    ),
    "small": (sf.Integer(3, 300), pa.array([0, 3, 200, 255, None], pa.uint8())),
}


def codes(kind):
    """Constants about the ends of a range, and within it."""
    low, high = kind.lower_code, kind.upper_code
    near = [low - 1, low, low + 1, (low + high) // 2, high - 1, high, high + 1, 0, 2]
    return st.sampled_from(near) | st.integers(low, high)


@st.composite
def conditions(draw, column, depth=2):
    """A test of one column, most of them such as can be asked of what is stored."""
    field, constant = Field(column), codes(column.type)
    leaf = st.one_of(
        st.builds(
            Compare, st.sampled_from(Comparison), st.just(field), st.builds(Constant, constant)
        ),
        st.builds(
            Compare, st.sampled_from(Comparison), st.builds(Constant, constant), st.just(field)
        ),
        st.builds(
            Member,
            st.just(field),
            st.lists(constant, max_size=4, unique=True).map(lambda each: tuple(sorted(each))),
        ),
        st.just(IsNull(field)),
        st.builds(Constant, st.sampled_from([True, False, None])),
    )
    if depth == 0:
        return draw(leaf)
    inner = st.lists(conditions(column, depth - 1), max_size=3).map(tuple)
    return draw(
        st.one_of(
            leaf,
            st.builds(Not, conditions(column, depth - 1)),
            st.builds(And, inner),
            st.builds(Or, inner),
        )
    )


@pytest.fixture(scope="module")
def ask(asker, tmp_path_factory):
    """Every combination of some values, in pieces of three rows."""
    path, most = (
        tmp_path_factory.mktemp("skip") / "t.parquet",
        max(len(cells) for _, cells in COLUMNS.values()),
    )
    cells = {
        name: cells.take(pa.array([row % len(cells) for row in range(most)]))
        for name, (_, cells) in COLUMNS.items()
    }
    pq.write_table(pa.table(cells), path, row_group_size=3)
    found = asker(str(path), {name: kind for name, (kind, _) in COLUMNS.items()})
    found.rows = pa.table(cells).to_pylist()
    found.engine = DuckDB(found.tables)
    yield found
    found.engine.close()


def same(ask, predicate):
    """Whether the engine counts the rows of the reference."""
    bounded = ask.plan(CountRows(), source=Filter(ask.scan, predicate))
    return ask.engine.run(bounded, "key") == Reference({"people": ask.rows}).run(bounded, "key")


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_row_passes_the_stored_test_where_it_passes_the_test_of_its_code(ask, data):
    chosen = data.draw(st.lists(st.sampled_from(ask.scan.columns), min_size=1, max_size=2))
    assert same(ask, And(tuple(data.draw(conditions(column)) for column in chosen)))


EVERY = [
    test
    for name, (kind, _) in COLUMNS.items()
    for column in [Column(name, kind)]
    for code in {kind.lower_code, kind.lower_code + 1, 2, kind.upper_code}
    for test in (
        Member(Field(column), (code,)),
        Compare(Comparison.GE, Field(column), Constant(code)),
        Compare(Comparison.LT, Field(column), Constant(code)),
        Compare(Comparison.NE, Field(column), Constant(code)),
        Or((IsNull(Field(column)), Member(Field(column), (code,)))),
    )
]


def test_each_stored_type_is_asked_at_the_ends_of_its_range(ask):
    assert not [test for test in EVERY if not same(ask, test)]


_between, _listed, _passing, column_text = (
    filter_pushdown._between,
    filter_pushdown._listed,
    filter_pushdown.passing,
    filter_pushdown.column_text,
)
_rounded = filter_pushdown._rounded


def _with_sign(sign, test):
    """A test with the same sign in all comparisons of its direction."""
    return Verbatim(printed(test).replace(sign, sign[0]).replace(sign[0], sign))


MUTANTS = {
    "nothing beyond the bounds": (
        "_between",
        lambda run, kind, raw: Verbatim(f"{printed(raw)} BETWEEN {run[0]} AND {run[1]}"),
    ),
    "the lower end left out": (
        "_between",
        lambda run, *rest: _between((min(run[0] + 1, run[1]), run[1]), *rest),
    ),
    "numbers by their texts": (
        "_listed",
        lambda words, name, source: _listed([*words, "0"], name, source),
    ),
    "missing is a number": ("column_text", lambda name, source: Verbatim("'no marker'")),
    "NULL is like any other": (
        "_passes",
        lambda test, code: code is not None and evaluate(test, lambda leaf: code) is True,
    ),
    "halves go up": (
        "_rounded",
        lambda run, *rest: _with_sign(">=", _rounded(run, *rest)),
    ),
    "halves go down": (
        "_rounded",
        lambda run, *rest: _with_sign("<=", _rounded(run, *rest)),
    ),
    "codes are not rounded": (
        "_rounded",
        lambda run, kind, read: Verbatim(f"{printed(read)} BETWEEN {run[0]} AND {run[1]}"),
    ),
    "turns forgotten": ("_turns", lambda test: set()),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_stored_test_is_noticed(ask, monkeypatch, mutant):
    monkeypatch.setattr(filter_pushdown, *MUTANTS[mutant])
    found = []
    for test in EVERY:
        try:
            found.append(same(ask, test))
        except sf.SfumatoError:
            found.append(False)
    assert not all(found)


@settings(deadline=None)
@given(data=st.data())
def test_runs_of_many_codes_are_those_of_all_of_them(data):
    column = Column("n", sf.Integer(-900, 900))
    test = data.draw(conditions(column))
    runs = passing(test, column.type)
    truth = {
        code: evaluate(test, lambda leaf, code=code: code) is True for code in range(-900, 901)
    }
    if evaluate(test, lambda leaf: None) is True:
        assert runs is None
    else:
        assert {code for low, high in runs for code in range(low, high + 1)} == {
            code for code in truth if truth[code]
        }
        assert all(one[1] < other[0] for one, other in itertools.pairwise(runs))


def test_what_is_computed_of_many_codes_is_not_asked_of_what_is_stored():
    many, few = (Column("n", sf.Integer(0, most)) for most in (5000, 500))
    for column, expected in ((many, None), (few, [(0, 10)])):
        doubled = Arithmetic(Operation.MULTIPLY, Field(column), Constant(2))
        assert passing(Compare(Comparison.LT, doubled, Constant(21)), column.type) == expected


def many(count):
    """Statements' tests of one column that have many constants: a chain, lists, a nest."""
    column = Column("n", sf.Integer(0, 10**6))
    field = Field(column)
    chain = tuple(Compare(Comparison.EQ, field, Constant(1000 * each)) for each in range(count))
    ranges = tuple(
        And(
            (
                Compare(Comparison.GE, field, Constant(7 * each)),
                Compare(Comparison.LT, field, Constant(7 * each + 3)),
            )
        )
        for each in range(count)
    )
    nest = chain[0]
    for each in chain[1:100]:
        nest = Or((And((Not(nest), each)), each))
    listed = Member(field, tuple(range(0, 3 * count, 3)))
    return column.type, [
        Or(chain),
        And(tuple(map(Not, chain))),
        Or(ranges),
        nest,
        And((listed, Not(listed))),
    ]


def test_a_test_of_many_constants_takes_steps_in_proportion_to_them(monkeypatch):
    calls = []
    honest = filter_pushdown.evaluate
    monkeypatch.setattr(
        filter_pushdown, "evaluate", lambda test, lookup: calls.append(1) or honest(test, lookup)
    )
    for place in range(5):
        counted = []
        for count in (200, 400):
            kind, tests = many(count)
            del calls[:]
            passing(tests[place], kind)
            counted.append(len(calls))
        assert counted[1] <= 2 * counted[0] + 10, place
        assert counted[1] <= 6 * 2 * 400


def test_a_test_that_is_evaluated_at_too_many_codes_is_left_where_it_is(monkeypatch):
    column = Column("n", sf.Integer(0, 999))
    doubled = Arithmetic(Operation.MULTIPLY, Field(column), Constant(2))
    tests = tuple(Compare(Comparison.EQ, doubled, Constant(2 * each)) for each in range(4))
    assert passing(Or(tests[:2]), column.type) == [(0, 1)]
    assert passing(Or(tests), column.type) is None
    monkeypatch.setattr(filter_pushdown, "_STEPS", 2**20)
    assert passing(Or(tests), column.type) == [(0, 3)]


def test_what_is_no_truth_everywhere_is_left_where_it_is():
    column = Column("b", sf.Integer(0, 3))
    assert passing(Not(Field(column)), column.type) is None
    assert (
        passing(
            Or((Field(column), Compare(Comparison.EQ, Field(column), Constant(1)))), column.type
        )
        is None
    )


# --- where in a relation ---------------------------------------------------------------------

PHYSICAL = {
    "people": Source(
        "people", {"who": "VARCHAR", "n": "BIGINT", "x": "DOUBLE", "c": "VARCHAR", "t": "VARCHAR"}
    )
}
PHYSICAL |= {"stays": PHYSICAL["people"], "drugs": PHYSICAL["people"]}
LETTER = Member(read(PEOPLE, "people.c").expression, (0,))
FEW = Compare(Comparison.LE, N.expression, Constant(1))
BOTH = Compare(Comparison.EQ, N.expression, read(PEOPLE, "people.c").expression)
OLDEST = first(PEOPLE, (), (N.expression, read(PEOPLE, "people.c").expression), "rank")


def asked(relation, sources=PHYSICAL):
    rest, found = split(relation, sources)
    return rest, {name: [printed(test) for test in tests] for name, tests in found.items()}


def test_tests_of_one_column_are_asked_of_the_table_and_others_stay():
    texts = {
        "people.c": ['(CAST("c" AS VARCHAR) COLLATE "C" IN (\'a\'))'],
        "people.n": ['((("n" <= 1)) AND TRY_CAST("n" AS VARCHAR) NOT IN (\'N\'))'],
    }
    assert asked(Filter(PEOPLE, And((LETTER, And((FEW, BOTH)))))) == (Filter(PEOPLE, BOTH), texts)
    assert asked(Filter(PEOPLE, And((FEW, LETTER)))) == (PEOPLE, texts)


@pytest.mark.parametrize("stored", ["DOUBLE", "VARCHAR", "DECIMAL(9,2)"])
@pytest.mark.parametrize("name", ["x", "t"])
def test_texts_and_numbers_that_are_no_floats_keep_their_tests(name, stored):
    value = read(PEOPLE, f"people.{name}").expression
    whole = Filter(PEOPLE, Compare(Comparison.LE, value, Constant("a" if name == "t" else 1)))
    sources = {"people": Source("people", {**PHYSICAL["people"].types, name: stored})}
    rest, found = asked(whole, sources)
    assert (
        (rest, found) == (whole, {})
        if name == "t" or stored != "DOUBLE"
        else (rest == PEOPLE and len(found) == 1)
    )


def test_a_float_is_asked_for_the_numbers_that_are_rounded_to_a_code():
    value = read(PEOPLE, "people.x").expression
    # steps of a quarter; NaN is above all numbers, and no number
    steps = 'TRY_CAST(TRY("x") AS DOUBLE) * 4.0::DOUBLE'
    for op, code, test in (
        (Comparison.LE, 2, f"{steps} <= 2.5::DOUBLE"),
        (Comparison.LE, 3, f"{steps} < 3.5::DOUBLE"),
        (Comparison.GE, 2, f"{steps} >= 1.5::DOUBLE AND {steps} <= 'inf'::DOUBLE"),
        (Comparison.LE, 8, f"{steps} <= 'inf'::DOUBLE"),
    ):
        whole = Filter(PEOPLE, Compare(op, value, Constant(code)))
        assert asked(whole) == (PEOPLE, {"people.x": [f"(({test}))"]})


def test_codes_of_a_layout_keep_their_tests():
    whole = Filter(PEOPLE, LETTER)
    assert asked(whole, {"people": Source("layout", {}, coded=True)}) == (whole, {})


def test_rows_are_dropped_below_what_takes_each_by_itself():
    drugs = scan("drugs", "d.")
    joined = PublicJoin(
        UnitJoin(Semi(STAYS, PEOPLE), OLDEST),
        drugs,
        read(STAYS, "stays.n").expression,
        drugs.columns[0],
    )
    letter = Member(read(STAYS, "stays.c").expression, (0,))
    assert asked(Filter(joined, letter)) == (
        joined,
        {"stays.c": ['(CAST("c" AS VARCHAR) COLLATE "C" IN (\'a\'))']},
    )


def test_what_chooses_among_rows_sees_all_of_them():
    # neither the first row of a unit nor the rows of another table may be chosen from fewer
    joined = UnitJoin(STAYS, OLDEST)
    for relation in (Filter(OLDEST, LETTER), Filter(joined, LETTER), Filter(joined, BOTH)):
        assert asked(relation) == (relation, {})


TWO = content(
    people=[{"who": "p", "c": letter, "n": number} for letter, number in (("b", "1"), ("a", "2"))],
    stays=[{"patient": "p"}],
)
EXAMPLES = {
    "first rows": (plan(Filter(OLDEST, LETTER), CountRows(), Sum(N)), TWO),
    "of a join": (plan(Filter(UnitJoin(STAYS, OLDEST), And((LETTER, FEW))), CountRows()), TWO),
    "of both": (
        plan(
            Filter(
                UnitJoin(
                    Filter(STAYS, Not(Member(read(STAYS, "stays.c").expression, (1,)))), OLDEST
                ),
                LETTER,
            ),
            CountRows(),
        ),
        content(
            people=[
                {"who": who, "c": letter, "n": "1"} for who, letter in (("p", "a"), ("q", "b"))
            ],
            stays=[{"patient": who, "c": letter} for who in "pq" for letter in ("a", "b", None)],
        ),
    ),
    "beside a public table": (
        plan(
            Filter(
                PublicJoin(
                    PEOPLE,
                    scan("drugs", "d."),
                    N.expression,
                    read(scan("drugs", "d."), "d.n").expression.column,
                ),
                And(
                    (
                        Member(read(PEOPLE, "people.c").expression, (0, 1)),
                        Member(read(scan("drugs", "d."), "d.c").expression, (0,)),
                    )
                ),
            ),
            CountRows(),
        ),
        content(
            people=[{"who": "p", "c": "a", "n": "1"}],
            drugs=[{"n": "1", "c": "a"}, {"n": "1", "c": "b"}],
        ),
    ),
    "a table twice": (
        plan(
            Semi(
                Filter(scan("people"), Member(read(scan("people"), "c").expression, (0,))),
                scan("people"),
            ),
            CountRows(),
        ),
        content(people=[{"who": "p", "c": "a"}, {"who": "p", "c": "b"}]),
    ),
}


@pytest.fixture
def examples(monkeypatch):
    monkeypatch.setattr("tests.contracts.conformance.EXAMPLES", EXAMPLES)


@pytest.mark.usefixtures("examples")
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_integers_are_those_of_the_reference(name):
    assert not differs(DuckDB, name)


@pytest.mark.usefixtures("examples")
def test_rows_that_are_dropped_too_early_are_noticed(monkeypatch):
    monkeypatch.setattr(filter_pushdown, "names_read", lambda raw: None)
    monkeypatch.setattr(filter_pushdown, "_source", lambda relation: next(scans(relation)))
    assert noticed(DuckDB)


def test_a_column_that_nobody_reads_any_more_is_not_computed(ask):
    column = ask.scan.columns[0]
    bounded = ask.plan(CountRows(), source=Filter(ask.scan, Member(Field(column), (1,))))
    assert "unnest" not in ask.engine.statement(bounded)


def test_what_is_read_is_all_that_anything_reads():
    drugs = scan("drugs", "d.")
    joined = PublicJoin(OLDEST, drugs, N.expression, drugs.columns[0])
    raw = Raw(Filter(joined, LETTER), (), (Sum(read(PEOPLE, "people.x")),))
    assert names_read(raw) == {
        "rank",
        "people.n",
        "people.c",
        "people.x",
        *(column.name for column in drugs.columns),
    }
