# SPDX-License-Identifier: Apache-2.0
"""What mining returns: tables of released counts with intervals, built from stored numbers."""

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, cast

from sfumato.errors import WrongUse
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.query.cost import Cost
from sfumato.show.bars import Bar, bar_chart
from sfumato.show.render import html_table, number, text_table
from sfumato.show.svg import Figure

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

# The most rows that are printed, and bars that are drawn.
_PRINTED, _BARS = 20, 40
# The chance that an interval misses what it is about.
MISSED = Fraction(1, 20)


class Table:
    """A table of released numbers, which prints as text or HTML; ``columns`` are the names of its
    columns.

    >>> Table("words", ("term", "n"), [("eye", 12)], bar="n").to_dicts()
    [{'term': 'eye', 'n': 12}]
    """

    def __init__(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
        *,
        bar: str,
    ) -> None:
        self.title, self.columns, self.rows = title, tuple(columns), tuple(rows)
        self._bar = bar

    def __len__(self) -> int:
        return len(self.rows)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dicts, in order."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_arrow(self) -> "pyarrow.Table":
        """The rows as a pyarrow table."""
        import pyarrow

        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.columns)
        arrays = [pyarrow.array(_of_one_type(column)) for column in columns]
        return pyarrow.table(dict(zip(self.columns, arrays, strict=True)))

    def to_pandas(self) -> "pandas.DataFrame":
        """The rows as a pandas DataFrame (WrongUse without pandas)."""
        _require("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> "polars.DataFrame":
        """The rows as a polars DataFrame (WrongUse without polars)."""
        _require("polars")
        import polars

        return cast("polars.DataFrame", polars.from_arrow(self.to_arrow()))

    def plot(self) -> Figure:
        """A bar chart of the first 40 rows, with their 95% intervals."""
        names = self.columns
        at, low, high = (names.index(name) for name in _ends(self._bar, names))
        labels = range(names.index(_first_number(names)))
        bars = []
        for row in self.rows[:_BARS]:
            label = ", ".join(number(row[place]) for place in labels)
            bars.append(Bar(label, self._bar, row[at], row[low], row[high]))
        if not bars:
            raise WrongUse("No rows to draw.", remedy="Ask at a higher cost, or of more people.")
        return bar_chart(self.title, self._bar, bars)

    def _cells(self) -> list[list[str]]:
        return [[_cell(value) for value in row] for row in self.rows]

    def __repr__(self) -> str:
        return text_table(self.columns, self._cells(), _PRINTED)

    def _repr_html_(self) -> str:
        return html_table(self.columns, self._cells(), _PRINTED)


class Found(Table):
    """The answer of ``mine``: a table of released counts with 95% intervals, paid by one charge.

    ``mine`` and ``load`` return one. ``facts`` is what is stored: the released counts and all that
    is public about them.
    """

    def __init__(
        self,
        facts: Mapping[str, Any],
        columns: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
        *,
        bar: str = "n",
        recalled: bool = False,
    ) -> None:
        super().__init__(str(facts["title"]), columns, rows, bar=bar)
        self.facts = facts
        self.recalled = recalled

    @property
    def charge(self) -> str:
        """The id of the charge that paid for the answer."""
        return str(self.facts["charge_id"])

    @property
    def cost(self) -> Cost:
        """The cost of the answer, with an item for each step."""
        cost = self.facts["cost"]
        items = tuple(dict(item) for item in cost["items"])
        return Cost(cost["epsilon"], cost["rho"], cost["delta"], items)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the reader on the bias of the counts, and on keys that are not shown."""
        return tuple(self.facts["notes"])

    @cached_property
    def levels(self) -> "tuple[Released, ...]":
        """The noisy counts by length of the key: of single values first, then of keys of two
        values, and so on.
        """
        return tuple(Released.from_json(level) for level in self.facts["levels"])

    def __repr__(self) -> str:
        return "\n".join([super().__repr__(), f"cost: {self.cost}", *self.notes])


@dataclass(frozen=True)
class Released:
    """Noisy counts by key, with the law of their noise, as stored in the answer of ``mine``.

    ``threshold`` is None where all keys were public; else keys below it are not shown.

    >>> law = {"law": "gaussian", "scale": "4"}
    >>> Released.from_json({"keys": [["eye"]], "n": [12], "noise": law}).half_width()
    4
    """

    counts: Mapping[tuple[Any, ...], int]
    noise: DiscreteGaussian | DiscreteLaplace
    threshold: int | None

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Released":
        """Restores the counts from the JSON that ``released_json`` returned."""
        keys = map(tuple, stored["keys"])
        law, scale = stored["noise"]["law"], Fraction(stored["noise"]["scale"])
        noise: DiscreteGaussian | DiscreteLaplace = DiscreteLaplace(scale)
        if law == "gaussian":
            noise = DiscreteGaussian(sigma_squared=scale)
        counts = dict(zip(keys, stored["n"], strict=True))
        return cls(counts, noise, stored.get("threshold"))

    def half_width(self, among: int = 1) -> int:
        """Returns the 95% half-width of the noise of one count, or of ``among`` counts
        simultaneously.
        """
        return _half_width(self.noise, MISSED / among)

    def interval(self, key: tuple[Any, ...], among: int = 1) -> tuple[int, int, int]:
        """Returns the noisy count of a key with the ends of its 95% interval; for a key below the
        threshold, 0 with the interval from 0 to the largest likely count.
        """
        error = self.half_width(among)
        if key not in self.counts:
            return 0, 0, max((self.threshold or 0) - 1, 0) + error
        n = self.counts[key]
        return n, max(n - error, 0), max(n + error, 0)


def noise_json(noise: object) -> dict[str, str]:
    """Returns the law and the scale of additive noise as JSON (variance of a Gaussian)."""
    if isinstance(noise, DiscreteLaplace):
        return {"law": "laplace", "scale": str(noise.scale)}
    assert isinstance(noise, DiscreteGaussian), "an allowance buys no other noise"
    return {"law": "gaussian", "scale": str(noise.sigma_squared)}


def released_json(
    keys: Sequence[Sequence[Any]],
    counts: Sequence[int],
    noise: object,
    threshold: int | None = None,
) -> dict[str, Any]:
    """Returns noisy counts as JSON for the stored answer, with their noise; ``keys`` are tuples of
    the values that are shown.
    """
    stored: dict[str, Any] = {"keys": [list(key) for key in keys], "n": list(map(int, counts))}
    stored["noise"] = noise_json(noise)
    if threshold is not None:
        stored["threshold"] = threshold
    return stored


def ratio(
    part: tuple[float, float, float], whole: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Returns the quotient of two noisy counts and the ends of its interval; each argument is
    (count, low, high). It is (0, 0, 1) if ``whole`` is not positive.

    >>> ratio((5, 4, 6), (10, 8, 12))
    (0.5, 0.3333333333333333, 0.75)
    """
    n, low, high = part
    total, least, most = whole
    if total <= 0:
        return 0.0, 0.0, 1.0
    upper = high / least if least > 0 else float("inf")
    return n / total, low / most, upper


@lru_cache(maxsize=256)
def _half_width(noise: DiscreteGaussian | DiscreteLaplace, missed: Fraction) -> int:
    return noise.half_width(1 - missed)


def _cell(value: Any) -> str:
    return f"{len(value):,} numbers" if isinstance(value, list) else number(value)


def _ends(bar: str, names: Sequence[str]) -> tuple[str, str, str]:
    """Returns the names of a number and of its ends."""
    if bar == "n":
        return bar, "low", "high"
    return bar, f"{bar}_low", f"{bar}_high"


def _first_number(names: Sequence[str]) -> str:
    """Returns the name of the first column that is a number about a key."""
    return next(name for name in names if name in ("n", "size", "difference"))


def _of_one_type(column: Sequence[Any]) -> list[Any]:
    """Returns values of one type for Arrow: strings, if some are strings."""
    kinds = {type(value) for value in column if value is not None}
    if len(kinds) > 1 and str in kinds:
        return [None if value is None else str(value) for value in column]
    return list(column)


def _require(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise WrongUse(f"{package} is not installed.", remedy=f"pip install {package}")
