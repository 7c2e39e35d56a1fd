# SPDX-License-Identifier: Apache-2.0
"""Local and global sensitivity by enumeration, for teaching and tests.

Only the global sensitivity may set the scale of noise, as the local one depends on the data.

Source: Nissim, Raskhodnikova, Smith, "Smooth Sensitivity and Sampling" (STOC 2007). Proof:
sensitivity.proof.md.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from operator import index
from typing import Any, NoReturn, TypeAlias

from sfumato.errors import InvalidDeclaration, shown
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation

Data: TypeAlias = tuple[Any, ...]
Statistic: TypeAlias = Callable[[Data], int | Sequence[int]]

_MOST_WORK = 10**6


@dataclass(frozen=True, slots=True)
class LocalSensitivity:
    """The largest change of a statistic between ONE dataset and its neighbours, which is private
    itself.

    Noise of this size would reveal the dataset. In the example the median of the first dataset
    would get no noise at all, that of its neighbour noise of scale 10 / epsilon. The attributes of
    a ``Distance`` (``value``, ``norm``, ``relation``) raise: no mechanism or event accepts it.

    Guarantees:
        a local sensitivity is refused wherever a distance is needed

    >>> middle = lambda rows: sorted(rows)[len(rows) // 2]
    >>> domain, replaced = (0, 10), Relation.REPLACE_ONE
    >>> local_sensitivity(middle, (0, 0, 0, 0, 10), domain, replaced).amount
    Fraction(0, 1)
    >>> local_sensitivity(middle, (0, 0, 0, 10, 10), domain, replaced).amount
    Fraction(10, 1)
    >>> global_sensitivity(middle, domain, 5, replaced).value
    Fraction(10, 1)
    """

    amount: Fraction

    @property
    def value(self) -> NoReturn:
        """Raises ``InvalidDeclaration``."""
        raise _local()

    @property
    def norm(self) -> NoReturn:
        """Raises ``InvalidDeclaration``."""
        raise _local()

    @property
    def relation(self) -> NoReturn:
        """Raises ``InvalidDeclaration``."""
        raise _local()

    def over(self, entries: int, norm: Norm) -> NoReturn:
        """Raises ``InvalidDeclaration``."""
        raise _local()


def local_sensitivity(
    statistic: Statistic,
    data: Sequence[Any],
    domain: Sequence[Any],
    relation: Relation,
    norm: Norm = Norm.L1,
) -> LocalSensitivity:
    """Returns the largest change of a statistic between ``data`` and its neighbours.

    A neighbour has one row of ``domain`` more or instead of another, or one row less.

    It depends on the data and is as private as the data: never publish it, never set noise by it.
    The L2 sensitivity is squared, as in ``Distance``.

    Guarantees:
        a local sensitivity is that of the neighbours of the data

    >>> local_sensitivity(max, (0, 5, 5), (0, 5), Relation.REPLACE_ONE).amount
    Fraction(0, 1)
    """
    here = tuple(data)
    value = statistic(here)
    changes = [
        _apart(value, statistic(neighbour), norm)
        for neighbour in _neighbours(here, domain, relation)
    ]
    return LocalSensitivity(Fraction(max(changes, default=0)))


def global_sensitivity(
    statistic: Statistic,
    domain: Sequence[Any],
    size: int,
    relation: Relation,
    norm: Norm = Norm.L1,
    *,
    work: int = _MOST_WORK,
) -> Distance:
    """Returns the largest change of a statistic between ANY two neighbours with rows of ``domain``.

    Datasets have ``size`` rows under replace-one, and 0 to ``size`` rows under add-remove. Every
    pair is tried, so it is a proof for such datasets, and for no others. ``work`` limits the number
    of datasets and pairs.

    Guarantees:
        a global sensitivity is that of all neighbours

    Raises:
        InvalidDeclaration: too much work, no domain, no rows, or a statistic that never changes.

    >>> global_sensitivity(sum, (0, 1, 5), 3, Relation.ADD_REMOVE).value
    Fraction(5, 1)
    """
    replaced = relation is Relation.REPLACE_ONE
    _affordable(len(domain), size, work, replaced=replaced)
    places = range(len(domain))
    values = {}
    for rows in range(size if replaced else 0, size + 1):
        for data in product(places, repeat=rows):
            values[data] = statistic(tuple(domain[place] for place in data))
    largest = 0
    for data, value in values.items():
        neighbours = _replaced(data, places) if replaced else _removed(data)
        for neighbour in neighbours:
            largest = max(largest, _apart(value, values[neighbour], norm))
    if largest == 0:
        raise InvalidDeclaration(
            "A statistic that is the same on all neighbours, and so has a sensitivity of 0.",
            allowed="one that depends on the data",
            remedy="Publish it without noise, if it depends on nothing else.",
        )
    return Distance(norm, Fraction(largest), relation)


def _neighbours(data: Data, domain: Sequence[Any], relation: Relation) -> Iterator[Data]:
    if relation is Relation.REPLACE_ONE:
        yield from _replaced(data, domain)
        return
    yield from _removed(data)
    for place in range(len(data) + 1):
        for row in domain:
            yield (*data[:place], row, *data[place:])


def _removed(data: Data) -> Iterator[Data]:
    for place in range(len(data)):
        yield data[:place] + data[place + 1 :]


def _replaced(data: Data, domain: Sequence[Any]) -> Iterator[Data]:
    for place in range(len(data)):
        for row in domain:
            yield (*data[:place], row, *data[place + 1 :])


def _apart(one: int | Sequence[int], other: int | Sequence[int], norm: Norm) -> int:
    """The distance of two values of a statistic in a norm, squared for L2."""
    first, second = _entries(one), _entries(other)
    if len(first) != len(second):
        raise InvalidDeclaration(
            "A statistic whose number of entries depends on the data.",
            allowed="always as many integers",
        )
    moves = [abs(a - b) for a, b in zip(first, second, strict=True)]
    if norm is Norm.L2:
        return sum(move * move for move in moves)
    if norm is Norm.L1:
        return sum(moves)
    return max(moves, default=0)


def _entries(value: int | Sequence[int]) -> list[int]:
    """The value of a statistic as a list of integers."""
    entries = value if isinstance(value, Iterable) else (value,)
    try:
        return [index(entry) for entry in entries]
    except TypeError:
        raise InvalidDeclaration(
            "A statistic that is not integer.", allowed="an int or several"
        ) from None


def _affordable(values: int, size: int, work: int, *, replaced: bool) -> None:
    """Refuses an enumeration that is empty or takes more than ``work`` datasets and pairs."""
    if values < 1 or isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InvalidDeclaration(
            f"{values} values and {shown(size)} rows.", allowed="one or more of each"
        )
    needed = datasets = 0
    for rows in range(size + 1):
        datasets = datasets * values if rows else 1
        pairs = datasets * rows * (values if replaced else 1)
        needed = datasets + pairs + (0 if replaced else needed)
        if needed > work:
            raise InvalidDeclaration(
                f"More than {work} datasets and pairs of neighbours to try.",
                allowed="a smaller domain, fewer rows, or more work=",
                remedy="Prove a bound by hand and declare it as a Distance.",
            )


def _local() -> InvalidDeclaration:
    return InvalidDeclaration(
        "A local sensitivity is no sensitivity: it depends on the data, "
        "and noise of its size tells them apart.",
        allowed="a Distance, which bounds every pair of neighbours",
        remedy="Use global_sensitivity, or a bound that is proved "
        "(Nissim, Raskhodnikova, Smith 2007).",
    )
