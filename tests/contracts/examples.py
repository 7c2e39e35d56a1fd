# SPDX-License-Identifier: Apache-2.0
"""Plans and rows, one for each thing that an engine can get wrong."""

from fractions import Fraction

from sfumato.metadata.column import Column, Integer, Real
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
from sfumato.plan.relation import (
    Computed,
    Filter,
    KeyJoin,
    PerUnit,
    PublicJoin,
    Semi,
    Sort,
    Summary,
    Union,
    UnitJoin,
    first,
)
from sfumato.plan.scalar import (
    Compare,
    Comparison,
    Constant,
    Field,
    Scalar,
)
from sfumato.plan.stages import Bounded
from sfumato.plan.units_where import CountUnitsWhere
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Norm
from sfumato.sql import understand
from tests.contracts.world import (
    DATASET,
    FINE,
    UNLIMITED,
    Rows,
    Scan,
    by,
    content,
    plan,
    read,
    scan,
)

MEDIAN = (Fraction(1, 2),)


PEOPLE, STAYS, NOTES, DAYS = (
    scan(name, f"{name}.") for name in ("people", "stays", "notes", "days")
)
N = read(PEOPLE, "people.n")


def person(who: str | None, *values: object, name: str = "n") -> Rows:
    """Rows of one person."""
    return [{"who": who, name: value} for value in values]


def key_of(expression: Scalar, low: int, high: int, *, missing: bool = True) -> GroupKey:
    """A key of all codes of an expression."""
    return GroupKey(
        Value("k", Integer(low, high), expression), tuple(range(low, high + 1)), missing
    )


TEXTS = read(PEOPLE, "people.t")
FIVE = content(
    people=[
        *(
            {"who": who, "c": letter, "n": number}
            for who in "pqr"
            for letter, number in zip("abab", "1234", strict=True)
        ),
        *({"who": "s", "c": letter, "n": "-3"} for letter in ("a", "b", "空", "", None)),
        *({"who": "t", "c": "a", "n": number} for number in ("N", "4", "4", "4", "-3")),
    ]
)
WORDS = content(
    people=[{"who": who, "t": word} for who in "pqrs" for word in ("x", "y", "z", "N", "a|b", None)]
)
TWELVE = content(people=[{"who": who, "t": word} for who in "pq" for word in "abcdefghijkl" * 3])
# at the ends of 64 bits, and where the pieces of a number meet
NUMBERED = content(
    people=[
        {"who": sign * 2**bits - off, "c": letter, "t": word, "n": "1"}
        for bits, sign, off in (
            (63, 1, 1),
            (63, -1, 0),
            (22, 1, 0),
            (22, 1, 1),
            (44, -1, 0),
            (44, 1, 1),
            (0, 1, 1),
            (0, 1, 2),
        )
        for letter in ("a", "b", "空", "")
        for word in ("x", "y", None, "a|b")
    ]
)
LEAST = content(
    people=[
        {"who": who, "c": letter, "t": word}
        for who, held in (("p", "b空"), ("q", "空"), ("r", ""), ("s", "空ba"), ("t", "?"))
        for letter, word in [(None, None), *((each, each) for each in held)]
    ]
)
LINKED = content(
    people=person("p", "1", "2") + person("q", "3") + person("z", "4") + person(None, "4"),
    stays=[
        *({"patient": who, "id": "1", "n": "1"} for who in ("q", "p")),
        {"patient": "p", "id": "2", "n": "2"},
        {"patient": None, "id": "3"},
        {"patient": "nobody", "id": "4"},
    ],
    notes=[{"stay": stay, "n": "1"} for stay in ("1", "2", "3", "4", "5", None)],
)
DRUGS = content(
    people=person("p", "0", "1", "2", "N"),
    drugs=[
        {"n": "0", "x": 1.0},
        {"n": "0", "x": 0.0},
        {"n": "0"},
        {"n": "1", "x": 2.0},
        {"n": None, "x": 1.0},
    ],
)
_DRUGS = scan("drugs", "d.")


