# SPDX-License-Identifier: Apache-2.0
"""Compares synthetic rows exactly with a table that is declared public.

Exact numbers would reveal private rows, so a table that is not declared public is refused.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from sfumato.errors import InvalidSource, UnknownName, WrongUse, shown
from sfumato.metadata.column import Boolean, Category, ColumnType, Date, Integer, Real, date_code
from sfumato.metadata.table import Table
from sfumato.noise import Integers
from sfumato.synthetic.schema import MOST_VALUES, Floats

# Numbers with more values are compared in so many bins, at quantiles of the public table.
_BINS = 32
# At most so many triples are compared, evenly chosen from all.
_TRIPLES = 500
# The code of a missing value, below all others.
_MISSING = -(2**62)


@dataclass(frozen=True, slots=True)
class ExactWay:
    """The exact total variation distances of all marginals of 1, 2 or 3 columns."""

    columns: int
    marginals: int
    mean: float
    worst: float
    worst_of: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExactCorrelation:
    """The Pearson correlation of two columns, in the synthetic rows and in the public table."""

    columns: tuple[str, str]
    rows: float
    public: float


@dataclass(frozen=True, slots=True)
class ExactRange:
    """The least value, median and greatest value of a column, in the synthetic rows and the public
    table.
    """

    column: str
    rows: tuple[float, float, float]
    public: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The exact differences between synthetic rows and a public table, as ``compare`` computes
    them.

    >>> Comparison("people", 1000, 1200, ways=(), correlations=(), ranges=())
    1,000 rows of people beside 1,200 public ones
    """

    table: str
    rows: int
    public_rows: int
    ways: tuple[ExactWay, ...]
    correlations: tuple[ExactCorrelation, ...]
    ranges: tuple[ExactRange, ...]

    def __repr__(self) -> str:
        lines = [f"{self.rows:,} rows of {self.table} beside {self.public_rows:,} public ones"]
        for way in self.ways:
            worst = f"worst {way.worst:.4f} ({' x '.join(way.worst_of)})"
            together = f"{way.columns} columns: {way.marginals} marginals"
            lines.append(f"{together}, mean distance {way.mean:.4f}, {worst}")
        return "\n".join(lines)


def compare(name: str, rows: pa.Table, public: Table) -> Comparison:
    """Compares rows exactly with a table that is declared public.

    Distances are total variation distances of all marginals of one and two columns, and of at most
    500 marginals of three. Numeric columns with more than 256 values are compared in 32 bins at the
    quantiles of the public table.

    Args:
        name: what the table is called.
        rows: synthetic rows, such as ``model.sample()["people"]``.
        public: ``sf.Table(..., public=True)``, from a CSV or Parquet file or Arrow, that declares
            the columns to compare.

    Raises:
        WrongUse: the table is not declared public, or has no row; nothing was read or compared.
        UnknownName: no declared column is among those of the rows, or in the public table.
        InvalidSource: the file cannot be read.

    >>> import sfumato as sf
    >>> census = sf.Table(pa.table({"a": [0, 0, 1, 1]}), columns={"a": sf.Integer(0, 1)},
    ...                   public=True)
    >>> compare("census", pa.table({"a": [0, 1, 1, 1]}), census)
    4 rows of census beside 4 public ones
    1 columns: 1 marginals, mean distance 0.2500, worst 0.2500 (a)
    """
    require_public({name: public})
    columns = {each: kind for each, kind in public.columns.items() if each in rows.column_names}
    public_table = _read(name, public)
    absent = [each for each in columns if each not in public_table.column_names]
    if not columns or absent:
        raise UnknownName(
            f"No column of the rows is declared and in {shown(name)}.",
            allowed=", ".join(rows.column_names),
        )
    if not len(public_table) or not len(rows):
        raise WrongUse(f"{len(rows):,} rows beside {len(public_table):,} of {shown(name)}.")
    codes, public_codes = _encode_columns(rows, columns), _encode_columns(public_table, columns)
    numbers = [each for each, kind in columns.items() if not isinstance(kind, Category | Boolean)]
    return Comparison(
        name,
        len(rows),
        len(public_table),
        _marginal_distances(_cells_of_columns(codes, public_codes)),
        _correlations(numbers, codes, public_codes),
        _ranges({each: columns[each] for each in numbers}, codes, public_codes),
    )


