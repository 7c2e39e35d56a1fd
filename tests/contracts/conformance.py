# SPDX-License-Identifier: Apache-2.0
"""What every engine owes: the integers of the reference, bit for bit. Inherit, and give
``open_engine``.

An engine version is trusted once it has passed; no other is used.
"""

import pickle
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, nullcontext
from typing import Protocol

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.base import Engine, Exact
from sfumato.engines.reference import Reference
from sfumato.errors import EngineFailed, UnknownName, WrongUse
from sfumato.metadata.column import Column, Date, Integer
from sfumato.plan.aggregate import (
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
)
from sfumato.plan.cube import BoundedCube
from sfumato.plan.evaluate import FIRST_DAY, LAST_DAY, day, evaluate
from sfumato.plan.rows import BoundedRows
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    ChangeCase,
    Coalesce,
    Compare,
    Comparison,
    Constant,
    DatePart,
    DateTrunc,
    Extreme,
    Field,
    FloorDivide,
    IsNull,
    Like,
    Lookup,
    Member,
    Not,
    Operation,
    Or,
    Part,
    Quotient,
    Scalar,
    Substring,
    Trim,
)
from sfumato.plan.stages import Bounded
from sfumato.plan.value import GroupKey, Value
from sfumato.plan.value_range import span
from tests.contracts import cubes, plans, unit_rows, world
from tests.contracts.effort import examples
from tests.contracts.examples import EXAMPLES, MEDIAN, PEOPLE
from tests.contracts.world import Rows, Scan, declared, plan

KEY = "key"


class Opened(Engine, Protocol):
    """An engine that can be closed."""

    def close(self) -> None: ...


def reference(tables: Mapping[str, sf.Table]) -> Reference:
    """The oracle over the same Arrow tables."""
    return Reference({name: table.source.to_pylist() for name, table in tables.items()})


def differing(
    open_engine: object, names: Iterable[str], engines: Mapping[int, Opened] | None = None
) -> Iterator[str]:
    """Those examples on which an engine gives other integers than the reference, or fails.

    Examples over the same rows share one opened engine; ``engines`` has those that stay open, by
    the identity of their rows.
    """
    of_rows: dict[int, list[str]] = {}
    for name in names:
        of_rows.setdefault(id(EXAMPLES[name][1]), []).append(name)
    for alike in of_rows.values():
        rows = EXAMPLES[alike[0]][1]
        tables = declared(rows)
        oracle = reference(tables)
        shared = (engines or {}).get(id(rows))
        with nullcontext(shared) if shared else closing(open_engine(tables)) as engine:
            for name in alike:
                bounded = EXAMPLES[name][0]
                try:
                    same = engine.run(bounded, KEY) == oracle.run(bounded, KEY)
                except sf.SfumatoError:
                    same = False
                if not same:
                    yield name


def differs(open_engine: object, name: str) -> bool:
    """Whether an engine gives other integers than the reference on an example, or fails."""
    return any(differing(open_engine, [name]))


# In this order most mutants of a statement are noticed by one of the first few examples.
TELLING = (
    "weights in L2",
    "first row, descending 1",
    "a public join",
    "an anti-join",
    "the way to a unit",
    "a join by a key",
    "count distinct of a unit",
    "values of one unit",
    "mean of a unit",
    "the least c of a unit",
    "rows of first groups",
)


def noticed(open_engine: object, engines: Mapping[int, Opened] | None = None) -> bool:
    """Whether an engine gives something else than the reference for any of the examples."""
    first = [name for name in TELLING if name in EXAMPLES]
    return any(differing(open_engine, first, engines)) or any(
        differing(open_engine, EXAMPLES, engines)
    )


# --- nodes over their whole small domain -----------------------------------------------------

