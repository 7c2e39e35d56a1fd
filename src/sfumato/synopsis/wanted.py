# SPDX-License-Identifier: Apache-2.0
"""The queries that a synopsis is wanted for: products and weighted sums of queries of columns."""

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
    """All products of one query of each of some columns.

    The error of a workload is the mean over its terms of the mean squared error of their queries;
    ``weight`` is how many times a term counts in it.
    """

    factors: tuple[tuple[str, Kind], ...]
    weight: Fraction = Fraction(1)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(name for name, _ in self.factors)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of SQL, which is read with the declarations: a term for each aggregate."""

    sql: str
    weight: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A sum of terms. ``*`` with another one is all products, with a number a weight.

    ``statements`` are SQL that becomes terms when it is planned.

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
        """The column and its kind of queries, if that is all."""
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
    """Every range of the values of a column: ages 20 to 29, incomes up to 50,000.

    >>> ranges("age").names
    ('age',)
    """
    return _single(axis, Ranges)


def prefixes(axis: str) -> Wanted:
    """Every range from the least value: cumulative counts, quantiles.

    >>> prefixes("age").names
    ('age',)
    """
    return _single(axis, Prefixes)


def cells(axis: str, *more: str) -> Wanted:
    """Every value by itself, or every combination of values of several columns.

    >>> cells("sex", "region") == cells("sex") * cells("region")
    True
    """
    wanted = _single(axis, Cells)
    for another in more:
        wanted = wanted * _single(another, Cells)
    return wanted


def marginals(columns: Sequence[str], *, up_to: int) -> Wanted:
    """The table of every set of at most ``up_to`` of these columns.

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
    """The answers of some statements: counts and sums by groups, under tests of columns.

    ``SELECT keys, COUNT(*), SUM(x) FROM table WHERE ... GROUP BY keys``. Each aggregate counts as
    much as a table, and the mean is over its groups; a sum has its error in its own measure, so
    give it a weight (``queries([...]) * "0.001"``) beside counts.

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
