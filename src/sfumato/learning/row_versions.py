# SPDX-License-Identifier: Apache-2.0
"""Versions of arrays and frames in memory, by object identity, never by their values.

Estimators of scikit-learn use them: a second fit of the same objects costs no budget.
"""

import uuid
import weakref
from typing import Any

from sfumato.errors import WrongUse, shown


class RowVersions:
    """Assigns a version to each pair of rows and labels, for as long as both objects exist.

    Rows are never compared: whether two arrays are equal is private, and a charge that depends on
    it would reveal it.

    >>> import numpy as np
    >>> rows, versions = np.arange(3), RowVersions()
    >>> versions.of(rows, None, None) == versions.of(rows, None, None)
    True
    >>> versions.of(rows, None, None) == versions.of(rows.copy(), None, None)
    False
    """

    def __init__(self) -> None:
        self.pairs: list[tuple[_Watched, str]] = []

    def of(self, rows: Any, labels: Any, stated: str | None) -> str:
        """Returns the version of rows and labels: ``stated``, or a new one that no other pair has.

        Raises:
            WrongUse: other objects had the stated version before, and still exist.
        """
        self.pairs = [pair for pair in self.pairs if pair[0].exists]
        for watched, version in self.pairs:
            if watched.is_of(rows, labels):
                if stated in (None, version):
                    return version
            elif version == stated:
                raise WrongUse(
                    f"version={shown(stated)} of other rows than before.",
                    remedy="A version names one set of rows. Leave it out in a cross-validation.",
                )
        new_version = stated or uuid.uuid4().hex
        try:
            self.pairs.append((_Watched(rows, labels), new_version))
        except TypeError:
            # a list cannot be watched: it is another one each time
            return new_version
        return new_version


class _Watched:
    """Weak references to rows and labels."""

    def __init__(self, rows: Any, labels: Any) -> None:
        self.rows = weakref.ref(rows)
        self.labels = None if labels is None else weakref.ref(labels)

    @property
    def exists(self) -> bool:
        """Whether both objects still exist."""
        return self.rows() is not None and (self.labels is None or self.labels() is not None)

    def is_of(self, rows: Any, labels: Any) -> bool:
        """Whether these are the referenced objects."""
        watched = None if self.labels is None else self.labels()
        return self.rows() is rows and watched is labels


VERSIONS = RowVersions()