def _joined(*, outer: bool) -> PublicJoin:
    drugs = cut(_DRUGS, "d.n", "d.x")
    return PublicJoin(PEOPLE, drugs, N.expression, drugs.columns[0], outer)


def cut(source: Scan, *names: str) -> Scan:
    """A scan of some columns."""
    kept = tuple(column for column in source.columns if column.name in names)
    return Scan(source.table, source.prefix, kept, source.owner)


# p has two stays of one key, q one that p has too, and no one key 3
KEYED = content(
    people=[{"who": who, "n": n} for who, n in (("p", "1"), ("p", "2"), ("q", "1"), ("q", None))],
    stays=[
        {"patient": who, "id": str(number), "n": n, "x": x}
        for number, (who, n, x) in enumerate(
            [("p", "1", 2.0), ("p", "1", 1.0), ("q", "1", None), ("q", "2", 2.0), ("p", None, 1.0)]
        )
    ],
)


_STAYED = cut(STAYS, "stays.x")
_X = read(_STAYED, "stays.x")


def _by_key(*, outer: bool) -> KeyJoin:
    return KeyJoin(PEOPLE, _STAYED, N.expression, read(STAYS, "stays.n").expression.column, outer)


def _per_unit(summary: Summary, *keys: tuple[Column, Value]) -> PerUnit:
    value = None if summary is Summary.COUNT else N
    return PerUnit(PEOPLE, keys, (Computed(Column("total", Integer(-2, 5)), summary, value),))


def _total(relation: PerUnit) -> Value:
    return read(relation, "total")


def _first(*order: Sort) -> Filter:
    return first(PEOPLE, order, tuple(Field(column) for column in PEOPLE.columns), "rank")


_FIRST_LETTERS = tuple(_first(Sort(N.expression, descending)) for descending in (False, True))
_LETTERS = by(PEOPLE, "people.c")
_OPEN = by(PEOPLE, "people.t", missing=True)
_ALL = (
    CountRows(),
    CountValues(N),
    Sum(N),
    Mean(N),
    Variance(N),
    CountUnits(),
    CountDistinct(N),
    Quantiles(N, MEDIAN),
)
_BIG = read(PEOPLE, "people.Big")

_MEANS = PerUnit(
    PEOPLE,
    (),
    (
        Computed(Column("mean", Real(-3, 4, step=Fraction(1, 2**48))), Summary.MEAN, N),
        Computed(Column("large", Real(-(2**52), 2**52, step=2)), Summary.MEAN, _BIG),
        Computed(Column("third", Real(-3, 4, step=Fraction(1, 3))), Summary.MEAN, N),
    ),
)
# The last mean of each is halfway between two steps.
MEANT = {
    "p": [("-3", -(2**52)), ("-3", 2**52), ("-1", -1)],
    "q": [("4", 2**52), ("4", 2**52 - 1), ("N", None)],
    "r": [(None, 3), ("N", None)],
}


def _asked(text: str, limits: tuple[int | None, int | None, int | None] = UNLIMITED) -> Bounded:
    """The plan of a statement over the small world."""
    raw = understand(text, DATASET).raw
    return plan(raw.relation, *raw.aggregates, keys=raw.keys, limits=limits)


