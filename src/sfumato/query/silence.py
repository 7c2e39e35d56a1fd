# SPDX-License-Identifier: Apache-2.0
"""Silences warnings, errors and logs that could show a private row (RULES 24).

``charge.run_task`` and the training of networks read private rows inside ``with SILENCE``.
"""

import logging
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_OWNER = logging.getLogger("sfumato.owner")
# Below the level of every handler.
_NOWHERE = -1


@dataclass(slots=True)
class Silence:
    """A context in which no setting of the process shows a row, or turns one into an error.

    Warnings are neither shown nor raised, numpy ignores floating-point errors, and torch's anomaly
    detection is off. Log records of a thread inside the context reach no handler, except those for
    the owner. An error that nobody handles in a thread or a finaliser is logged for the owner, by
    its type alone. When the last thread leaves, all settings are as before.

    ``warnings.catch_warnings`` would not suffice: the filters of one thread would leak into
    another.

    Guarantees:
        no row is seen by a setting of the process
        settings are as before once the last has left

    >>> with Silence():
    ...     warnings.warn("a secret", UserWarning)
    """

    _inside: int = 0
    _process: ExitStack = field(default_factory=ExitStack)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: "_Thread" = field(default_factory=lambda: _Thread())

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._silence_process()
            self._inside += 1
        # numpy keeps these settings by thread
        errors = np.errstate(all="ignore")
        errors.__enter__()
        self._thread.errors.append(errors)

    def __exit__(self, *_: object) -> None:
        self._thread.errors.pop().__exit__(None, None, None)
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._process.close()

    def _silence_process(self) -> None:
        """Changes the settings of the process, and registers their restoration."""
        self._process.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        torch: Any = sys.modules.get("torch")
        if hasattr(torch, "autograd"):
            self._process.enter_context(torch.autograd.set_detect_anomaly(False))
        self._replace(threading, "excepthook", _tell_kind)
        self._replace(sys, "unraisablehook", _tell_kind)
        make = logging.getLogRecordFactory()

        def record(*args: Any, **more: Any) -> logging.LogRecord:
            made = make(*args, **more)
            if self._thread.errors and made.name != _OWNER.name:
                made.levelno = _NOWHERE
            return made

        logging.setLogRecordFactory(record)
        self._process.callback(_restore_factory, record, make)

    def _replace(self, module: Any, name: str, hook: Callable[[Any], object]) -> None:
        """Replaces a hook; it is restored at the end unless other code has replaced it, too."""
        before = getattr(module, name)
        setattr(module, name, hook)

        def restore() -> None:
            if getattr(module, name) is hook:
                setattr(module, name, before)

        self._process.callback(restore)


class _Thread(threading.local):
    """The numpy settings that a thread has entered, as a stack."""

    def __init__(self) -> None:
        self.errors: list[np.errstate] = []


def _tell_kind(failure: Any) -> None:
    """Logs the type of an unhandled error for the owner; its text may quote a row."""
    _OWNER.error("an error that nobody handles: %s", failure.exc_type.__name__)


def _restore_factory(replacement: Callable[..., Any], original: Callable[..., Any]) -> None:
    """Restores the factory of log records, unless other code has replaced it, too."""
    if logging.getLogRecordFactory() is replacement:
        logging.setLogRecordFactory(original)


SILENCE = Silence()
