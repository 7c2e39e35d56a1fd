# SPDX-License-Identifier: Apache-2.0
"""Silences what a row could make visible while private rows are read (RULES 24)."""

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
    """Inside, no setting of the process lets a row be seen, or turns one into an error.

    Warnings are neither shown nor raised, the errors of numpy are ignored, and torch looks for no
    anomalies. Log records of the thread inside reach no handler, except those of the owner.
    What fails in a thread or in a finaliser is told to the owner alone, by its kind. All is as
    before once the last thread has left.

    ``warnings.catch_warnings`` alone would leave the filters of one thread to another one.

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
        """Changes the settings of the process, and notes what they were."""
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
        """Replaces a hook; it is put back unless somebody has replaced it, too."""
        before = getattr(module, name)
        setattr(module, name, hook)

        def restore() -> None:
            if getattr(module, name) is hook:
                setattr(module, name, before)

        self._process.callback(restore)


class _Thread(threading.local):
    """The settings of numpy that a thread has entered."""

    def __init__(self) -> None:
        self.errors: list[np.errstate] = []


def _tell_kind(failure: Any) -> None:
    """Tells the owner the kind of an error that nobody handles; its text may quote a row."""
    _OWNER.error("an error that nobody handles: %s", failure.exc_type.__name__)


def _restore_factory(own: Callable[..., Any], before: Callable[..., Any]) -> None:
    """Puts the factory of log records back, unless somebody has replaced it, too."""
    if logging.getLogRecordFactory() is own:
        logging.setLogRecordFactory(before)


SILENCE = Silence()
