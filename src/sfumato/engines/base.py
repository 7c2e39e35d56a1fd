# SPDX-License-Identifier: Apache-2.0
"""The ``Engine`` protocol, and the types of what an engine returns.

Every engine implements it (``duckdb``, ``spark``, ``reference``); the curator and the session use
engines through this protocol alone.
"""

import mmap
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import chain
from typing import NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.stop import ENDLESS, Patience
from sfumato.errors import WrongUse
from sfumato.noise.law import Integers
from sfumato.plan.cube import BoundedCube
from sfumato.plan.graph import BoundedGraph
from sfumato.plan.rows import BoundedRows
from sfumato.plan.stages import Bounded

# A group: the code of each key (the string of a text key); None stands for NULL.
Codes: TypeAlias = tuple[int | str | None, ...]
# The hashes of the names of units.
Names: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bytes_]]
# One mapping for each part of a plan: from a group to its integers.
Exact: TypeAlias = tuple[Mapping[Codes, tuple[int, ...]], ...]


class Marginals(Protocol):
    """The interface of an open bounded cube (``Engine.cube``), which computes exact contingency
    tables (marginals) over some of its axes.

    >>> from sfumato.engines.base import Marginals
    >>> def cells(cube: Marginals, axis: str) -> int:
    ...     (counts,) = cube.marginals([[axis]])
    ...     return counts.size
    """

    def marginals(self, cliques: Sequence[Sequence[str]]) -> list[Integers]:
        """Returns the exact marginal counts over each set of axes, before any noise; may be called
        any number of times.

        A clique is a sequence of axis names. Its array has one dimension for each axis, in the
        order of the clique, and contains every cell, the empty ones too.

        Raises:
            UnknownName, WrongUse: as ``Cube.places``, before anything is counted.
            EngineFailed: the counts cannot be computed.
            Cancelled: the caller stopped waiting.
        """
        ...


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RowTokens:
    """The tokens (words) of a text column for all rows, each stored as the number of a distinct
    string.

    The tokens of row i are ``numbers[starts[i]:starts[i + 1]]``, in order; the token with the
    number n is ``strings[n]``. Strings are different, and sorted by code points: of two tokens the
    first in that order has the smaller number, whatever other rows hold. The numbers themselves
    depend on the rows of all units.

    >>> import numpy as np
    >>> tokens = RowTokens(np.array([0, 1, 1]), np.array([0, 2, 3]), ("eye", "red"))
    >>> tokens.of(np.array([1])).numbers.tolist()
    [1]
    """

    numbers: NDArray[np.int32]
    starts: Integers
    strings: Sequence[str]

    def of(self, chosen: Integers) -> "RowTokens":
        """Returns the tokens of the chosen rows, given by their indices."""
        places, starts = _chosen(self.starts, chosen)
        return RowTokens(self.numbers[places], starts, self.strings)

    def __reduce__(self) -> NoReturn:
        raise WrongUse("Rows of units are not pickled.", remedy="Open them where they are used.")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class UnitRows:
    """The rows of all privacy units, sorted by unit. Readable while the context manager of
    ``Engine.rows`` is open.

    The rows of unit i are ``codes[starts[i]:starts[i + 1]]``. ``codes`` has a row for each row of
    the data and a column for each value, or for each number of an array; ``starts`` has one entry
    more than there are units. A missing value is ``plan.rows.MISSING``. ``names`` has the hash of
    each unit's name, as 32 hexadecimal digits, if the plan asks for it. ``tokens`` has those of each
    text, by the index of its value; in ``codes`` a text is 0.

    >>> import numpy as np
    >>> rows = UnitRows(np.array([[1], [2], [3]]), np.array([0, 2, 3]))
    >>> rows.units, rows.of(np.array([1])).codes.tolist()
    (2, [[3]])
    """

    codes: Integers
    starts: Integers
    names: Names | None = None
    tokens: Mapping[int, RowTokens] = field(default_factory=dict)

    @property
    def units(self) -> int:
        """Returns the number of units."""
        return len(self.starts) - 1

    def of(self, chosen: Integers) -> "UnitRows":
        """Returns the rows of some units only; ``chosen`` are the units' indices, without
        repetition.
        """
        rows, starts = _chosen(self.starts, chosen)
        names = None if self.names is None else self.names[chosen]
        tokens = {place: each.of(rows) for place, each in self.tokens.items()}
        return UnitRows(self.codes[rows], starts, names, tokens)

    def free_pages(self) -> None:
        """Frees the memory of the codes read so far, if they lie in a file; they stay readable.

        Whoever reads codes part by part then never has all of them in memory.
        """
        file: object = self.codes.base
        if sys.platform != "win32" and isinstance(file, mmap.mmap):
            file.madvise(mmap.MADV_DONTNEED)

    def __reduce__(self) -> NoReturn:
        raise WrongUse("Rows of units are not pickled.", remedy="Open them where they are used.")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Graph:
    """The edges of a bounded graph, as an array of pairs of node numbers from 0 to ``nodes`` - 1.

    Each edge is there once and joins two different nodes. ``nodes`` is the number of names in the
    table of nodes, or, if there is none, of nodes that have an edge. The numbers of nodes mean
    nothing.

    >>> import numpy as np
    >>> Graph(np.array([[0, 1], [1, 2]]), 4).nodes
    4
    """

    pairs: Integers
    nodes: int

    def __reduce__(self) -> NoReturn:
        raise WrongUse("A graph is not pickled.", remedy="Open it where it is used.")