_ONE_EACH = "(SELECT who, MAX(n) AS m FROM people GROUP BY who) AS p"
EXAMPLES: dict[str, tuple[Bounded, dict[str, Rows]]] = {
    "one row joined to many": (
        _asked(
            f"SELECT m, COUNT(*), COUNT(s.n), SUM(s.n) FROM {_ONE_EACH} LEFT JOIN stays s "
            "ON s.who = p.who AND s.n < p.m GROUP BY m"
        ),
        LINKED,
    ),
    "units that pass a condition": (
        _asked(
            "SELECT c, COUNT(DISTINCT who), COUNT(DISTINCT who) FILTER (WHERE n > 1), COUNT(*) "
            "FROM people GROUP BY c",
            limits=(2, 2, None),
        ),
        FIVE,
    ),
    "units that pass a condition, alone": (
        _asked(
            "SELECT t, COUNT(DISTINCT who), COUNT(DISTINCT CASE WHEN t <> 'x' THEN who END) "
            "FROM people GROUP BY t",
            limits=(None, 2, None),
        ),
        WORDS,
    ),
    "rows of one unit each that pass a condition": (
        plan(
            scan("rows"),
            CountUnitsWhere(read(scan("rows"), "n")),
            CountUnits(),
        ),
        content(rows=[{"n": "1"}, {"n": None}, {"n": "N"}, {"n": "2"}]),
    ),
    "units without a pair of rows": (
        _asked(
            f"SELECT COUNT(*), SUM(m) FROM {_ONE_EACH} WHERE NOT EXISTS "
            "(SELECT 1 FROM stays s WHERE s.who = p.who AND s.n = p.m)"
        ),
        LINKED,
    ),
    "the row of the least n": (
        _asked(
            "SELECT COUNT(*), COUNT(t), SUM(c) FROM (SELECT who, ARG_MIN(t, n) AS t, "
            "LENGTH(ARG_MAX(c, n)) AS c FROM people GROUP BY who) AS f"
        ),
        FIVE,
    ),
    "clipped rows": (plan(PEOPLE, *_ALL, limits=(2, None, None)), FIVE),
    "weights in L1": (plan(PEOPLE, *_ALL, keys=(_LETTERS,), limits=(2, 1, None), fine=FINE), FIVE),
    "weights in L2": (
        plan(PEOPLE, *_ALL, keys=(_LETTERS,), limits=(2, 1, 3), norm=Norm.L2, fine=FINE),
        FIVE,
    ),
    "a total": (
        plan(
            PEOPLE,
            *_ALL,
            keys=(by(PEOPLE, "people.c", missing=True),),
            limits=(None, None, 3),
            fine=FINE,
        ),
        FIVE,
    ),
    "open keys": (
        plan(
            PEOPLE,
            CountUnits(),
            CountRows(),
            Quantiles(N, MEDIAN),
            keys=(_OPEN,),
            limits=(1, 3, 2),
            fine=FINE,
        ),
        WORDS,
    ),
    "a tie of two groups": (
        plan(PEOPLE, CountUnits(), keys=(_OPEN,), limits=(None, 1, None)),
        content(people=person("p", "N", None, name="t")),
    ),
    "first groups": (plan(PEOPLE, CountUnits(), keys=(_OPEN,), limits=(None, 2, None)), WORDS),
    "rows of first groups": (
        plan(PEOPLE, CountRows(), CountUnits(), keys=(_OPEN,), limits=(2, 2, None), fine=FINE),
        content(
            people=[
                {"who": who, "t": word} for who in "pqrst" for word in ("x", "y", "z", None) * 3
            ]
        ),
    ),
    "first groups of some": (
        plan(PEOPLE, CountUnits(), keys=(_LETTERS,), limits=(None, 1, None)),
        FIVE,
    ),
    "first groups of many": (
        plan(PEOPLE, CountRows(), CountUnits(), keys=(_OPEN,), limits=(2, 9, None)),
        TWELVE,
    ),
    "units that are numbers": (
        plan(PEOPLE, CountUnits(), keys=(_LETTERS, _OPEN), limits=(None, 3, None)),
        NUMBERED,
    ),
    "units that are printed numbers": (
        plan(PEOPLE, CountUnits(), keys=(_LETTERS, _OPEN), limits=(None, 3, None)),
        {**NUMBERED, "people": [{**row, "who": str(row["who"])} for row in NUMBERED["people"]]},
    ),
    "numbers of all rows": (
        plan(PEOPLE, CountRows(), Sum(N), CountUnits(), keys=(_OPEN,), limits=(1, 3, 2)),
        NUMBERED,
    ),
    "values of one unit": (
        plan(PEOPLE, CountDistinct(TEXTS), limits=(2, None, None)),
        content(people=[{"who": "p", "t": word} for word in "vwxyz"]),
    ),
    "distinct values": (plan(PEOPLE, CountDistinct(TEXTS), limits=(2, None, None)), WORDS),
    "distinct values of each group": (
        plan(PEOPLE, CountDistinct(N), keys=(_LETTERS,), limits=(1, None, None)),
        FIVE,
    ),
    "distinct values of first groups": (
        plan(PEOPLE, CountDistinct(N), keys=(_LETTERS,), limits=(1, 1, None)),
        FIVE,
    ),
    "the way to a unit": (
        plan(NOTES, CountUnits(), keys=(by(NOTES, "notes.n"),), limits=(None, 9, None)),
        LINKED,
    ),
    "units of a shared stay": (
        plan(UnitJoin(STAYS, _per_unit(Summary.SUM)), Sum(read(_per_unit(Summary.SUM), "total"))),
        LINKED,
    ),
    "a unit of two columns": (
        plan(DAYS, CountUnits()),
        content(
            days=[
                {"who": who, "when": when}
                for who, when in (("p1", 1), ("p", 11), ("p", None), (None, 1))
            ]
        ),
    ),
    "a public join": (plan(_joined(outer=False), CountRows(), Sum(read(_DRUGS, "d.x"))), DRUGS),
    "an outer public join": (
        plan(_joined(outer=True), CountRows(), CountValues(read(_DRUGS, "d.x"))),
        DRUGS,
    ),
    "a join by a key": (plan(_by_key(outer=False), CountRows(), Sum(_X)), KEYED),
    "an outer join by a key": (plan(_by_key(outer=True), CountRows(), CountValues(_X)), KEYED),
    "a semi-join": (
        plan(
            Semi(STAYS, Filter(PEOPLE, Compare(Comparison.GT, N.expression, Constant(2)))),
            CountRows(),
        ),
        LINKED,
    ),
    "an anti-join": (plan(Semi(PEOPLE, STAYS, negated=True), CountRows()), LINKED),
    **{
        f"{summary.value} of a unit": (
            plan(
                _per_unit(summary),
                Sum(_total(_per_unit(summary))),
                CountValues(_total(_per_unit(summary))),
            ),
            FIVE,
        )
        for summary in Summary
    },
    "the mean of a unit on fine steps": (
        plan(_MEANS, *(Sum(read(_MEANS, name)) for name in ("mean", "large", "third"))),
        content(people=[{"who": w, "n": n, "Big": big} for w in "pqr" for n, big in MEANT[w]]),
    ),
    "a unit's groups": (
        plan(
            _per_unit(
                Summary.SUM,
                (Column("letter", read(PEOPLE, "people.c").type), read(PEOPLE, "people.c")),
            ),
            CountRows(),
        ),
        FIVE,
    ),
    **{
        f"first row, descending {index}": (
            plan(each, Sum(read(each, "people.n")), CountRows()),
            FIVE,
        )
        for index, each in enumerate(_FIRST_LETTERS)
    },
    **{
        f"the least {name} of a unit": (
            plan(each, CountRows(), CountUnits(), keys=(by(each, f"people.{name}", missing=True),)),
            LEAST,
        )
        for name, each in (
            (
                name,
                first(
                    cut(PEOPLE, f"people.{name}"),
                    (),
                    (read(PEOPLE, f"people.{name}").expression,),
                    "rank",
                ),
            )
            for name in "ct"
        )
    },
    "a union": (
        plan(
            Union(
                (PEOPLE, STAYS),
                ((N.expression,), (read(STAYS, "stays.n").expression,)),
                (Column("both", Integer(-3, 4)),),
            ),
            CountRows(),
            Sum(Value("both", Integer(-3, 4), Field(Column("both", Integer(-3, 4))))),
            limits=(2, None, None),
        ),
        LINKED,
    ),
    "huge integers": (
        plan(PEOPLE, Sum(_BIG), Mean(_BIG)),
        content(people=person("p", *[2**63 - 1] * 4, name="Big")),
    ),
    "names that differ in case": (
        plan(
            PublicJoin(
                scan("people", "T."),
                scan("drugs", "t."),
                Constant(1),
                read(scan("drugs", "t."), "t.n").expression.column,
            ),
            Sum(read(scan("people", "T."), "T.x")),
            Sum(read(scan("drugs", "t."), "t.x")),
        ),
        content(people=[{"who": "p", "x": 1.0}], drugs=[{"n": "1", "x": 2.0}]),
    ),
}