A, B = Column("a", Integer(-7, 7)), Column("b", Integer(-7, 7))
WIDE = Column("a", Integer(-(2**52), 2**52))
T = Column("t", sf.Text())
_TEST = Compare(Comparison.LT, Field(A), Field(B))
_COMPUTED: dict[str, Scalar] = {
    **{
        f"a {op.value} b": Arithmetic(op, Field(A), Field(B))
        for op in Operation
        if op is not Operation.DIVIDE
    },
    "the greatest": Extreme(True, (Field(A), Field(B))),
    "the least": Extreme(
        False, (Field(A), Constant(1), Arithmetic(Operation.ADD, Field(A), Field(B)))
    ),
    "the greatest of what may be null": Extreme(
        True, (Coalesce((Field(A), Field(B))), Quotient(Field(B), Field(A)))
    ),
    "the least of null": Extreme(False, (Field(A), Constant(None))),
    "quotient": Quotient(Field(A), Field(B)),
    "quotient by a quotient": Quotient(Field(A), Quotient(Field(A), Field(B))),
    "quotient by what is not zero": Quotient(Field(A), Extreme(True, (Field(B), Constant(2)))),
    "floor": FloorDivide(Field(A), 3),
    "floor by one": FloorDivide(Field(A), 1),
    "floor of what is not negative": FloorDivide(
        Arithmetic(Operation.MULTIPLY, Field(A), Field(A)), 4
    ),
    "floor by more than there is": FloorDivide(Field(A), 2**62),
    "a table": Lookup(Field(A), -2, (5, None, 7)),
    "a table beyond": Lookup(Field(A), 9, (1, 2)),
    "an empty table": Lookup(Field(A), 0, ()),
    "a table of null": Lookup(Constant(None), 0, (1,)),
    "case": Case(((_TEST, Constant(1)), (IsNull(Field(A)), Field(B))), Constant(None)),
    "coalesce": Coalesce((Field(A), Constant(None), Field(B))),
}
_TESTED: dict[str, Scalar] = {
    **{f"a {op.value} b": Compare(op, Field(A), Field(B)) for op in Comparison},
    "truths compared": Compare(Comparison.LE, _TEST, IsNull(Field(B))),
    "a text and a number": Compare(Comparison.EQ, Field(A), Constant("1")),
    "member": Member(Field(A), (-7, 0, 3)),
    "member of nothing": Member(Field(A), ()),
    "member of texts": Member(Field(A), ("1",)),
    "not": Not(_TEST),
    "and": And((_TEST, IsNull(Field(A)), Member(Field(B), (1,)))),
    "or": Or((_TEST, IsNull(Field(A)), Member(Field(B), (1,)))),
    "and of nothing": And(()),
    "or of nothing": Or(()),
    "null": Or((Constant(None), _TEST)),
    "case": Case(((_TEST, Constant(True)), (IsNull(Field(A)), Constant(None))), Constant(False)),
    "coalesce": Coalesce((_TEST, Constant(True))),
    "whether a test is null": IsNull(_TEST),
}
_EDGES = (-(2**52), -(2**51) - 1, -(2**51), -3, -1, 0, 1, 2, 2**51, 2**52 - 1, 2**52, None)
_WIDE: dict[str, Scalar] = {
    "sums": Arithmetic(
        Operation.ADD, Arithmetic(Operation.MULTIPLY, Field(WIDE), Constant(511)), Field(WIDE)
    ),
    "floor": FloorDivide(Arithmetic(Operation.MULTIPLY, Field(WIDE), Constant(1000)), 7),
    "floor by 2^62": FloorDivide(
        Arithmetic(Operation.MULTIPLY, Field(WIDE), Constant(1023)), 2**62
    ),
    "quotient": Quotient(Arithmetic(Operation.MULTIPLY, Field(WIDE), Constant(1023)), Field(WIDE)),
    "a table": Lookup(Arithmetic(Operation.MULTIPLY, Field(WIDE), Constant(1023)), -1, (3, 4, 5)),
}
_WORDS = (
    "",
    "a",
    "A",
    "ab",
    "a\nb",
    "a\\b",
    "a%",
    "_",
    "空",
    "空b",
    "e\u0301",
    "é",
    "👩‍👧",
    "o'c",
    "a\x00b",
    None,
)
_OF_TEXT: dict[str, Scalar] = {
    "lower": ChangeCase(Field(T), upper=False),
    "upper": ChangeCase(Field(T), upper=True),
    "beginning": Substring(Field(T), 1, 1),
    "nothing": Substring(Field(T), 1, 0),
    "rest": Substring(Field(T), 2),
    "middle": Substring(Field(T), 2, 2),
    "upper beginning": Substring(ChangeCase(Field(T), upper=True), 1, 2),
    "lower constant": ChangeCase(Constant("ÄB"), upper=False),
    "trimmed": Trim(Field(T)),
    "trimmed start": Trim(Field(T), end=False),
    "trimmed end": Trim(Field(T), start=False),
    "trimmed lower": Trim(ChangeCase(Field(T), upper=False)),
    "or a": Coalesce((Field(T), Constant("a"))),
    "or a of a choice": Coalesce(
        (Case(((Like(Field(T), "a%"), Field(T)),), Constant(None)), Constant("a"))
    ),
    "but a": Case(((Compare(Comparison.EQ, Field(T), Constant("a")), Constant(None)),), Field(T)),
    "beginning of a choice": Substring(Coalesce((Field(T), Constant("ab"))), 1, 1),
}
# Letters beyond A to Z, some of which become two letters or another alphabet's in other cases.
_LETTERS = (
    " a",
    "a  ",
    "  a b ",
    " ",
    "\u3000a\u00a0",
    "\ta\n",
    "a \x00 ",
    "aBz",
    "Äb",
    "äB",
    "ß",
    "İ",
    "K",
    "Ǆ",
    "Ω",
    "AB\x00c",
)
_PATTERNS = (
    "",
    "%",
    "_",
    "__",
    "a%",
    "%b",
    "%\\%",
    "a\\%",
    "\\_",
    "%空%",
    "e_",
    "a_b",
    "%'%",
    "[a]",
    "a.b",
    "%%",
    "_%_",
    "A",
)


