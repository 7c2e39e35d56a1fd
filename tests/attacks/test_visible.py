# SPDX-License-Identifier: Apache-2.0
"""Whatever rows there are, the same is seen of every kind of task, but for released numbers.

Under the settings of a process that let the most be seen: warnings as errors, numpy that raises or
calls, anomalies of torch, every logger, both hooks for errors that nobody handles.
"""

import json
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sfumato as sf
from sfumato.audit.seen import blanked, logs
from sfumato.query import charge
from sfumato.query.answer import Answer
from tests.contracts.rooms import KINDS, Row, session


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place where heads are remembered: that there is none is logged once a process."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


PLAIN: Sequence[Row] = [("u1", 500.0, 3, 1, "F", "smith", "2026-11-03", "no")]
# What arithmetic, casts, dates and texts could stumble over; and a unit of many rows.
HOSTILE: Sequence[Row] = [
    ("u1", 0.0, 0, 0, "F", "", "2026-11-01", "no"),
    ("u1", 0.0, 0, 0, "M", "smith", "2026-11-01", "yes"),
    ("u2", float("nan"), None, None, None, None, None, None),
    ("u3", float("inf"), 2**63 - 1, 99, "F\x00", "\x00'\"%_\\", "9999-12-31", "maybe"),
    ("u4", float("-inf"), -(2**63), -1, "", "\U0010ffff" * 99, "0001-01-01", ""),
    ("u5", 5e-324, 10**7, 9, "f", "SMITH", "no date", "YES"),
    ("u6", 1.7e308, -1, 10, "F ", " ", "2026-02-30", "no"),
    ("", -0.0, 1, 5, "M", "NULL", "2026-11-30", "yes"),
    (None, 1000.0, 1, 5, "M", "nan", "", "yes"),
    *[("u7", float(place), place, place, "M", "clerk", "2026-11-30", "yes") for place in range(60)],
]


@contextmanager
def raising(seen: list[str]) -> Iterator[None]:
    """Warnings are errors, and numpy raises."""
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        yield


@contextmanager
def strictest(seen: list[str]) -> Iterator[None]:
    """Torch looks for anomalies, too."""
    with raising(seen), torch.autograd.set_detect_anomaly(True):
        yield


@contextmanager
def calling(seen: list[str]) -> Iterator[None]:
    """Every warning is kept, and numpy calls."""
    with warnings.catch_warnings(record=True) as kept:
        warnings.simplefilter("always")
        with np.errstate(all="call", call=lambda kind, flag: seen.append(kind)):
            yield
    seen += [str(each.message) for each in kept]


@contextmanager
def default(seen: list[str]) -> Iterator[None]:
    """The settings of a new process."""
    with warnings.catch_warnings(record=True) as kept:
        warnings.simplefilter("default")
        yield
    seen += [str(each.message) for each in kept]


SETTINGS: Sequence[Callable[[list[str]], Any]] = (default, calling, strictest)


def visible(kind: str, folder: Path, rows: Sequence[Row], setting: Callable[..., Any]) -> bytes:
    """All that is seen of a task but released numbers, as bytes."""
    seen: list[str] = []
    hooks = [(threading, "excepthook"), (sys, "unraisablehook")]
    before = [getattr(module, name) for module, name in hooks]
    folder.mkdir()
    with session(folder, rows) as here:
        for module, name in hooks:
            setattr(module, name, lambda failure: seen.append(str(failure.exc_value)))
        try:
            with logs() as lines, setting(seen):
                outcome = _outcome(KINDS[kind], here)
        finally:
            for (module, name), hook in zip(hooks, before, strict=True):
                setattr(module, name, hook)
        budget = here.budget.to_json()
    return json.dumps([outcome, budget, seen, lines], sort_keys=True, default=str).encode()


def _outcome(ask: Callable[[sf.Session], object], here: sf.Session) -> list[object]:
    """The kind of what a task hands out, its cost and its form; or its error."""
    try:
        made = ask(here)
    except sf.SfumatoError as error:
        return [type(error).__name__, str(error), str(error.__context__)]
    parts = made if isinstance(made, tuple | list) else [made]
    return [_public(part) for part in parts]


def _public(part: object) -> Mapping[str, object]:
    """What an object shows besides released numbers."""
    shown: dict[str, object] = {"type": type(part).__name__}
    if isinstance(part, Answer):
        open_keys = part.form["columns"][0]["name"] == "job"
        shown["answer"] = blanked(part, open_keys=open_keys)
    if isinstance(part, Exception):
        shown["error"] = str(part)
    shown["cost"] = repr(getattr(part, "cost", ""))
    return shown


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_is_seen_of_every_kind_of_task_whatever_rows_there_are(
    kind: str,
    setting: Callable[..., Any],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    hostile = visible(kind, tmp_path / "hostile", HOSTILE, setting)
    printed = capfd.readouterr()
    plain = visible(kind, tmp_path / "plain", PLAIN, setting)
    assert hostile == plain and printed == capfd.readouterr()
    assert b"EngineFailed" not in plain


@pytest.mark.parametrize("setting", [default, calling, raising], ids=lambda each: each.__name__)
def test_a_charge_that_is_not_silent_shows_its_rows(
    setting: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charge, "SILENCE", nullcontext())
    hostile = visible("network", tmp_path / "hostile", HOSTILE, setting)
    assert hostile != visible("network", tmp_path / "plain", PLAIN, setting)
