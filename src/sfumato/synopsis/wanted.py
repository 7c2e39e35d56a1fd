# SPDX-License-Identifier: Apache-2.0
"""The workload language of synopses: sums of products of queries of single columns.

``measure.plan`` takes a ``Wanted``; users make it with ``ranges``, ``cells``, ``marginals`` and
``queries``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import TypeAlias

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.synopsis.workload import Cells, Prefixes, Ranges, Workload

# A workload over so many cells.
Kind: TypeAlias = Callable[[int], Workload]
# The most tables that one synopsis is planned for.
MAX_TERMS = 200_000


@dataclass(frozen=True, slots=True)
class Term:
    """A product of workloads of several columns, whose queries are every combination of one query
    of each.

    The error of a workload is the weighted mean over its terms of the mean squared error of their
    queries; ``weight`` is the weight of a term.
    """

    factors: tuple[tuple[str, Kind], ...]
    weight: Fraction = Fraction(1)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _ in self.factors)


@dataclass(frozen=True, slots=True)
class Statement:
    """An SQL statement in a workload; planning turns it into one term for each aggregate."""

    sql: str
    weight: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A workload: the queries that a synopsis should answer well, as a sum of terms.

    ``*`` multiplies all terms of two workloads, or the weights. ``statements`` are SQL statements,
    which become terms when the workload is planned.

    >>> both = ranges("age") * cells("sex") + 2 * cells("region")
    >>> both.names, [str(term.weight) for term in both.terms]
    (('age', 'sex', 'region'), ['1', '2'])
    """

    terms: tuple[Term, ...]
    statements: tuple[Statement, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of their first use."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.names))

    @property
    def single(self) -> tuple[str, Kind] | None:
        """The column and its kind of queries, for a workload about one column only; else None."""
        plain = len(self.terms) == 1 and not self.statements
        if plain and len(self.terms[0].factors) == 1:
            return self.terms[0].factors[0]
        return None

    def __add__(self, other: "Wanted") -> "Wanted":
        return _checked(self.terms + other.terms, self.statements + other.statements)

    def __mul__(self, other: "Wanted | Number") -> "Wanted":
        if not isinstance(other, Wanted):
            weight = positive("weight", to_fraction("weight", other))
            terms = [replace(term, weight=term.weight * weight) for term in self.terms]
            asked = [replace(each, weight=each.weight * weight) for each in self.statements]
            return Wanted(tuple(terms), tuple(asked))
        if self.statements or other.statements:
            raise WrongUse("A product with SQL.", allowed="sums and weights of queries([...])")
        products = []
        for one in self.terms:
            products += [_product(one, another) for another in other.terms]
        return _checked(tuple(products))

    __rmul__ = __mul__


def ranges(axis: str) -> Wanted:
    """Returns every range of the values of a column: ages 20 to 29, incomes up to 50,000.

    >>> ranges("age").names
    ('age',)
    """
    return _single(axis, Ranges)


def prefixes(axis: str) -> Wanted:
    """Returns every range from the least value: cumulative counts, quantiles.

    >>> prefixes("age").names
    ('age',)
    """
    return _single(axis, Prefixes)


def cells(axis: str, *more: str) -> Wanted:
    """Returns every value by itself, or every combination of values of several columns.

    >>> cells("sex", "region") == cells("sex") * cells("region")
    True
    """
    wanted = _single(axis, Cells)
    for another in more:
        wanted = wanted * _single(another, Cells)
    return wanted


def marginals(columns: Sequence[str], *, up_to: int) -> Wanted:
    """Returns the table of every set of at most ``up_to`` of these columns.

    Raises:
        WrongUse: no columns or one twice, ``up_to`` below 1, or more than 200,000 tables.

    >>> [term.names for term in marginals(["age", "sex"], up_to=2).terms]
    [('age',), ('sex',), ('age', 'sex')]
    """
    if isinstance(columns, str) or not columns or len(set(columns)) < len(columns):
        raise WrongUse(f"columns={shown(columns)}.", allowed="a list of columns, each once")
    if isinstance(up_to, bool) or not isinstance(up_to, int) or up_to < 1:
        raise WrongUse(f"up_to={shown(up_to)}.", allowed="1, 2, 3, ...")
    terms: list[Term] = []
    for size in range(1, min(up_to, len(columns)) + 1):
        for chosen in combinations(columns, size):
            terms.append(Term(tuple((name, Cells) for name in chosen)))
            if len(terms) > MAX_TERMS:
                raise _too_many()
    return Wanted(tuple(terms))


def queries(statements: Sequence[str]) -> Wanted:
    """The groups and aggregates of SQL statements as a workload: counts and sums, with tests.

    A statement is ``SELECT keys, COUNT(*), SUM(x) FROM table WHERE ... GROUP BY keys``. Each
    aggregate has the weight of a table, and its error is the mean over its groups. The error of a
    sum is in the units of x, so give it a weight (``queries([...]) * "0.001"``) beside counts.

    Raises:
        WrongUse: no statements, or more than 200,000.

    >>> asked = queries(["SELECT region, COUNT(*) FROM people WHERE age >= 65 GROUP BY region"])
    >>> len((asked + 2 * cells("sex")).statements)
    1
    """
    listed = not isinstance(statements, str) and bool(statements)
    if not listed or not all(isinstance(each, str) for each in statements):
        words = "no statements" if statements in ([], ()) else shown(statements)
        raise WrongUse(f"queries({words}).", allowed="a list of statements of SQL, at least one")
    return _checked((), tuple(map(Statement, statements)))


def _single(axis: str, kind: Kind) -> Wanted:
    return Wanted((Term(((axis, kind),)),))


def _product(one: Term, another: Term) -> Term:
    both = set(one.names) & set(another.names)
    if both:
        raise WrongUse(
            f"A product with {shown(min(both))} twice.", allowed="workloads of different columns"
        )
    return Term(one.factors + another.factors, one.weight * another.weight)


def _checked(terms: tuple[Term, ...], statements: tuple[Statement, ...] = ()) -> Wanted:
    if len(terms) + len(statements) > MAX_TERMS:
        raise _too_many()
    return Wanted(terms, statements)


def _too_many() -> WrongUse:
    return WrongUse(
        "A workload of too many tables.",
        allowed=f"at most {MAX_TERMS:,}",
        remedy="Ask for fewer columns, or for a smaller up_to=.",
    )
