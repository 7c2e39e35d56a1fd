# SPDX-License-Identifier: Apache-2.0
"""Folds for cross-validation with scikit-learn that do not weaken the privacy guarantee."""

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.learning.declared_rows import Declared
from sfumato.noise import Integers


class Folds:
    """Assigns each row to a fold by a hash of its unit, or of its features if each row is a unit.

    The fold of a person depends on that person's rows only. So the training sets of neighbouring
    data differ by one person, and the charges of all folds add up. With ``StratifiedKFold`` and
    ``KFold`` one additional row would move other rows to other folds.

    >>> import sfumato as sf
    >>> folds = Folds(Declared("l.db", "town", {"age": sf.Integer(0, 99)}), 5)
    >>> sum(len(test) for _, test in folds.split(np.arange(100)[:, np.newaxis]))
    100
    """

    def __init__(self, declared: Declared, n_splits: int = 5) -> None:
        if type(n_splits) is not int or not 2 <= n_splits <= 100:
            raise WrongUse(f"n_splits={shown(n_splits)}.", allowed="a whole number from 2 to 100")
        self.declared = declared
        self.n_splits = n_splits

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds."""
        return self.n_splits

    def split(
        self,
        X: Any,
        y: Any = None,
        groups: Any = None,
    ) -> Iterator[tuple[Integers, Integers]]:
        """Yields, for each fold, the indices of the training rows and of the test rows."""
        fold = np.array([self._fold(row) for row in zip(*self._read(X), strict=True)])
        for held in range(self.n_splits):
            yield np.flatnonzero(fold != held), np.flatnonzero(fold == held)

    def _read(self, rows: Any) -> list[Any]:
        """Returns the columns that determine the fold."""
        if self.declared.unit is None:
            return list(self.declared.frame(rows).values())
        return list(self.declared.owners(rows).values())

    def _fold(self, row: tuple[Any, ...]) -> int:
        """The fold of a row."""
        digest = hashlib.blake2b(repr(row).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.n_splits