def require_public(tables: Mapping[str, Table]) -> None:
    """Raises WrongUse unless all tables are declared public."""
    for name, table in tables.items():
        if not isinstance(table, Table) or not table.public:
            raise WrongUse(
                f"Exact numbers of {shown(name)}, which is not declared public.",
                allowed="sf.Table(..., public=True), of a table that may be shown to everybody",
                remedy="Read the honest check of model.report(), which is charged.",
            )


def _read(name: str, public: Table) -> pa.Table:
    """Reads the public table as Arrow; columns of a CSV file are strings."""
    source = public.source
    if isinstance(source, pa.Table):
        return source
    if not isinstance(source, str | Path):
        try:
            return pa.table(source)
        except (TypeError, ValueError, pa.ArrowException):
            raise WrongUse(
                f"The source of {shown(name)}.", allowed="a CSV or Parquet file, Arrow, a frame"
            ) from None
    if public.decimal or public.thousands:
        raise WrongUse(
            f"The numbers of {shown(name)} are written with other signs.",
            remedy="Write 1.5 and 1000 in a public file.",
        )
    try:
        if Path(source).suffix.lower() in (".parquet", ".pq"):
            return pa.parquet.read_table(source)
        parsing = pa.csv.ParseOptions(delimiter=public.delimiter or ",")
        reading = pa.csv.ReadOptions(
            encoding=public.encoding or "utf-8", skip_rows=(public.header_row or 1) - 1
        )
        with pa.csv.open_csv(source, reading, parsing) as reader:
            names = reader.schema.names
        texts = pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
        return pa.csv.read_csv(source, reading, parsing, texts)
    except (OSError, pa.ArrowException):
        raise InvalidSource(
            f"{shown(name)} cannot be read.", allowed="a CSV or Parquet file"
        ) from None


def _encode_columns(table: pa.Table, columns: Mapping[str, ColumnType]) -> dict[str, Integers]:
    """Returns the code of each value, per column; a value that does not parse counts as missing."""
    codes_by_name = {}
    for name, kind in columns.items():
        reader = _reader_of(kind)
        listed = table[name].combine_chunks().dictionary_encode()
        codes = [_encode_value(reader, kind, value) for value in listed.dictionary.to_pylist()]
        places = listed.indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)
        codes_by_name[name] = np.array([*codes, _MISSING], np.int64)[places]
    return codes_by_name


def _encode_value(reader: Callable[[Any], int | None], kind: ColumnType, value: Any) -> int:
    """Returns the code of a value, clipped to the declared range."""
    if value is None or str(value) in (kind.missing or ()):
        return _MISSING
    code = reader(value)
    if code is None:
        return _MISSING
    assert isinstance(kind, Category | Boolean | Integer | Real | Date), "it has a reader"
    return min(max(code, kind.lower_code), kind.upper_code)


def _reader_of(kind: ColumnType) -> Callable[[Any], int | None]:
    """Returns the function that reads a value of a type; raises WrongUse for a type without
    codes.
    """
    if isinstance(kind, Category | Boolean):
        known = dict(kind.texts())
        for code in range(kind.lower_code, kind.upper_code + 1):
            known.setdefault(str(kind.decode(code)), code)
        return partial(_listed, known)
    if isinstance(kind, Date):
        return date_code
    if isinstance(kind, Integer | Real):
        return partial(_number, float(kind.step))
    raise WrongUse(
        f"A column of type {type(kind).__name__} beside a public one.",
        allowed="sf.Integer, sf.Real, sf.Date, sf.Category, sf.Boolean",
    )


def _listed(known: Mapping[str, int], value: object) -> int | None:
    return known.get(str(value))


def _number(step: float, value: Any) -> int | None:
    try:
        number = float(value)
    except ValueError:
        return None
    if math.isnan(number):
        return None
    return round(min(max(number / step, -(2.0**53)), 2.0**53))