def _chosen(starts: Integers, chosen: Integers) -> tuple[Integers, Integers]:
    """Returns the places of what the chosen parts contain, and where each part now starts."""
    sizes = np.diff(starts)[chosen]
    new_starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    within = np.arange(new_starts[-1]) - np.repeat(new_starts[:-1], sizes)
    return np.repeat(starts[:-1][chosen], sizes) + within, new_starts


class Engine(Protocol):
    """The interface of an engine, which computes the exact results of plans with bounded
    contributions, over the tables that it was opened with.

    Every engine returns the same integers for the same plan, key and rows; ``reference.Reference``
    is the plain implementation that the others are tested against.

    >>> from sfumato.engines.base import Engine
    >>> from sfumato.engines.reference import Reference
    >>> engine: Engine = Reference({"people": []})
    >>> engine.close()
    """

    @property
    def collects_codes(self) -> bool:
        """Whether the engine returns every distinct code of a value, however many there are.

        Exact quantiles need all codes. Without them the session computes quantiles on a grid of
        codes.
        """
        ...

    def wait(self, patience: Patience = ENDLESS) -> None:
        """Blocks until the engine could start a plan at once; reserves nothing.

        Raises:
            Cancelled: the caller stopped waiting.
        """
        ...

    def ready(
        self, plan: Bounded, sampling_key: str, patience: Patience = ENDLESS
    ) -> Callable[[], Exact]:
        """Prepares the plan of a SQL question; returns a function that computes its exact integers
        (before noise), one mapping from groups to integers for each aggregate.

        No data is read before the returned function is called. Errors that do not depend on the
        data are raised here, by ``ready`` itself.

        Groups are in ascending order; a group whose integers are all zero is left out. So the
        number and the order of the rows affect the result only through the integers. For quantiles,
        the integers are pairs (leaf, weight) in ascending order of leaves; leaves of weight zero
        are left out.

        ``sampling_key`` decides which groups of a unit are counted if a unit has more groups than
        its limit. The privacy proof requires neither its secrecy nor its randomness (RULES 19). The
        returned function raises ``Cancelled`` if ``patience`` ends while it runs.
        """
        ...

    def statement(self, plan: Bounded) -> str:
        """Returns the SQL that the engine would run for a plan, as text for people to read."""
        ...

    def cube(
        self, plan: BoundedCube, patience: Patience = ENDLESS
    ) -> AbstractContextManager["Marginals"]:
        """Returns a context manager that opens a bounded cube: a table of codes whose marginals can
        be computed.

        The data is read once, on entry; the table of codes is deleted on exit. Errors that do not
        depend on the data are raised here. Nothing is sampled, so there is no sampling key.
        """
        ...

    def rows(
        self, plan: BoundedRows, key: str, patience: Patience = ENDLESS
    ) -> AbstractContextManager[UnitRows]:
        """Returns a context manager that reads the rows of every privacy unit, with at most as many
        rows of each unit as the plan allows.

        The data is read once, on entry; the copy of the rows is deleted on exit. ``key`` decides
        the order of units and of their rows, and which rows of a unit are kept. That order depends
        on the key, the unit and the content of the row, never on the order of the file. The privacy
        proof requires neither secrecy nor randomness of the key.

        Raises:
            WrongUse: the engine does not support rows.
        """
        ...

    def edges(
        self, plan: BoundedGraph, key: str, patience: Patience = ENDLESS
    ) -> Callable[[], Graph]:
        """Prepares the plan of a graph; returns a function that reads its edges, one for each pair
        of nodes.

        Edges come in the order of the md5 of ``key`` and their two names, the lesser name first;
        ties by these names. So the order of two edges depends on nothing but themselves. Errors
        that do not depend on the data are raised here. The privacy proof requires neither secrecy
        nor randomness of the key.

        Raises:
            WrongUse: the engine does not support graphs.
        """
        ...

    def interrupt(self) -> None:
        """Interrupts running statements and refuses new ones; called before ``close``."""
        ...

    def close(self) -> None:
        """Releases everything that the engine has open; may be called more than once."""
        ...


def nulls_first(code: int | str | None) -> tuple[bool, int, str]:
    """Returns a sort key for a code or a string of a group: ascending order, with NULL first.

    >>> sorted([3, None, 1], key=nulls_first)
    [None, 1, 3]
    """
    if code is None:
        return False, 0, ""
    if isinstance(code, str):
        return True, 0, code
    return True, code, ""


def tidy(groups: Mapping[Codes, tuple[int, ...]]) -> dict[Codes, tuple[int, ...]]:
    """Returns one aggregate's exact integers by group, with the groups in ascending order and
    without groups whose integers are all zero.

    >>> tidy({(2,): (1,), (None,): (3,), (1,): (0,)})
    {(None,): (3,), (2,): (1,)}
    """
    # without NULL, codes and strings are compared as they are: ten times as fast
    has_null = None in chain.from_iterable(groups)
    order = sorted(groups, key=_nulls_first_in_group) if has_null else sorted(groups)
    tidied = {}
    for group in order:
        integers = groups[group]
        if any(integers):
            tidied[group] = integers
    return tidied


def flattened(weights: Mapping[int, int]) -> tuple[int, ...]:
    """Returns a quantile's weights by leaf (a cell of codes) as one flat tuple (leaf, weight, leaf,
    weight, ...), in ascending order of leaves and without zero weights.

    >>> flattened({7: 2, 1: 5, 3: 0})
    (1, 5, 7, 2)
    """
    pairs = sorted(weights.items())
    return tuple(chain.from_iterable(pair for pair in pairs if pair[1]))


def _nulls_first_in_group(group: Codes) -> list[tuple[bool, int, str]]:
    return [nulls_first(code) for code in group]
