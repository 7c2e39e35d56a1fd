# SPDX-License-Identifier: Apache-2.0
"""What every engine promises."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from typing import NoReturn, Protocol, TypeAlias

import numpy as np

from sfumato.engines.stop import ENDLESS, Patience
from sfumato.errors import WrongUse
from sfumato.noise.law import Integers
from sfumato.plan.cube import BoundedCube
from sfumato.plan.rows import BoundedRows
from sfumato.plan.stages import Bounded

# A group: the code of each key (the text of a text key), None for NULL.
Codes: TypeAlias = tuple[int | str | None, ...]
# One mapping for each part: the integers of each of its groups.
Exact: TypeAlias = tuple[Mapping[Codes, tuple[int, ...]], ...]


class Marginals(Protocol):
    """The marginals of one bounded cube, for as long as it is open."""

    def marginals(self, cliques: Sequence[Sequence[str]]) -> list[Integers]:
        """The exact integers of cliques, named by axes: all cells, in the order of the clique; again and again.

        Raises:
            UnknownName, WrongUse: as ``Cube.places``, before anything is counted.
            EngineFailed: they cannot be counted.
            Cancelled: the caller waits no longer.
        """
        ...


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class UnitRows:
    """The rows of units, one unit after the other, for as long as they are open.

    Unit i has the rows ``codes[starts[i]:starts[i + 1]]``, with a column for each value; a missing value is
    ``plan.rows.MISSING``.

    >>> import numpy as np
    >>> rows = UnitRows(np.array([[1], [2], [3]]), np.array([0, 2, 3]))
    >>> rows.units, rows.of(np.array([1])).codes.tolist()
    (2, [[3]])
    """

    codes: Integers
    starts: Integers

    @property
    def units(self) -> int:
        """How many units there are."""
        return len(self.starts) - 1

    def of(self, chosen: Integers) -> "UnitRows":
        """The rows of some units, by their places, each once."""
        sizes = np.diff(self.starts)[chosen]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
        return UnitRows(self.codes[np.repeat(self.starts[:-1][chosen], sizes) + within], starts)

    def __reduce__(self) -> NoReturn:
        raise WrongUse("Rows of units are not pickled.", remedy="Open them where they are used.")


class Engine(Protocol):
    """Runs bounded plans over the tables that it was opened with."""

    def wait(self, patience: Patience = ENDLESS) -> None:
        """Returns once a plan would run at once; nothing is held for it.

        Raises:
            Cancelled: the caller waits no longer.
        """
        ...

    def ready(
        self, plan: Bounded, sampling_key: str, patience: Patience = ENDLESS
    ) -> Callable[[], Exact]:
        """What computes the exact integers of a plan, part by part; nothing is read before it is called.

        What can be known to fail before the data is read fails here.

        Groups come in ascending order, and one that is all zeros is absent: which rows there
        were, and in what order, shows in nothing but the integers.

        ``sampling_key`` orders the groups of a unit where some have to be dropped; the
        proof needs neither its secrecy nor its randomness (RULES 19). What is called is interrupted
        once ``patience`` is over, and raises ``Cancelled``.
        """
        ...

    def statement(self, plan: Bounded) -> str:
        """What the engine would run, for people to read."""
        ...

    def cube(
        self, plan: BoundedCube, patience: Patience = ENDLESS
    ) -> AbstractContextManager["Marginals"]:
        """A bounded cube, read once when it is entered; its table is gone when it is left.

        What can be known to fail before the data is read fails here. Nothing is sampled, so no key is needed.
        """
        ...

    def rows(
        self, plan: BoundedRows, key: str, patience: Patience = ENDLESS
    ) -> AbstractContextManager[UnitRows]:
        """Bounded rows, read once when they are entered; they are gone when they are left.

        ``key`` orders units and their rows, and tells which rows of a unit are kept: the order is a function of
        the key, the unit and what the row holds, whatever the order of the file. The proof needs neither its
        secrecy nor its randomness.

        Raises:
            WrongUse: an engine that has no rows.
        """
        ...


def nulls_first(code: int | str | None) -> tuple[bool, int, str]:
    """A key that sorts codes, or texts, ascending behind NULL.

    >>> sorted([3, None, 1], key=nulls_first)
    [None, 1, 3]
    """
    return (
        code is not None,
        code if isinstance(code, int) else 0,
        code if isinstance(code, str) else "",
    )


def tidy(groups: Mapping[Codes, tuple[int, ...]]) -> dict[Codes, tuple[int, ...]]:
    """A part as every engine gives it: ascending, without groups of zeros.

    >>> tidy({(2,): (1,), (None,): (3,), (1,): (0,)})
    {(None,): (3,), (2,): (1,)}
    """
    # without NULL the codes, or the texts, of a key are compared as they are: ten times as fast
    empty = None in chain.from_iterable(groups)
    order = sorted(
        groups, key=(lambda group: [nulls_first(code) for code in group]) if empty else None
    )
    return {group: integers for group in order if any(integers := groups[group])}
