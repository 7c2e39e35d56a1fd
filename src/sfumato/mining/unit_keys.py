# SPDX-License-Identifier: Apache-2.0
"""Counts of distinct units by key: by token, by group and token, by tokens in a row.

Proof: unit_keys.proof.md.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from itertools import chain, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidDeclaration
from sfumato.metadata.column import Array, Text
from sfumato.noise import Integers
from sfumato.plan.rows import MISSING, BoundedRows
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation
from sfumato.query.statistic import BoundedStatistic, Counts, Opened, UnitRows, UnitsByKey

# A key: a group (or the index of a column), then the values that follow each other.
Key: TypeAlias = tuple[int | str | None, ...]
Keys: TypeAlias = tuple[Key, ...]
Hashes: TypeAlias = NDArray[np.uint64]

# The number of values that are read at once, and of ids that are added up at once.
_AT_ONCE, _MERGED = 1 << 19, 1 << 23
# The number of codes of arrays that are compared with prototypes at once.
_CELLS = 1 << 22
# The most values of a column that is no text, and the most groups.
MOST_VALUES = 1000
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIXERS = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """A rule by which the keys that mining counts are read from bounded rows (terms, items, or
    sequences of them).

    ``columns`` are the indices of the values that are read: the tokens of a text, or the code of a
    row. ``by`` is that of the group of a row. With ``order``, the rows of a unit follow each other
    in the order of that value; without it, the tokens of one row do.

    Raises:
        InvalidDeclaration: a column with more than 1,000 values that is no text; several columns in
            groups.
    """

    plan: BoundedRows
    columns: tuple[int, ...] = ()
    by: int | None = None
    order: int | None = None

    def __post_init__(self) -> None:
        if self.by is not None and (len(self.columns) > 1 or self._is_text(self.by)):
            raise InvalidDeclaration("Several columns in groups, or groups by a text.")
        for place in (*self.columns, *(() if self.by is None else (self.by,))):
            if not self._is_text(place) and len(self.codes(place)) > MOST_VALUES:
                raise InvalidDeclaration(
                    f"A column of more than {MOST_VALUES:,} values.", allowed="fewer, or a text"
                )

    def _is_text(self, place: int) -> bool:
        return isinstance(self.plan.rows.values[place].type, Text)

    def codes(self, place: int) -> range:
        """Returns the range of the declared codes of the column at index ``place``, which is no
        text.

        Raises:
            InvalidDeclaration: it is a text, or an array.
        """
        kind = self.plan.rows.values[place].type
        if isinstance(kind, Text | Array):
            raise InvalidDeclaration("A text or an array without codes.")
        return range(kind.lower_code, kind.upper_code + 1)

    def codes_of(self, place: int, rows: UnitRows, begin: int, end: int) -> Integers:
        """Returns the code of the column at index ``place`` in each of the rows ``begin`` to
        ``end``.
        """
        return rows.codes[begin:end, self.plan.rows.starts[place]].astype(np.int64)


@dataclass(frozen=True, slots=True)
class NearReading(Reading):
    """A ``Reading`` whose groups are by an array column: the group of a row is the prototype
    nearest to its array (in L2).

    ``prototypes`` are public vectors, in codes of the array. Of equally near ones the first counts.

    Raises:
        InvalidDeclaration: ``by`` is no array; none or more than 1,000 prototypes, of another
            length, or with squared distances beyond 2^53.
    """

    prototypes: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        # by name: a dataclass with slots is a new class, which super() does not know
        Reading.__post_init__(self)
        kind = None if self.by is None else self.plan.rows.values[self.by].type
        lengths = set(map(len, self.prototypes))
        if not isinstance(kind, Array) or lengths != {kind.length}:
            raise InvalidDeclaration("Prototypes of what is no array, or of another length.")
        ends = (kind.lower_code, kind.upper_code, *map(abs, chain(*self.prototypes)))
        if 4 * kind.length * max(map(abs, ends)) ** 2 >= 1 << 53:
            raise InvalidDeclaration("An array with too many steps.", allowed="a larger step")

    def codes(self, place: int) -> range:
        """Returns the range of the codes of the column at index ``place``; for ``by``, the indices
        of the prototypes.
        """
        if place == self.by:
            return range(len(self.prototypes))
        return Reading.codes(self, place)

    def codes_of(self, place: int, rows: UnitRows, begin: int, end: int) -> Integers:
        """Returns the code of the column at index ``place`` in each of the rows ``begin`` to
        ``end``; for ``by``, the index of the nearest prototype.
        """
        if place != self.by:
            return Reading.codes_of(self, place, rows, begin, end)
        points = np.array(self.prototypes, np.float64)
        lengths = (points**2).sum(axis=1)
        start, nearest = self.plan.rows.starts[place], np.empty(end - begin, np.int64)
        step = max(_CELLS // points.shape[1], 1)
        for first in range(begin, end, step):
            last = min(first + step, end)
            codes = rows.codes[first:last, start : start + points.shape[1]]
            is_known = (codes != MISSING).all(axis=1)
            # integers below 2^53, exact in any order; the length of the row itself decides nothing
            away = (
                lengths - 2 * np.where(is_known[:, np.newaxis], codes, 0).astype(float) @ points.T
            )
            nearest[first - begin : last - begin] = np.where(is_known, away.argmin(axis=1), MISSING)
        return nearest


class _Values:
    """The rows of units with the values of their columns, and a hash of each value.

    A key of one value has the id ``head`` * ``size`` + the index of the value, where the head is
    the index of the group or of the column.
    """

    def __init__(self, reading: Reading, rows: UnitRows) -> None:
        self.reading, self.rows = reading, rows
        self.values: list[Sequence[int | str]] = []
        for place in reading.columns:
            tokens = rows.tokens.get(place)
            self.values.append(reading.codes(place) if tokens is None else tokens.strings)
        self.hashes = [np.array(list(map(_hash, each)), np.uint64) for each in self.values]
        self.size = max([1, *map(len, self.values)])
        self.groups = None if reading.by is None else reading.codes(reading.by)

    def parts(self) -> Iterator[tuple[int, int]]:
        """Yields the ends of ranges of units that are read at once."""
        starts = self.rows.starts
        read = starts.copy()
        for tokens in self.rows.tokens.values():
            read += tokens.starts[starts]
        wanted = np.arange(_AT_ONCE, int(read[-1]), _AT_ONCE)
        ends = np.unique(np.concatenate([[0], np.searchsorted(read, wanted), [self.rows.units]]))
        yield from zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)

    def read(self, first: int, last: int) -> tuple[Integers, Integers, Integers, Hashes]:
        """Returns the values of units in their order: the unit and the run, the id, the hash."""
        reading, starts = self.reading, self.rows.starts
        begin, end = int(starts[first]), int(starts[last])
        unit_of_row = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
        ids, hashes, of_rows = [], [], []
        for head, place in enumerate(reading.columns):
            row, number = self._numbers(place, begin, end)
            ids.append(head * self.size + number)
            hashes.append(self.hashes[head][number])
            of_rows.append(row)
        if not reading.columns:
            of_rows, ids = [np.arange(end - begin)], [np.zeros(end - begin, np.int64)]
            hashes = [np.zeros(end - begin, np.uint64)]
        row, key = np.concatenate(of_rows), np.concatenate(ids)
        if self.groups is not None and reading.by is not None:
            code = self._codes(reading.by, begin, end)[row]
            group = np.where(code == MISSING, len(self.groups), code - self.groups.start)
            key = key + group * self.size
        hashed = _mixed(np.concatenate(hashes) + (key // self.size).astype(np.uint64) * _ODD)
        if reading.order is None:
            return unit_of_row[row], row, key, hashed
        time = self._codes(reading.order, begin, end)[row]
        unit = unit_of_row[row]
        # rows at one time stay in the order in which they were read
        order = np.lexsort((time, unit))
        order = order[time[order] != MISSING]
        return unit[order], unit[order], key[order], hashed[order]

    def _numbers(self, place: int, begin: int, end: int) -> tuple[Integers, Integers]:
        """Returns the row and the index of each value of a column, in some rows."""
        tokens = self.rows.tokens.get(place)
        if tokens is None:
            codes = self._codes(place, begin, end)
            row = np.flatnonzero(codes != MISSING)
            return row, codes[row] - self.reading.codes(place).start
        starts = tokens.starts[begin : end + 1]
        row = np.repeat(np.arange(end - begin), np.diff(starts))
        return row, tokens.numbers[starts[0] : starts[-1]].astype(np.int64)

    def _codes(self, place: int, begin: int, end: int) -> Integers:
        """Returns the codes of a value in some rows."""
        return self.reading.codes_of(place, self.rows, begin, end)

    def key(self, number: int) -> Key:
        """Returns the key of an id."""
        head, index = divmod(number, self.size)
        value = (self.values[self._column(head)][index],) if self.values else ()
        if self.groups is None:
            return (head, *value)
        return (self.groups[head] if head < len(self.groups) else None, *value)

    def ids(self, keys: Keys) -> Integers:
        """Returns the ids of keys; -1 for a key that no unit can have."""
        return np.array([self._id(*key) for key in keys], np.int64)

    def _id(self, head: int | str | None, value: int | str | None = None) -> int:
        if self.groups is not None:
            head = len(self.groups) if head is None else int(head) - self.groups.start
        at = int(head or 0)
        if not self.values:
            return at
        values = self.values[self._column(at)]
        if isinstance(values, range):
            is_code = isinstance(value, int) and value in values
            return at * self.size + int(value or 0) - values.start if is_code else -1
        # strings are sorted
        index = bisect_left(values, str(value))
        is_there = index < len(values) and values[index] == value
        return at * self.size + index if is_there else -1

    def _column(self, head: int) -> int:
        return head if self.groups is None else 0


@dataclass(frozen=True, slots=True)
class UnitKeys(UnitsByKey):
    """The statistic that counts the distinct units of each key in the data, for a threshold
    mechanism; one unit counts in at most ``keep`` keys.

    Without ``parts``, a key is one value of the columns, with its group. ``parts`` has the released
    keys of each level before: of one value, of two, and so on. A key of the next level is made of
    two keys of the last level which overlap in all but one value, and which begin at consecutive
    values.

    Guarantees:
        the count of a key moves by at most one, and only for keys of the unit
        a unit counts in the stated number of keys
        which keys of a unit count depends on its own rows alone
    """

    reading: Reading
    keep: int
    parts: tuple[Keys, ...] = ()

    def __post_init__(self) -> None:
        _require_keep(self.keep)

    @property
    def groups(self) -> int:
        """The largest number of keys in which one unit is counted."""
        return self.keep

    def distance(self, norm: Norm) -> Distance:
        """Returns the sensitivity: 1, in Linf, since a unit counts once in a key."""
        if norm is not Norm.LINF:
            raise InvalidDeclaration("Units of keys that are not public.", allowed="a threshold")
        return Distance(norm, Fraction(1), self.reading.plan.neighbours)

    def exact(self, opened: Opened) -> Counts:
        """Returns the exact number of units of each key that occurs in the data."""
        values = _values(self.reading, opened)
        merged = np.zeros((2, 0), np.int64)
        waiting = [np.zeros(0, np.int64)]
        for _, some in _kept(values, self.keep, self.parts):
            waiting.append(some)
            if sum(map(len, waiting)) > _MERGED:
                merged, waiting = _merged(merged, waiting), []
        keys, counts = _merged(merged, waiting)

        def keys_at(places: Integers) -> list[Key]:
            return [self._key(values, int(keys[place])) for place in places]

        return counts, keys_at

    def _key(self, values: _Values, number: int) -> Key:
        if not self.parts:
            return values.key(number)
        last = self.parts[-1]
        first, second = divmod(number, len(last))
        return (*last[first], last[second][-1])


@dataclass(frozen=True, slots=True)
class KeyCounts(BoundedStatistic[Integers]):
    """The statistic that counts the distinct units of each of the public ``keys``; one unit counts
    in at most ``keep`` of them.

    Guarantees:
        counts of public keys move by at most their proved distance

    Raises:
        InvalidDeclaration: a key twice, or none.
    """

    reading: Reading
    keep: int
    keys: Keys

    def __post_init__(self) -> None:
        _require_keep(self.keep)
        if not self.keys or len(set(self.keys)) != len(self.keys):
            raise InvalidDeclaration("A key twice, or no key.", allowed="each key once")

    def distance(self, norm: Norm) -> Distance:
        """Returns the sensitivity (L1, or squared L2), if one unit changes at most ``keep`` counts
        by one.
        """
        most = min(self.keep, len(self.keys))
        return differing(most, norm, self.reading.plan)

    def exact(self, opened: Opened) -> Integers:
        """Returns the exact count of each key, in their order."""
        counts = np.zeros(len(self.keys), np.int64)
        for _, keys in _kept(_values(self.reading, opened), self.keep, keys=self.keys):
            counts += np.bincount(keys, minlength=len(self.keys))
        return counts


def differing(most: int, norm: Norm, plan: BoundedRows) -> Distance:
    """Returns the sensitivity (L1, or squared L2) of counts of which one unit changes at most
    ``most``, each by one.
    """
    if norm not in (Norm.L1, Norm.L2):
        raise InvalidDeclaration(f"Counts in {norm.value}.", allowed="L1, L2")
    times = 2 if plan.neighbours is Relation.REPLACE_ONE else 1
    return Distance(norm, Fraction(times * most), plan.neighbours)


def kept_keys(
    reading: Reading, opened: Opened, keep: int, keys: Keys
) -> Iterator[tuple[int, Integers, Integers]]:
    """Yields the keys of units, batch by batch: the number of units in the batch, then two arrays
    with a unit and the index of one of its ``keys``.

    Of each unit at most ``keep`` of the ``keys`` are used.
    """
    values = _values(reading, opened)
    ends = [last - first for first, last in values.parts()]
    kept = _kept(values, keep, keys=keys)
    for units, (unit, key) in zip(ends, kept, strict=True):
        yield units, unit, key


def _require_keep(keep: int) -> None:
    if type(keep) is not int or keep < 1:
        raise InvalidDeclaration(f"keep={keep}.", allowed="an integer from 1")


def _values(reading: Reading, opened: Opened) -> _Values:
    """Returns the values of the rows, with the hashes of their strings; computed once."""
    places = ("values", reading)
    return opened.derived(reading.plan, places, lambda rows: _Values(reading, rows))


def _kept(
    values: _Values,
    keep: int,
    parts: tuple[Keys, ...] = (),
    keys: Keys | None = None,
) -> Iterator[tuple[Integers, Integers]]:
    """Yields, for each part of the units, the unit and the id of each key in which it counts.

    The id of a key of ``keys`` is its index there, that of two parts is their pair of indices.
    """
    levels = parts if keys is None else (keys,)
    hashes = [_hashes_of(level) for level in levels]
    known_ids = [values.ids(levels[0])] if levels else []
    known_ids += [_pair_ids(upper, lower) for lower, upper in pairwise(parts)]
    for first, last in values.parts():
        unit, run, key, hashed = values.read(first, last)
        if levels:
            key = _looked_up(key, known_ids[0])
            hashed = hashes[0][key]
        for level, known in enumerate(parts):
            hashed = _pair_hashes(hashes[level], key)
            key = _pairs(key, run, len(known))
            if level + 1 < len(parts):
                key = _looked_up(key, known_ids[level + 1])
        present = key >= 0
        yield _cut(unit[present], key[present], hashed[present], keep)


def _looked_up(ids: Integers, known: Integers) -> Integers:
    """Returns the index in ``known`` of each id, -1 for those that are not there."""
    order = np.argsort(known, kind="stable")
    if not len(order):
        return np.full(len(ids), -1)
    place = np.minimum(np.searchsorted(known, ids, sorter=order), len(order) - 1)
    index = order[place]
    return np.where((known[index] == ids) & (ids >= 0), index, -1)


def _pairs(key: Integers, run: Integers, count: int) -> Integers:
    """Returns the id of each key and the one after it in its run; -1 where one is missing."""
    following = _following(key, -1)
    present = (key >= 0) & (following >= 0) & (run == _following(run, -1))
    return np.where(present, key * count + following, -1)


def _following(values: Integers, last: int) -> Integers:
    """Returns the value after each one; ``last`` after the last one."""
    return np.append(values, last)[1:]


def _pair_ids(keys: Keys, parts: Keys) -> Integers:
    """Returns the ids of released keys as pairs of the keys that they are made of."""
    index = {part: place for place, part in enumerate(parts)}
    found = []
    for key in keys:
        first, second = index.get(key[:-1], -1), index.get((key[0], *key[2:]), -1)
        found.append(first * len(parts) + second if min(first, second) >= 0 else -1)
    return np.array(found, np.int64)


def _cut(unit: Integers, key: Integers, hashed: Hashes, keep: int) -> tuple[Integers, Integers]:
    """Returns each different key of each unit once, and at most ``keep`` of a unit.

    Those with the smallest hashes stay, where each hash is mixed with the sum of all hashes of the
    unit, so that no key stays for everybody; of equal hashes, that of the first key.
    """
    if not len(unit):
        return unit, key
    size = int(key.max()) + 1
    if np.bincount(unit).max() <= keep:
        # nobody has more keys than stay: no hash decides
        pairs = np.sort(unit * size + key)
        return np.divmod(pairs[np.append(True, pairs[1:] != pairs[:-1])], size)
    order = np.argsort(unit * size + key)
    unit, key, hashed = unit[order], key[order], hashed[order]
    is_new = np.append(True, (unit[1:] != unit[:-1]) | (key[1:] != key[:-1]))
    unit, key, hashed = unit[is_new], key[is_new], hashed[is_new]
    starts = np.flatnonzero(np.append(True, unit[1:] != unit[:-1]))
    sizes = np.diff(np.append(starts, len(unit)))
    if sizes.max() <= keep:
        return unit, key
    salt = np.repeat(np.add.reduceat(hashed, starts), sizes)
    # a stable order: equal hashes stay in the order of their keys
    order = np.lexsort((_mixed(hashed ^ _mixed(salt)), unit))
    stays = order[np.arange(len(unit)) - np.repeat(starts, sizes) < keep]
    return unit[stays], key[stays]


def _merged(sums: Integers, ids: list[Integers]) -> Integers:
    """Adds one for each id to sums by id: two rows, the ids and their counts."""
    new = np.stack(np.unique(np.concatenate([*ids, sums[0][:0]]), return_counts=True))
    both, counts = np.concatenate([sums, new], axis=1)
    different, index = np.unique(both, return_inverse=True)
    total = np.zeros(len(different), np.int64)
    np.add.at(total, index, counts)
    return np.stack([different, total])


def _hash(value: object) -> int:
    """Returns a public hash of a value, 64 bits."""
    text = f"{type(value).__name__} {value}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8, key=b"sfumato mining").digest(), "little")


def _hashes_of(keys: Keys) -> Hashes:
    """Returns the hash of each key; after them one for the index -1."""
    return np.array([*map(_hash, keys), 0], np.uint64)


def _pair_hashes(hashes: Hashes, key: Integers) -> Hashes:
    """Returns the hash of each key with the one after it."""
    return _mixed(hashes[key] * _ODD + hashes[_following(key, -1)])


def _mixed(numbers: Hashes) -> Hashes:
    """Mixes the bits of 64-bit numbers: different numbers stay different (splitmix64)."""
    for shift, factor in _MIXERS:
        numbers = (numbers ^ (numbers >> shift)) * factor
    return numbers ^ (numbers >> np.uint64(31))
