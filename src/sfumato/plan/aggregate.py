# SPDX-License-Identifier: Apache-2.0
"""Aggregates: the integers that are computed from the rows of one group.

Each class states what planning, engines and mechanisms need: how many integers it has (``width``),
what one row can add to them (``largest``, ``never_negative``), which value it reads (``read``),
what it counts (``counts``), its SQL (``title``), and how the integers become an estimate
(``reading``). A ``Linear`` aggregate also states the integers of one row.
"""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.exact.rational import decimal_text
from sfumato.metadata.column import Date, Text
from sfumato.plan.reading import Kind, Reading
from sfumato.plan.value import Value

# Quantiles of values with at most so many codes are ``Quantiles``.
SMALL = 2**10


class Aggregate:
    """The base class of SQL aggregates, which are exact integers for each group before the noise.

    What the privacy proof needs has no default: where a class does not state it, planning fails.
    (It is no ABC: ``isinstance`` of one is several times as slow, and plans ask it often.)
    ``counts`` says what the aggregate counts ("rows", "units", "values"); it is empty if its
    estimate is no count.

    >>> [isinstance(part, Aggregate) for part in (CountRows(), CountUnits())]
    [True, True]
    """

    __slots__ = ()
    counts: ClassVar[str] = ""

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of integers that the aggregate has in each group."""
        raise NotImplementedError

    @property
    @abstractmethod
    def largest(self) -> int:
        """The largest L1 norm of what one row can add to the integers."""
        raise NotImplementedError

    @property
    @abstractmethod
    def never_negative(self) -> bool:
        """Whether no row can decrease any of the integers."""
        raise NotImplementedError

    @property
    @abstractmethod
    def read(self) -> Value | None:
        """The expression that the aggregate reads from each row; None for COUNT(*)."""
        raise NotImplementedError

    @property
    def reads_codes(self) -> bool:
        """Whether the integers depend on the values read, not only on whether they are NULL."""
        return self.read is not None

    @property
    def coarse(self) -> int:
        """The number of adjacent codes that the aggregate treats as equal."""
        return 1

    @property
    @abstractmethod
    def title(self) -> str:
        """The aggregate as a SQL expression, such as ``SUM(age)``."""
        raise NotImplementedError

    @abstractmethod
    def reading(self, fine: int) -> Reading:
        """Returns how the integers, in 1/``fine`` of a step, are converted into an estimate."""
        raise NotImplementedError


class Linear(Aggregate):
    """An aggregate whose integers are sums over the rows of a group, so rows can have weights."""

    __slots__ = ()

    @abstractmethod
    def row(self, code: int) -> tuple[int, ...]:
        """Returns the integers that one row of full weight adds, for the code of its value."""
        raise NotImplementedError


class _Count(Aggregate):
    """One integer, to which a row adds at most 1."""

    __slots__ = ()

    @property
    def width(self) -> int:
        return 1

    @property
    def largest(self) -> int:
        return 1

    @property
    def never_negative(self) -> bool:
        return True

    def reading(self, fine: int) -> Reading:
        return Reading(Kind.NUMBER, Fraction(1, fine))


@dataclass(frozen=True, slots=True)
class CountRows(_Count, Linear):
    """COUNT(*): one integer; each row adds 1.

    >>> CountRows().width, CountRows().largest, CountRows().title
    (1, 1, 'COUNT(*)')
    """

    counts: ClassVar[str] = "rows"

    @property
    def read(self) -> None:
        return None

    @property
    def title(self) -> str:
        return "COUNT(*)"

    def row(self, code: int) -> tuple[int, ...]:
        return (1,)


@dataclass(frozen=True, slots=True)
class CountValues(_Count, Linear):
    """COUNT(value): one integer; each row whose value is not NULL adds 1.

    >>> from sfumato.metadata.column import Column, Integer
    >>> age = Value.of(Column("age", Integer(0, 120)))
    >>> CountValues(age).width, CountValues(age).largest, CountValues(age).reads_codes
    (1, 1, False)
    """

    value: Value
    counts: ClassVar[str] = "rows"

    @property
    def read(self) -> Value:
        return self.value

    @property
    def reads_codes(self) -> bool:
        return False

    @property
    def title(self) -> str:
        return f"COUNT({self.value.name})"

    def row(self, code: int) -> tuple[int, ...]:
        return (1,)


@dataclass(frozen=True, slots=True)
class CountUnits(_Count):
    """COUNT(DISTINCT unit): one integer; each unit with a row in the group adds 1.

    >>> CountUnits().read is None, CountUnits().counts
    (True, 'units')
    """

    counts: ClassVar[str] = "units"

    @property
    def read(self) -> Value | None:
        return None

    @property
    def title(self) -> str:
        return "COUNT(DISTINCT unit)"


@dataclass(frozen=True, slots=True)
class CountDistinct(_Count):
    """COUNT(DISTINCT value), over at most ``max_rows`` distinct values of each unit (RULES 14).

    >>> from sfumato.metadata.column import Category, Column
    >>> sex = Value.of(Column("sex", Category("F", "M")))
    >>> CountDistinct(sex).width, CountDistinct(sex).largest, CountDistinct(sex).counts
    (1, 1, 'values')
    """

    value: Value
    counts: ClassVar[str] = "values"

    @property
    def read(self) -> Value:
        return self.value

    @property
    def title(self) -> str:
        return f"COUNT(DISTINCT {self.value.name})"


@dataclass(frozen=True, slots=True)
class Sum(Linear):
    """SUM(value): one integer, in lattice steps; the total of each unit is clipped (RULES 15).

    >>> from sfumato.metadata.column import Column, Integer
    >>> age = Value.of(Column("age", Integer(0, 120)))
    >>> Sum(age).largest, Sum(age).never_negative, Sum(age).row(30)
    (120, True, (30,))
    """

    value: Value

    @property
    def width(self) -> int:
        return 1

    @property
    def largest(self) -> int:
        codes = self.value.numeric
        return max(abs(codes.lower_code), abs(codes.upper_code), 1)

    @property
    def never_negative(self) -> bool:
        return self.value.numeric.lower_code >= 0

    @property
    def read(self) -> Value:
        return self.value

    @property
    def title(self) -> str:
        return f"SUM({self.value.name})"

    def row(self, code: int) -> tuple[int, ...]:
        return (code,)

    def reading(self, fine: int) -> Reading:
        return Reading(Kind.NUMBER, self.value.step / fine)


@dataclass(frozen=True, slots=True)
class Mean(Linear):
    """AVG(value): releases two sums, of u (code minus lowest code) and of w - u, w being the
    largest u.

    Each row adds exactly w to the L1 norm of the pair, for every value (RULES 15).

    >>> from sfumato.metadata.column import Column, Integer
    >>> age = Value.of(Column("age", Integer(20, 120)))
    >>> Mean(age).width, Mean(age).largest, Mean(age).row(50)
    (2, 100, (30, 70))
    """

    value: Value

    @property
    def levels(self) -> int:
        """The range of the value in codes: its highest code minus its lowest (w of the class)."""
        codes = self.value.numeric
        return codes.upper_code - codes.lower_code

    @property
    def width(self) -> int:
        return 2

    @property
    def largest(self) -> int:
        return self.levels

    @property
    def never_negative(self) -> bool:
        return True

    @property
    def read(self) -> Value:
        return self.value

    @property
    def title(self) -> str:
        return f"AVG({self.value.name})"

    def row(self, code: int) -> tuple[int, ...]:
        codes = self.value.numeric
        return code - codes.lower_code, codes.upper_code - code

    def reading(self, fine: int) -> Reading:
        return _of_shares(self, Kind.MEAN, fine * self.levels)


@dataclass(frozen=True, slots=True)
class Variance(Linear):
    """VARIANCE(value): the triple (sum of u^2, sum of 2u(w-u), sum of (w-u)^2).

    Each row adds w^2 to its L1 norm. u is as for ``Mean``, but rounded down to one of at most
    ``grid`` levels of ``coarse`` codes each. A level is less than a millionth of the range, and
    every interval includes the error of this rounding.

    >>> from sfumato.metadata.column import Column, Integer
    >>> age = Value.of(Column("age", Integer(20, 120)))
    >>> Variance(age).width, Variance(age).largest, Variance(age).row(50)
    (3, 10000, (900, 4200, 4900))
    """

    value: Value
    grid: int = 2**26

    @property
    def coarse(self) -> int:
        codes = self.value.numeric
        return -(-(codes.upper_code - codes.lower_code) // self.grid)

    @property
    def levels(self) -> int:
        """The range of the value in levels of ``coarse`` codes (w of the class)."""
        codes = self.value.numeric
        return -(-(codes.upper_code - codes.lower_code) // self.coarse)

    @property
    def width(self) -> int:
        return 3

    @property
    def largest(self) -> int:
        return self.levels**2

    @property
    def never_negative(self) -> bool:
        return True

    @property
    def read(self) -> Value:
        return self.value

    @property
    def title(self) -> str:
        return f"VARIANCE({self.value.name})"

    def row(self, code: int) -> tuple[int, ...]:
        level = (code - self.value.numeric.lower_code) // self.coarse
        rest = self.levels - level
        return level**2, 2 * level * rest, rest**2

    def reading(self, fine: int) -> Reading:
        return _of_shares(self, Kind.VARIANCE, fine * self.levels**2)


@dataclass(frozen=True, slots=True)
class Quantiles(Aggregate):
    """Quantiles of a value; its integers are the weights of the rows in each leaf that has rows.

    The leaves are the candidates for a quantile. Here each leaf is one code of the value, which has
    at most ``SMALL`` codes (``CodeQuantiles`` has no such limit). ``levels`` are the requested
    quantiles, ascending; each is selected separately from the same weights (RULES 17). The integers
    of a group are the number of a leaf, its weight, the number of the next one, and so on.

    Raises:
        ValueError: the value has more than ``SMALL`` codes.

    >>> from sfumato.metadata.column import Column, Integer
    >>> age = Value.of(Column("age", Integer(0, 120)))
    >>> Quantiles(age, (Fraction(1, 2),)).leaves
    121
    """

    value: Value
    levels: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if self.codes > SMALL:
            raise ValueError("quantiles of a wide value are CodeQuantiles")

    @property
    def coarse(self) -> int:
        return 1

    @property
    def has_ends(self) -> bool:
        """Whether the ends of a confidence interval are also selected for each quantile."""
        return False

    @property
    def codes(self) -> int:
        """The number of codes of the value."""
        assert not isinstance(self.value.type, Text), "lowering admits no text here"
        return self.value.type.size

    @property
    def leaves(self) -> int:
        """The number of leaves: the candidates for a quantile."""
        return -(-self.codes // self.coarse)

    @property
    def width(self) -> int:
        """The number of leaves: the largest number of weights that a group has."""
        return self.leaves

    @property
    def largest(self) -> int:
        return 1

    @property
    def never_negative(self) -> bool:
        return True

    @property
    def read(self) -> Value | None:
        return self.value

    @property
    def title(self) -> str:
        levels = ", ".join(decimal_text(level) for level in self.levels)
        return f"QUANTILE({self.value.name}, {levels})"

    def reading(self, fine: int) -> Reading:
        """Returns how the index of a leaf is converted into a value: to the middle of the leaf."""
        kind = self.value.type
        assert not isinstance(kind, Text), "lowering admits no text here"
        half = Fraction(self.coarse - 1, 2)
        return Reading(
            Kind.QUANTILES,
            unit=Fraction(1, fine),
            lower=(kind.lower_code + half) * kind.step,
            span=self.coarse * kind.step,
            upper=kind.upper_code * kind.step,
            is_date=isinstance(kind, Date),
            least=kind.lower_code * kind.step,
            rounding=half * kind.step,
        )


@dataclass(frozen=True, slots=True)
class CodeQuantiles(Quantiles):
    """Quantiles of a value with any number of codes; a leaf is an interval of ``leaf`` codes.

    Leaf j begins at the lower bound + j ``leaf``. ``leaf`` is 1, unless too many codes could have
    rows to collect them all. ``ends`` is as ``has_ends``.

    >>> from sfumato.metadata.column import Column, Integer
    >>> income = Value.of(Column("income", Integer(0, 4095)))
    >>> CodeQuantiles(income, (Fraction(1, 2),)).leaves
    4096
    >>> CodeQuantiles(income, (Fraction(1, 2),), leaf=10).leaves
    410
    """

    leaf: int = 1
    ends: bool = False

    def __post_init__(self) -> None:
        if self.leaf < 1:
            raise ValueError("a leaf has at least one code")

    @property
    def coarse(self) -> int:
        return self.leaf

    @property
    def has_ends(self) -> bool:
        return self.ends


def quantiles(
    value: Value,
    levels: tuple[Fraction, ...],
    *,
    leaf: int = 1,
    ends: bool = False,
) -> Quantiles:
    """Returns ``Quantiles`` for a value of at most ``SMALL`` codes and leaves of one code; else
    ``CodeQuantiles``.
    """
    kind = value.type
    assert not isinstance(kind, Text), "lowering admits no text here"
    if leaf == 1 and not ends and kind.size <= SMALL:
        return Quantiles(value, levels)
    return CodeQuantiles(value, levels, leaf, ends)


def _of_shares(aggregate: Mean | Variance, kind: Kind, total: int) -> Reading:
    """The reading of shares of a range; ``total`` is what one row adds to all integers."""
    codes = aggregate.value.numeric
    step = aggregate.value.step
    half = Fraction(aggregate.coarse - 1, 2)
    return Reading(
        kind,
        unit=Fraction(1, total),
        lower=(codes.lower_code + half) * step,
        span=aggregate.levels * aggregate.coarse * step,
        upper=codes.upper_code * step,
        rounding=half * step,
    )
