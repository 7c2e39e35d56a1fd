# SPDX-License-Identifier: Apache-2.0
"""Rows that are handed to a mechanism, or to an answer, in the wrong place are not quoted by any error."""

import inspect
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import mechanisms
from sfumato.metadata.column import Integer
from sfumato.privacy.distance import Distance, Norm
from tests.attacks.canaries import CANARY, Bird, attempt

Call = tuple[Callable[..., object], dict[str, object]]

ROWS = {"who": [f"{CANARY} {place}" for place in range(3)]}
# what prints itself: a frame of each kind, and a list of texts
BIRDS = [pd.DataFrame(ROWS), pa.table(ROWS), pl.DataFrame(ROWS), Bird(), [CANARY] * 3, {CANARY: CANARY}]
ROW = Distance(Norm.L1, Fraction(1))
CELL = Distance(Norm.LINF, Fraction(1))
WHOLE = {"distance": ROW, "epsilon": 1, "lower": 0, "upper": 8}


def makers() -> dict[str, Call]:
    """Each public function of ``mechanisms`` that is about rows, with arguments that are right."""
    return {
        "mean": (mechanisms.mean, WHOLE),
        "variance": (mechanisms.variance, WHOLE),
        "median": (mechanisms.median, WHOLE),
        "quantile": (mechanisms.quantile, {**WHOLE, "q": "0.5"}),
        "quantiles": (mechanisms.quantiles, {**WHOLE, "q": ["0.5"]}),
        "bounds": (mechanisms.bounds, {**WHOLE, "failure": "0.1"}),
        "mode": (mechanisms.mode, {"distance": ROW, "epsilon": 1, "candidates": ["a", "b"]}),
        "representative": (
            mechanisms.representative,
            {"distance": ROW, "epsilon": 1, "candidates": ["a", "b"], "far": lambda one, row: 1, "cap": 4},
        ),
        "vector": (mechanisms.vector, {"distance": ROW, "cells": 3, "epsilon": 1}),
        "add_saturating": (mechanisms.add_saturating, {"exact": [1], "noise": [1]}),
        "on_lattice": (mechanisms.on_lattice, {"values": [1], "within": Integer(0, 9), "imputed": 1}),
        "report_noisy_max": (mechanisms.report_noisy_max, {"distance": CELL, "epsilon": 1}),
        "randomized_response": (mechanisms.randomized_response, {"epsilon": 1, "categories": 3}),
        "laplace": (mechanisms.laplace, {"distance": ROW, "epsilon": 1}),
        "geometric": (mechanisms.geometric, {"distance": ROW, "epsilon": 1}),
    }


def handed(name: str, call: Callable[..., object], right: Mapping[str, object]) -> list[str]:
    """Where a canary is seen when rows are given for each argument in turn.

    In the place of a ``Distance`` or a type of column Python's own AttributeError holds them, and quotes nothing.
    """
    return [
        f"{name}({argument}={type(bird).__name__}): {each}"
        for argument in right
        for bird in BIRDS
        for each in attempt(lambda argument=argument, bird=bird: call(**{**right, argument: bird}))[1]
        if argument not in ("distance", "within") or not each.startswith(("AttributeError.obj", "AttributeError holds"))
    ]


@pytest.mark.parametrize("name", makers())
def test_rows_in_the_place_of_a_parameter_are_not_quoted(name):
    assert handed(name, *makers()[name]) == []


def released() -> dict[str, object]:
    """Mechanisms that take rows."""
    skipped = ("add_saturating", "on_lattice", "randomized_response")
    return {name: call(**right) for name, (call, right) in makers().items() if name not in skipped}


@pytest.mark.parametrize("name", released())
def test_rows_that_cannot_be_released_are_not_quoted(name):
    release = released()[name].release
    (first, *_) = inspect.signature(release).parameters
    assert handed(name, release, {first: [1, 2, 3]}) == []


def test_arguments_of_answers_and_previews_are_not_quoted(tmp_path):
    people = sf.Table(pa.table({"age": [1, 2, 3]}), columns={"age": sf.Integer(0, 9)})
    with sf.connect({"t": people}, dataset="d", budget=sf.Budget(9), ledger=tmp_path / "l.db") as session:
        answer = session.query("SELECT COUNT(*) FROM t", epsilon=1)
        preview = session.preview("SELECT COUNT(*) FROM t", epsilon=1)
    found = handed("answer.error", answer.error, {"confidence": "0.9"})
    found += handed("answer.plot", answer.plot, {"column": None})
    found += handed("preview.error", preview.error, {"confidence": "0.9"})
    assert found == []


def test_a_mechanism_that_quotes_its_argument_is_seen(monkeypatch):
    monkeypatch.setattr(sys.modules["sfumato.mechanisms.representative"], "shown", repr)
    assert handed("representative", *makers()["representative"])
