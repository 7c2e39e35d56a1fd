# SPDX-License-Identifier: Apache-2.0
"""No setting of the process lets a row be seen inside, whatever it is, and only there."""

import gc
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
import pytest
import torch

from sfumato.audit.seen import logs
from sfumato.query.silence import Silence

SECRET = "a row that nobody may see"


class Fails:
    """A finaliser that fails."""

    def __del__(self) -> None:
        raise RuntimeError(SECRET)


def warn() -> None:
    warnings.warn(SECRET, UserWarning, stacklevel=1)


def divide() -> None:
    np.ones(1) / np.zeros(1)


def differentiate() -> None:
    x = torch.zeros(1, requires_grad=True)
    (torch.sqrt(x) * 0).sum().backward()


def log() -> None:
    logging.getLogger("a.module").warning(SECRET)


def finalise() -> None:
    Fails()
    gc.collect()


def in_a_thread() -> None:
    def fail() -> None:
        raise RuntimeError(SECRET)

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()


# What a row could cause.
CAUSES: dict[str, Callable[[], None]] = {
    each.__name__: each for each in (warn, divide, differentiate, log, finalise, in_a_thread)
}


@contextmanager
def strict(told: list[str]) -> Iterator[None]:
    """The settings under which the most is seen; what is told goes into a list."""
    hooks: list[tuple[Any, str]] = [(threading, "excepthook"), (sys, "unraisablehook")]
    before = [getattr(module, name) for module, name in hooks]
    for module, name in hooks:
        setattr(module, name, lambda failure: told.append(str(failure.exc_value)))
    anomalies = torch.autograd.set_detect_anomaly(True)
    with np.errstate(all="raise"), warnings.catch_warnings(), logs() as lines:
        warnings.simplefilter("error")
        try:
            yield
        finally:
            anomalies.__exit__()
            told += lines
            for (module, name), hook in zip(hooks, before, strict=True):
                setattr(module, name, hook)


def told_by(cause: Callable[[], None], silence: Any) -> list[str]:
    """What is seen of a cause: errors, log lines and calls."""
    told: list[str] = []
    with strict(told):
        try:
            with silence:
                cause()
        except (RuntimeError, UserWarning, FloatingPointError) as failure:
            told.append(type(failure).__name__)
    return [line for line in told if not line.startswith("sfumato.owner")]


@pytest.mark.parametrize("cause", CAUSES)
def test_no_row_is_seen_by_a_setting_of_the_process(cause: str) -> None:
    assert told_by(CAUSES[cause], Silence()) == []
    assert told_by(CAUSES[cause], nullcontext())


def test_the_owner_is_told_the_kind_of_an_error_and_no_text() -> None:
    with logs() as lines, Silence():
        in_a_thread()
        logging.getLogger("sfumato.owner").info("a file is not there")
    assert lines == [
        "sfumato.owner ERROR an error that nobody handles: RuntimeError",
        "sfumato.owner INFO a file is not there",
    ]


def test_a_warning_is_neither_shown_nor_raised_inside() -> None:
    for filtered in ("always", "error"):
        silence = Silence()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter(filtered)  # type: ignore[arg-type]
            with suppress(RuntimeError), silence:
                warnings.warn("inside", UserWarning, stacklevel=1)
                raise RuntimeError
            before = list(seen)
            with suppress(UserWarning):
                warnings.warn("outside", UserWarning, stacklevel=1)
        assert not before and len(seen) == (filtered == "always")


def settings() -> list[object]:
    """All that a silence changes."""
    return [
        warnings.filters[:],
        np.geterr(),
        torch.is_anomaly_enabled(),
        threading.excepthook,
        sys.unraisablehook,
        logging.getLogRecordFactory(),
    ]


@pytest.mark.parametrize("broken", [False, True])
def test_settings_are_as_before_once_the_last_has_left(broken: bool) -> None:
    """The broken version is that of the standard library, each thread by itself."""
    told: list[str] = []
    with strict(told):
        before, one = settings(), Silence()
        other = Silence() if broken else one
        one.__enter__()
        other.__enter__()
        one.__exit__(None, None, None)
        if not broken:
            warnings.warn("the other thread is inside", UserWarning, stacklevel=1)
        other.__exit__(None, None, None)
        assert (settings() == before) is not broken
        # what the broken version left
        sys.unraisablehook, threading.excepthook = before[4], before[3]  # type: ignore[assignment]
        logging.setLogRecordFactory(before[5])  # type: ignore[arg-type]


def test_a_thread_outside_is_heard_while_another_one_is_inside() -> None:
    silence, entered, leave = Silence(), threading.Event(), threading.Event()

    def stay() -> None:
        with silence:
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=stay)
    thread.start()
    assert entered.wait(10)
    with logs() as lines:
        log()
    assert lines == [f"a.module WARNING {SECRET}"] and np.geterr()["divide"] == "warn"
    leave.set()
    thread.join()


def test_a_hook_that_somebody_has_replaced_inside_stays() -> None:
    before, silence = settings(), Silence()

    def other(failure: object) -> None:
        """Another hook."""

    make = logging.LogRecord
    with silence:
        sys.unraisablehook = other
        logging.setLogRecordFactory(make)
    assert sys.unraisablehook is other and logging.getLogRecordFactory() is make
    sys.unraisablehook = before[4]  # type: ignore[assignment]
    logging.setLogRecordFactory(before[5])  # type: ignore[arg-type]