def _days() -> list[int]:
    """Every border of a year and a month near it, some weeks, and both ends of the calendar."""
    starts = [
        FIRST_DAY + 6 + 365 * year + year // 4
        for year in (*range(0, 9990, 111), *range(1890, 2110, 3))
    ]
    near = {start + off for start in starts for off in (0, 1, 58, 59, 60, 90, 181, 364, 365)}
    return sorted(
        day
        for day in {*near, *range(-800, 800), FIRST_DAY + 6, LAST_DAY}
        if FIRST_DAY + 6 <= day <= LAST_DAY
    )


class EngineContract:
    """The suite.

    ``without_rows``: the name of an engine that refuses to give rows; empty where it gives them.
    """

    without_rows = ""

    def open_engine(self, tables: Mapping[str, sf.Table]) -> Opened:
        """Opens the engine over declared Arrow tables."""
        raise NotImplementedError

    def both(self, tables: Mapping[str, sf.Table], bounded: Bounded) -> tuple[Exact, Exact]:
        """What the engine gives, and what the reference gives."""
        with closing(self.open_engine(tables)) as engine:
            return engine.run(bounded, KEY), reference(tables).run(bounded, KEY)

    def agree(
        self,
        expressions: Mapping[str, Scalar],
        columns: tuple[Column, ...],
        rows: list[tuple[object, ...]],
    ) -> None:
        """Every expression has the same value, or NULL, in every row on both."""
        place = Column("place", Integer(0, len(rows)))
        named = {column.name: [row[index] for row in rows] for index, column in enumerate(columns)}
        types = {column.name: column.type for column in (place, *columns)}
        cells = pa.table({"place": range(len(rows)), **named})
        tables = {"t": sf.Table(cells, columns=types)}
        key = GroupKey(Value.of(place), None)
        source = Scan("t", "", (place, *columns))
        shown = [
            (name, aggregate)
            for name, expression in expressions.items()
            for aggregate in _shown(expression)
        ]
        found, expected = self.both(
            tables, plan(source, *(aggregate for _, aggregate in shown), keys=(key,))
        )
        wrong = [
            name
            for (name, _), one, other in zip(shown, found, expected, strict=True)
            if one != other
        ]
        assert not wrong

    @pytest.mark.parametrize("name", EXAMPLES)
    def test_the_engine_gives_the_integers_of_the_reference_on(self, name: str) -> None:
        bounded, rows = EXAMPLES[name]
        found, expected = self.both(declared(rows), bounded)
        assert found == expected
        assert [list(part) for part in found] == [list(part) for part in expected], "in one order"
        assert any(expected), "an example in which there is something"

    def test_the_values_at_the_edges_mean_what_they_mean_to_the_reference(self) -> None:
        # NULL, NaN, infinities, texts beyond ASCII, days before 1970, integers of 64 bits, groups
        # without a row
        tables = declared(world.edges())
        columns = {name: world.read(PEOPLE, f"people.{name}") for name in world.KINDS}
        numbers = [columns[name] for name in ("n", "x", "Big")]
        parts = [CountRows(), CountUnits(), *map(CountValues, columns.values())]
        parts += [kind(each) for each in numbers for kind in (Sum, Mean)]
        parts += [
            Quantiles(columns["x"], MEDIAN),
            CountDistinct(columns["t"]),
            CountDistinct(columns["Big"]),
        ]
        words, letters = (world.by(PEOPLE, f"people.{name}", missing=True) for name in "tc")
        for key, asked in ((letters, parts), (words, parts[:2])):
            bounded = plan(PEOPLE, *asked, keys=(key,), limits=(2, 2, 5), fine=world.FINE)
            found, expected = self.both(tables, bounded)
            assert found == expected
            assert all(expected)

    @settings(deadline=None, max_examples=examples(0.2), suppress_health_check=list(HealthCheck))
    @given(st.data(), world.data(), st.text(max_size=3))
    def test_the_engine_gives_the_integers_of_the_reference(
        self, data: st.DataObject, rows: dict[str, Rows], key: str
    ) -> None:
        tables = declared(rows)
        oracle = reference(tables)
        with closing(self.open_engine(tables)) as engine:
            for raw in data.draw(st.lists(plans.questions(), min_size=2, max_size=4)):
                bounded = data.draw(plans.bounded(raw))
                assert engine.run(bounded, key) == oracle.run(bounded, key)

    def marginals(
        self, tables: Mapping[str, sf.Table], cube: BoundedCube, cliques: cubes.Cliques
    ) -> bool:
        """Whether the engine has the marginals of the reference.

        The last is asked again, by itself.
        """
        with reference(tables).cube(cube) as opened:
            expected = opened.marginals(cliques)
        with closing(self.open_engine(tables)) as engine, engine.cube(cube) as opened:
            found, again = opened.marginals(cliques), opened.marginals(cliques[-1:])
        return cubes.same(found, expected) and cubes.same(again, expected[-1:])

    def test_the_engine_gives_the_marginals_of_the_reference_at_the_edges(self) -> None:
        axes = [world.read(PEOPLE, f"people.{name}") for name in "nxdcb"]
        every = [(), *([each.name] for each in axes), [each.name for each in axes]]
        assert self.marginals(declared(world.edges()), cubes.bounded(PEOPLE, *axes, most=3), every)
        some = every[-1:], every[:1]
        assert self.marginals(
            declared(world.edges()), cubes.bounded(PEOPLE, *axes, most=2**62, fine=3), some[0]
        )
        assert self.marginals(declared(world.content()), cubes.bounded(PEOPLE, *axes), some[1]), (
            "no rows at all"
        )
        numbers = Value("t", Integer(-300, 70_000), world.read(PEOPLE, "people.n").expression)
        assert self.marginals(declared(world.edges()), cubes.bounded(PEOPLE, numbers), [["t"]]), (
            "four bytes"
        )

    @settings(deadline=None, max_examples=examples(0.4), suppress_health_check=list(HealthCheck))
    @given(st.data(), world.data())
    def test_the_engine_gives_the_marginals_of_the_reference(
        self, data: st.DataObject, rows: dict[str, Rows]
    ) -> None:
        cube = data.draw(cubes.cubes())
        assert self.marginals(declared(rows), cube, data.draw(cubes.cliques(cube.cube)))

    def test_a_table_of_codes_is_gone_at_the_end_and_says_nothing(self) -> None:
        cube = cubes.bounded(PEOPLE, world.read(PEOPLE, "people.c"))
        with closing(self.open_engine(declared(world.edges()))) as engine:
            waiting = engine.cube(cube)
            with waiting as opened:
                assert "people" not in repr(opened)
                with pytest.raises(sf.SfumatoError, match="pickled"):
                    pickle.dumps(opened)
                with pytest.raises(UnknownName):
                    opened.marginals([["people.n"]])
            with pytest.raises(EngineFailed):
                opened.marginals([["people.c"]])
            with engine.cube(cube) as again:
                assert again.marginals([["people.c"]])

    def rows_of(self, tables: Mapping[str, sf.Table], *every: BoundedRows, key: str = KEY) -> bool:
        """Whether the engine has the rows of the reference, unit by unit, or has none and says so
        by name.
        """
        with closing(self.open_engine(tables)) as engine:
            if self.without_rows:
                with pytest.raises(WrongUse, match=self.without_rows):
                    engine.rows(every[0], key)
                return True
            found, expected = [], []
            for asked in every:
                with engine.rows(asked, key) as opened, reference(tables).rows(asked, key) as known:
                    found.append(unit_rows.blocks(opened))
                    expected.append(unit_rows.blocks(known))
        return found == expected

    def test_the_engine_gives_the_rows_of_the_reference_at_the_edges(self) -> None:
        values = [
            world.read(PEOPLE, f"people.{name}") for name in ("n", "x", "d", "c", "b", "Big", "t")
        ]
        every = [unit_rows.bounded(PEOPLE, *values, most=most) for most in (1, 3, 2**40)]
        assert self.rows_of(declared(world.edges()), *every)
        assert self.rows_of(declared(world.content()), *every), "no rows at all"

    @settings(deadline=None, max_examples=examples(0.08), suppress_health_check=list(HealthCheck))
    @given(st.data(), world.data(), st.text(max_size=3))
    def test_the_engine_gives_the_rows_of_the_reference(
        self, data: st.DataObject, content: dict[str, Rows], key: str
    ) -> None:
        assert self.rows_of(
            declared(content), *data.draw(st.lists(unit_rows.lists(), min_size=3)), key=key
        )

    def test_an_expression_means_what_evaluate_says(self) -> None:
        numbers = [*range(-7, 8), None]
        self.agree(_COMPUTED, (A, B), [(one, other) for one in numbers for other in numbers])

    def test_a_test_means_what_evaluate_says(self) -> None:
        numbers = [-7, -1, 0, 1, 3, None]
        self.agree(_TESTED, (A, B), [(one, other) for one in numbers for other in numbers])

    def test_an_expression_of_the_widest_codes_means_what_evaluate_says(self) -> None:
        self.agree(_WIDE, (WIDE,), [(edge,) for edge in _EDGES])

    def test_a_pattern_means_what_evaluate_says(self) -> None:
        self.agree(
            {pattern: Like(Field(T), pattern) for pattern in _PATTERNS},
            (T,),
            [(word,) for word in _WORDS],
        )

    def test_a_function_of_a_text_means_what_evaluate_says(self) -> None:
        words = [*_WORDS, *_LETTERS]
        tests: dict[str, Scalar] = {}
        for name, function in _OF_TEXT.items():
            images = {evaluate(function, lambda _, word=word: word) for word in words}
            places = {image: place for place, image in enumerate(sorted(images - {None}, key=str))}
            branches = [
                (Compare(Comparison.EQ, function, Constant(image)), Constant(place))
                for image, place in places.items()
            ]
            tests[name] = Case(tuple(branches), Constant(-1))
            tests[f"{name} is like a_"] = Like(function, "a_")
            tests[f"{name} is a member"] = Member(function, ("", "AB", "a", "ab"))
        self.agree(tests, (T,), [(word,) for word in words])

    def test_a_text_is_compared_by_its_code_points(self) -> None:
        tests = {
            f"{op.value} {word!r}": Compare(op, Field(T), Constant(word))
            for op in Comparison
            for word in _WORDS
        }
        self.agree(
            tests | {"member": Member(Field(T), ("", "a", "é"))}, (T,), [(word,) for word in _WORDS]
        )

    def test_a_day_means_what_evaluate_says(self) -> None:
        column = Column("d", Date("0001-01-07", "9999-12-31"))
        dates = {
            f"{node.__name__} {part.value}": node(part, Field(column))
            for node in (DatePart, DateTrunc)
            for part in Part
        }
        self.agree(dates, (column,), [(day(code),) for code in _days()])

    def test_an_expression_is_written_once(self) -> None:
        # operands that were written twice would make these a million times as long
        deep: Scalar = Field(A)
        for _ in range(25):
            deep = Extreme(True, (Quotient(Constant(9), Coalesce((deep, Field(B)))), Constant(-7)))
            deep = Lookup(FloorDivide(deep, 1), -7, tuple(range(-3, 14)))
        self.agree({"deep": deep}, (A, B), [(1, 2), (None, 3)])


def _shown(expression: Scalar) -> tuple[Sum | CountValues, ...]:
    """Two aggregates that tell what an expression is in a single row."""
    if isinstance(expression, Compare | Member | Like | IsNull | Not | And | Or) or expression in (
        _TESTED["case"],
        _TESTED["coalesce"],
    ):
        truth = Case(((expression, Constant(2)), (Not(expression), Constant(1))), Constant(0))
        return (Sum(Value("v", Integer(0, 2), truth)),)
    low, high = span(expression) or (0, 0)
    if max(abs(low), abs(high)) > 2**52:
        # more than a column can hold: seen through two divisors
        return tuple(
            each for divisor in (2**11, 3**7) for each in _shown(FloorDivide(expression, divisor))
        )
    value = Value("v", Integer(low, max(high, low + 1)), expression)
    return Sum(value), CountValues(value)
