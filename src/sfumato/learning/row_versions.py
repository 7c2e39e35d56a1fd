# SPDX-License-Identifier: Apache-2.0
"""Versions of rows in memory: by which objects they are, never by what is in them."""

import uuid
import weakref
from typing import Any

from sfumato.errors import WrongUse, shown


class RowVersions:
    """The version of the data that a pair of objects is, for as long as both exist.

    Rows are never compared: whether two arrays are equal is a fact about private data, and a charge
    that depends on it would tell it.

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
        """The version of rows and labels: the stated one, or one that no other pair has.

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
        found = stated or uuid.uuid4().hex
        try:
            self.pairs.append((_Watched(rows, labels), found))
        except TypeError:
            # a list cannot be watched: it is another one each time
            return found
        return found


class _Watched:
    """Rows and labels that are not kept alive."""

    def __init__(self, rows: Any, labels: Any) -> None:
        self.rows = weakref.ref(rows)
        self.labels = None if labels is None else weakref.ref(labels)

    @property
    def exists(self) -> bool:
        """Whether both still exist."""
        return self.rows() is not None and (self.labels is None or self.labels() is not None)

    def is_of(self, rows: Any, labels: Any) -> bool:
        """Whether these are the objects."""
        watched = None if self.labels is None else self.labels()
        return self.rows() is rows and watched is labels


VERSIONS = RowVersions()