def _cells_of_columns(
    codes: Mapping[str, Integers],
    codes_of_public: Mapping[str, Integers],
) -> dict[str, tuple[Integers, Integers]]:
    """Bins each column of both tables into a few cells."""
    cells_by_name = {}
    for name, own_codes in codes.items():
        public_codes = codes_of_public[name]
        values = np.unique(np.concatenate([own_codes, public_codes]))
        if len(values) > MOST_VALUES:
            quantiles = np.quantile(
                public_codes, np.arange(1, _BINS) / _BINS, method="inverted_cdf"
            )
            values = np.unique([_MISSING, *quantiles.tolist()])
        cells = [
            np.searchsorted(values, each, side="right") - 1 for each in (own_codes, public_codes)
        ]
        cells_by_name[name] = (cells[0], cells[1])
    return cells_by_name


def _marginal_distances(cells: Mapping[str, tuple[Integers, Integers]]) -> tuple[ExactWay, ...]:
    """Returns the distances of marginals of one, two and three columns, if there are that many."""
    distances_by_ways = []
    for ways in (1, 2, 3):
        every = list(combinations(cells, ways))
        step = max(1, len(every) / _TRIPLES) if ways == 3 else 1
        chosen = [every[math.floor(place * step)] for place in range(int(len(every) / step))]
        distances = [_distance(list(map(cells.__getitem__, names))) for names in chosen]
        if distances:
            worst = int(np.argmax(distances))
            mean = float(np.mean(distances))
            distances_by_ways.append(
                ExactWay(ways, len(chosen), mean, distances[worst], chosen[worst])
            )
    return tuple(distances_by_ways)


def _distance(columns: Sequence[tuple[Integers, Integers]]) -> float:
    """Returns the total variation distance of one marginal."""
    mine, public = (np.zeros(len(codes), np.int64) for codes in columns[0])
    for first, second in columns:
        size = int(max(first.max(), second.max())) + 1
        mine, public = mine * size + first, public * size + second
    values, places = np.unique(np.concatenate([mine, public]), return_inverse=True)
    shares = []
    for codes in (places[: len(mine)], places[len(mine) :]):
        shares.append(np.bincount(codes, minlength=len(values)) / len(codes))
    return 0.5 * float(np.abs(shares[0] - shares[1]).sum())


def _correlations(
    names: Sequence[str],
    codes: Mapping[str, Integers],
    public_codes: Mapping[str, Integers],
) -> tuple[ExactCorrelation, ...]:
    found = []
    for one, other in combinations(names, 2):
        both = [_pearson(each[one], each[other]) for each in (codes, public_codes)]
        if not any(map(math.isnan, both)):
            found.append(ExactCorrelation((one, other), both[0], both[1]))
    return tuple(found)


def _pearson(left: Integers, right: Integers) -> float:
    """Returns the correlation over rows that have both values; NaN if a column is constant."""
    known = (left != _MISSING) & (right != _MISSING)
    first, second = left[known].astype(np.float64), right[known].astype(np.float64)
    if not known.any() or not np.ptp(first) or not np.ptp(second):
        return math.nan
    return float(np.corrcoef(first, second)[0, 1])


def _ranges(
    numbers: Mapping[str, ColumnType],
    codes: Mapping[str, Integers],
    public_codes: Mapping[str, Integers],
) -> tuple[ExactRange, ...]:
    """Returns the ranges of numeric columns; dates are left out."""
    ranges = []
    for name, kind in numbers.items():
        if not isinstance(kind, Integer | Real):
            continue
        known = [each[name][each[name] != _MISSING] for each in (codes, public_codes)]
        if len(known[0]) and len(known[1]):
            mine, public = (_three_quantiles(each * float(kind.step)) for each in known)
            ranges.append(ExactRange(name, mine, public))
    return tuple(ranges)


def _three_quantiles(values: Floats) -> tuple[float, float, float]:
    return float(values.min()), float(np.median(values)), float(values.max())
