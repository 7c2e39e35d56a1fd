# SPDX-License-Identifier: Apache-2.0
"""Silences warnings while what must not be seen is carried out."""

import threading
import warnings
from contextlib import ExitStack
from dataclasses import dataclass, field


@dataclass(slots=True)
class Silence:
    """No warning is shown, raised or counted inside; filters are as before once the last has left.

    ``warnings.catch_warnings`` alone would leave the filters of one thread to another one.

    >>> with Silence():
    ...     warnings.warn("a secret", UserWarning)
    """

    _inside: int = 0
    _filters: ExitStack = field(default_factory=ExitStack)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._filters.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._filters.close()


SILENCE = Silence()
